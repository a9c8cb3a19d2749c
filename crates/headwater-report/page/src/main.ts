// Reads the data and builds the page: verdict and ranking at once, what is drawn in the frames after.
import { about } from "./about";
import { mountCard } from "./card";
import type { Page } from "./data";
import { el, icon, svg } from "./dom";
import { heat } from "./heat";
import { network } from "./network";
import { opinions } from "./opinions";
import { Report } from "./report";
import { follow } from "./route";
import { keepTheme } from "./state";
import "./style.css";
import { table } from "./table";
import { timeBar } from "./time";
import { mountTip } from "./tip";
import { verdict } from "./verdict";

const NAMES: Record<string, string> = { verdict: "Verdict", ranking: "Ranking", network: "Network", opinions: "Opinions", weights: "Weights", quality: "Data", method: "Method", about: "About" };

function header(report: Report, sections: HTMLElement[]): HTMLElement {
  const toggle = el("button", { type: "button", class: "theme" });
  const label = (): void => {
    const dark = report.theme.value === "dark";
    toggle.replaceChildren(icon(dark ? "sun" : "moon"), el("span", {}, dark ? "Light" : "Dark"));
  };
  label();
  report.theme.on(label);
  toggle.addEventListener("click", () => {
    const next = report.theme.value === "dark" ? "light" : "dark";
    report.theme.set(next);
    keepTheme(next);
  });
  const mark = svg("svg", { class: "mark", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: "M12 2.5c4 5 6 8.2 6 11.3a6 6 0 0 1-12 0C6 10.7 8 7.5 12 2.5z" }), svg("path", { class: "wave", d: "M8.6 14.2c1.1-1 2.2-1 3.4 0s2.3 1 3.4 0" }));
  const links = sections.map(({ id }) => el("li", {}, el("a", { href: `#${id}` }, NAMES[id] ?? id)));
  return el("header", { class: "top" }, el("p", { class: "brand" }, mark, "Headwater"), el("nav", { "aria-label": "Sections" }, el("ul", {}, ...links)), toggle);
}

/** Paper is light, whatever the screen is. */
function printLight(report: Report): void {
  let screen = report.theme.value;
  window.addEventListener("beforeprint", () => {
    screen = report.theme.value;
    report.theme.set("light");
  });
  window.addEventListener("afterprint", () => report.theme.set(screen));
}

function start(): void {
  const app = document.getElementById("app");
  const data = document.getElementById("data");
  if (!app || !data) return;
  const report = new Report(JSON.parse(data.textContent ?? "") as Page);
  const graph = network(report);
  const beliefs = opinions(report);
  const weights = heat(report);
  const sections = [verdict(report), table(report), graph.element, ...(beliefs ? [beliefs.element] : []), ...(weights ? [weights.element] : []), ...about(report)];
  app.tabIndex = -1;
  app.append(...sections);
  const bar = timeBar(report);
  // With the ranking it moves, and in view as long as ranking and network are.
  if (bar) app.insertBefore(el("div", { class: "timed" }, bar, sections[1], sections[2]), sections[3] ?? null);
  document.body.prepend(el("a", { class: "skip", href: "#app" }, "Skip to the verdict"), header(report, sections));
  document.body.append(el("footer", {}, el("p", {}, "Made by Headwater")));
  mountTip();
  printLight(report);
  follow(report);

  // A drawing per frame keeps the page answering while it comes up.
  const rest = [graph.start, beliefs?.start, weights?.start, () => mountCard(report), () => (document.documentElement.dataset.ready = String(Math.round(performance.now())))];
  const next = (): void => {
    rest.shift()?.();
    while (rest.length > 0 && rest[0] === undefined) rest.shift();
    if (rest.length > 0) requestAnimationFrame(() => setTimeout(next));
  };
  requestAnimationFrame(() => setTimeout(next));
}

start();

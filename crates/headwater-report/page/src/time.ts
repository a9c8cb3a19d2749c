// The slider through the history of a tracked model, for ranking and network.
import { el, icon } from "./dom";
import { shortTime } from "./numbers";
import type { Report } from "./report";
import { still } from "./webgl";

/** Milliseconds per snapshot when it plays by itself. */
const PACE = 900;

export function timeBar(report: Report): HTMLElement | null {
  const { history } = report;
  if (history.length === 0) return null;
  const slider = el("input", { type: "range", id: "time", min: 0, max: history.length, step: 1 });
  slider.value = String(history.length);
  const now = el("output", { for: "time" });
  const say = (): void => {
    const snapshot = report.time.value === null ? undefined : history[report.time.value];
    const text = snapshot ? shortTime(snapshot.time) : "Final model";
    now.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  };
  const go = (stop: number): void => {
    slider.value = String(stop);
    report.time.set(stop >= history.length ? null : stop);
  };
  slider.addEventListener("input", () => {
    pause();
    go(Number(slider.value));
  });
  report.time.on(say);

  let timer: number | undefined;
  const play = el("button", { type: "button", class: "square", "aria-label": "Play", title: "Play" }, icon("play"));
  function pause(): void {
    window.clearInterval(timer);
    timer = undefined;
    play.replaceChildren(icon("play"));
    play.setAttribute("aria-label", "Play");
  }
  play.addEventListener("click", () => {
    if (timer !== undefined) return pause();
    if (report.time.value === null) go(0);
    play.replaceChildren(icon("pause"));
    play.setAttribute("aria-label", "Pause");
    timer = window.setInterval(() => {
      go(Number(slider.value) + 1);
      if (report.time.value === null) pause();
    }, PACE);
  });
  say();
  return el("div", { class: "time-bar", role: "group", "aria-label": "Time of ranking and network" }, el("label", { for: "time" }, "As of"), !still() && play, slider, now);
}

// What the numbers rest on: the data, the method, how to cite it, and what the page leaves off.
import { el, pairs, section } from "./dom";
import type { Report } from "./report";

export function about(report: Report): HTMLElement[] {
  const { quality, method, cite, left_off } = report.page;
  const tables = (rows: [string, string][]) => pairs(rows.map(([label, value]) => [label, /^[0-9a-f]{32,}$/.test(value) ? el("code", {}, value) : value]));
  return [
    ...(quality.length > 0 ? [section("quality", "The data", "What was read, kept and left out, and how much silence there is.", tables(quality))] : []),
    ...(method.length > 0 ? [section("method", "The method", "What was run, so that it can be run again.", tables(method))] : []),
    section(
      "about",
      "About this page",
      null,
      left_off.length > 0 && el("div", {}, el("h3", {}, "Left off, so that the page stays quick"), el("ul", {}, ...left_off.map((sentence) => el("li", {}, sentence)))),
      el("p", {}, "Influence is what this model of opinion says about these data; it is not proof that anybody convinced anybody. The page is one file: it works offline, asks for nothing from the network and can be sent as it is."),
      cite.length > 0 && el("div", {}, el("h3", {}, "How to cite"), el("ul", { class: "cite" }, ...cite.map((line) => el("li", {}, line)))),
    ),
  ];
}

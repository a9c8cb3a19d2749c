// The data, the method, the citation, and what was left out of the page.
import { el, pairs, section } from "./dom";
import type { Report } from "./report";

export function about(report: Report): HTMLElement[] {
  const { quality, method, cite, left_off } = report.page;
  const tables = (rows: [string, string][]) => pairs(rows.map(([label, value]) => [label, /^[0-9a-f]{32,}$/.test(value) ? el("code", {}, value) : value]));
  return [
    ...(quality.length > 0 ? [section("quality", "The data", "What was read, kept and left out, and the share of silence.", tables(quality))] : []),
    ...(method.length > 0 ? [section("method", "The method", "Method, options and versions, so that the run can be repeated.", tables(method))] : []),
    section(
      "about",
      "About this page",
      null,
      left_off.length > 0 && el("div", {}, el("h3", {}, "Left out to keep the page small"), el("ul", {}, ...left_off.map((sentence) => el("li", {}, sentence)))),
      el("p", {}, "Influence is an estimate under this model of opinion; it does not prove that anybody convinced anybody. The page is one file: it works offline and loads nothing from the network."),
      report.page.opinions?.zone && el("p", {}, `Dates and times on this page are on the local clock of ${report.page.opinions.zone}.`),
      cite.length > 0 && el("div", {}, el("h3", {}, "How to cite"), el("ul", { class: "cite" }, ...cite.map((line) => el("li", {}, line)))),
    ),
  ];
}

// The first section: who is most influential, whether the data support it, and what was assumed.
import { INKS, mix } from "./colour";
import { bdi, el, icon, style } from "./dom";
import { count, percent, plural, shortTime } from "./numbers";
import type { Report, Standing } from "./report";
import { open } from "./route";

const BADGES = {
  supported: ["check", "Supported by the data"],
  "no-evidence": ["none", "No evidence"],
  "not-tested": ["question", "Not tested"],
} as const;

/** What an outcome means, by the test that decided. */
const MEANINGS = {
  "graph-test": {
    supported: "Opinion travels along the given graph more than along graphs like it; common news alone cannot do that.",
    "no-evidence": "Opinion does not travel along the given graph more than along graphs like it; the ranking may be due to chance.",
  },
  "speaker-heard": {
    supported: "The graph cannot be compared with graphs like it, but some account is ahead of the others again and again; an account that reads the news first would be, too.",
    "no-evidence": "The graph cannot be compared with graphs like it, and no account is ahead of the others again and again; the ranking may be due to chance.",
  },
  "circular-shifts": {
    supported: "Held-out forecasts beat every baseline, and the permutation test is significant at 5 %; common news can do that as well.",
    "no-evidence": "The forecasts do not beat every baseline, or the permutation test is not significant; the ranking may be due to chance.",
  },
} as const;

const UNTESTED = "No test was run; whether the data support the ranking is not known.";

/** The most segments that can be told apart. */
const SEGMENTS = 6;

export function verdict(report: Report): HTMLElement {
  const { verdict: found, title } = report.page;
  const [sign, label] = BADGES[found.outcome];
  const meaning = found.outcome === "not-tested" ? UNTESTED : MEANINGS[found.test ?? "circular-shifts"][found.outcome];
  const limited = found.outcome === "supported" && !found.common_news_excluded ? ", common news not excluded" : "";
  const list = (heading: string, sentences: string[], className: string) =>
    sentences.length > 0 && el("div", { class: `note ${className}` }, el("h2", {}, heading), el("ul", {}, ...sentences.map((sentence) => el("li", {}, sentence))));
  const notes = [list("What was tested", found.tested ?? [], "tested"), list("What to try next", found.next ?? [], "next"), list("Uncertainty", found.sure, "sure"), list("Assumptions", found.assumed, "assumed"), list("Warnings", found.warnings, "warning")];
  return el(
    "section",
    { id: "verdict", class: "verdict", "aria-labelledby": "headline" },
    el("p", { class: "kicker" }, title),
    el("h1", { id: "headline" }, found.headline),
    el("p", { class: `badge badge-${found.outcome}` }, icon(sign), el("strong", {}, label + limited), el("span", {}, meaning)),
    el("p", { class: "words" }, found.text),
    report.supported && strip(report),
    facts(report),
    el("div", { class: "notes" }, ...notes),
  );
}

/** Shares of influence as one bar. */
function strip(report: Report): HTMLElement | null {
  const size = ({ share }: Standing): number => Math.abs(share);
  const standings = report.standings().filter((standing) => standing.share !== 0).sort((a, b) => size(b) - size(a));
  const total = standings.reduce((sum, standing) => sum + size(standing), 0);
  if (standings.length < 2 || !(total > 0)) return null;
  const named = standings.filter((standing, index) => index < SEGMENTS && size(standing) / total >= 0.03);
  if (named.length === 0) named.push(...standings.slice(0, 3));
  const others = standings.length - named.length;
  const rest = Math.max(0, 1 - named.reduce((sum, standing) => sum + size(standing), 0) / total);
  const bar = el("div", { class: "strip-bar", "aria-hidden": "true" });
  const swatches: HTMLElement[] = [];
  const swatch = (): HTMLElement => {
    const mark = el("i", { class: "swatch", "aria-hidden": "true" });
    swatches.push(mark);
    return mark;
  };
  const item = (standing: Standing) =>
    el("li", {}, swatch(), el("button", { type: "button", class: "link", onclick: () => open(report, standing.agent) }, bdi(standing.name)), el("span", { class: "figure" }, percent(standing.share)));
  const items = named.map(item);
  if (others > 0) items.push(el("li", { class: "muted" }, swatch(), plural(others, "other"), el("span", { class: "figure" }, percent(rest))));
  const parts = [...named.map((standing) => size(standing) / total), ...(others > 0 ? [rest] : [])].map((part) => style(el("i"), { flexGrow: String(part) }));
  bar.append(...parts);
  const paint = (): void => {
    const { accent, paper, line } = INKS[report.theme.value];
    [parts, swatches].forEach((marks) => {
      marks.forEach((mark, index) => {
        mark.style.background = index < named.length ? mix(accent, paper, (0.72 * index) / Math.max(1, named.length)) : line;
      });
    });
  };
  paint();
  report.theme.on(paint);
  return el("div", { class: "strip" }, el("h2", { class: "small-head" }, "Shares of influence"), bar, el("ul", { class: "strip-list" }, ...items));
}

function facts(report: Report): HTMLElement {
  const { agents, hypotheses, network, opinions, ranking, truth } = report.page;
  const fact = (value: Node | string, label: string) => el("li", {}, el("strong", {}, value), el("span", {}, label));
  const times = opinions?.times ?? [];
  // What a given network settles on needs no support.
  const found = report.supported || report.page.ranking.verdict.given === true;
  return el(
    "ul",
    { class: "facts" },
    fact(count(agents.length), agents.length === 1 ? "agent" : "agents"),
    fact(count(network.edges), network.given ? "edges within the given graph" : "edges"),
    found && fact(bdi(hypotheses[truth] ?? ""), "is the hypothesis the network settles on"),
    found && Number.isFinite(ranking.agreement) && fact(el("span", { "data-field": "agreement", "data-value": ranking.agreement }, percent(ranking.agreement)), "of agents agree"),
    ...(times.length > 0 ? [fact(`${shortTime(times[0] ?? "")} – ${shortTime(times[times.length - 1] ?? "")}`, `${plural(times.length * (opinions?.merged ?? 1), "time step")}${opinions?.zone ? `, ${opinions.zone}` : ""}`)] : []),
  );
}

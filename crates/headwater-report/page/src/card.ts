// The agent's card: reasons for the rank, sources of the belief, agents influenced, effect of a removal.
import { chart, type Chart } from "./chart";
import { opinionWords } from "./colour";
import type { Card } from "./data";
import { bdi, el, icon, pairs, style } from "./dom";
import { figure, percent, print, significant } from "./numbers";
import { ends, type Report, type Standing } from "./report";
import { close, open } from "./route";

/** Smaller weights are rounding errors. */
const ROUNDING = 1e-9;

export function mountCard(report: Report): void {
  const body = el("div", { class: "card-body" });
  const dialog = el("dialog", { class: "card", "aria-labelledby": "card-title" }, body);
  let plot: Chart | null = null;
  document.body.append(dialog);

  const show = (agent: number | null): void => {
    plot?.destroy();
    plot = null;
    if (agent === null) {
      if (dialog.open) dialog.close();
      return;
    }
    const { parts, start } = content(report, agent);
    body.replaceChildren(...parts);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    body.querySelector<HTMLElement>("h2")?.focus({ preventScroll: true });
    plot = start();
  };
  // Esc. The browser tells of a closed dialog only later, when another card may be open already.
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    close(report);
  });
  dialog.addEventListener("close", () => !dialog.open && report.chosen.value !== null && close(report));
  dialog.addEventListener("click", (event) => event.target === dialog && close(report));
  report.chosen.on(show);
  show(report.chosen.value);
}

function content(report: Report, agent: number): { parts: Node[]; start: () => Chart | null } {
  const standing = report.standing(agent);
  const card = report.card(agent);
  const name = report.name(agent);
  const words = opinionWords(report, agent);
  const head = el(
    "header",
    {},
    el("p", { class: "card-rank" }, standing ? `Rank ${standing.rank} of ${report.rows.length}` : "Not ranked"),
    el("h2", { id: "card-title", tabindex: "-1" }, bdi(name)),
    words !== "" && el("p", { class: "muted" }, `Mean over all posts: ${words}`),
    el("button", { type: "button", class: "square close", "aria-label": "Close", onclick: () => close(report) }, icon("close")),
  );
  const parts: Node[] = [head];
  if (report.time.value !== null) parts.push(el("p", { class: "hint" }, "This card shows the final model, not the time chosen on the slider."));
  if (!report.supported) parts.push(el("p", { class: "hint" }, report.page.verdict.outcome === "no-evidence" ? "No evidence: the numbers on this card are estimates that the data do not support." : "Not tested: whether the data support the numbers on this card is not known."));
  if (standing) parts.push(product(standing));
  if (card) parts.push(...explained(report, card));
  else parts.push(el("p", { class: "hint" }, "The explanation of this agent was left out to keep the page small; ", el("code", {}, "headwater explain"), " prints it."));
  const others = standing && rest(standing);
  if (others) parts.push(others);

  const given = report.page.opinions;
  if (!given || given.times.length === 0) return { parts, start: () => null };
  const { reference, hypotheses } = report.page;
  const plot = chart(report, 200, `Belief of ${name} over time`, given.changes.map(([bin, kind]) => [bin, kind]));
  parts.splice(parts.length - (others ? 1 : 0), 0, block("Belief over time", el("p", { class: "muted small" }, "Belief in ", bdi(hypotheses[reference] ?? ""), "; dashed: the mean of the agents with a post. Gaps are silence."), plot.element));
  return {
    parts,
    start() {
      plot.show(
        [
          { label: name, values: report.said(agent, reference), ink: "shapes", width: 2 },
          { label: "Mean", values: report.meanOf(reference), ink: "accent", width: 1.5, dash: [5, 4] },
        ],
        [],
      );
      return plot;
    },
  };
}

function block(title: string, ...children: (Node | string | null | false)[]): HTMLElement {
  return el("section", { class: "block" }, el("h3", {}, title), ...children);
}

/** Centrality × informativeness = influence. */
function product({ centrality, informativeness, influence, share, row }: Standing): HTMLElement {
  const tile = (field: string, value: number, label: string) => el("div", { class: "tile" }, figure(field, value, "number"), el("span", {}, label));
  const sign = (text: string) => el("span", { class: "sign", "aria-hidden": "true" }, text);
  const between = ends(row);
  const range = between ? `90% interval ${print(between[0], "share")} to ${print(between[1], "share")}` : "no interval was computed";
  return el(
    "div",
    { class: "product" },
    el("div", { class: "tiles" }, tile("centrality", centrality, "centrality: weight in the network"), sign("×"), tile("informativeness", informativeness, "informa\u00ADtiveness: own evidence"), sign("="), tile("influence", influence, "influence")),
    el("p", {}, el("strong", {}, percent(share)), ` of all influence; ${range}.`),
  );
}

function explained(report: Report, card: Card): Node[] {
  const parts: Node[] = [];
  if (card.why.length > 0) parts.push(block("Reasons for the rank", el("ul", { class: "why" }, ...card.why.map((sentence) => el("li", {}, sentence)))));
  const largest = Math.max(1e-9, ...card.shaped_by.map(([, part]) => Math.abs(part)), ...card.shapes.map(([, part]) => Math.abs(part)));
  parts.push(
    block(
      "Sources of the belief",
      el("p", { class: "muted small" }, `Share of the expected belief that originates with each agent. Self-weight: ${significant(card.self_weight)}.`),
      bars(report, card.agent, card.shaped_by.map(([agent, part, weight]) => [agent, part, agent === card.agent ? "own evidence" : Math.abs(weight) < ROUNDING ? "only through others" : `direct weight ${significant(weight)}`]), largest),
    ),
    block("Agents influenced", el("p", { class: "muted small" }, "Share of their expected belief that originates with this agent."), bars(report, card.agent, card.shapes.map(([agent, part]) => [agent, part, ""]), largest)),
  );
  if (card.paths.length > 0) {
    parts.push(
      block(
        "Strongest paths to this agent",
        el(
          "ol",
          { class: "paths" },
          ...card.paths.map(([agents, strength]) =>
            el("li", {}, el("span", { class: "chain" }, ...agents.flatMap((agent, index) => [...(index > 0 ? [el("span", { class: "to", role: "img", "aria-label": "to" }, "→")] : []), link(report, agent)])), el("span", { class: "muted figure" }, significant(strength))),
          ),
        ),
      ),
    );
  }
  if (report.supported) parts.push(block("Effect of a removal", ...gone(report, card)));
  return parts;
}

function gone(report: Report, { without }: Card): Node[] {
  if (!without) return [el("p", { class: "muted" }, "The agent cannot be removed: nobody would be left, or the rest would not be strongly connected.")];
  const mark = (value: number, className: string) => style(el("i", { class: className }), { left: `${100 * value}%` });
  const span = style(el("i", { class: "span" }), { left: `${100 * Math.min(without.before, without.after)}%`, width: `${100 * Math.abs(without.after - without.before)}%` });
  return [
    el("p", {}, without.words),
    el("div", { class: "gone", role: "img", "aria-label": `Belief of the others: ${percent(without.before)} with this agent, ${percent(without.after)} without` }, span, mark(without.before, "before"), mark(without.after, "after")),
    el("p", { class: "muted small gone-key" }, el("span", { class: "key-before" }, `with this agent ${percent(without.before)}`), el("span", { class: "key-after" }, `without ${percent(without.after)}`)),
    ...(without.most.length > 0 ? [el("p", { class: "muted small" }, "Most affected:"), el("ul", { class: "plain" }, ...without.most.map(([agent, before, after]) => el("li", {}, link(report, agent), el("span", { class: "figure" }, `${percent(before)} → ${percent(after)}`))))] : []),
  ];
}

const link = (report: Report, agent: number): HTMLElement => el("button", { type: "button", class: "link", onclick: () => open(report, agent) }, bdi(report.name(agent)));

function bars(report: Report, self: number, rows: [agent: number, part: number, note: string][], largest: number): HTMLElement {
  if (rows.length === 0) return el("p", { class: "muted" }, "None.");
  return el(
    "ul",
    { class: rows.some(([, , note]) => note !== "") ? "bars noted" : "bars" },
    ...rows.map(([agent, part, note]) =>
      el("li", {}, agent === self ? el("span", {}, "self") : link(report, agent), el("span", { class: "bar", "aria-hidden": "true" }, style(el("i", { class: part < 0 ? "fill below" : "fill" }), { width: `${(100 * Math.abs(part)) / largest}%` })), el("span", { class: "figure", title: note || undefined }, percent(part)), note !== "" && el("span", { class: "muted small note-line" }, note)),
    ),
  );
}

/** Other columns of the ranking. */
function rest({ row }: Standing): HTMLElement | null {
  if (!row) return null;
  const lines: [string, string, number | undefined, "share" | "number" | "count"][] = [
    ["P-value", "p_value", row.p_value, "number"],
    ["Top-k probability", "top_k_probability", row.top_k_probability, "share"],
    ["Origin: share of the mean opinion", "origin", row.origin, "number"],
    ["Error probability", "error_probability", row.error_probability, "number"],
    ["Posts", "posts", row.posts, "count"],
    ["Share of steps without a post", "silent_share", row.silent_share, "share"],
    ["Followers", "in_degree", row.in_degree, "count"],
    ["PageRank", "pagerank", row.pagerank, "number"],
  ];
  const known = lines.flatMap(([label, field, value, kind]) => (value === undefined ? [] : [[label, figure(field, value, kind)] as [string, Node]]));
  return block("More numbers", pairs(known, "pairs compact"));
}

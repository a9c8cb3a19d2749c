// Opinions over time: the mean, all agents in the background, and the highlighted agent.
import { chart, spokeWords } from "./chart";
import { bdi, el, section } from "./dom";
import { count, shortTime } from "./numbers";
import type { Report } from "./report";

/** Faint lines that can still be drawn quickly and seen. */
const FAINT = 400;
/** Names that the field offers; others can be typed. */
const CHOICES = 300;

const CHANGES: Record<string, string> = {
  topology: "who listens to whom changed",
  state: "the true hypothesis changed",
  likelihoods: "the distribution of private observations changed",
};

export function opinions(report: Report): { element: HTMLElement; start: () => void } | null {
  const given = report.page.opinions;
  if (!given || given.times.length === 0) return null;
  const { hypotheses, reference } = report.page;
  const plot = chart(report, 340, "Beliefs over time", given.changes.map(([bin, kind]) => [bin, kind]));
  const select = el("select", { id: "hypothesis" }, ...hypotheses.map((name, index) => el("option", { value: index, selected: index === reference }, name)));
  // The agent of the last open card stays highlighted until the field is emptied.
  const pick = el("input", { type: "text", id: "highlight", list: "highlight-names", autocomplete: "off", spellcheck: "false", placeholder: "An agent" });
  const choices = el("datalist", { id: "highlight-names" }, ...report.standings().slice(0, CHOICES).map(({ name }) => el("option", { value: name })));
  const faint = report.standings().slice(0, FAINT).map(({ agent }) => agent);

  const draw = (): void => {
    const hypothesis = Number(select.value);
    const chosen = pick.value === "" ? null : (report.find(pick.value) ?? null);
    const lines = [{ label: "Mean", values: report.meanOf(hypothesis), ink: "accent" as const, width: 3 }];
    const picked = chosen === null ? [] : [{ label: report.name(chosen), values: report.said(chosen, hypothesis), ink: "shapes" as const, width: 1.75 }];
    plot.show([...picked, ...lines], faint.map((agent) => report.said(agent, hypothesis)));
  };
  select.addEventListener("change", draw);
  pick.addEventListener("change", draw);

  const changes = [...given.changes].sort((a, b) => a[0] - b[0]);
  const list = changes.map(([bin, kind, listeners]) =>
    el(
      "li",
      {},
      el("strong", {}, shortTime(given.times[bin] ?? "")),
      ` ${CHANGES[kind] ?? kind}`,
      ...listeners.slice(0, 12).flatMap((agent, index) => [index === 0 ? ", for " : ", ", bdi(report.name(agent))]),
      listeners.length > 12 ? ` and ${count(listeners.length - 12)} more` : "",
    ),
  );
  const element = section(
    "opinions",
    "Opinions over time",
    `The bold line is the mean over the agents with a post, the bars below it show how many those are${spokeWords(report) === "" ? "" : ` (${spokeWords(report)})`}, the faint lines are ${report.rows.length > FAINT ? `the first ${FAINT} agents by rank` : "single agents"}${given.merged > 1 ? `; ${given.merged} time steps are merged into one point` : ""}. Gaps are silence.${given.zone ? ` Times are local, ${given.zone}.` : ""}`,
    el("div", { class: "tools" }, el("label", { for: "hypothesis" }, "Belief in"), select, el("label", { for: "highlight" }, "Highlight"), pick, choices),
    plot.element,
    list.length > 0 && el("div", {}, el("h3", {}, "What changed"), el("ul", { class: "changes" }, ...list)),
  );
  return {
    element,
    start() {
      draw();
      report.chosen.on((agent) => {
        if (agent === null) return;
        pick.value = report.name(agent);
        draw();
      });
    },
  };
}

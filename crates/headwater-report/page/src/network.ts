// The network with its filters, its legend, and a list of agents for the keyboard.
import { INKS, believed, hypothesisColour, leaningColour, opinionColour, opinionWords } from "./colour";
import { bdi, eachFrame, el, icon, section, style } from "./dom";
import { drawing, drawn } from "./drawing";
import { count, percent, plural, significant } from "./numbers";
import type { Report } from "./report";
import { open } from "./route";
import { Scene, VISIBLE } from "./scene";
import { hideTip, showTip } from "./tip";
import { hasWebgl, webgl } from "./webgl";

export interface Stage {
  /** Draws again; sizes and colours only, unless edges came or went. */
  refresh(edgesChanged: boolean): void;
  look(agent: number): void;
  /** Null shows everything. */
  zoom(factor: number | null): void;
}

export interface StageEvents {
  point(agent: number | null, x: number, y: number): void;
  choose(agent: number): void;
}

/** Names in the list at a time. */
const LISTED = 200;
/** Positions of the weight's slider. */
const STOPS = 200;

export function network(report: Report): { element: HTMLElement; start: () => void } {
  const { page, edges } = report;
  const scene = new Scene(report);
  const host = el("div", { class: "stage-canvas" });
  let stage: Stage | null = null;

  const light = (agent: number | null): void => {
    if (agent === scene.lit) return;
    scene.relight(agent);
    stage?.refresh(false);
  };
  const events: StageEvents = {
    point(agent, x, y) {
      light(agent ?? report.chosen.value);
      if (agent === null) hideTip();
      else showTip(x, y, ...tipFor(report, scene, agent));
    },
    choose: (agent) => open(report, agent),
  };

  const real = edges.weights.reduce((number, weight) => number + (weight === 0 ? 0 : 1), 0);
  const shown = el("output", { class: "muted", for: "weight-filter" });
  const say = (): void => {
    const least = scene.filter.weight > 0 ? `weight at least ${significant(scene.filter.weight)}` : "all weights";
    shown.textContent = `${count(scene.visible.length)} of ${plural(real, "edge")}: ${least}`;
  };
  const refilter = eachFrame(() => {
    scene.refilter();
    stage?.refresh(true);
    say();
  });

  const side = el(
    "div",
    { class: "side" },
    finder(report, light, (agent) => stage?.look(agent)),
    edges.weights.length > 0 && filters(report, scene, refilter, shown),
    legend(report),
  );
  const button = (name: "plus" | "minus" | "fit", label: string, act: () => void) => el("button", { type: "button", class: "square", "aria-label": label, title: label, onclick: act }, icon(name));
  const zooms = el("div", { class: "zooms" }, button("plus", "Zoom in", () => stage?.zoom(1.5)), button("minus", "Zoom out", () => stage?.zoom(1 / 1.5)), button("fit", "Show everything", () => stage?.zoom(null)));
  const figure = el("div", { class: "stage", role: "group", "aria-label": "Network drawing; use the list of agents beside it with the keyboard" }, host, zooms, el("p", { class: "stage-hint muted" }, el("span", { class: "fine-only" }, "Ctrl + scroll to zoom, drag to move"), el("span", { class: "coarse-only" }, "Two fingers zoom and move")));
  const paper = el("div", { class: "paper-only" });
  const element = section(
    "network",
    "The network",
    `An arrow points from the speaker to the listener. ${page.network.given ? "Only edges of the given graph are possible." : "No graph was given: any agent may listen to any other."}`,
    paper,
    el("div", { class: "network" }, figure, side),
    page.network.edges > edges.weights.length && el("p", { class: "muted" }, `The ${count(edges.weights.length)} strongest of ${plural(page.network.edges, "edge")} are shown.`),
  );
  say();

  function start(): void {
    try {
      stage = webgl(scene, host, events);
      figure.dataset.drawing = "webgl";
    } catch (error) {
      // Asked only now: the first context of a page is slow to come.
      if (hasWebgl()) throw error;
      host.replaceChildren();
      stage = drawn(scene, host, events);
      figure.dataset.drawing = "svg";
    }
    report.theme.on(() => stage?.refresh(false));
    report.time.on(() => {
      scene.retime();
      stage?.refresh(true);
      say();
    });
    report.chosen.on((agent) => light(agent));
    light(report.chosen.value);
    window.addEventListener("beforeprint", () => paper.replaceChildren(drawing(scene, "light")));
    window.addEventListener("afterprint", () => paper.replaceChildren());
  }
  return { element, start };
}

function tipFor(report: Report, scene: Scene, agent: number): (Node | string)[] {
  const words = opinionWords(report, agent);
  return [
    el("strong", {}, bdi(report.name(agent))),
    el("span", {}, `rank ${scene.ranks[agent]} · ${percent(scene.shares[agent] ?? 0)} of influence`),
    ...(words ? [el("span", {}, words)] : []),
  ];
}

/** A text field over a list: letters narrow it, arrows walk it and light up the network, Enter opens the card. */
function finder(report: Report, light: (agent: number | null) => void, look: (agent: number) => void): HTMLElement {
  const list = el("ul", { class: "agents", role: "listbox", id: "agent-list", "aria-label": "Agents by rank" });
  const more = el("p", { class: "muted small", role: "status" });
  const input = el("input", { type: "text", id: "agent-find", role: "combobox", "aria-expanded": "true", "aria-controls": "agent-list", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", placeholder: "Find an agent" });
  let active = -1;

  const options = (): HTMLElement[] => [...list.children] as HTMLElement[];
  const agentOf = (option: HTMLElement): number => Number(option.dataset.agent);
  function activate(index: number): void {
    options().forEach((option, place) => option.setAttribute("aria-selected", String(place === index)));
    active = index;
    const option = options()[index];
    if (!option) {
      input.removeAttribute("aria-activedescendant");
      return;
    }
    input.setAttribute("aria-activedescendant", option.id);
    // Only the list scrolls, not the page.
    const [top, bottom] = [option.offsetTop, option.offsetTop + option.offsetHeight];
    if (top < list.scrollTop) list.scrollTop = top;
    else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
    light(agentOf(option));
  }
  function draw(): void {
    const wanted = input.value.toLocaleLowerCase();
    const matching = report.standings().filter(({ name }) => name.toLocaleLowerCase().includes(wanted));
    list.replaceChildren(
      ...matching.slice(0, LISTED).map(({ agent, name, rank, share }) =>
        el("li", { role: "option", id: `agent-${agent}`, "aria-selected": "false", "data-agent": agent }, style(el("i", { class: "dot", "aria-hidden": "true" }), { background: opinionColour(report, agent, report.theme.value) }), el("span", { class: "muted figure" }, String(rank)), bdi(name), el("span", { class: "muted figure" }, percent(share))),
      ),
    );
    active = -1;
    input.removeAttribute("aria-activedescendant");
    more.textContent = matching.length === 0 ? "No agent with this name." : matching.length > LISTED ? `and ${plural(matching.length - LISTED, "other")}: search to find them` : "";
  }
  input.addEventListener("input", () => {
    draw();
    if (input.value !== "") activate(0);
    else light(report.chosen.value);
    const first = options()[0];
    if (input.value !== "" && first) look(agentOf(first));
  });
  input.addEventListener("keydown", (event) => {
    const last = options().length - 1;
    const option = options()[active];
    if (event.key === "ArrowDown") activate(Math.min(last, active + 1));
    else if (event.key === "ArrowUp") activate(Math.max(0, active - 1));
    else if (event.key === "Enter" && option) open(report, agentOf(option));
    else if (event.key === "Escape" && input.value) (input.value = ""), draw(), light(report.chosen.value);
    else return;
    event.preventDefault();
  });
  input.addEventListener("blur", () => light(report.chosen.value));
  const optionAt = (event: Event): HTMLElement | null => (event.target as Element).closest<HTMLElement>("[role=option]");
  list.addEventListener("pointerover", (event) => {
    const option = optionAt(event);
    if (option) light(agentOf(option));
  });
  list.addEventListener("pointerleave", () => light(report.chosen.value));
  list.addEventListener("mousedown", (event) => event.preventDefault()); // The field keeps the focus.
  list.addEventListener("click", (event) => {
    const option = optionAt(event);
    if (!option) return;
    input.focus({ preventScroll: true });
    open(report, agentOf(option));
  });
  draw();
  report.time.on(draw);
  report.theme.on(draw);
  return el("div", { class: "panel" }, el("label", { class: "search", for: "agent-find" }, icon("search"), el("span", { class: "hidden" }, "Find an agent"), input), list, more);
}

function filters(report: Report, scene: Scene, changed: () => void, shown: HTMLElement): HTMLElement {
  const { weights, p, significant: sure } = report.edges;
  const least = Math.max(0.1 * VISIBLE * report.strongest, weights.reduce((low, weight) => (weight !== 0 ? Math.min(low, Math.abs(weight)) : low), Infinity));
  const ratio = Math.log(report.strongest / least) || 1;
  // Weights span decades, so the slider goes by ratios; its first stop lets everything through.
  const weightAt = (stop: number): number => (stop <= 0 ? 0 : least * Math.exp((ratio * stop) / STOPS) * (1 - 1e-9));
  const slider = el("input", { type: "range", id: "weight-filter", min: 0, max: STOPS, step: 1 });
  const stop = scene.filter.weight > 0 ? Math.round((STOPS * Math.log(scene.filter.weight / least)) / ratio) : 0;
  slider.value = String(stop);
  scene.filter.weight = weightAt(stop);
  scene.refilter();
  const words = (): void => slider.setAttribute("aria-valuetext", scene.filter.weight > 0 ? `at least ${significant(scene.filter.weight)}` : "all");
  words();
  slider.addEventListener("input", () => {
    scene.filter.weight = weightAt(Number(slider.value));
    words();
    changed();
  });
  const choices: [string, string][] = [["all", "All edges"], ...(p ? ([["0.1", "p ≤ 0.1"], ["0.05", "p ≤ 0.05"], ["0.01", "p ≤ 0.01"]] as [string, string][]) : []), ...(sure ? ([["fdr", "Significant at 5% (Benjamini–Hochberg)"]] as [string, string][]) : [])];
  const select = el("select", { id: "significance-filter" }, ...choices.map(([value, label]) => el("option", { value }, label)));
  select.addEventListener("change", () => {
    scene.filter.p = Number(select.value) || 1;
    scene.filter.significant = select.value === "fdr";
    changed();
  });
  return el(
    "div",
    { class: "panel controls" },
    el("label", { for: "weight-filter" }, "Hide weak edges"),
    slider,
    shown,
    ...(p || sure ? [el("label", { for: "significance-filter" }, "Significance"), select] : [el("p", { class: "muted small" }, "The significance of edges was not tested.")]),
  );
}

function legend(report: Report): HTMLElement {
  const { page, edges } = report;
  const body = el("div", { class: "legend" });
  const line = (className: string, text: string) => el("li", {}, el("i", { class: `line ${className}`, "aria-hidden": "true" }), text);
  const draw = (): void => {
    const theme = report.theme.value;
    const dot = (colour: string) => style(el("i", { class: "dot", "aria-hidden": "true" }), { background: colour });
    const colours: Node[] = [];
    if (!page.opinions) colours.push(el("p", { class: "muted" }, "The page was made without beliefs, so agents are not coloured by opinion."));
    else if (page.hypotheses.length <= 2) {
      const ramp = el("span", { class: "ramp", "aria-hidden": "true" }, ...Array.from({ length: 25 }, (_, step) => style(el("i"), { background: leaningColour(step / 12 - 1, theme) })));
      const end = (name: string | undefined) => el("span", {}, bdi(name ?? ""), ` ${(50 + 100 * report.reach).toFixed(0)}%`);
      colours.push(el("div", { class: "scale" }, end(page.hypotheses[1 - page.reference]), ramp, end(page.hypotheses[page.reference])));
    } else {
      const held = new Set(page.agents.map((_, agent) => believed(report, agent)));
      colours.push(el("ul", {}, ...page.hypotheses.map((name, index) => held.has(index) && el("li", {}, dot(hypothesisColour(index, theme)), bdi(name))).filter((item) => item instanceof Node)));
    }
    if (page.opinions?.leaning.includes(null)) colours.push(el("ul", {}, el("li", {}, dot(INKS[theme].unknown), "no posts")));
    body.replaceChildren(
      el("h3", {}, page.hypotheses.length > 2 ? "Colour: most believed hypothesis" : "Colour: opinion"),
      ...colours,
      el("h3", {}, "Size: share of influence"),
      el("h3", {}, "Edges"),
      el("ul", {}, line("strong", "thick: large weight"), ...(edges.significant ? [line("weak", "faint: not significant")] : []), line("shapes", "from the selected agent to listeners"), line("hears", "from speakers to the selected agent"), ...(edges.weights.some((weight) => weight < 0) ? [line("against", "negative weight")] : [])),
    );
  };
  draw();
  report.theme.on(draw);
  return el("div", { class: "panel" }, body);
}

// The ranking: sorted, searched and turned page by page by TanStack's table, drawn and made reachable by us.
import {
  columnFilteringFeature,
  columnVisibilityFeature,
  constructTable,
  createColumnHelper,
  createFilteredRowModel,
  createPaginatedRowModel,
  createSortedRowModel,
  globalFilteringFeature,
  rowPaginationFeature,
  rowSortingFeature,
  tableFeatures,
} from "@tanstack/table-core";
import { storeReactivityBindings } from "@tanstack/table-core/store-reactivity-bindings";
import type { RankRow } from "./data";
import { append, bdi, el, icon, section, style } from "./dom";
import { count, figure, percent, plural, print, type Kind } from "./numbers";
import { ends, type Report, type Standing } from "./report";
import { open } from "./route";
import { explain } from "./tip";

interface Column {
  id: keyof RankRow;
  label: string;
  help: string;
  kind: Kind;
  /** Known of snapshots too. */
  always?: boolean;
  /** Shown on demand. */
  extra?: boolean;
}

const COLUMNS: Column[] = [
  { id: "rank", label: "Rank", help: "By influence; 1 is the most influential. With its 90% interval, where it was computed.", kind: "count", always: true },
  { id: "agent", label: "Agent", help: "Open an agent for the reasons of the rank.", kind: "count", always: true },
  { id: "share", label: "Share of influence", help: "Share of all influence; the shares sum to 100%, in absolute value where some influences are negative.", kind: "share", always: true },
  { id: "influence", label: "Influence", help: "Centrality × informativeness.", kind: "number", always: true },
  { id: "centrality", label: "Centrality", help: "Weight that the network gives the agent, directly and through others; sums to one.", kind: "number", always: true },
  { id: "informativeness", label: "Informa\u00ADtiveness", help: "How strongly the agent's own evidence supports the hypothesis the network settles on. Negative where it speaks against.", kind: "number", always: true },
  { id: "p_value", label: "P-value", help: "Permutation test: how often the agent receives at least this weight from the others after circular shifts. Small for significant agents.", kind: "number" },
  { id: "posts", label: "Posts", help: "Number of posts, to compare the ranking with activity.", kind: "count" },
  { id: "silent_share", label: "Silent", help: "Share of time steps without a post.", kind: "share" },
  { id: "in_degree", label: "Followers", help: "In-degree in the given graph, to compare the ranking with popularity.", kind: "count" },
  { id: "pagerank", label: "PageRank", help: "PageRank in the given graph, for comparison.", kind: "number" },
  { id: "top_k_probability", label: "Top-k probability", help: "Share of the resamples in which the agent was among the first few.", kind: "share", extra: true },
  { id: "ahead_probability", label: "Ahead of next", help: "Probability that the share is larger than that of the next agent in the ranking.", kind: "share", extra: true },
  { id: "centrality_low", label: "Centrality, low", help: "Lower end of the 90 % interval of the centrality.", kind: "number", extra: true },
  { id: "centrality_high", label: "Centrality, high", help: "Upper end of the 90 % interval of the centrality.", kind: "number", extra: true },
  { id: "information", label: "Information", help: "What was learned about the strength of the agent beyond the graph, in nats.", kind: "number", extra: true },
  { id: "origin", label: "Origin", help: "Share of the network's mean opinion that originates with the agent.", kind: "number", extra: true },
  { id: "error_probability", label: "Error", help: "Probability that the agent's belief favours another hypothesis than the one the network settles on.", kind: "number", extra: true },
];

/** What the column of shares has beside its numbers. Bars stand for a finding. */
const SHARE_BARS = "The thin line is the 90% interval: where the intervals of two agents overlap widely, their order is uncertain.";
const NO_SHARE_BARS = "With its 90% interval, where it was computed. There are no bars, because nothing shows that the ranking is more than chance.";

const PAGE_SIZES = [25, 50, 100, 200];

/** What gives way first where the table is wider than the page; the checkbox brings it back. */
const GIVES_WAY: (keyof RankRow)[] = ["pagerank", "silent_share", "influence", "informativeness", "centrality", "posts", "in_degree", "p_value"];

const features = tableFeatures({
  coreReactivityFeature: storeReactivityBindings(),
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  columnFilteringFeature,
  globalFilteringFeature,
  filteredRowModel: createFilteredRowModel(),
  rowPaginationFeature,
  paginatedRowModel: createPaginatedRowModel(),
  columnVisibilityFeature,
});

export function table(report: Report): HTMLElement {
  const columns = COLUMNS.filter(({ id }) => id === "agent" || id === "share" || report.rows.some((row) => typeof row[id] === "number")).map((column) =>
    column.id === "share" ? { ...column, help: `${column.help} ${report.supported ? SHARE_BARS : NO_SHARE_BARS}` } : column,
  );
  const helper = createColumnHelper<typeof features, Standing>();
  const numbers = new Intl.Collator(undefined, { numeric: true });
  let size = report.rows.length <= 30 ? report.rows.length || 1 : 25;
  const model = constructTable({
    features,
    data: report.standings(),
    columns: helper.columns(
      columns.map(({ id }) =>
        helper.accessor((standing: Standing) => valueOf(standing, id), {
          id,
          sortUndefined: "last",
          sortDescFirst: id !== "rank" && id !== "agent" && id !== "p_value",
          enableGlobalFilter: id === "agent",
          sortFn: (a, b) => {
            const [left, right] = [valueOf(a.original, id), valueOf(b.original, id)];
            return typeof left === "number" && typeof right === "number" ? left - right : numbers.compare(String(left), String(right));
          },
        }),
      ),
    ),
    initialState: {
      sorting: [{ id: "rank", desc: false }],
      pagination: { pageIndex: 0, pageSize: size },
      columnVisibility: Object.fromEntries(columns.filter(({ extra }) => extra).map(({ id }) => [id, false])),
    },
    enableSortingRemoval: false,
    globalFilterFn: (row, _column, wanted: string) => row.original.name.toLocaleLowerCase().includes(wanted.toLocaleLowerCase()),
    getRowId: (standing) => String(standing.agent),
  });

  const headRow = el("tr");
  const body = el("tbody");
  const status = el("p", { class: "muted", role: "status" });
  const heads = new Map<string, HTMLElement>();
  const shown = () => columns.filter(({ id }) => model.getColumn(id)?.getIsVisible() ?? true);

  function drawHead(): void {
    heads.clear();
    headRow.replaceChildren(
      ...shown().map(({ id, label, help }) => {
        const button = el("button", { type: "button", class: "sort" }, el("span", {}, label), el("span", { class: "arrow", "aria-hidden": "true" }));
        button.addEventListener("click", () => {
          model.getColumn(id)?.toggleSorting();
          model.setPageIndex(0);
          draw();
        });
        explain(button, help);
        const head = el("th", { scope: "col", class: `col-${id}` }, button);
        heads.set(id, head);
        return head;
      }),
    );
  }

  function draw(): void {
    const sorting = model.atoms.sorting.get()[0];
    heads.forEach((head, id) => head.setAttribute("aria-sort", sorting?.id !== id ? "none" : sorting.desc ? "descending" : "ascending"));
    const standings = model.getRowModel().rows.map((row) => row.original);
    const scale = barScale(report.standings());
    const visible = shown();
    body.replaceChildren(...standings.map((standing) => row(report, standing, visible, scale)));
    rove(body);
    const matching = model.getFilteredRowModel().rows.length;
    const { pageIndex, pageSize } = model.atoms.pagination.get();
    const first = matching === 0 ? 0 : pageIndex * pageSize + 1;
    const last = Math.min(matching, (pageIndex + 1) * pageSize);
    status.textContent = matching === 0 ? "No agent with this name." : matching <= pageSize ? plural(matching, "agent") : `${count(first)}–${count(last)} of ${plural(matching, "agent")}`;
    previous.disabled = !model.getCanPreviousPage();
    next.disabled = !model.getCanNextPage();
    pager.hidden = report.rows.length <= 30;
  }

  const search = el("input", { type: "search", id: "table-search", placeholder: "Search agents", autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => {
    model.setGlobalFilter(search.value);
    model.setPageIndex(0);
    draw();
  });
  const turn = (name: "left" | "right", label: string, act: () => void) => {
    const button = el("button", { type: "button", class: "square", "aria-label": label }, icon(name));
    button.addEventListener("click", () => (act(), draw()));
    return button;
  };
  const previous = turn("left", "Previous page", () => model.previousPage());
  const next = turn("right", "Next page", () => model.nextPage());
  const sizes = el("select", { id: "page-size" }, ...PAGE_SIZES.map((rows) => el("option", { value: rows }, String(rows))));
  sizes.addEventListener("change", () => {
    size = Number(sizes.value);
    model.setPagination({ pageIndex: 0, pageSize: size });
    draw();
  });
  const pager = el("div", { class: "pager" }, el("label", { for: "page-size" }, "Rows"), sizes, previous, next);
  const extras = columns.filter(({ extra }) => extra);
  const more = el("input", { type: "checkbox", id: "all-columns" });
  const frame = el("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": "Ranking table" }, el("table", { class: "ranking" }, el("caption", { class: "hidden" }, "Agents by influence"), el("thead", {}, headRow), body));
  const visible = (ids: (keyof RankRow)[], yes: boolean): void => ids.forEach((id) => model.getColumn(id)?.toggleVisibility(yes));
  /** All columns where they are asked for or printed, otherwise as many as there is space for. */
  function fit(all: boolean): void {
    visible(GIVES_WAY, true);
    visible(extras.map(({ id }) => id), more.checked);
    drawHead();
    draw();
    if (all || more.checked || frame.clientWidth === 0) return;
    for (const id of GIVES_WAY) {
      if (frame.scrollWidth <= frame.clientWidth) break;
      visible([id], false);
      drawHead();
      draw();
    }
  }
  more.addEventListener("change", () => fit(false));
  let width = 0;
  new ResizeObserver(() => {
    if (frame.clientWidth === width) return;
    width = frame.clientWidth;
    fit(false);
  }).observe(frame);

  report.time.on(() => {
    model.setOptions((options) => ({ ...options, data: report.standings() }));
    draw();
  });
  // Paper cannot be turned page by page.
  window.addEventListener("beforeprint", () => (model.setPagination({ pageIndex: 0, pageSize: Math.max(size, 100) }), fit(true)));
  window.addEventListener("afterprint", () => (model.setPagination({ pageIndex: 0, pageSize: size }), fit(false)));

  fit(false);
  return section(
    "ranking",
    "The ranking",
    `${report.supported ? "" : `${report.page.verdict.outcome === "not-tested" ? "This ranking was not tested" : "The data do not support this ranking"}: shares and order are estimates that may be due to chance. `}Influence is centrality times informativeness: the weight that the network gives an agent, times the strength of the agent's own evidence. Choose a heading to sort, a name for the explanation.`,
    el(
      "div",
      { class: "tools" },
      el("label", { class: "search", for: "table-search" }, icon("search"), el("span", { class: "hidden" }, "Search agents"), search),
      columns.length > 3 && el("label", { class: "check" }, more, "All columns"),
      status,
      pager,
    ),
    frame,
    el("details", { class: "help" }, el("summary", {}, "What the columns mean"), el("dl", { class: "pairs" }, ...columns.map(({ label, help }) => el("div", {}, el("dt", {}, label), el("dd", {}, help))))),
  );
}

function valueOf(standing: Standing, id: keyof RankRow): number | string | undefined {
  switch (id) {
    case "agent":
      return standing.name;
    case "rank":
    case "share":
    case "influence":
    case "centrality":
    case "informativeness":
      return standing[id];
    default:
      return standing.row?.[id];
  }
}

/** From where to where the bars of shares reach. */
interface Scale {
  low: number;
  high: number;
}

function barScale(standings: Standing[]): Scale {
  let [low, high] = [0, 1e-9];
  for (const { share, row } of standings) {
    const [from, to] = ends(row) ?? [0, 0];
    low = Math.max(-1, Math.min(low, share, from));
    high = Math.min(1, Math.max(high, share, to));
  }
  return { low, high };
}

function row(report: Report, standing: Standing, columns: Column[], scale: Scale): HTMLElement {
  const line = el("tr", { "data-agent": standing.agent });
  for (const { id, kind } of columns) {
    const value = valueOf(standing, id);
    const cell = el(id === "agent" ? "th" : "td", { class: `col-${id}`, scope: id === "agent" ? "row" : undefined, "data-value": typeof value === "number" ? value : undefined });
    if (id === "agent") {
      cell.append(el("button", { type: "button", class: "open", onclick: () => open(report, standing.agent) }, bdi(standing.name)));
      const other = standing.row?.contrarian;
      if (other !== undefined && report.supported) cell.append(el("span", { class: "chip", title: "The agent's own evidence supports another hypothesis than the one the network settles on" }, "points to ", bdi(other)));
    } else if (typeof value !== "number") {
      append(cell, [el("span", { class: "muted" }, "–")]);
    } else if (id === "share") {
      if (!report.supported) cell.classList.add("muted");
      append(cell, [report.supported && shareBar(standing, scale), ...shareFigure(standing), interval(standing.row, "share_low", "share_high", "share")]);
    } else if (id === "rank") {
      append(cell, [figure(standing.row ? id : "place", value, kind), interval(standing.row, "rank_low", "rank_high", "count")]);
    } else {
      cell.append(figure(standing.row ? id : "then", value, kind));
    }
    line.append(cell);
  }
  line.addEventListener("click", (event) => {
    // The name is a button of its own, and marking text is not opening.
    if ((event.target as Element).closest("button") || String(getSelection())) return;
    line.querySelector("button")?.focus({ preventScroll: true });
    open(report, standing.agent);
  });
  return line;
}

/** The share as the ranking has it, with the sign before it where there is one. */
function shareFigure({ share, row }: Standing): HTMLElement[] {
  if (row?.share === undefined) return [figure("part", share, "share")];
  const size = figure("share", row.share, "share");
  return row.sign === undefined ? [size] : [el("span", { class: "signed", "data-field": "sign", "data-value": row.sign }, row.sign < 0 ? "−" : "+"), size];
}

function interval(row: RankRow | undefined, low: "share_low" | "rank_low", high: "share_high" | "rank_high", kind: Kind): HTMLElement | null {
  const [from, to] = kind === "share" ? (ends(row) ?? []) : [row?.[low], row?.[high]];
  if (from === undefined || to === undefined) return null;
  const plain = kind === "share" ? print(from, kind).replace("%", "") : print(from, kind);
  const start = figure(low, from, kind);
  start.textContent = plain;
  return el("span", { class: "interval", title: "90% interval" }, start, "–", figure(high, to, kind));
}

function shareBar({ share, row }: Standing, { low, high }: Scale): HTMLElement {
  const place = (value: number): number => Math.max(0, Math.min(100, (100 * (value - low)) / (high - low)));
  const between = (element: HTMLElement, from: number, to: number) => style(element, { left: `${place(Math.min(from, to))}%`, width: `${Math.abs(place(to) - place(from))}%` });
  const bar = el("span", { class: "bar", "aria-hidden": "true" }, between(el("i", { class: share < 0 ? "fill below" : "fill" }), 0, share));
  // An interval of no width is a stroke that says nothing.
  const [from, to] = ends(row) ?? [0, 0];
  if (to - from > 0.005 * (high - low)) bar.append(between(el("i", { class: "whisker" }), from, to));
  bar.title = percent(share);
  return bar;
}

/** One stop for the Tab key; arrows go from name to name. */
function rove(body: HTMLElement): void {
  const buttons = [...body.querySelectorAll<HTMLButtonElement>("button.open")];
  buttons.forEach((button, index) => {
    button.tabIndex = index === 0 ? 0 : -1;
    button.addEventListener("keydown", (event) => {
      const steps: Record<string, number> = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: buttons.length - 1 };
      const to = buttons[steps[event.key] ?? -1];
      if (!to) return;
      event.preventDefault();
      button.tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
    });
  });
}

// Beliefs over time, drawn by uPlot: a few named series in front, many faint ones behind, changes as upright lines.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { timeAxis } from "./axis";
import { INKS, alpha } from "./colour";
import { el, svg } from "./dom";
import { count, plural, shortTime } from "./numbers";
import type { Report } from "./report";

export interface Line {
  label: string;
  values: ArrayLike<number>;
  ink: "accent" | "shapes" | "muted";
  width: number;
  dash?: number[];
}

export interface Chart {
  element: HTMLElement;
  /** Draws other lines over other faint ones. */
  show(lines: Line[], faint: ArrayLike<number>[]): void;
  destroy(): void;
}

/** Part of the height that the bars of how many spoke may take. */
const SPOKE = 0.14;

/** Height of the time axis and size of its letters, in pixels. */
const AXIS = 32;
const LETTERS = 12;

/** Points between two silences, which no line would show. */
function isolated(u: uPlot, series: number, show: boolean): number[] | null {
  if (show) return null;
  const values = u.data[series] ?? [];
  const silent = (step: number): boolean => (values[step] ?? null) === null;
  const alone = Array.from(values, (_, step) => step).filter((step) => !silent(step) && silent(step - 1) && silent(step + 1));
  return alone.length > 0 ? alone : null;
}

const points = (values: ArrayLike<number>): (number | null)[] => Array.from(values, (value) => (Number.isNaN(value) ? null : value));

/** The scale of the bars in words: their height is relative to the most of this page. */
export function spokeWords(report: Report): string {
  const { agents, opinions } = report.page;
  const spoke = opinions?.spoke ?? [];
  if (spoke.length === 0) return "";
  const [least, most] = [spoke.reduce((low, some) => Math.min(low, some)), spoke.reduce((high, some) => Math.max(high, some))];
  const unit = (opinions?.merged ?? 1) > 1 ? "point" : "time step";
  const of = `${count(most)} of ${plural(agents.length, "agent")} ${agents.length === 1 ? "speaks" : "speak"}`;
  return least === most ? `${of} in every ${unit}` : `up to ${of} in a ${unit}`;
}

export function chart(report: Report, height: number, label: string, changes: [number, string][]): Chart {
  const times = report.page.opinions?.times ?? [];
  const spoke = report.page.opinions?.spoke ?? [];
  const steps = times.map((_, index) => index);
  const labelsIn = timeAxis(times);
  const scale = spokeWords(report);
  const described = scale === "" ? label : `${label}. Bars along the bottom: ${scale}`;
  const host = el("div", { class: "chart", tabindex: "0", role: "group", "aria-label": `${described}. Arrow keys read it point by point.` });
  const readout = el("p", { class: "readout muted", role: "status" });
  const paper = el("div", { class: "paper-only" });
  const element = el("div", { class: "chart-frame" }, paper, host, readout);
  let plot: uPlot | null = null;
  let named: Line[] = [];
  let behind: ArrayLike<number>[] = [];
  const inks = () => INKS[report.theme.value];
  const family = (): string => getComputedStyle(host).fontFamily || "sans-serif";

  function drawBehind(u: uPlot): void {
    const { ctx } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    ctx.lineWidth = devicePixelRatio;
    ctx.strokeStyle = alpha(inks().edge, Math.max(inks().faint, Math.min(0.3, 6 / behind.length)));
    ctx.fillStyle = ctx.strokeStyle;
    const xs = steps.map((step) => u.valToPos(step, "x", true));
    const [zero, one] = [u.valToPos(0, "y", true), u.valToPos(1, "y", true)];
    for (const values of behind) {
      ctx.beginPath();
      let last = -2;
      const dots: [number, number][] = [];
      for (let step = 0; step < values.length; step += 1) {
        const value = values[step] ?? NaN;
        if (Number.isNaN(value)) continue;
        const at = zero + (one - zero) * value;
        // Silence is a gap; a post between two silences is a dot.
        if (last === step - 1) ctx.lineTo(xs[step] ?? 0, at);
        else ctx.moveTo(xs[step] ?? 0, at);
        if (last !== step - 1 && Number.isNaN(values[step + 1] ?? NaN)) dots.push([xs[step] ?? 0, at]);
        last = step;
      }
      ctx.stroke();
      dots.forEach(([x, y]) => ctx.fillRect(x - devicePixelRatio, y - devicePixelRatio, 2 * devicePixelRatio, 2 * devicePixelRatio));
    }
    // How many spoke: bars along the bottom, the highest for the most.
    const most = Math.max(1, ...spoke);
    const wide = Math.max(1, 0.8 * ((xs[1] ?? u.bbox.left + u.bbox.width) - (xs[0] ?? 0)));
    ctx.fillStyle = alpha(inks().accent, 0.22);
    spoke.forEach((agents, step) => {
      const high = (SPOKE * u.bbox.height * agents) / most;
      ctx.fillRect((xs[step] ?? 0) - wide / 2, u.bbox.top + u.bbox.height - high, wide, high);
    });
    ctx.strokeStyle = inks().muted;
    ctx.fillStyle = inks().muted;
    ctx.font = `${(LETTERS - 1) * devicePixelRatio}px ${family()}`;
    // The axes leave theirs behind.
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    changes.forEach(([bin, kind], index) => {
      const x = u.valToPos(bin, "x", true);
      ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, u.bbox.top);
      ctx.lineTo(x, u.bbox.top + u.bbox.height);
      ctx.stroke();
      if (changes.length <= 12) ctx.fillText(kind, x + 4 * devicePixelRatio, u.bbox.top + (12 + 13 * (index % 2)) * devicePixelRatio);
    });
    ctx.restore();
  }

  /** The scale of the bars above them, over all lines. */
  function drawScale(u: uPlot): void {
    if (scale === "") return;
    const { ctx } = u;
    ctx.save();
    ctx.font = `${(LETTERS - 1) * devicePixelRatio}px ${family()}`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.lineJoin = "round";
    ctx.lineWidth = 4 * devicePixelRatio;
    ctx.strokeStyle = inks().paper;
    ctx.fillStyle = inks().muted;
    const place: [number, number] = [u.bbox.left + 4 * devicePixelRatio, u.bbox.top + (1 - SPOKE) * u.bbox.height - 5 * devicePixelRatio];
    ctx.strokeText(scale, ...place);
    ctx.fillText(scale, ...place);
    ctx.restore();
  }

  /** The times below the plot, with a tick each: uPlot would cut those that reach beyond its edges. */
  function drawTimes(u: uPlot): void {
    const { ctx } = u;
    const { left, top, width, height: high } = u.bbox;
    ctx.save();
    ctx.font = `${LETTERS * devicePixelRatio}px ${family()}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    ctx.fillStyle = inks().muted;
    ctx.strokeStyle = inks().muted;
    ctx.lineWidth = devicePixelRatio;
    const place = (step: number): number => u.valToPos(step, "x", true);
    const labels = labelsIn({ place, width: (text) => ctx.measureText(text).width, from: 0, to: ctx.canvas.width, gap: Math.max(LETTERS * devicePixelRatio, 0.03 * width) });
    for (const { step, text, middle } of labels) {
      const x = Math.max(left, Math.min(left + width, place(step)));
      ctx.beginPath();
      ctx.moveTo(x, top + high);
      ctx.lineTo(x, top + high + 4 * devicePixelRatio);
      ctx.stroke();
      ctx.fillText(text, middle, top + high + 9 * devicePixelRatio);
    }
    ctx.restore();
  }

  function read(u: uPlot): void {
    const step = u.cursor.idx;
    if (step === null || step === undefined) {
      readout.textContent = summary(named, times);
      return;
    }
    const values = named.map(({ label: name, values: line }) => `${name} ${percentOrSilence(line[step])}`);
    const agents = spoke[step];
    readout.textContent = `${shortTime(times[step] ?? "")}: ${values.join(", ")}${agents === undefined ? "" : `; ${plural(agents, "agent")} spoke`}`;
  }

  /** From where to where the beliefs go: all of 0…1, or less where all of it would flatten them. */
  function reach(): [number, number] {
    let [low, high] = [1, 0];
    for (const values of [...behind, ...named.map((line) => line.values)]) {
      for (let step = 0; step < values.length; step += 1) {
        const value = values[step] ?? NaN;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (high - low > 0.4 || high < low) return [0, 1];
    const space = Math.max(0.01, 0.15 * (high - low));
    return [Math.max(0, low - space), Math.min(1, high + space)];
  }

  /** The chart as SVG for paper: canvases that were never on the screen print blank. */
  function drawing(): SVGElement {
    const [wide, high, left, foot] = [760, 260, 46, 24];
    const [low, top] = reach();
    const x = (step: number): number => left + ((wide - left - 10) * step) / Math.max(1, steps.length - 1);
    const y = (value: number): number => 8 + ((high - foot - 8) * (top - value)) / (top - low);
    const { accent, shapes, muted, line, edge } = INKS.light;
    const paths = (values: ArrayLike<number>): string => {
      let text = "";
      for (let step = 0; step < values.length; step += 1) {
        const value = values[step] ?? NaN;
        if (Number.isNaN(value)) continue;
        const start = step === 0 || Number.isNaN(values[step - 1] ?? NaN);
        // A move and a line to the same place is a dot under round caps.
        text += start ? `M${x(step).toFixed(1)} ${y(value).toFixed(1)}h0` : `L${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
      }
      return text;
    };
    const stroke = (values: ArrayLike<number>, colour: string, width: number, opacity: number) => svg("path", { d: paths(values), fill: "none", stroke: colour, "stroke-width": width, "stroke-opacity": opacity, "stroke-linecap": "round" });
    const text = (place: [number, number], words: string, anchor: string) => svg("text", { x: place[0], y: place[1], "font-size": 11, fill: muted, "text-anchor": anchor }, words);
    const most = Math.max(1, ...spoke);
    const scaleText = scale !== "" && svg("text", { x: left + 4, y: high - foot - SPOKE * (high - foot - 8) - 5, "font-size": 11, fill: muted, stroke: INKS.light.paper, "stroke-width": 4, "stroke-linejoin": "round", "paint-order": "stroke" }, scale);
    const bar = Math.max(0.5, (0.8 * (wide - left - 10)) / Math.max(1, steps.length));
    const inkOf = { accent, shapes, muted };
    return svg(
      "svg",
      { class: "drawing", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": described },
      ...[0, 0.5, 1].map((part) => low + part * (top - low)).flatMap((value) => [svg("path", { d: `M${left} ${y(value)}H${wide - 10}`, stroke: line }), text([left - 6, y(value) + 4], `${(100 * value).toFixed(top - low < 0.05 ? 1 : 0)}%`, "end")]),
      ...spoke.map((agents, step) => {
        const [from, to] = [Math.max(left, x(step) - bar / 2), Math.min(wide - 10, x(step) + bar / 2)];
        const tall = (SPOKE * (high - foot - 8) * agents) / most;
        return svg("rect", { x: from.toFixed(1), y: (high - foot - tall).toFixed(1), width: (to - from).toFixed(1), height: tall.toFixed(1), fill: accent, "fill-opacity": 0.3 });
      }),
      ...behind.map((values) => stroke(values, edge, 0.6, Math.max(0.06, Math.min(0.3, 6 / behind.length)))),
      ...named.map(({ values, ink, width }) => stroke(values, inkOf[ink], width, 1)),
      scaleText,
      // Letters of this size are at most so wide.
      ...labelsIn({ place: x, width: (words) => 6.6 * words.length, from: 0, to: wide, gap: 28 }).map(({ text: words, middle }) => text([middle, high - 6], words, "middle")),
    );
  }
  const onPaper = (): void => paper.replaceChildren(drawing());
  const offPaper = (): void => paper.replaceChildren();
  window.addEventListener("beforeprint", onPaper);
  window.addEventListener("afterprint", offPaper);

  function build(): void {
    plot?.destroy();
    const range = reach();
    const digits = range[1] - range[0] < 0.05 ? 1 : 0;
    const axis = { stroke: () => inks().muted, grid: { stroke: () => inks().line, width: 1 }, ticks: { show: false }, font: `${LETTERS}px ${family()}` };
    plot = new uPlot(
      {
        width: Math.max(200, host.clientWidth || 600),
        height,
        legend: { show: false },
        scales: { x: { time: false, range: [0, Math.max(1, steps.length - 1)] }, y: { range } },
        axes: [
          { ...axis, size: AXIS, grid: { show: false }, splits: () => [], values: () => [] },
          { ...axis, size: 46, values: (_, splits) => splits.map((split) => `${(split * 100).toFixed(digits)}%`) },
        ],
        series: [{}, ...named.map(({ label: name, ink, width, dash }) => ({ label: name, stroke: () => inks()[ink], width, dash, points: { show: steps.length < 3, size: 5, filter: isolated }, spanGaps: false }))],
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        hooks: { drawClear: [drawBehind], drawAxes: [drawTimes], draw: [drawScale], setCursor: [read] },
      },
      [steps, ...named.map(({ values }) => points(values))] as uPlot.AlignedData,
      host,
    );
    read(plot);
  }

  host.addEventListener("keydown", (event) => {
    if (!plot || steps.length === 0) return;
    const at = plot.cursor.idx ?? (event.key === "ArrowLeft" ? steps.length : -1);
    const moves: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: steps.length - 1 };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const step = Math.max(0, Math.min(steps.length - 1, to));
    plot.setCursor({ left: plot.valToPos(step, "x"), top: 10 });
  });
  const sized = new ResizeObserver(() => {
    if (plot && host.clientWidth > 0 && Math.abs(plot.width - host.clientWidth) > 1) plot.setSize({ width: host.clientWidth, height });
  });
  sized.observe(host);
  const repaint = (): void => plot?.redraw();
  report.theme.on(repaint);

  return {
    element,
    show(lines, faint) {
      named = lines;
      behind = faint;
      build();
    },
    destroy() {
      window.removeEventListener("beforeprint", onPaper);
      window.removeEventListener("afterprint", offPaper);
      sized.disconnect();
      plot?.destroy();
      plot = null;
    },
  };
}

const percentOrSilence = (value: number | undefined): string => (value === undefined || Number.isNaN(value) ? "silent" : `${(100 * value).toFixed(1)}%`);

/** What a line does, for those who do not see it. */
function summary(lines: Line[], times: string[]): string {
  return lines
    .map(({ label, values }) => {
      const known = Array.from(values, (value, step) => [value, step] as const).filter(([value]) => !Number.isNaN(value));
      const [first, last] = [known[0], known[known.length - 1]];
      if (!first || !last) return `${label}: no posts`;
      return `${label}: ${percentOrSilence(first[0])} at ${shortTime(times[first[1]] ?? "")}, ${percentOrSilence(last[0])} at ${shortTime(times[last[1]] ?? "")}`;
    })
    .join("; ");
}

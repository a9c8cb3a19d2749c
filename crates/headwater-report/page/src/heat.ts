// The weights as a heat map, the true ones beside the learned ones where they are known.
import { rgb, weightColour } from "./colour";
import { bdi, el, section, style } from "./dom";
import { significant } from "./numbers";
import { unpack } from "./packed";
import type { Report } from "./report";

export function heat(report: Report): { element: HTMLElement; start: () => void } | null {
  const given = report.page.heat;
  if (!given || given.order.length === 0) return null;
  const size = given.order.length;
  const maps: [string, Float64Array][] = [["Learned", unpack(given.learned)], ...(given.true ? ([["True", unpack(given.true)]] as [string, Float64Array][]) : [])];
  const largest = maps.reduce((high, [, cells]) => cells.reduce((most, cell) => Math.max(most, Math.abs(cell)), high), 1e-9);
  const readout = el("p", { class: "readout", role: "status" });
  const marks: HTMLElement[] = [];
  let [row, column] = [-1, -1];

  function read(nextRow: number, nextColumn: number): void {
    row = Math.max(0, Math.min(size - 1, nextRow));
    column = Math.max(0, Math.min(size - 1, nextColumn));
    const [speaker, listener] = [report.name(given?.order[row] ?? 0), report.name(given?.order[column] ?? 0)];
    const values = maps.map(([title, cells]) => `${title.toLowerCase()} ${significant(Number((cells[row * size + column] ?? 0).toPrecision(3)))}`).join(", ");
    readout.replaceChildren(...(row === column ? ["Self-weight of ", bdi(listener)] : [bdi(listener), " listens to ", bdi(speaker)]), ": ", values);
    marks.forEach((mark) => {
      mark.hidden = false;
      style(mark, { left: `${(100 * column) / size}%`, top: `${(100 * row) / size}%`, width: `${100 / size}%`, height: `${100 / size}%` });
    });
  }

  const canvases = maps.map(([title, cells]) => {
    const canvas = el("canvas", { width: size, height: size, "aria-hidden": "true" });
    const mark = el("i", { class: "mark", hidden: true, "aria-hidden": "true" });
    marks.push(mark);
    const field = el("div", { class: "heat-field", tabindex: "0", role: "group", "aria-label": `${title} weights, ${size} by ${size}, agents by rank. Arrow keys read them cell by cell.` }, canvas, mark);
    field.addEventListener("pointermove", (event) => {
      const box = field.getBoundingClientRect();
      read(Math.floor(((event.clientY - box.top) / box.height) * size), Math.floor(((event.clientX - box.left) / box.width) * size));
    });
    field.addEventListener("keydown", (event) => {
      const moves: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      read(row + (row < 0 ? 1 : move[0]), column + (column < 0 ? 1 : move[1]));
    });
    return { title, cells, canvas, field };
  });

  const ramp = el("span", { class: "ramp", "aria-hidden": "true" });
  function paint(): void {
    const theme = report.theme.value;
    for (const { cells, canvas } of canvases) {
      const context = canvas.getContext("2d");
      if (!context) continue;
      const image = context.createImageData(size, size);
      cells.forEach((cell, index) => image.data.set([...rgb(weightColour(cell / largest, theme)), 255], index * 4));
      context.putImageData(image, 0, 0);
    }
    ramp.replaceChildren(...Array.from({ length: 25 }, (_, step) => style(el("i"), { background: weightColour(step / 24, theme) })));
  }

  const element = section(
    "weights",
    "Weights",
    "Each row is a speaker, each column a listener, both by rank from the top left. The stronger the colour, the larger the weight. The diagonal holds the self-weights.",
    el("div", { class: "heats" }, ...canvases.map(({ title, field }) => el("figure", {}, field, el("figcaption", {}, title)))),
    el("div", { class: "scale" }, el("span", {}, "0"), ramp, el("span", {}, significant(largest))),
    readout,
  );
  readout.textContent = "Point at a cell, or focus the map and use the arrow keys.";
  return {
    element,
    start() {
      paint();
      report.theme.on(paint);
    },
  };
}

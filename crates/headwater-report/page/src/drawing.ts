// The network as SVG: on paper, and where the graphics card cannot be used.
import { INKS } from "./colour";
import { svg } from "./dom";
import type { Stage, StageEvents } from "./network";
import type { Scene } from "./scene";
import type { Theme } from "./state";

/** Edges that an SVG holds without becoming slow. */
const EDGES = 2500;
const [WIDTH, HEIGHT, MARGIN] = [1200, 760, 60];

export function drawing(scene: Scene, theme: Theme): SVGSVGElement {
  const { places, edges, page } = scene.report;
  const inks = INKS[theme];
  const x = (agent: number): number => MARGIN + (places[2 * agent] ?? 0.5) * (WIDTH - 2 * MARGIN);
  const y = (agent: number): number => MARGIN + (places[2 * agent + 1] ?? 0.5) * (HEIGHT - 2 * MARGIN);
  const lines = scene.visible.slice(0, EDGES).reverse().map((edge) => {
    const [from, to] = [edges.speakers[edge] ?? 0, edges.listeners[edge] ?? 0];
    const [dx, dy] = [x(to) - x(from), y(to) - y(from)];
    const far = Math.hypot(dx, dy) || 1;
    // Ends at the rim of the listener, bent so that both directions can be seen.
    const stop = Math.max(0, 1 - ((scene.radii[to] ?? 0) + 3) / far);
    const bend = `${(x(from) + dx / 2 - dy * 0.12).toFixed(1)} ${(y(from) + dy / 2 + dx * 0.12).toFixed(1)}`;
    const [colour, opacity] = scene.stroke(edge, theme);
    return svg("path", { d: `M${x(from).toFixed(1)} ${y(from).toFixed(1)}Q${bend} ${(x(from) + dx * stop).toFixed(1)} ${(y(from) + dy * stop).toFixed(1)}`, fill: "none", stroke: colour, "stroke-opacity": opacity.toFixed(3), "stroke-width": scene.width(edge).toFixed(2) });
  });
  const agents = page.agents.map((_, agent) =>
    svg("circle", { cx: x(agent).toFixed(1), cy: y(agent).toFixed(1), r: (scene.radii[agent] ?? 1).toFixed(1), fill: scene.colour(agent, theme), stroke: inks.paper, "stroke-width": 1.2, "data-agent": agent }),
  );
  const names = [...scene.labelled(page.agents.length <= 40 ? 40 : 30)].map((agent) =>
    svg("text", { x: (x(agent) + (scene.radii[agent] ?? 0) + 4).toFixed(1), y: (y(agent) + 5).toFixed(1), "font-size": 15, "font-weight": 500, fill: inks.ink, stroke: inks.paper, "stroke-width": 3.5, "paint-order": "stroke" }, scene.label(agent)),
  );
  return svg("svg", { class: "drawing", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Network of ${page.agents.length} agents` }, svg("g", {}, ...lines), svg("g", {}, ...agents), svg("g", { "pointer-events": "none" }, ...names));
}

/** The same, to be pointed at. */
export function drawn(scene: Scene, host: HTMLElement, events: StageEvents): Stage {
  let [scale, cx, cy] = [1, WIDTH / 2, HEIGHT / 2];
  const frame = (): void => {
    const [width, height] = [WIDTH / scale, HEIGHT / scale];
    host.querySelector("svg.drawing")?.setAttribute("viewBox", `${cx - width / 2} ${cy - height / 2} ${width} ${height}`);
  };
  const refresh = (): void => {
    host.querySelector("svg.drawing")?.remove();
    host.prepend(drawing(scene, scene.theme));
    frame();
  };
  const agentAt = (event: Event): number | null => {
    const mark = (event.target as Element).closest("[data-agent]");
    return mark ? Number(mark.getAttribute("data-agent")) : null;
  };
  host.addEventListener("pointermove", (event) => events.point(agentAt(event), event.clientX, event.clientY));
  host.addEventListener("pointerleave", () => events.point(null, 0, 0));
  host.addEventListener("click", (event) => {
    const agent = agentAt(event);
    if (agent !== null) events.choose(agent);
  });
  refresh();
  return {
    refresh,
    look(agent) {
      const mark = host.querySelector(`circle[data-agent="${agent}"]`);
      [cx, cy] = [Number(mark?.getAttribute("cx") ?? cx), Number(mark?.getAttribute("cy") ?? cy)];
      scale = Math.max(scale, 1.5);
      frame();
    },
    zoom(factor) {
      if (factor === null) [scale, cx, cy] = [1, WIDTH / 2, HEIGHT / 2];
      else scale = Math.min(20, Math.max(0.6, scale * factor));
      frame();
    },
  };
}

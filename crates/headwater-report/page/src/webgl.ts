// The network drawn by sigma on the graphics card: 500 agents and 20 000 edges stay smooth.
import { createEdgeCurveProgram } from "@sigma/edge-curve";
import { createNodeBorderProgram } from "@sigma/node-border";
import Graph from "graphology";
import Sigma from "sigma";
import { EdgeRectangleProgram, createEdgeArrowProgram } from "sigma/rendering";
import type { Settings } from "sigma/settings";
import type { NodeDisplayData, PartialButFor } from "sigma/types";
import { INKS, rgb } from "./colour";
import type { Scene } from "./scene";
import type { Stage, StageEvents } from "./network";

type Named = PartialButFor<NodeDisplayData, "x" | "y" | "size" | "label" | "color">;
const FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

const HEAD = { extremity: "target", lengthToThicknessRatio: 3.2, widenessToThicknessRatio: 2.6 } as const;
/** Milliseconds between frames above which edges are left out while the network is moved. */
const SLOW = 60;

export function hasWebgl(): boolean {
  try {
    const canvas = document.createElement("canvas");
    const gl = canvas.getContext("webgl2") ?? canvas.getContext("webgl");
    // Browsers allow a handful of contexts per page.
    gl?.getExtension("WEBGL_lose_context")?.loseContext();
    return gl !== null;
  } catch {
    return false;
  }
}

export function webgl(scene: Scene, host: HTMLElement, events: StageEvents): Stage {
  const { speakers, listeners } = scene.report.edges;
  const agents = scene.report.page.agents.length;
  const graph = new Graph({ type: "directed", allowSelfLoops: false });
  const { places } = scene.report;
  // A square layout fills a wide stage when it is drawn out a little.
  const stretch = Math.min(1.7, Math.max(0.75, host.clientWidth / Math.max(1, host.clientHeight)));
  for (let agent = 0; agent < agents; agent += 1) graph.addNode(agent, { x: (places[2 * agent] ?? 0.5) * stretch, y: 1 - (places[2 * agent + 1] ?? 0.5), zIndex: 1 });
  const drawn = new Uint8Array(speakers.length);

  function syncEdges(): void {
    const wanted = new Uint8Array(drawn.length);
    for (const edge of scene.visible) wanted[edge] = 1;
    for (let edge = 0; edge < drawn.length; edge += 1) {
      if (drawn[edge] === wanted[edge]) continue;
      if (wanted[edge]) graph.addEdgeWithKey(String(edge), speakers[edge], listeners[edge]);
      else graph.dropEdge(String(edge));
      drawn[edge] = wanted[edge] ?? 0;
    }
  }
  syncEdges();

  function drawLabel(context: CanvasRenderingContext2D, data: Named, settings: Settings): void {
    if (!data.label) return;
    const inks = INKS[scene.theme];
    const size = settings.labelSize + (data.size > 14 ? 1.5 : 0);
    context.font = `${data.size > 12 || data.forceLabel ? 600 : 500} ${size}px ${FONT}`;
    context.lineJoin = "round";
    context.lineWidth = 3.5;
    context.strokeStyle = inks.paper;
    context.fillStyle = inks.ink;
    const [x, y] = [data.x + data.size + 4, data.y + size / 3];
    context.strokeText(data.label, x, y);
    context.fillText(data.label, x, y);
  }
  function drawHover(context: CanvasRenderingContext2D, data: Named, settings: Settings): void {
    context.beginPath();
    context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
    context.lineWidth = 2;
    context.strokeStyle = INKS[scene.theme].ink;
    context.stroke();
    drawLabel(context, { ...data, forceLabel: true }, settings);
  }

  const named = agents <= 40 ? agents : Math.min(40, 14 + Math.round(agents / 40));
  const sorted = [...scene.radii].sort((a, b) => b - a);
  const small = (): number => (host.clientWidth < 520 ? 0.66 : 1);
  const sigma = new Sigma(graph, host, {
    allowInvalidContainer: true,
    defaultEdgeType: "line",
    defaultNodeType: "circle",
    nodeProgramClasses: {
      circle: createNodeBorderProgram({
        borders: [
          { size: { attribute: "borderSize", defaultValue: 1, mode: "pixels" }, color: { attribute: "borderColor" } },
          { size: { fill: true }, color: { attribute: "color" } },
        ],
      }),
    },
    edgeProgramClasses: {
      line: EdgeRectangleProgram,
      arrow: createEdgeArrowProgram(HEAD),
      curve: createEdgeCurveProgram({ arrowHead: HEAD }),
    },
    labelFont: FONT,
    labelSize: 12,
    labelWeight: "500",
    labelDensity: agents <= 40 ? 4 : 1.2,
    labelGridCellSize: 90,
    labelRenderedSizeThreshold: agents <= 40 ? 0 : Math.max(2.5, (sorted[Math.min(named, sorted.length - 1)] ?? 0) * 0.999),
    defaultDrawNodeLabel: drawLabel,
    defaultDrawNodeHover: drawHover,
    stagePadding: 46,
    minCameraRatio: 0.03,
    maxCameraRatio: 1.6,
    zIndex: true,
    minEdgeThickness: 0.8,
    inertiaDuration: still() ? 0 : 200,
    zoomDuration: still() ? 0 : 200,
    doubleClickZoomingDuration: still() ? 0 : 200,
    nodeReducer: (key, data) => {
      const agent = Number(key);
      const near = scene.near(agent);
      const size = (scene.radii[agent] ?? 1) * small();
      return {
        ...data,
        size,
        borderSize: Math.min(1.2, size / 5),
        color: scene.colour(agent),
        borderColor: INKS[scene.theme].paper,
        label: near ? scene.label(agent) : null,
        forceLabel: agent === scene.lit,
        zIndex: near ? 2 : 1,
      } as Partial<NodeDisplayData>;
    },
    edgeReducer: (key, data) => {
      const edge = Number(key);
      const touch = scene.touches(edge) !== null;
      return { ...data, size: scene.width(edge) * small(), color: premultiplied(...scene.stroke(edge)), type: scene.shape(), zIndex: touch ? 2 : 1 };
    },
  });

  // The wheel and one finger scroll the page; Ctrl with the wheel, and two fingers, move the network.
  const surface = sigma.getCanvases().mouse;
  if (surface) surface.style.touchAction = "pan-y";
  host.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  }, { capture: true, passive: true });
  host.addEventListener("touchstart", (event) => {
    if (event.touches.length < 2) event.stopPropagation();
  }, { capture: true, passive: true });

  sigma.on("enterNode", ({ node, event }) => {
    host.classList.add("pointing");
    const box = host.getBoundingClientRect();
    events.point(Number(node), box.left + event.x, box.top + event.y);
  });
  sigma.on("leaveNode", () => {
    host.classList.remove("pointing");
    events.point(null, 0, 0);
  });
  sigma.on("clickNode", ({ node }) => events.choose(Number(node)));

  const camera = sigma.getCamera();
  let [moved, pace] = [0, 0];
  camera.on("updated", () => {
    const now = performance.now();
    // Pauses between two movements say nothing about speed.
    if (now - moved < 1000) pace = 0.7 * pace + 0.3 * (now - moved);
    moved = now;
    if (pace > SLOW && !sigma.getSetting("hideEdgesOnMove")) sigma.setSetting("hideEdgesOnMove", true);
  });
  const move = (to: { x?: number; y?: number; ratio?: number }): void => {
    if (still()) camera.setState(to);
    else void camera.animate(to, { duration: 300 });
  };
  return {
    refresh(edgesChanged) {
      if (edgesChanged) syncEdges();
      sigma.refresh({ skipIndexation: !edgesChanged });
    },
    look(agent) {
      const place = sigma.getNodeDisplayData(String(agent));
      if (place) move({ x: place.x, y: place.y, ratio: Math.min(camera.ratio, agents <= 40 ? 0.8 : 0.4) });
    },
    zoom(factor) {
      if (factor === null) move({ x: 0.5, y: 0.5, ratio: 1 });
      else move({ ratio: Math.min(1.6, Math.max(0.03, camera.ratio / factor)) });
    },
  };
}

/** Sigma blends colours as if their opacity were multiplied in already. */
function premultiplied(colour: string, opacity: number): string {
  return `rgba(${rgb(colour).map((part) => Math.round(part * opacity)).join(",")},${opacity.toFixed(3)})`;
}

/** Readers who want no movement get none. */
export function still(): boolean {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}

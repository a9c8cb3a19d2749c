// What the network shows, whoever draws it: sizes, colours, which edges pass the filters, who is in the light.
import { INKS, mix, opinionColour } from "./colour";
import type { Report } from "./report";
import type { Theme } from "./state";

/** How many edges may be bent, which takes the graphics card the longest, and how many may have a head at all. */
const CURVES = 400;
const ARROWS = 3000;

/** Weights below this part of the largest are hidden at first. */
export const VISIBLE = 0.002;

export interface Filter {
  /** Least |weight|. */
  weight: number;
  /** Largest p-value; 1 lets all through. */
  p: number;
  /** Only what is significant after Benjamini and Hochberg. */
  significant: boolean;
}

export class Scene {
  weights: Float64Array;
  /** Largest radius over all agents, in pixels. */
  readonly radii: Float64Array;
  /** Rank of each agent at the chosen time. */
  readonly ranks: Uint32Array;
  readonly shares: Float64Array;
  visible: number[] = [];
  lit: number | null = null;
  filter: Filter;
  private heard = new Set<number>();

  constructor(readonly report: Report) {
    const agents = report.page.agents.length;
    this.weights = report.edges.weights;
    this.radii = new Float64Array(agents);
    this.ranks = new Uint32Array(agents);
    this.shares = new Float64Array(agents);
    this.filter = { weight: this.startWeight(), p: 1, significant: false };
    this.retime();
  }

  get theme(): Theme {
    return this.report.theme.value;
  }

  /** Weight of the last edge that is shown at first: about two for each agent are still readable. */
  private startWeight(): number {
    const { weights } = this.report.edges;
    const wanted = Math.min(1000, Math.max(150, 2 * this.report.page.agents.length));
    const last = weights.length <= wanted ? 0 : Math.abs(weights[wanted - 1] ?? 0);
    // Exact fits leave rounding where there is no edge.
    const least = weights.reduce((low, weight) => Math.min(low, Math.abs(weight)), Infinity);
    return Math.max(last, least < VISIBLE * this.report.strongest ? VISIBLE * this.report.strongest : 0);
  }

  /** Takes sizes and weights from the chosen time. */
  retime(): void {
    const standings = this.report.standings();
    const agents = this.radii.length;
    const crowd = agents <= 40 ? [6, 28] : agents <= 200 ? [3.5, 22] : agents <= 1000 ? [2.8, 20] : [1.5, 16];
    const [least = 1, most = 1] = crowd;
    const largest = standings.reduce((high, { share }) => Math.max(high, Math.abs(share)), 1e-9);
    for (const { agent, rank, share } of standings) {
      this.shares[agent] = share;
      this.ranks[agent] = rank;
      // Area goes with the share.
      this.radii[agent] = Math.max(least, most * Math.sqrt(Math.abs(share) / largest));
    }
    this.weights = this.report.weights();
    this.refilter();
  }

  refilter(): void {
    const { p, significant } = this.report.edges;
    const { filter, weights } = this;
    this.visible = [];
    for (let edge = 0; edge < weights.length; edge += 1) {
      const size = Math.abs(weights[edge] ?? 0);
      if (size > 0 && size >= filter.weight && (p?.[edge] ?? 0) <= filter.p && (!filter.significant || significant?.[edge] === 1)) this.visible.push(edge);
    }
    this.relight(this.lit);
  }

  relight(agent: number | null): void {
    this.lit = agent;
    this.heard = new Set();
    if (agent === null) return;
    const { speakers, listeners } = this.report.edges;
    for (const edge of this.visible) {
      if (speakers[edge] === agent) this.heard.add(listeners[edge] ?? -1);
      if (listeners[edge] === agent) this.heard.add(speakers[edge] ?? -1);
    }
  }

  /** Whether the agent is highlighted, or none is. */
  near(agent: number): boolean {
    return this.lit === null || agent === this.lit || this.heard.has(agent);
  }

  colour(agent: number, theme: Theme = this.theme): string {
    const full = opinionColour(this.report, agent, theme);
    return this.near(agent) ? full : mix(full, INKS[theme].paper, 0.78);
  }

  touches(edge: number): "shapes" | "hears" | null {
    const { speakers, listeners } = this.report.edges;
    if (this.lit === null) return null;
    return speakers[edge] === this.lit ? "shapes" : listeners[edge] === this.lit ? "hears" : null;
  }

  /** Bent arrows as long as there are few edges, then straight ones, then plain lines. */
  shape(): "curve" | "arrow" | "line" {
    return this.visible.length <= CURVES ? "curve" : this.visible.length <= ARROWS ? "arrow" : "line";
  }

  width(edge: number): number {
    const part = Math.abs(this.weights[edge] ?? 0) / (this.report.strongest || 1);
    const plain = (this.visible.length > ARROWS ? 0.5 : 1) + (this.radii.length > 200 ? 2 : 3.4) * part ** 0.8;
    return this.touches(edge) ? Math.max(1.6, plain) : plain;
  }

  stroke(edge: number, theme: Theme = this.theme): [colour: string, opacity: number] {
    const inks = INKS[theme];
    const weight = this.weights[edge] ?? 0;
    const part = Math.abs(weight) / (this.report.strongest || 1);
    const sure = this.report.edges.significant?.[edge] !== 0;
    const crowd = this.visible.length > 4000 ? 0.35 : this.visible.length > 400 ? 0.6 : 1;
    const plain = (sure ? 0.2 + 0.6 * Math.sqrt(part) : 0.1 + 0.2 * Math.sqrt(part)) * crowd;
    const touch = this.touches(edge);
    if (touch) return [inks[touch], sure ? 0.9 : 0.5];
    return [weight < 0 ? inks.against : inks.edge, this.lit === null ? plain : 0.05];
  }

  /** Agents to be named, first the most important ones. */
  labelled(limit: number): Set<number> {
    const order = [...this.ranks.keys()].sort((a, b) => (this.ranks[a] ?? 0) - (this.ranks[b] ?? 0)).slice(0, limit);
    if (this.lit !== null) order.push(this.lit);
    return new Set(order);
  }

  /** Long names are cut, and kept from turning their surroundings around. */
  label(agent: number): string {
    const letters = [...this.report.name(agent).replace(/\s+/g, " ")];
    return `\u2068${letters.length > 22 ? `${letters.slice(0, 21).join("")}…` : letters.join("")}\u2069`;
  }
}

// The data as the sections use it: by agent, at the chosen time.
import { leaningReach } from "./colour";
import type { Card, Page, RankRow } from "./data";
import { unpack, unpackIndices } from "./packed";
import { Cell, themeCell, type Theme } from "./state";

/** An agent's row in the ranking of the final model or of a snapshot. */
export interface Standing {
  agent: number;
  name: string;
  rank: number;
  /** With its sign; sums to one in absolute value. */
  share: number;
  influence: number;
  centrality: number;
  informativeness: number;
  /** The row of `rank`; absent in snapshots, which have no intervals and no p-values. */
  row?: RankRow;
}

export interface Edges {
  speakers: Uint32Array;
  listeners: Uint32Array;
  weights: Float64Array;
  p?: Float64Array;
  significant?: Float64Array;
}

export class Report {
  readonly rows: RankRow[];
  readonly places: Float64Array;
  readonly edges: Edges;
  readonly strongest: number;
  /** Mean belief per agent and hypothesis, null for agents without a post; only with more than two hypotheses. */
  readonly meanBeliefs: (number[] | null)[] | null;
  /** Half-width of the colour scale of opinions. */
  readonly reach: number;
  readonly beliefs: Float64Array | null;
  readonly mean: Float64Array | null;
  /** The agent whose card is open. */
  readonly chosen = new Cell<number | null>(null);
  /** Index into `history`; null is the final model. */
  readonly time = new Cell<number | null>(null);
  readonly theme: Cell<Theme> = themeCell();
  private readonly cards = new Map<number, Card>();
  private readonly byName = new Map<string, number>();
  private readonly learned: Standing[];

  constructor(readonly page: Page) {
    page.agents.forEach((name, agent) => this.byName.set(name, agent));
    page.cards.forEach((card) => this.cards.set(card.agent, card));
    const { network, opinions } = page;
    this.places = unpack(network.places);
    this.edges = {
      speakers: unpackIndices(network.speakers),
      listeners: unpackIndices(network.listeners),
      weights: unpack(network.weights),
      ...(network.p_values && { p: unpack(network.p_values) }),
      ...(network.significant && { significant: unpack(network.significant) }),
    };
    this.strongest = this.edges.weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
    this.rows = page.ranking.agents;
    const total = this.rows.reduce((sum, row) => sum + Math.abs(row.influence), 0) || 1;
    this.learned = this.rows.map((row) => ({
      agent: this.byName.get(row.agent) ?? -1,
      name: row.agent,
      rank: row.rank,
      share: row.share === undefined ? row.influence / total : (row.sign ?? 1) * row.share,
      influence: row.influence,
      centrality: row.centrality,
      informativeness: row.informativeness,
      row,
    }));
    this.reach = leaningReach(this);
    this.beliefs = opinions ? unpack(opinions.beliefs) : null;
    this.mean = opinions ? unpack(opinions.mean) : null;
    // Two hypotheses are coloured by `leaning`.
    this.meanBeliefs = this.beliefs && page.hypotheses.length > 2 ? page.agents.map((_, agent) => this.meanBelief(agent)) : null;
  }

  /** Whether the ranking may be shown as a finding. */
  get supported(): boolean {
    return this.page.verdict.outcome === "supported";
  }

  get history() {
    return this.page.history ?? [];
  }

  find(name: string): number | undefined {
    return this.byName.get(name);
  }

  name(agent: number): string {
    return this.page.agents[agent] ?? "";
  }

  card(agent: number): Card | undefined {
    return this.cards.get(agent);
  }

  /** Strongest first, at the chosen time. */
  standings(): Standing[] {
    const snapshot = this.time.value === null ? undefined : this.history[this.time.value];
    if (!snapshot) return this.learned;
    return this.page.agents
      .map((name, agent) => {
        const centrality = snapshot.centrality[agent] ?? NaN;
        const informativeness = snapshot.informativeness[agent] ?? NaN;
        return { agent, name, rank: 0, share: snapshot.share[agent] ?? 0, influence: centrality * informativeness, centrality, informativeness };
      })
      .sort((a, b) => b.share - a.share || a.agent - b.agent)
      .map((standing, index) => ({ ...standing, rank: index + 1 }));
  }

  standing(agent: number): Standing | undefined {
    return this.learned.find((standing) => standing.agent === agent);
  }

  weights(): Float64Array {
    const snapshot = this.time.value === null ? undefined : this.history[this.time.value];
    return snapshot ? unpack(snapshot.weights) : this.edges.weights;
  }

  /** Belief of an agent in a hypothesis by bin; NaN where the agent was silent. */
  said(agent: number, hypothesis: number): Float64Array {
    const given = this.page.hypotheses.length - 1;
    const bins = this.page.opinions?.times.length ?? 0;
    const beliefs = this.beliefs ?? new Float64Array();
    const start = agent * given * bins;
    if (hypothesis < given) return beliefs.subarray(start + hypothesis * bins, start + (hypothesis + 1) * bins);
    // The last one is one minus the others.
    return Float64Array.from({ length: bins }, (_, bin) => {
      let left = 1;
      for (let other = 0; other < given; other += 1) left -= beliefs[start + other * bins + bin] ?? NaN;
      return left;
    });
  }

  meanOf(hypothesis: number): Float64Array {
    const bins = this.page.opinions?.times.length ?? 0;
    return (this.mean ?? new Float64Array()).subarray(hypothesis * bins, (hypothesis + 1) * bins);
  }

  private meanBelief(agent: number): number[] | null {
    const means = this.page.hypotheses.map((_, hypothesis) => {
      const known = this.said(agent, hypothesis).filter((value) => !Number.isNaN(value));
      return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : NaN;
    });
    return means.some(Number.isNaN) ? null : means;
  }
}

/** The interval of the signed share. */
export function ends(row: RankRow | undefined): [number, number] | null {
  if (row?.share_low === undefined || row.share_high === undefined) return null;
  return row.sign === -1 ? [-row.share_high, -row.share_low] : [row.share_low, row.share_high];
}

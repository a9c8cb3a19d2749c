// The data of the page: one JSON object in `<script type="application/json" id="data">`, written by
// `headwater-report`'s `page` module, which has the same names. Numbers that are printed come exact;
// series, layouts and heat maps come as packed integers.

/** Base64 of little-endian integers. */
export interface Packed {
  bits: 8 | 16 | 32;
  /** Value = low + integer × step; the largest integer means a missing value where `gaps` is true. */
  low: number;
  step: number;
  gaps: boolean;
  data: string;
}

export type Outcome = "supported" | "no-evidence" | "not-tested";

/** The test that decided. */
export type DecidingTest = "graph-test" | "speaker-heard" | "circular-shifts";

export interface Page {
  format: "headwater-page/1";
  title: string;
  /** The first section. */
  verdict: {
    /** Whether the data support an answer; "not-tested" where no test was run. */
    outcome: Outcome;
    /** The test that decided, where one was run, and its p-value. */
    test?: DecidingTest;
    p_value?: number;
    /** Whether the support is by a test that common news cannot pass. */
    common_news_excluded: boolean;
    /** One sentence: who is most influential. */
    headline: string;
    /** The sentence of the verdict, as `rank` prints it. */
    text: string;
    /** Uncertainty, a sentence each. */
    sure: string[];
    /** What was tested, what was found beside it, and what limits the test here, a sentence each. */
    tested?: string[];
    /** Unless supported: what to try next, a sentence each. */
    next?: string[];
    /** Assumptions, a sentence each. */
    assumed: string[];
    /** Warnings, a sentence each. */
    warnings: string[];
  };
  /** Names in the model's order; indices below refer to this list. */
  agents: string[];
  hypotheses: string[];
  /** Index of θ₀, the reference of the log-ratios, and of the hypothesis the network settles on. */
  reference: number;
  truth: number;
  /** The JSON of `headwater rank`, unchanged; its edges, if any, are in `network` instead. */
  ranking: Ranking;
  network: Network;
  cards: Card[];
  /** Absent when the page was made without beliefs. */
  opinions?: Opinions;
  /** Weights as a heat map; absent above `HEAT_AGENTS` agents. */
  heat?: Heat;
  /** Snapshots of a tracked model, oldest first; absent or empty otherwise. */
  history?: Snapshot[];
  /** Label and value, both text: rows read, kept, dropped and why, silence. */
  quality: [string, string][];
  /** Label and value: method, parameters, version, seed, hashes. */
  method: [string, string][];
  cite: string[];
  /** What was left out to keep the page small, a sentence each. */
  left_off: string[];
}

/** Keys as in `interface.md`; those that were not asked for are absent. */
export interface Ranking {
  truth: string;
  agreement: number;
  reference: string;
  verdict: { outcome?: Outcome; supported: boolean; text: string; common_news_excluded?: boolean; given?: boolean };
  divergence: Record<string, number>;
  agents: RankRow[];
}

export interface RankRow {
  agent: string;
  rank: number;
  influence: number;
  share?: number;
  /** +1 or -1; only where some influences are negative. */
  sign?: number;
  share_low?: number;
  share_high?: number;
  centrality: number;
  informativeness: number;
  origin: number;
  rank_low?: number;
  rank_high?: number;
  top_k_probability?: number;
  ahead_probability?: number;
  centrality_low?: number;
  centrality_high?: number;
  information?: number;
  p_value?: number;
  error_probability?: number;
  contrarian?: string;
  posts?: number;
  silent_share?: number;
  in_degree?: number;
  pagerank?: number;
}

export interface Network {
  /** x and y of each agent in turn, 0…1, the same from run to run. */
  places: Packed;
  /** Strongest first, self-weights left out. */
  speakers: Packed;
  listeners: Packed;
  weights: Packed;
  /** P-value per edge where the permutation test was run. */
  p_values?: Packed;
  /** 1 where significant after Benjamini–Hochberg. */
  significant?: Packed;
  /** Number of edges of the model; more than listed here where `left_off` says so. */
  edges: number;
  /** Whether the weights were restricted to a given graph. */
  given: boolean;
}

/** One per agent, in the model's order; of the first `CARDS` by rank when there are very many. */
export interface Card {
  agent: number;
  /** Reasons for the rank, a sentence each. */
  why: string[];
  self_weight: number;
  /** Sources of the expected log-belief: agent, share, direct weight. */
  shaped_by: [number, number, number][];
  /** Agents influenced: agent, share of their expected log-belief. */
  shapes: [number, number][];
  /** Strongest paths to the agent: agents from the source on, strength. */
  paths: [number[], number][];
  /** Belief of the others in the truth with and without the agent; null where the agent cannot be removed. */
  without: { before: number; after: number; words: string; most: [number, number, number][] } | null;
}

export interface Opinions {
  /** Start of each bin on the local clock, as text: dates where all bins start at midnight. */
  times: string[];
  /** Zone of the times; absent for step numbers. */
  zone?: string;
  /** Bins merged into one point, 1 when none were. */
  merged: number;
  /** Belief in each hypothesis but the last, 0…1: agent by agent, within it hypothesis by hypothesis, within it bin by bin. */
  beliefs: Packed;
  /** Mean over the agents with a post, hypothesis by hypothesis (all of them), bin by bin. */
  mean: Packed;
  /** Number of agents with a post, bin by bin. */
  spoke?: number[];
  /** Mean belief of each agent in the reference over all posts, for colour: exact to 4 digits, null without posts. */
  leaning: (number | null)[];
  /** Detected changes: bin, "topology" | "state" | …, listeners (indices). */
  changes: [number, string, number[]][];
}

export interface Heat {
  /** Agents by rank, on both axes: row and column i are agent order[i]. */
  order: number[];
  /** Row = speaker, column = listener, row by row. */
  learned: Packed;
  /** The true weights on the same scale, when the truth is known. */
  true?: Packed;
}

export interface Snapshot {
  time: string;
  /** By the model's order; shares with their signs. */
  share: number[];
  centrality: number[];
  informativeness: number[];
  /** Weights of `network`'s edges at that time, in their order. */
  weights: Packed;
}

// Colours that colour-blind readers can tell apart: blue against orange, and the palette of Okabe and Ito as in the
// figures. Never the only sign of anything: whatever is coloured is also named.
import type { Report } from "./report";
import type { Theme } from "./state";

type Rgb = [number, number, number];

const parse = (hex: string): Rgb => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)) as Rgb;
const hex = (rgb: Rgb): string => `#${rgb.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;

export function mix(from: string, to: string, along: number): string {
  const [a, b] = [parse(from), parse(to)];
  return hex(a.map((part, index) => part + ((b[index] ?? 0) - part) * along) as Rgb);
}

/** Over stops that are evenly spaced. */
function along(stops: readonly string[], value: number): string {
  const place = Math.min(1, Math.max(0, value)) * (stops.length - 1);
  const left = Math.min(stops.length - 2, Math.floor(place));
  return mix(stops[left] ?? "#000000", stops[left + 1] ?? "#000000", place - left);
}

/** What a drawing needs of the theme; the style sheet has the same values. */
export const INKS = {
  light: { paper: "#fffdf9", ink: "#16242c", muted: "#52616a", line: "#d9d5cb", edge: "#43545e", shapes: "#b1480b", hears: "#00629b", against: "#a8327c", unknown: "#9aa3a8", accent: "#0b5c7a", faint: 0.09 },
  dark: { paper: "#141d23", ink: "#e9eef0", muted: "#a3b1b9", line: "#2f3c44", edge: "#a9bac4", shapes: "#ff9a52", hears: "#62b6f0", against: "#ee8fc8", unknown: "#6f7b82", accent: "#74c3dd", faint: 0.12 },
} as const;

const LEANING = {
  light: ["#a8430a", "#dd7a2e", "#e6b684", "#b9bab6", "#86b4d6", "#3a86bf", "#0a4f86"],
  dark: ["#ff8a3c", "#e89a5d", "#c9a98a", "#8d959a", "#7fb0d8", "#55a3e6", "#3b93ff"],
} as const;

const HYPOTHESES = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b65b91", "#3a9fd6", "#c98800", "#3c3c3c"],
  dark: ["#4aa8e0", "#ff8a3c", "#2fc79a", "#e39bc6", "#8fd0f5", "#f0b43c", "#d0d0d0"],
} as const;

const WEIGHTS = {
  light: ["#fffdf9", "#cfe3ef", "#86b9d8", "#3a86bf", "#0a4f86", "#062c4d"],
  dark: ["#141d23", "#17384d", "#1d5d86", "#3a8fc4", "#8cc6ea", "#e6f5ff"],
} as const;

/** Weights below zero, which only free fits have. */
const AGAINST = {
  light: ["#fffdf9", "#f0cfe2", "#cf7fb0", "#a8327c", "#5e1443"],
  dark: ["#141d23", "#4a1f3c", "#8a3a70", "#cf7fb0", "#ffd9f0"],
} as const;

/** How far from one half the scale of opinions reaches: as far as the agents do, or all would look alike. */
export function leaningReach(report: Report): number {
  const farthest = (report.page.opinions?.leaning ?? []).reduce((far: number, value) => Math.max(far, value === null ? 0 : Math.abs(value - 0.5)), 0);
  return [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4].find((reach) => farthest <= reach) ?? 0.5;
}

/** From −1, as far against the reference as anybody is, to 1. */
export const leaningColour = (value: number, theme: Theme): string => along(LEANING[theme], (value + 1) / 2);
export const hypothesisColour = (index: number, theme: Theme): string => HYPOTHESES[theme][index % HYPOTHESES[theme].length] ?? "#000000";

/** A weight of the heat map as a part of the largest; the root makes small ones visible. */
export const weightColour = (part: number, theme: Theme): string => along(part < 0 ? AGAINST[theme] : WEIGHTS[theme], Math.sqrt(Math.abs(part)));

export const rgb = (colour: string): Rgb => parse(colour);
export const alpha = (colour: string, opacity: number): string => `rgba(${parse(colour).join(",")},${opacity.toFixed(3)})`;

/** By opinion: a scale for two hypotheses, the most believed one for more. */
export function opinionColour(report: Report, agent: number, theme: Theme): string {
  const { opinions, hypotheses } = report.page;
  if (!opinions) return INKS[theme].accent;
  const leaning = opinions.leaning[agent] ?? null;
  if (leaning === null) return INKS[theme].unknown;
  if (hypotheses.length <= 2) return leaningColour((leaning - 0.5) / report.reach, theme);
  const favourite = believed(report, agent);
  return favourite === null ? INKS[theme].unknown : hypothesisColour(favourite, theme);
}

/** The hypothesis with the largest mean belief of an agent. */
export function believed(report: Report, agent: number): number | null {
  const means = report.meanBeliefs?.[agent];
  return means ? means.indexOf(Math.max(...means)) : null;
}

/** An agent's opinion in words. */
export function opinionWords(report: Report, agent: number): string {
  const { opinions, hypotheses, reference } = report.page;
  if (!opinions) return "";
  const leaning = opinions.leaning[agent] ?? null;
  if (leaning === null) return "no posts";
  const favourite = hypotheses.length > 2 ? believed(report, agent) : null;
  const [hypothesis, belief] = favourite === null ? [reference, leaning] : [favourite, report.meanBeliefs?.[agent]?.[favourite] ?? NaN];
  return `belief in “${hypotheses[hypothesis]}” ${(100 * belief).toFixed(1)}%`;
}

// Labels of a time axis: as many as fit beside each other, none beyond the edges, whole days where there are any.
import { shortTime } from "./numbers";

export interface TimeLabel {
  step: number;
  text: string;
  /** Middle of the text. Near an edge this is not above its step, so that no letter is cut. */
  middle: number;
}

export interface AxisSpace {
  /** Where a step is, and how wide a text is, in the same unit. */
  place: (step: number) => number;
  width: (text: string) => number;
  /** Edges of the drawing. */
  from: number;
  to: number;
  /** Least space between two labels. */
  gap: number;
}

/** Steps between labels: 1, 2, 5, 10, 20, … */
const strides = (most: number): number[] => [1, 10, 100, 1000, 10_000].flatMap((power) => [power, 2 * power, 5 * power]).filter((stride) => stride < most);

type Parts = [year: string, day: string, clock: string];

const parts = (time: string): Parts | null => {
  const [, year, day, clock] = /^(\d{4,})-(\d\d-\d\d)(?:[ T](.+))?$/.exec(time) ?? [];
  return year === undefined || day === undefined ? null : [year, day, clock ?? ""];
};

/** A time without what the label before it says already, the year or the whole date, and a day's beginning without its clock. */
function short(time: string, before: Parts | null): string {
  const now = parts(time);
  if (!now) return time;
  const [year, day, clock] = now;
  if (before && before[0] === year && before[1] === day) return clock;
  const date = before?.[0] === year ? day : `${year}-${day}`;
  return clock === "" || clock === "00:00" ? date : `${date} ${clock}`;
}

/** The steps that may have a label, from many to few. Clock times go by parts of a day, then by days. */
function choices(times: (Parts | null)[]): number[][] {
  const every = (steps: number[]): number[][] => strides(steps.length).map((stride) => steps.filter((_, index) => index % stride === 0));
  const all = times.map((_, step) => step);
  // The first day may have begun before the first step.
  const days = all.slice(1).filter((step) => times[step]?.[1] !== times[step - 1]?.[1]);
  const sizes = days.slice(1).map((start, index) => start - (days[index] ?? 0)).sort((a, b) => a - b);
  const size = sizes[sizes.length >> 1] ?? 1;
  if (size < 2) return every(all);
  let next = 0;
  const hours = all.map((step) => {
    while ((days[next + 1] ?? Infinity) <= step) next += 1;
    return step - (days[next] ?? 0);
  });
  const within = [1, 2, 3, 4, 6, 8, 12].filter((stride) => stride < size && size % stride === 0);
  return [...within.map((stride) => all.filter((step) => (hours[step] ?? 0) % stride === 0)), ...every(days)];
}

/** What places the labels of these times, as often as the chart changes its width. */
export function timeAxis(given: string[]): (space: AxisSpace) => TimeLabel[] {
  const times = given.map(shortTime);
  const known = times.map(parts);
  const ends = [0, times.length - 1];
  const sets = times.length < 2 ? [] : [...choices(known), ends].filter((steps) => steps.length > 1);
  const year = known[0]?.[0];

  return ({ place, width, from, to, gap }) => {
    /** `brief` leaves out the year of the first label as well. */
    const laid = (steps: number[], brief: boolean): TimeLabel[] =>
      steps.map((step, index) => {
        const before = index > 0 ? (known[steps[index - 1] ?? 0] ?? null) : brief && year !== undefined ? ([year, "", ""] satisfies Parts) : null;
        const text = short(times[step] ?? "", before);
        const half = width(text) / 2;
        return { step, text, middle: Math.max(from + half, Math.min(to - half, place(step))) };
      });
    const apart = (labels: TimeLabel[]): boolean =>
      labels.every(({ text, middle }, index) => {
        const next = labels[index + 1];
        return !next || middle + width(text) / 2 + gap <= next.middle - width(next.text) / 2;
      });
    // Two labels at least; the first without its year where there is no other way.
    for (const brief of [false, true]) {
      for (const steps of sets) {
        if (steps.length * 2 * gap > to - from) continue;
        const labels = laid(steps, brief);
        if (apart(labels)) return labels;
      }
    }
    return times.length > 0 ? laid([0], true) : [];
  };
}

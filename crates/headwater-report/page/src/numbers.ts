// How numbers are printed, everywhere on the page.
import { el } from "./dom";

export type Kind = "share" | "number" | "count";

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const signed = (text: string): string => text.replace("-", "−");

/** One decimal of a percent; nothing is not below zero. */
export const percent = (value: number): string => `${signed((100 * value).toFixed(1).replace(/^-0\.0$/, "0.0"))}%`;

/** Three significant digits; powers of ten only where zeros would hide the digits. */
export function significant(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 999_500) {
    const text = value.toPrecision(3);
    return signed(text.includes("e") ? String(Number(text)) : text);
  }
  const [digits = "", power = "0"] = value.toExponential(2).split("e");
  const raised = String(Math.abs(Number(power))).replace(/\d/g, (digit) => RAISED[Number(digit)] ?? digit);
  return `${signed(digits)} × 10${Number(power) < 0 ? "⁻" : ""}${raised}`;
}

/** Whole numbers with thin spaces between thousands. */
export const count = (value: number): string => signed(String(value)).replace(/\B(?=(\d{3})+$)/g, "\u202F");

export function print(value: number, kind: Kind): string {
  if (!Number.isFinite(value)) return "–";
  return kind === "share" ? percent(value) : kind === "count" && Number.isInteger(value) ? count(value) : significant(value);
}

/** A printed number that carries the exact one, under the name it has in the ranking. */
export function figure(field: string, value: number, kind: Kind, className?: string): HTMLElement {
  return el("span", { class: className ?? "figure", "data-field": field, "data-value": value }, print(value, kind));
}

export const plural = (number: number, word: string): string => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** Midnights without their zero hours. */
export const shortTime = (time: string): string => time.replace(/T00:00(:00(\.0+)?)?(Z|[+-]\d\d:?\d\d)?$/, "");

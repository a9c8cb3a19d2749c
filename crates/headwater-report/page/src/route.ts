// The address says whose card is open, so that a link to it can be sent: #agent=NAME.
import type { Report } from "./report";

const PREFIX = "#agent=";
/** What had the focus before the first card opened. */
let opener: HTMLElement | null = null;

export function open(report: Report, agent: number): void {
  if (report.chosen.value === null && document.activeElement instanceof HTMLElement) opener = document.activeElement;
  const hash = PREFIX + encodeURIComponent(report.name(agent));
  if (location.hash === hash) report.chosen.set(agent);
  else location.hash = hash;
}

export function close(report: Report): void {
  report.chosen.set(null);
  // Not by location.hash, which would scroll to the top.
  if (location.hash.startsWith(PREFIX)) history.replaceState(null, "", location.href.split("#")[0]);
  if (opener?.isConnected) opener.focus({ preventScroll: true });
  opener = null;
}

/** Follows the address. */
export function follow(report: Report): void {
  const read = (): void => {
    if (!location.hash.startsWith(PREFIX)) return report.chosen.set(null);
    let name = location.hash.slice(PREFIX.length);
    try {
      name = decodeURIComponent(name);
    } catch {
      // Typed by hand: taken as it is.
    }
    report.chosen.set(report.find(name) ?? null);
  };
  window.addEventListener("hashchange", read);
  read();
}

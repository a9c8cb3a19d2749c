// What changes while the page is open, and who wants to know.

export class Cell<T> {
  private listeners: ((value: T) => void)[] = [];
  constructor(private current: T) {}
  get value(): T {
    return this.current;
  }
  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const listener of this.listeners) listener(value);
  }
  /** Called at every later change. */
  on(listener: (value: T) => void): void {
    this.listeners.push(listener);
  }
}

export type Theme = "light" | "dark";

/** Follows the system until somebody chooses. */
export function themeCell(): Cell<Theme> {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const stored = (): Theme | null => {
    try {
      const kept = localStorage.getItem("headwater-theme");
      return kept === "light" || kept === "dark" ? kept : null;
    } catch {
      return null; // Storage may be forbidden for files.
    }
  };
  const theme = new Cell<Theme>(stored() ?? (system.matches ? "dark" : "light"));
  const show = (value: Theme): void => {
    document.documentElement.dataset.theme = value;
  };
  show(theme.value);
  theme.on(show);
  system.addEventListener("change", () => {
    if (!stored()) theme.set(system.matches ? "dark" : "light");
  });
  return theme;
}

export function keepTheme(theme: Theme): void {
  try {
    localStorage.setItem("headwater-theme", theme);
  } catch {
    // Then it lasts as long as the page.
  }
}

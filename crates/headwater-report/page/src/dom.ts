// Elements without markup: every text goes in as text, so that no name can become a tag.

type Child = Node | string | number | null | undefined | false;
type Handler = (event: Event) => void;
/** Attributes; functions are listeners of the event that follows `on`. */
type Attributes = Record<string, string | number | boolean | undefined | null | Handler>;

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Places by CSSOM: style attributes are against the page's policy. */
export function style<E extends HTMLElement | SVGElement>(element: E, rules: Partial<CSSStyleDeclaration>): E {
  Object.assign(element.style, rules);
  return element;
}

/** A name, kept from turning the text around it; an empty one is still something to click on. */
export function bdi(text: string): HTMLElement {
  return el("bdi", { class: "name", title: text.length > 24 ? text : undefined }, text === "" ? "(no name)" : text);
}

/** A section of the page with its heading. */
export function section(id: string, title: string, lead: string | null, ...children: Child[]): HTMLElement {
  return el(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    el("div", { class: "section-head" }, el("h2", { id: `${id}-title` }, title), lead && el("p", { class: "lead" }, lead)),
    ...children,
  );
}

/** Label and value, line by line. */
export function pairs(rows: [string, Child][], kind = "pairs"): HTMLElement {
  return el("dl", { class: kind }, ...rows.map(([label, value]) => el("div", {}, el("dt", {}, label), el("dd", {}, value))));
}

/** Paths of 16 × 16 icons, drawn with the colour of the text around them. */
const ICONS = {
  check: "M3 8.5l3.2 3.2L13 5",
  none: "M4 8h8",
  question: "M5.8 6.2a2.2 2.2 0 1 1 3.3 1.9c-.8.5-1.1.9-1.1 1.7M8 12v.1",
  close: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  moon: "M12.5 10A5.5 5.5 0 0 1 6 3.5a5 5 0 1 0 6.5 6.5z",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 1 0 0-5.6M8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
  play: "M5 3.5v9l7-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  left: "M10 3L5 8l5 5",
  right: "M6 3l5 5-5 5",
  search: "M7 3a4 4 0 1 0 0 8a4 4 0 1 0 0-8M10 10l3.5 3.5",
} as const;

export function icon(name: keyof typeof ICONS): SVGElement {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/** Calls at most once per frame, with what came last. */
export function eachFrame<A extends unknown[]>(act: (...values: A) => void): (...values: A) => void {
  let latest: A | null = null;
  return (...values) => {
    if (latest === null) {
      requestAnimationFrame(() => {
        const now = latest;
        latest = null;
        if (now) act(...now);
      });
    }
    latest = values;
  };
}

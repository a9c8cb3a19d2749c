// One tooltip for the whole page, above everything and never cut off.
import { el, style } from "./dom";

const tip = el("div", { class: "tip", role: "tooltip", id: "tip", hidden: true });

export function mountTip(): void {
  document.body.append(tip);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
  document.addEventListener("scroll", hideTip, { passive: true });
}

/** At a point of the window. */
export function showTip(x: number, y: number, ...content: (Node | string)[]): void {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(x + 14, window.innerWidth - width - 8));
  const top = y + 18 + height > window.innerHeight ? y - height - 12 : y + 18;
  style(tip, { left: `${left}px`, top: `${Math.max(8, top)}px` });
}

export function hideTip(): void {
  tip.hidden = true;
}

/** Explains an element to whoever points at it or focuses it. */
export function explain(target: HTMLElement, text: string): void {
  const show = (): void => {
    const box = target.getBoundingClientRect();
    showTip(box.left - 14, box.bottom - 12, text);
    target.setAttribute("aria-describedby", "tip");
  };
  const hide = (): void => {
    target.removeAttribute("aria-describedby");
    hideTip();
  };
  target.addEventListener("pointerenter", show);
  target.addEventListener("pointerleave", hide);
  target.addEventListener("focus", () => target.matches(":focus-visible") && show());
  target.addEventListener("blur", hide);
}

// A headless Chromium from the system's packages that talks to nobody.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

export const EXECUTABLE = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path)) ?? "/usr/bin/chromium";

/** With the graphics card played by the processor, unless `webgl` is false. */
export function launch({ webgl = true } = {}) {
  const quiet = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  const drawing = webgl ? ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"] : ["--disable-gpu", "--disable-3d-apis"];
  // Root, as in most containers, has no sandbox to offer.
  const root = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: EXECUTABLE, args: [...quiet, ...drawing, ...root] });
}

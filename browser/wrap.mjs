// The HTML file around the page's script, style and data, as headwater-report writes it: same parts, same policy.
// For development, and for tests of worlds that the program would take long to learn.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";

const dist = new URL("../crates/headwater-report/page/dist/", import.meta.url);
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

export async function wrap(data) {
  const script = await readFile(new URL("page.js", dist), "utf8");
  const style = await readFile(new URL("page.css", dist), "utf8");
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${escape(data.title)}</title>
<style>${style}</style>
</head>
<body>
<main id="app"></main>
<script type="application/json" id="data">${json}</script>
<script>${script}</script>
</body>
</html>
`;
}

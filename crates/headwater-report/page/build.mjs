// Makes dist/page.js, dist/page.css and dist/LICENSES.txt from src/: node build.mjs [FOLDER]
// The same sources and lockfile give the same bytes; scripts/page --check relies on it.
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.resolve(process.argv[2] ?? path.join(here, "dist"));

const { outputFiles, metafile } = await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.ts" },
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome109", "firefox115", "safari16"],
  // What is carried is named in the banner and in LICENSES.txt instead.
  legalComments: "none",
  metafile: true,
  write: false,
  outdir: "dist",
  logLevel: "warning",
});

/** Packages of which something is really in the bundle. */
const packages = new Set();
for (const output of Object.values(metafile.outputs)) {
  for (const [input, { bytesInOutput }] of Object.entries(output.inputs)) {
    const found = /(?:^|.*\/)node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input);
    if (found && bytesInOutput > 0) packages.add(found[1]);
  }
}

const licences = [];
for (const name of [...packages].sort()) {
  const folder = path.join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} ${version} (${license}) has no licence file: add its text here`);
  const text = (await readFile(path.join(folder, file), "utf8")).replaceAll("\r\n", "\n").trim();
  licences.push({ name, version, license, text });
}

const rights = licences.flatMap(({ name, version, license, text }) => {
  const copyright = text.split("\n").find((line) => /^\s*copyright/i.test(line)) ?? "";
  return ` * ${name} ${version}, ${license}. ${copyright.trim()}`;
});
const mit = licences.find(({ license }) => license === "MIT")?.text ?? "";
const terms = mit.slice(mit.indexOf("Permission is hereby")).split("\n").map((line) => ` * ${line}`.trimEnd());
// The notices travel with every report: the page is a copy of these libraries.
const banner = ["/*", " * Headwater's report page. Contains:", ...rights, " *", " * MIT:", ...terms, " */", ""].join("\n");

await mkdir(out, { recursive: true });
for (const file of outputFiles) {
  const name = path.basename(file.path);
  if (/<\/(script|style)/i.test(file.text)) throw new Error(`${name} would end the block it is put into`);
  await writeFile(path.join(out, name), (name.endsWith(".js") ? banner : "") + file.text);
}
const list = licences.map(({ name, version, license, text }) => `${name} ${version} (${license})\n\n${text}\n`);
await writeFile(path.join(out, "LICENSES.txt"), `What page.js and page.css are bundled from.\n\n${list.join(`\n${"-".repeat(72)}\n\n`)}`);

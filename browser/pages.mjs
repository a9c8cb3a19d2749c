// The pages under test: made by the program where it has `report` (environment HEADWATER), else by wrap.mjs. Worlds that
// the program would take long to learn, or that it cannot have, are samples in either case.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { HOSTILE, SAMPLES } from "./samples.mjs";
import { wrap } from "./wrap.mjs";

export const OUT = fileURLToPath(new URL("out/", import.meta.url));
const program = process.env.HEADWATER;
const run = (...args) => execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 });

/** Without a program pages are samples; one that is named has to work. */
function reports() {
  return program !== undefined && run("report", "--help") !== "";
}
export const REAL = reports();

/** The program's own demonstration: posts, a graph of who follows whom, names. */
function fromDemo(name) {
  const folder = path.join(OUT, `${name}-files`);
  rmSync(folder, { recursive: true, force: true });
  run("demo", "--out", folder, "--quiet");
  copyFileSync(path.join(folder, "report.html"), path.join(OUT, `${name}.html`));
  copyFileSync(path.join(folder, "ranking.json"), path.join(OUT, `${name}.ranking.json`));
}

function discover(name, posts, ...options) {
  const folder = path.join(OUT, `${name}-files`);
  run("discover", posts, "--scorer", "column", ...options, "--bootstrap", "20", "--null", "20", "--out", folder, "--quiet", "--force");
  copyFileSync(path.join(folder, "report.html"), path.join(OUT, `${name}.html`));
  copyFileSync(path.join(folder, "ranking.json"), path.join(OUT, `${name}.ranking.json`));
}

/** Posts of 45 days, at 16 h UTC, in a zone. */
function fromPosts(name, { timezone, first }) {
  const posts = path.join(OUT, `${name}.csv`);
  const rows = Array.from({ length: 45 * 4 }, (_, row) => {
    const time = new Date(Date.parse(`${first}T16:00:00Z`) + Math.floor(row / 4) * 86_400_000).toISOString();
    return `${"abcd"[row % 4]},${time},hello,${(0.5 + 0.3 * Math.sin(7 * row * row)).toFixed(3)}`;
  });
  writeFileSync(posts, ["user,time,text,score", ...rows, ""].join("\n"));
  discover(name, posts, "--timezone", timezone);
}

/** Posts at times that are plain numbers, in bins of half a unit. */
function fromNumbers(name) {
  const posts = path.join(OUT, `${name}.csv`);
  const rows = Array.from({ length: 21 * 4 }, (_, row) => `${"abcd"[row % 4]},${Math.floor(row / 4) / 2},hello,${(0.5 + 0.3 * Math.sin(7 * row * row)).toFixed(3)}`);
  writeFileSync(posts, ["user,time,text,score", ...rows, ""].join("\n"));
  discover(name, posts, "--bin", "0.5");
}

/** From a simulated world to the page; the names in the beliefs may be changed on the way. */
function fromProgram(name, { simulate = [], learn = [], names, sure = true }) {
  const folder = path.join(OUT, `${name}-world`);
  const [model, ranking] = [path.join(OUT, `${name}.model.json`), path.join(OUT, `${name}.ranking.json`)];
  run("simulate", "--out", folder, "--as", "csv", "--quiet", ...simulate);
  const beliefs = path.join(folder, "beliefs.csv");
  if (names) {
    const quoted = names.map((agent) => `"${agent.replaceAll('"', '""')}"`);
    const lines = readFileSync(beliefs, "utf8").split("\n").map((line) => line.replace(/^([^,]*),(\d+),/, (_, time, agent) => `${time},${quoted[agent]},`));
    writeFileSync(beliefs, lines.join("\n"));
  }
  run("learn", beliefs, "--out", model, "--quiet", ...learn);
  writeFileSync(ranking, run("rank", model, "--format", "json", "--quiet", ...(sure ? ["--beliefs", beliefs, "--bootstrap", "20", "--null", "20"] : [])));
  const truth = names ? [] : ["--truth", path.join(folder, "truth.json")];
  run("report", model, "--ranking", ranking, "--beliefs", beliefs, ...truth, "--out", path.join(OUT, `${name}.html`));
}

const PROGRAM = {
  demo: { demo: true },
  zurich: { timezone: "Europe/Zurich", first: "2024-03-01" },
  york: { timezone: "America/New_York", first: "2024-02-20" },
  units: { numbers: true },
  twenty: { simulate: ["--agents", "20", "--steps", "120", "--hypotheses", "2", "--seed", "4"] },
  five: { simulate: ["--agents", "24", "--steps", "120", "--hypotheses", "5", "--seed", "6"] },
  tracked: { simulate: ["--agents", "12", "--steps", "900", "--change", "topology:300:0.05", "--seed", "9"], learn: ["--follow"], sure: false },
  // The program refuses agents without a name.
  hostile: { simulate: ["--agents", "12", "--steps", "80", "--hypotheses", "2", "--seed", "8"], names: HOSTILE.filter((name) => name !== "").slice(0, 12) },
};

const made = new Map();

/** Path of the page and what it was given. */
export async function page(name) {
  if (made.has(name)) return made.get(name);
  mkdirSync(OUT, { recursive: true });
  const file = path.join(OUT, `${name}.html`);
  if (REAL && PROGRAM[name]?.demo) fromDemo(name);
  else if (REAL && PROGRAM[name]?.timezone) fromPosts(name, PROGRAM[name]);
  else if (REAL && PROGRAM[name]?.numbers) fromNumbers(name);
  else if (REAL && PROGRAM[name]) fromProgram(name, PROGRAM[name]);
  else writeFileSync(file, await wrap(SAMPLES[name]()));
  const json = /<script type="application\/json" id="data">([^]*?)<\/script>/.exec(readFileSync(file, "utf8"))?.[1];
  const data = JSON.parse(json ?? "null");
  // While the page is worked on: its newest script around the program's data, without building the program again.
  if (process.env.HEADWATER_REWRAP) writeFileSync(file, await wrap(data));
  // The page's numbers are compared with what `rank` itself printed, not with what the page was given.
  if (REAL && PROGRAM[name]) data.ranking.agents = JSON.parse(readFileSync(path.join(OUT, `${name}.ranking.json`), "utf8")).agents;
  made.set(name, { file, data });
  return made.get(name);
}

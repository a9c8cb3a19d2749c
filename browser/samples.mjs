// Pages of data with the shape of crates/headwater-report/page/src/data.ts, made up from a seed.
// `node samples.mjs FOLDER [NAME…]` writes them as HTML files, each with its JSON beside it.
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { wrap } from "./wrap.mjs";

/** Mulberry32: small, and the same everywhere. */
function generator(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal, below: (limit) => Math.floor(uniform() * limit) };
}

/** Values in low…high (or null where there is none) as base64 of little-endian integers. */
export function pack(values, bits, { gaps = false, low, high } = {}) {
  const known = values.filter((value) => value !== null);
  const least = low ?? known.reduce((a, b) => Math.min(a, b), Infinity);
  const most = high ?? known.reduce((a, b) => Math.max(a, b), -Infinity);
  const top = 2 ** bits - (gaps ? 2 : 1);
  const step = known.length && most > least ? (most - least) / top : 1;
  const bytes = Buffer.alloc((values.length * bits) / 8);
  values.forEach((value, index) => {
    const integer = value === null ? 2 ** bits - 1 : Math.round((value - least) / step);
    bytes.writeUIntLE(integer, (index * bits) / 8, bits / 8);
  });
  return { bits, low: Number.isFinite(least) ? least : 0, step, gaps, data: bytes.toString("base64") };
}
const indices = (values) => ({ ...pack([], 32), step: 1, data: Buffer.from(Uint32Array.from(values).buffer).toString("base64") });

const FIRST = ["mira", "ben", "zoe", "eva", "sam", "lena", "uma", "max", "otto", "ines", "kofi", "ada", "noor", "ravi", "jun", "tess", "lars", "yara", "emil", "pia", "hugo", "nils", "rosa", "theo"];
export const HOSTILE = ["<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\u202Eevil\u202D", "مُستخدم", "a&b\"c'd", "name with   spaces", "", "constructor", "__proto__", "#agent=mira", "😀👨‍👩‍👧‍👦", "x".repeat(180), "line\nbreak", "null"];

const day = (index) => new Date(Date.UTC(2024, 2, 1 + index)).toISOString().slice(0, 10);
/** Bins of some hours from 6 h on the first day on, and bins of half a unit, as the page is given them. */
const hours = (bin) => (step) => new Date(Date.UTC(2024, 2, 1, 6 + bin * step)).toISOString().slice(0, 16).replace("T", " ");
const halves = (step) => String(step / 2);
/** Names that begin alike, as those of parliaments do. */
const LONG = ["Ocasio-Cortez", "Pelosi", "McCarthy", "Hoyer", "Cheney", "Sanders-of-Vermont", "Warren"].map((name) => `RepresentativeOfThePeople${name}`);

const clamp = (value) => Math.min(1, Math.max(0, value));
const round = (value) => Math.round(value * 1e4) / 1e4;

/** Springs along edges and repulsion between all, for small networks; discs around their group's place for large ones. */
function layout(random, count, edges, group, groups) {
  const spots = Array.from({ length: count }, (_, k) => {
    const angle = (2 * Math.PI * group[k]) / groups, far = groups > 1 ? 0.3 : 0;
    const turn = 2 * Math.PI * random.uniform(), spread = (groups > 1 ? 0.19 : 0.42) * Math.sqrt(random.uniform());
    return [0.5 + far * Math.cos(angle) + spread * Math.cos(turn), 0.5 + far * Math.sin(angle) + spread * Math.sin(turn)];
  });
  for (let step = 0; count <= 100 && step < 300; step += 1) {
    const push = spots.map(([x, y]) => [0.02 * (0.5 - x), 0.02 * (0.5 - y)]);
    for (let a = 0; a < count; a += 1) for (let b = 0; b < count; b += 1) {
      if (a === b) continue;
      const dx = spots[a][0] - spots[b][0], dy = spots[a][1] - spots[b][1], square = dx * dx + dy * dy + 1e-4;
      push[a][0] += (0.0006 * dx) / square / Math.sqrt(count); push[a][1] += (0.0006 * dy) / square / Math.sqrt(count);
    }
    for (const { speaker, listener, weight } of edges) {
      const dx = spots[speaker][0] - spots[listener][0], dy = spots[speaker][1] - spots[listener][1];
      for (const [agent, sign] of [[speaker, -1], [listener, 1]]) { push[agent][0] += 0.02 * weight * sign * dx; push[agent][1] += 0.02 * weight * sign * dy; }
    }
    spots.forEach((spot, k) => { spot[0] += push[k][0]; spot[1] += push[k][1]; });
  }
  const fit = (axis) => { const all = spots.map((spot) => spot[axis]); const low = Math.min(...all), high = Math.max(...all); return (value) => (high > low ? (value - low) / (high - low) : 0.5); };
  const [x, y] = [fit(0), fit(1)];
  return spots.flatMap((spot) => [x(spot[0]), y(spot[1])]);
}

export function sample({
  seed = 7, agents: count = 20, edges: wanted = 90, shown = wanted, steps = 90, hypotheses = ["positive", "negative"], beliefs = true,
  history = 0, truth = false, names, supported = true, measured = true, graph = true, cards: cardCount = count, heat = count <= 200,
  times = (step) => day(step),
} = {}) {
  const random = generator(seed);
  const agents = Array.from({ length: count }, (_, i) => names?.[i] ?? (count <= FIRST.length ? FIRST[i] : `${FIRST[i % FIRST.length]}_${Math.floor(i / FIRST.length)}`));
  // A few agents receive far more weight than the rest.
  const pull = agents.map((_, i) => 1 / (1 + i) ** 0.8 + 0.02 * random.uniform());
  const group = agents.map(() => random.below(Math.max(1, Math.round(Math.sqrt(count) / 2))));
  const groups = Math.max(...group) + 1;

  const pairs = new Map();
  const pulled = pull.reduce((sum, value) => sum + value, 0);
  const draw = () => { let left = random.uniform() * pulled; let i = 0; while (i < count - 1 && (left -= pull[i]) > 0) i += 1; return i; };
  const possible = Math.min(wanted, count * (count - 1));
  for (let tries = 0; pairs.size < possible && tries < possible * 40; tries += 1) {
    const speaker = random.uniform() < 0.5 ? draw() : random.below(count);
    const listener = random.below(count);
    if (speaker === listener || (group[speaker] !== group[listener] && random.uniform() < 0.6)) continue;
    pairs.set(speaker * count + listener, pull[speaker] ** 0.5 * Math.exp(random.normal()));
  }
  const into = new Float64Array(count);
  for (const [key, weight] of pairs) into[key % count] += weight;
  const self = agents.map((_, k) => (into[k] ? 0.15 + 0.5 * random.uniform() : 1));
  const edges = [...pairs].map(([key, weight]) => {
    const speaker = Math.floor(key / count), listener = key % count;
    return { speaker, listener, weight: (weight / into[listener]) * (1 - self[listener]) };
  }).sort((a, b) => b.weight - a.weight).slice(0, shown);
  edges.forEach((edge) => { edge.p = Math.min(1, Math.max(1 / 201, Math.exp(-edge.weight * 12) * (0.3 + random.uniform()))); });

  // Power iteration is enough for a centrality that looks like one.
  let centrality = new Float64Array(count).fill(1 / count);
  for (let round = 0; round < 60; round += 1) {
    const next = centrality.map((value, k) => value * self[k]);
    for (const { speaker, listener, weight } of edges) next[speaker] += weight * centrality[listener];
    const total = next.reduce((sum, value) => sum + value, 0);
    centrality = next.map((value) => value / total);
  }
  const informativeness = agents.map((_, k) => (k === count - 2 && count > 3 ? -0.04 : Math.abs(0.3 + 0.25 * random.normal()) + (k < 3 ? 0.6 * random.uniform() : 0)));
  const influence = agents.map((_, k) => centrality[k] * informativeness[k]);
  const total = influence.reduce((sum, value) => sum + value, 0);
  const share = influence.map((value) => value / total);
  const order = agents.map((_, k) => k).sort((a, b) => influence[b] - influence[a]);
  const rankOf = []; order.forEach((agent, place) => { rankOf[agent] = place + 1; });
  const inDegree = new Uint32Array(count); edges.forEach(({ speaker }) => { inDegree[speaker] += 1; });

  const rows = order.map((agent) => {
    const spread = 0.25 * Math.abs(share[agent]) + 0.004;
    return {
      agent: agents[agent], rank: rankOf[agent], influence: influence[agent], share: share[agent],
      ...(measured && { share_low: share[agent] - spread * (0.6 + 0.5 * random.uniform()), share_high: share[agent] + spread * (0.7 + 0.8 * random.uniform()), rank_low: Math.max(1, rankOf[agent] - random.below(3)), rank_high: Math.min(count, rankOf[agent] + random.below(4)), top_k_probability: clamp(1.05 - rankOf[agent] * 0.13), p_value: Math.min(1, (1 + random.below(3 + rankOf[agent] * 6)) / 201) }),
      centrality: centrality[agent], informativeness: informativeness[agent], origin: centrality[agent] * 0.98,
      error_probability: 0.5 * Math.exp(-Math.max(informativeness[agent], 0)),
      ...(informativeness[agent] < 0 && { contrarian: hypotheses[1] }),
      ...(beliefs && { posts: Math.round(90 * (0.4 + 6 * random.uniform())), silent_share: 0.6 * random.uniform() }),
      ...(graph && { in_degree: inDegree[agent], pagerank: (inDegree[agent] + 1) / (edges.length + count) }),
    };
  });

  const places = layout(random, count, edges, group, groups);
  const weights = edges.map((edge) => edge.weight);
  const network = {
    places: pack(places, 16, { low: 0, high: 1 }), speakers: indices(edges.map((edge) => edge.speaker)), listeners: indices(edges.map((edge) => edge.listener)),
    weights: pack(weights, 16), edges: pairs.size, given: graph,
    ...(measured && { p_values: pack(edges.map((edge) => edge.p), 16, { low: 0, high: 1 }), significant: pack(edges.map((edge) => (edge.p < 0.03 ? 1 : 0)), 8, { low: 0, high: 255 }) }),
  };

  const shaping = agents.map(() => []), shaped = agents.map(() => []);
  edges.forEach((edge) => { shaping[edge.speaker].push(edge); shaped[edge.listener].push(edge); });
  const attribution = (rows, pick) => { const sum = rows.reduce((all, edge) => all + edge.weight, 0) || 1; return rows.slice(0, 8).map((edge) => pick(edge, edge.weight / sum)); };
  const cards = order.slice(0, cardCount).map((agent) => {
    const last = shaped[agent][0];
    const before = last && shaped[last.speaker].find((edge) => edge.speaker !== agent);
    return {
      agent,
      why: [`${agents[agent]} is ranked ${rankOf[agent]} of ${count}: centrality ${centrality[agent].toPrecision(3)}, informativeness ${informativeness[agent].toPrecision(3)} nats per step.`, rankOf[agent] < 4 ? "Both factors are well above the average." : "Most of the influence comes from centrality."],
      self_weight: self[agent],
      shaped_by: attribution(shaped[agent], (edge, part) => [edge.speaker, part * (1 - self[agent]), edge.weight]),
      shapes: attribution(shaping[agent], (edge, part) => [edge.listener, part * 0.6]),
      paths: last ? [[[last.speaker, agent], last.weight], ...(before ? [[[before.speaker, last.speaker, agent], before.weight * last.weight]] : [])] : [],
      without: count > 1 ? { before: 0.91, after: 0.91 - 0.6 * Math.max(0, share[agent]), words: `Without it the others would believe in “${hypotheses[0]}” with ${(0.91 - 0.6 * Math.max(0, share[agent])).toFixed(2)} instead of 0.91.`, most: shaping[agent].slice(0, 3).map((edge) => [edge.listener, 0.9, 0.9 - 0.5 * edge.weight]) } : null,
    };
  }).sort((a, b) => a.agent - b.agent);

  let opinions;
  if (beliefs) {
    const kinds = hypotheses.length;
    const said = [], sums = Array.from({ length: kinds }, () => new Float64Array(steps)), heard = new Float64Array(steps), leaning = [];
    for (let agent = 0; agent < count; agent += 1) {
      const trend = hypotheses.map((_, h) => (h === group[agent] % kinds ? 0.9 : 0) + 0.5 * random.normal());
      const rows = Array.from({ length: kinds - 1 }, () => new Array(steps).fill(null));
      let sum = 0, posts = 0;
      for (let t = 0; t < steps; t += 1) {
        trend.forEach((_, h) => { trend[h] = 0.97 * trend[h] + 0.03 * (h === (t > steps * 0.6 ? 0 : group[agent] % kinds) ? 2.2 : 0) + 0.12 * random.normal(); });
        if (random.uniform() < 0.25 || agent === count - 1 && count > 5) continue;
        const exp = trend.map(Math.exp), all = exp.reduce((a, b) => a + b, 0);
        exp.forEach((value, h) => { sums[h][t] += value / all; if (h < kinds - 1) rows[h][t] = value / all; });
        heard[t] += 1; sum += exp[0] / all; posts += 1;
      }
      rows.forEach((row) => { for (const value of row) said.push(value); });
      leaning.push(posts ? round(sum / posts) : null);
    }
    opinions = {
      times: Array.from({ length: steps }, (_, t) => times(t)), merged: 1,
      beliefs: pack(said, 8, { gaps: true, low: 0, high: 1 }),
      mean: pack(sums.flatMap((row) => [...row].map((value, t) => (heard[t] ? value / heard[t] : null))), 16, { gaps: true, low: 0, high: 1 }),
      spoke: [...heard], leaning, changes: history ? [[Math.round(steps * 0.6), "state", []], [Math.round(steps * 0.3), "topology", [0, 2, 5].filter((k) => k < count)]] : [],
    };
  }

  const matrix = (noise) => {
    const place = new Map(order.map((agent, index) => [agent, index]));
    const cells = new Float64Array(count * count);
    edges.forEach(({ speaker, listener, weight }) => { cells[place.get(speaker) * count + place.get(listener)] = Math.max(0, weight + noise * random.normal()); });
    order.forEach((agent, index) => { cells[index * count + index] = self[agent]; });
    return pack([...cells], 8, { low: 0, high: 1 });
  };

  const snapshots = Array.from({ length: history }, (_, index) => {
    const drift = agents.map((_, k) => influence[k] * Math.exp(0.8 * Math.sin(index / 2 + k * 1.7)));
    const all = drift.reduce((a, b) => a + b, 0);
    return { time: day(Math.round((index / history) * steps)), share: drift.map((value) => value / all), centrality: [...centrality], informativeness: drift.map((value, k) => value / centrality[k]), weights: pack(edges.map((edge, e) => edge.weight * (0.55 + 0.45 * Math.sin(index + e))), 16) };
  });

  const top = rows[0];
  const outcome = !measured ? "not-tested" : supported ? "supported" : "no-evidence";
  // With a graph the graph test decides, without one circular shifts.
  const test = graph ? "graph-test" : "circular-shifts";
  const text = graph && supported ? "Supported. Opinion travels along this graph more than along graphs like it: p = 0.004 against 999 rewired graphs. Not excluded: accounts that are alike, follow each other for that reason, and read the same news sooner the more followers they have." : supported ? "Supported, common news not excluded. The beliefs of these agents predict each other: on 80 held-out steps the network's forecasts are 10.6 % better than each agent's own past and 48.3 % better than no change; permutation test p = 0.024. Common news was not excluded: accounts that read the same news at different times pass this test as well." : "No evidence that these agents listen to each other: on 80 held-out steps the network's forecasts are 0.8 % worse than each agent's own past and 12.1 % better than no change; permutation test p = 0.610.";
  return {
    format: "headwater-page/1", title: `Who drives opinion among ${count} ${count === 1 ? "agent" : "agents"}`,
    verdict: {
      outcome,
      ...(measured && { test, p_value: graph ? 0.004 : supported ? 0.024 : 0.61 }), common_news_excluded: measured && supported && graph,
      ...(measured && graph && { tested: ["Simpler tests beside this one never decide, because each of them can give a small p-value where nobody listens:", "Timing: do accounts change just after those they follow, more than when all series are shifted against each other in time? p = 0.005. Cannot exclude news that reaches many accounts at about the same time."] }),
      headline: !measured ? `${top.agent} ranks first; whether these agents influence each other was not tested.` : supported ? `${top.agent} is the most influential agent with ${(100 * top.share).toFixed(1)} % of all influence.` : "No evidence that these agents influence each other.",
      text: measured ? text : "Not tested: there is no forecast of held-out steps, so nothing here shows whether these agents listen to each other.",
      sure: measured ? [`In 90 % of the resamples ${top.agent} has a share of influence between ${(100 * top.share_low).toFixed(1)} % and ${(100 * top.share_high).toFixed(1)} %.`, `${top.agent} was among the first three in ${(100 * top.top_k_probability).toFixed(0)} % of 200 resamples.`] : [],
      assumed: ["Opinions form by adaptive social learning: each agent combines the beliefs of those they listen to with private evidence.", graph ? "Agents listen only to those they follow in the given graph." : "Any agent may listen to any other: no graph was given.", "Silence carries no information about opinions."],
      warnings: supported && measured ? ["38.2 % of all days are without a post; weights of users with few posts are shrunk towards each other."] : ["The order of the agents may be due to chance."],
    },
    agents, hypotheses, reference: 0, truth: 0,
    ranking: { truth: hypotheses[0], agreement: 0.85, reference: hypotheses[0], verdict: { outcome, supported: outcome === "supported", text, common_news_excluded: measured && supported && graph }, divergence: Object.fromEntries(hypotheses.slice(1).map((name) => [name, 0.3])), agents: rows },
    network, cards, ...(opinions && { opinions }), ...(heat && { heat: { order, learned: matrix(0.01), ...(truth && { true: matrix(0) }) } }), ...(history && { history: snapshots }),
    quality: [["Posts read", "20 481"], ["Posts kept", "18 902"], ["Duplicate posts", "311"], ["Outside the topic", "1 268"], ["Days without a post", "38.2 %"]],
    method: [["Learner", "state-space, one weight per edge"], ["Adaptation δ", "0.1276 (estimated)"], ["Resamples", "200"], ["Circular shifts", "200"], ["Seed", "21"], ["Headwater", "0.1.0"], ["Model format", "headwater-model/1"], ["posts.csv, SHA-256", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]],
    cite: ["The Headwater developers. Headwater, version 0.1.0.", "V. Shumovskaia, M. Kayaalp, M. Cemri, A. H. Sayed. Discovering Influencers in Opinion Formation over Social Graphs."],
    left_off: [...(shown < wanted ? [`Of ${pairs.size} edges the ${edges.length} strongest are on this page.`] : []), ...(cardCount < count ? [`Cards are there for the first ${cardCount} agents by rank.`] : []), ...(heat ? [] : ["The heat map is left off above 200 agents."])],
  };
}

export const SAMPLES = {
  demo: () => sample({ truth: true, agents: 24, edges: 110, seed: 31 }),
  twenty: () => sample({ truth: true }),
  hundreds: () => sample({ agents: 500, edges: 20000, steps: 180, seed: 11 }),
  thousands: () => sample({ agents: 5000, edges: 60000, shown: 20000, steps: 60, cards: 300, seed: 5 }),
  tracked: () => sample({ history: 12, seed: 3, agents: 24, edges: 120 }),
  hostile: () => sample({ names: HOSTILE, agents: HOSTILE.length, edges: 50, seed: 13 }),
  five: () => sample({ hypotheses: ["left", "centre-left", "centre", "centre-right", "right"], agents: 40, edges: 200, seed: 17 }),
  unsupported: () => sample({ supported: false, seed: 19, graph: false }),
  alone: () => sample({ seed: 37, graph: false }),
  bare: () => sample({ beliefs: false, measured: false, graph: false, seed: 23 }),
  sixhours: () => sample({ seed: 41, agents: 8, edges: 30, steps: 180, times: hours(6) }),
  hourly: () => sample({ seed: 43, agents: 8, edges: 30, steps: 60, times: hours(1) }),
  morning: () => sample({ seed: 47, agents: 8, edges: 30, steps: 4, times: hours(1) }),
  numbers: () => sample({ seed: 53, agents: 8, edges: 30, steps: 21, times: halves }),
  alike: () => sample({ seed: 59, agents: LONG.length, edges: 20, names: LONG }),
  one: () => sample({ agents: 1, edges: 0, seed: 29, graph: false }),
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [folder = "out", ...names] = process.argv.slice(2);
  await mkdir(folder, { recursive: true });
  for (const name of names.length ? names : Object.keys(SAMPLES)) {
    const data = SAMPLES[name]();
    await writeFile(path.join(folder, `${name}.html`), await wrap(data));
    await writeFile(path.join(folder, `${name}.json`), JSON.stringify(data));
  }
}

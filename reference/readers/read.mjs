// Reads GEXF or GraphML with graphology and prints what it found as JSON.
import { readFileSync } from "node:fs";
import Graph from "graphology";
import gexf from "graphology-gexf";
import graphml from "graphology-graphml";

const path = process.argv[2];
const library = path.endsWith(".gexf") ? gexf : graphml;
console.log(JSON.stringify(library.parse(Graph, readFileSync(path, "utf8")).export()));

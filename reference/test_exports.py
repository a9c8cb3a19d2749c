"""Exports as other programs read them: networkx, igraph and graphology open every format, pandas the tables, and what they
find is compared number by number with the model and the ranking.

HEADWATER names the program under test.
"""
import json
import math
import os
import pathlib
import re
import shutil
import subprocess

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest

PROGRAM = os.environ["HEADWATER"]
READERS = pathlib.Path(__file__).parent / "readers"
FORMATS = ["gexf", "graphml", "csv", "parquet", "json"]
NAMES = ["<script>alert(1)</script>", "two\nlines, \"quoted\"", "tab\there & &amp;", "Ünïcode 🦉 'single'", " edge ", "=1+1"]


def call(*arguments, folder, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done


def export(folder, out, *more, model="model.json"):
    """With names as they are; that CSV is safe in a spreadsheet by default has a test of its own."""
    return call("export", model, "--out", out, "--raw-csv", *more, folder=folder).stderr


def wanted(folder, ranking="ranking.json", least=0.0, loops=False):
    """What every file should hold: agents with what the ranking knows of them, and edges with weights and tests."""
    model = json.loads((folder / "model.json").read_text())
    names = model["agents"]
    weights = model["combination"]
    if isinstance(weights, dict):
        cells = {(speaker, listener): weight for speaker, listener, weight in weights["sparse"]}
    else:
        cells = {(speaker, listener): weight for speaker, row in enumerate(weights) for listener, weight in enumerate(row)}
    agents = {name: {"self_weight": cells.get((index, index), 0.0)} for index, name in enumerate(names)}
    tests = {}
    if ranking:
        ranking = json.loads((folder / ranking).read_text())
        for row in ranking["agents"]:
            agents[row["agent"]].update({key: value for key, value in row.items() if key != "agent"})
        tests = {(edge["source"], edge["target"]): edge for edge in ranking.get("edges", [])}
    edges = {}
    for (speaker, listener), weight in cells.items():
        if weight > 0 and weight >= least and (loops or speaker != listener):
            ends = names[speaker], names[listener]
            edges[ends] = {"weight": weight, **{key: tests[ends][key] for key in ("p_value", "significant") if ends in tests}}
    posterior = model.get("diagnostics", {}).get("posterior")
    if posterior and posterior["effective_size"] >= 100 and posterior["r_hat"] < 1.05:
        for edge in posterior["edges"]:
            ends = names[edge["speaker"]], names[edge["listener"]]
            if ends in edges:
                edges[ends].update({key: value for key, value in edge.items() if key not in ("speaker", "listener")})
    return agents, edges


def of_networkx(graph, *ignored):
    ignored = {"label", "viz", "id", "spells", *ignored}
    keep = lambda data: {key: value for key, value in data.items() if key not in ignored}
    assert graph.is_directed() and not graph.is_multigraph()
    edges = {(source, target): keep(data) for source, target, data in graph.edges(data=True)}
    return {name: keep(data) for name, data in graph.nodes(data=True)}, edges


def of_tables(nodes, edges):
    plain = lambda value: value.item() if isinstance(value, np.generic) else value
    keep = lambda row: {key: plain(value) for key, value in row.items() if not pd.isna(value)}
    agents = {row.pop("id"): keep(row) for row in nodes.to_dict("records")}
    return agents, {(row.pop("source"), row.pop("target")): keep(row) for row in edges.to_dict("records")}


def read_csv(path):
    # Names such as "None" or "1" are names; only empty cells are missing.
    return pd.read_csv(path, keep_default_na=False, na_values=[""], dtype={"id": str, "source": str, "target": str})


def read(folder, name):
    path = folder / name
    if name.endswith(".gexf"):
        return of_networkx(nx.read_gexf(path))
    if name.endswith(".graphml"):
        return of_networkx(nx.read_graphml(path))
    if name.endswith(".json"):
        return of_networkx(nx.node_link_graph(json.loads(path.read_text())))
    load = read_csv if name.endswith(".csv") else pd.read_parquet
    return of_tables(load(path.with_suffix(f".nodes{path.suffix}")), load(path))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    call("simulate", "--out", "w", "--agents", 9, "--steps", 200, "--silence", 0.2, "--hypotheses", 2, folder=folder)
    truth = json.loads((folder / "w/truth.json").read_text())
    pairs = [(str(speaker), str(listener)) for speaker, row in enumerate(truth["combination"])
             for listener, weight in enumerate(row) if weight > 0]
    (folder / "graph.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    call("learn", "w/beliefs.parquet", "--out", "model.json", "--graph", "graph.csv", "--rounds", 10, folder=folder)
    ranking = call("rank", "model.json", "--beliefs", "w/beliefs.parquet", "--bootstrap", 20, "--null", 20, "--graph",
                   "graph.csv", "--format", "json", folder=folder).stdout
    (folder / "ranking.json").write_text(ranking)
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    random = np.random.default_rng(5)
    size = len(NAMES)
    weights = random.random((size, size)) * (random.random((size, size)) < 0.6) + np.eye(size) * 0.1
    weights /= weights.sum(0)
    model = {"format": "headwater-model/1", "agents": NAMES, "hypotheses": ["<yes>", "no & never"], "truth": "<yes>",
             "adaptation": 0.1, "combination": weights.tolist(), "evidence": [[0.3], [0.2], [-0.4], [0.1], [0.5], [0.2]]}
    (folder / "model.json").write_text(json.dumps(model))
    (folder / "ranking.json").write_text(call("rank", "model.json", "--format", "json", folder=folder).stdout)
    return folder


@pytest.mark.parametrize("format", FORMATS)
def test_every_number_comes_back(world, format):
    export(world, f"net.{format}", "--ranking", "ranking.json")
    agents, edges = wanted(world)
    assert {"share_low", "p_value", "posts", "silent_share", "in_degree", "pagerank"} < set(agents["0"])
    assert all("significant" in edge for edge in edges.values())
    found_agents, found_edges = read(world, f"net.{format}")
    assert found_agents == agents
    assert found_edges == edges
    assert list(found_agents) == list(agents)


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_names_come_back(hostile, format):
    export(hostile, f"net.{format}")
    agents, edges = wanted(hostile)
    assert any("contrarian" in agent for agent in agents.values())
    assert read(hostile, f"net.{format}") == (agents, edges)


def test_names_like_formulas_are_neutralised_by_default(hostile):
    call("export", "model.json", "--out", "safe.csv", folder=hostile)
    names = set(pd.read_csv(hostile / "safe.csv", keep_default_na=False)["source"])
    assert "'=1+1" in names and "=1+1" not in names and "<script>alert(1)</script>" in names


@pytest.mark.parametrize("format", FORMATS)
def test_edges_are_chosen(hostile, format):
    export(hostile, f"few.{format}", "--min-weight", 0.2)
    assert read(hostile, f"few.{format}")[1] == wanted(hostile, least=0.2)[1]
    export(hostile, f"loops.{format}", "--self-loops")
    assert read(hostile, f"loops.{format}")[1] == wanted(hostile, loops=True)[1]
    export(hostile, f"none.{format}", "--min-weight", 2)
    agents, edges = read(hostile, f"none.{format}")
    assert (agents, edges) == (wanted(hostile)[0], {})


@pytest.mark.parametrize("format", FORMATS)
def test_significant_edges_alone(world, format):
    export(world, f"sure.{format}", "--ranking", "ranking.json", "--significant")
    sure = {ends: edge for ends, edge in wanted(world)[1].items() if edge["significant"]}
    assert read(world, f"sure.{format}")[1] == sure


def test_sparse_models_are_the_same(hostile, tmp_path):
    model = json.loads((hostile / "model.json").read_text())
    triplets = [[a, b, w] for a, row in enumerate(model["combination"]) for b, w in enumerate(row) if w]
    (tmp_path / "model.json").write_text(json.dumps({**model, "combination": {"sparse": triplets}}))
    (tmp_path / "ranking.json").write_text((hostile / "ranking.json").read_text())
    for format in FORMATS:
        export(tmp_path, f"net.{format}", "--ranking", "ranking.json")
        assert read(tmp_path, f"net.{format}") == wanted(hostile), format


def test_what_xml_cannot_hold_is_replaced_and_said(tmp_path, hostile):
    model = json.loads((hostile / "model.json").read_text())
    model["agents"][:3] = ["bell\a", "bell\b", "null\0"]
    (tmp_path / "model.json").write_text(json.dumps(model))
    for format, load in (("gexf", nx.read_gexf), ("graphml", nx.read_graphml)):
        said = export(tmp_path, f"net.{format}")
        assert "XML does not allow 3 characters of the names" in said
        names = list(load(tmp_path / f"net.{format}"))
        assert names[:3] == ["bell�", "bell� (2)", "null�"] and names[3:] == NAMES[3:]
    for format in ("csv", "parquet", "json"):
        assert "XML" not in export(tmp_path, f"net.{format}")
        assert list(read(tmp_path, f"net.{format}")[0]) == model["agents"]


def test_tables_have_types(world):
    export(world, "net.parquet", "--ranking", "ranking.json")
    nodes, edges = pd.read_parquet(world / "net.nodes.parquet"), pd.read_parquet(world / "net.parquet")
    assert list(edges.columns) == ["source", "target", "weight", "p_value", "significant", "low", "high"]
    assert (edges.weight.dtype, edges.significant.dtype, nodes["rank"].dtype) == (float, bool, np.int64)
    # What discover, learn and network take as edges.
    export(world, "net.csv", "--ranking", "ranking.json")
    call("learn", "w/beliefs.parquet", "--out", "again.json", "--graph", "net.csv", "--rounds", 2, "--fit", "em", folder=world)


def test_graphml_in_igraph(world):
    export(world, "net.graphml", "--ranking", "ranking.json")
    graph = igraph.Graph.Read_GraphML(str(world / "net.graphml"))
    agents, edges = wanted(world)
    known = lambda row: {key: value for key, value in row.items() if value is not None and value == value and value != ""}
    found = {vertex["id"]: {key: value for key, value in known(vertex.attributes()).items() if key not in ("id", "label")}
             for vertex in graph.vs}
    assert graph.is_directed() and found == agents
    found = {(graph.vs[edge.source]["id"], graph.vs[edge.target]["id"]):
             {key: value for key, value in known(edge.attributes()).items() if key != "id"} for edge in graph.es}
    assert found == edges


def test_json_for_d3(world):
    export(world, "net.json", "--ranking", "ranking.json")
    export(world, "d3.json", "--ranking", "ranking.json", "--json", "d3")
    networkx, d3 = (json.loads((world / name).read_text()) for name in ("net.json", "d3.json"))
    assert d3.pop("links") == networkx.pop("edges") and d3 == networkx
    # What networkx itself would write is this.
    assert set(nx.node_link_data(nx.DiGraph())) == {"directed", "multigraph", "graph", "nodes", "edges"}
    assert networkx["graph"]["method"] == "state-space" and networkx["graph"]["truth"] == "h0"


def looks(graph):
    return {name: data["viz"] for name, data in graph.nodes(data=True)}


def test_gephi_finds_sizes_colours_and_places(hostile):
    export(hostile, "net.gexf")
    export(hostile, "again.gexf")
    assert (hostile / "net.gexf").read_bytes() == (hostile / "again.gexf").read_bytes()
    agents, _ = wanted(hostile)
    found = looks(nx.read_gexf(hostile / "net.gexf"))
    by_share = sorted(found, key=lambda name: found[name]["size"])
    assert by_share[-1] == max(agents, key=lambda name: agents[name]["share"])
    assert len({tuple(look["position"].values()) for look in found.values()}) == len(agents)
    colours = {name: tuple(look["color"].values())[:3] for name, look in found.items()}
    assert {colours[name] == (0, 114, 178) for name in agents if "contrarian" not in agents[name]} == {True}
    assert {colours[name] == (213, 94, 0) for name in agents if "contrarian" in agents[name]} == {True}


def history(folder, times):
    """A model of three agents watched at three times, with an edge that comes and one that goes."""
    weights = [np.array(rows, float) for rows in (
        [[.5, .5, 0], [.5, .5, .25], [0, 0, .75]],
        [[.5, .25, 0], [.5, .75, .25], [0, 0, .75]],
        [[.5, .25, .5], [.5, .75, 0], [0, 0, .5]],
    )]
    evidence = [[.4], [.2], [.1]]
    past = [{"time": time, "step": step, "combination": matrix.tolist(), "evidence": evidence}
            for time, step, matrix in zip(times, (10, 20, 30), weights)]
    model = {"format": "headwater-model/1", "agents": ["a", "b", "c"], "hypotheses": ["x", "y"], "truth": "x",
             "adaptation": .1, "method": "whitened", "combination": weights[-1].tolist(), "evidence": evidence,
             "history": past, "diagnostics": {"steps": 41}}
    (folder / "model.json").write_text(json.dumps(model))
    return weights


def dynamic(path):
    """Networkx takes what has the id `weight` for a static number: under another id it shows the intervals."""
    text = re.sub(r'(id|for)="weight"', r'\1="w"', path.read_text())
    text = re.sub(r'(<edge [^>]*) weight="[^"]*"', r"\1", text)
    (path.parent / "renamed.gexf").write_text(text)
    return nx.read_gexf(path.parent / "renamed.gexf")


@pytest.mark.parametrize("times, bounds", [
    ([10, 20, 30], [10.0, 20.0, 30.0, 40.0]),
    ([f"2024-0{month}-01T00:00:00Z" for month in (1, 2, 3)], ["2024-01-01", "2024-02-01", "2024-03-01", "2024-03-31"]),
    ([f"2024-01-01T{hour}:00:00Z" for hour in ("06", "12", "18")],
     [f"2024-01-01T{hour}:00:00Z" for hour in ("06", "12", "18")] + ["2024-01-02T00:00:00Z"]),
])
def test_weights_over_time(tmp_path, times, bounds):
    weights = history(tmp_path, times)
    said = export(tmp_path, "net.gexf")
    assert "3 agents and 3 edges over 3 periods" in said
    first, second, third, end = bounds
    graph = dynamic(tmp_path / "net.gexf")
    assert graph.graph["mode"] == "dynamic"
    series = {ends: graph.edges[ends]["weight"] for ends in graph.edges}
    assert series == {
        ("b", "a"): [(.5, first, end)],
        ("a", "b"): [(.5, first, second), (.25, second, end)],
        ("a", "c"): [(.5, third, end)],
        ("b", "c"): [(.25, first, third)],
    }
    assert {ends: graph.edges[ends]["spells"] for ends in graph.edges} == {
        ("b", "a"): [(first, end)], ("a", "b"): [(first, end)], ("a", "c"): [(third, end)], ("b", "c"): [(first, third)]}
    # Agents over time, by another eigensolver.
    for moment, (start, matrix) in enumerate(zip(bounds, weights)):
        values, vectors = np.linalg.eig(matrix)
        perron = np.abs(vectors[:, np.argmax(values.real)].real)
        perron /= perron.sum()
        for agent, name in enumerate("abc"):
            spans = graph.nodes[name]["centrality_over_time"]
            value = [value for value, since, until in spans if since <= start < until]
            assert len(value) == 1 and math.isclose(value[0], perron[agent], rel_tol=1e-9, abs_tol=1e-12), (moment, name)
    # A reader that knows no time finds the weights of now; what is gone weighs nothing.
    now = nx.read_gexf(tmp_path / "net.gexf")
    assert {ends: now.edges[ends]["weight"] for ends in now.edges} == {
        ("b", "a"): .5, ("a", "b"): .25, ("a", "c"): .5, ("b", "c"): 0}
    # The other formats are of now.
    export(tmp_path, "net.graphml")
    assert set(nx.read_graphml(tmp_path / "net.graphml").edges) == {("b", "a"), ("a", "b"), ("a", "c")}


def test_a_tracked_network(tmp_path):
    call("simulate", "--out", "w", "--agents", 6, "--steps", 600, "--change", "topology:300:0.2", folder=tmp_path)
    call("learn", "w/beliefs.parquet", "--out", "model.json", "--follow", folder=tmp_path)
    export(tmp_path, "net.gexf")
    model = json.loads((tmp_path / "model.json").read_text())
    graph, names = dynamic(tmp_path / "net.gexf"), model["agents"]
    assert len(model["history"]) > 1
    for past in model["history"]:
        for speaker, row in enumerate(past["combination"]):
            for listener, weight in enumerate(row):
                if speaker == listener:
                    continue
                spans = graph.edges.get((names[speaker], names[listener]), {"weight": []})["weight"]
                found = [value for value, start, end in spans if start <= past["time"] < end]
                assert found == ([weight] if weight > 0 else []), (past["time"], speaker, listener)


@pytest.fixture(scope="module")
def graphology():
    if not shutil.which("node") or not (READERS / "node_modules").is_dir():
        pytest.skip("graphology is not there: npm ci --ignore-scripts --prefix reference/readers")

    def load(path):
        done = subprocess.run(["node", READERS / "read.mjs", path], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        graph = json.loads(done.stdout)
        assert graph["options"]["type"] == "directed" and not graph["options"]["multi"]
        return ({node["key"]: node["attributes"] for node in graph["nodes"]},
                {(edge["source"], edge["target"]): edge.get("attributes", {}) for edge in graph["edges"]})
    return load


@pytest.mark.parametrize("format", ["gexf", "graphml"])
def test_the_browsers_library_reads_it(world, hostile, graphology, format):
    drawn = {"label", "x", "y", "z", "size", "color"}
    for folder, more in ((world, ["--ranking", "ranking.json"]), (hostile, [])):
        export(folder, f"net.{format}", *more)
        agents, edges = graphology(folder / f"net.{format}")
        agents = {name: {key: value for key, value in row.items() if key not in drawn} for name, row in agents.items()}
        assert (agents, edges) == wanted(folder)


def test_wrong_usage_and_wrong_data(world):
    said = call("export", "model.json", "--out", "net.dot", folder=world, code=2).stderr
    assert ".gexf, .graphml, .csv, .parquet or .json" in said
    call("export", "model.json", "--out", "x.gexf", "--significant", folder=world, code=2)
    call("export", "model.json", "--out", "x.gexf", "--json", "d3", folder=world, code=2)
    call("export", "model.json", "--out", "model.json", folder=world, code=2)
    (world / "plain.json").write_text(call("rank", "model.json", "--format", "json", folder=world).stdout)
    said = call("export", "model.json", "--out", "x.gexf", "--ranking", "plain.json", "--significant", folder=world, code=1)
    assert "has no p-values of edges" in said.stderr
    said = call("export", "model.json", "--out", "x.gexf", "--ranking", "model.json", folder=world, code=1).stderr
    assert "model.json: is not a ranking" in said
    assert not (world / "x.gexf").exists()
    # Of a table both files appear or none.
    (world / "half.nodes.csv").mkdir()
    call("export", "model.json", "--out", "half.csv", folder=world, code=1)
    assert not (world / "half.csv").exists()

"""Data frames in and out, of all three kinds and without any."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import headwater
from conftest import long_table
from headwater import GSL, StateSpace, Whitened
from headwater.frames import kind_of

MAKERS: dict[str, Any] = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "pyarrow": pyarrow.table}


@pytest.mark.parametrize("kind", MAKERS)
def test_long_tables_are_the_same_as_arrays(kind: str, beliefs: np.ndarray, model: headwater.Model) -> None:
    found = Whitened().fit(MAKERS[kind](long_table(beliefs)))
    np.testing.assert_array_equal(found.combination_, model.combination)
    assert found.agents_ == model.agents and found.hypotheses_ == model.hypotheses


@pytest.mark.parametrize("kind", MAKERS)
def test_what_comes_in_goes_out(
    kind: str, beliefs: np.ndarray, model: headwater.Model, posts: pandas.DataFrame
) -> None:
    table = MAKERS[kind](long_table(beliefs))
    assert kind_of(headwater.rank(model, table)) == kind
    given = posts if kind == "pandas" else MAKERS[kind](posts.to_dict("list"))
    said = headwater.beliefs_from_posts(given)
    assert kind_of(said) == kind
    assert kind_of(headwater.score(given["text"])) == kind


def test_a_missing_row_is_silence(quiet: np.ndarray) -> None:
    by_array = StateSpace(rounds=3).fit(quiet)
    by_table = StateSpace(rounds=3).fit(polars.DataFrame(long_table(quiet)))
    assert by_table.agents_ != [] and set(by_table.agents_) == set(by_array.agents_)
    order = [by_table.agents_.index(agent) for agent in by_array.agents_]
    np.testing.assert_allclose(by_table.combination_[np.ix_(order, order)], by_array.combination_, atol=1e-9)


def test_an_index_is_no_column(beliefs: np.ndarray, model: headwater.Model) -> None:
    table = pandas.DataFrame(long_table(beliefs))
    kept = pandas.concat([table.assign(drop=True), table.assign(drop=False)]).query("not drop").drop(columns="drop")
    kept.index = kept.index[::-1]
    np.testing.assert_array_equal(Whitened().fit(kept).combination_, model.combination)
    np.testing.assert_array_equal(Whitened().fit(table.set_index(["time", "agent"])).combination_, model.combination)


@pytest.mark.parametrize("kind", ["categories", "timestamps", "dates"])
def test_other_types_of_columns(kind: str, beliefs: np.ndarray, model: headwater.Model) -> None:
    table = pandas.DataFrame(long_table(beliefs))
    if kind == "categories":
        table["agent"] = table["agent"].astype("category")
    else:
        table["time"] = pandas.Timestamp(
            "2024-05-01", tz="UTC" if kind == "timestamps" else None
        ) + pandas.to_timedelta(table["time"], unit="D")
    np.testing.assert_array_equal(Whitened().fit(table).combination_, model.combination)
    np.testing.assert_array_equal(Whitened().fit(polars.from_pandas(table)).combination_, model.combination)


def test_posts_are_weights_of_measurements(quiet: np.ndarray) -> None:
    table = pandas.DataFrame(long_table(quiet))
    plain = StateSpace(rounds=3).fit(table)
    once = StateSpace(rounds=3).fit(table.assign(posts=1))
    often = StateSpace(rounds=3).fit(table.assign(posts=np.arange(len(table)) % 5 + 1))
    np.testing.assert_array_equal(plain.combination_, once.combination_)
    assert not np.array_equal(plain.combination_, often.combination_)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"agent": None}, "agent"),
        ({"time": None}, "time"),
        ({"h1": None, "h2": None}, "at least 2"),
        ({"h1": 2.0}, "h1|sum"),
        ({"h1": "much"}, "h1"),
    ],
)
def test_tables_that_cannot_be_used(change: dict[str, Any], sentence: str, beliefs: np.ndarray) -> None:
    columns: dict[str, Any] = {**long_table(beliefs)}
    for name, value in change.items():
        columns.pop(name) if value is None else columns.update({name: [value] * len(columns["time"])})
    with pytest.raises(ValueError, match=sentence):
        Whitened().fit(polars.DataFrame(columns))


def test_a_lazy_frame_is_collected_by_its_owner(beliefs: np.ndarray) -> None:
    with pytest.raises(TypeError, match="collect"):
        Whitened().fit(polars.LazyFrame(long_table(beliefs)))


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
def test_read_beliefs(ending: str, tmp_path: Path, beliefs: np.ndarray) -> None:
    path = tmp_path / f"beliefs.{ending}"
    if ending == "npy":
        np.save(path, beliefs)
    else:
        table = pandas.DataFrame(long_table(beliefs))
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    frame = headwater.read_beliefs(path)
    assert list(frame.columns[:5]) == ["time", "agent", "h0", "h1", "h2"]
    np.testing.assert_allclose(frame[["h0", "h1", "h2"]].to_numpy(), beliefs.reshape(-1, 3), rtol=1e-9)
    again = Whitened().fit(frame)
    np.testing.assert_allclose(again.combination_, Whitened().fit(path).combination_, atol=1e-6)


def test_graphs_of_every_kind(beliefs: np.ndarray, world: tuple[np.ndarray, headwater.Model], tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    graph = headwater.to_networkx(world[1])
    pairs = list(graph.edges)
    table = {"source": [source for source, _ in pairs], "target": [target for _, target in pairs]}
    path = tmp_path / "graph.csv"
    pandas.DataFrame(table).to_csv(path, index=False)
    wanted = Whitened(graph=path).fit(beliefs).combination_
    assert (wanted[world[1].combination == 0] == 0).all()
    kinds = [str(path), pairs, iter(pairs), graph, networkx.Graph(graph), *(maker(table) for maker in MAKERS.values())]
    kinds.append([(int(source), int(target)) for source, target in pairs])
    for given in kinds:
        np.testing.assert_array_equal(Whitened(graph=given).fit(beliefs).combination_, wanted)


@pytest.mark.parametrize(
    "graph", [["ab"], [("0",)], [("0", "1", 1.0), ("1", "0")], pandas.DataFrame({"from": ["0"], "to": ["1"]})]
)
def test_graphs_that_cannot_be_used(graph: Any, beliefs: np.ndarray) -> None:
    with pytest.raises(ValueError, match="must be|source,target|weight"):
        Whitened(graph=graph).fit(beliefs)


def test_names_of_agents_are_strings_or_whole_numbers(beliefs: np.ndarray) -> None:
    with pytest.raises(TypeError, match="must be a string or an integer"):
        Whitened(graph=[(0.5, "1")]).fit(beliefs)


def test_a_graph_that_names_strangers(beliefs: np.ndarray) -> None:
    with pytest.raises((ValueError, KeyError), match="stranger"):
        Whitened(graph=[("0", "stranger")]).fit(beliefs)


def test_the_first_kind_installed(monkeypatch: pytest.MonkeyPatch, model: headwater.Model) -> None:
    for kind in ("pandas", "polars", "pyarrow"):
        assert kind_of(headwater.rank(model)) == kind
        monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(ImportError, match="pip install pandas, polars or pyarrow"):
        headwater.rank(model)


def test_pandas_needs_pyarrow(monkeypatch: pytest.MonkeyPatch, beliefs: np.ndarray) -> None:
    table = pandas.DataFrame(long_table(beliefs))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        Whitened().fit(table)


def test_agents_of_a_graph_without_beliefs_are_left_out(beliefs: np.ndarray) -> None:
    ring = [(str(agent), str((agent + 1) % beliefs.shape[1])) for agent in range(beliefs.shape[1])]
    wanted = Whitened(graph=ring).fit(beliefs).combination_
    left_out = r'1 agent of the graph without beliefs \("zoe"\): left out, with 1 edge'
    with pytest.warns(headwater.HeadwaterWarning, match=left_out):
        found = Whitened(graph=[*ring, ("zoe", "0")]).fit(beliefs).combination_
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match="no edge is between two agents with beliefs"):
        Whitened(graph=[("zoe", "max")]).fit(beliefs)


def test_agents_outside_a_graph_are_left_out(quiet: np.ndarray, beliefs: np.ndarray) -> None:
    def pairs(agents: int) -> list[tuple[str, str]]:
        return [(str(source), str(target)) for source in range(agents) for target in range(agents) if source != target]

    left_out = r"1 agent outside the graph \(.*\): their beliefs are left out"
    for learner, array in [(Whitened, beliefs), (GSL, beliefs), (StateSpace, quiet)]:
        agents = array.shape[1]
        options = {"adaptation": 0.1} if learner is GSL else {}
        if learner is StateSpace:
            options = {"rounds": 3, "common": dict.fromkeys(map(str, range(agents)), "all")}
        with pytest.warns(headwater.HeadwaterWarning, match=left_out):
            found = learner(graph=pairs(agents - 1), **options).fit(array)
        assert found.agents_ == [str(agent) for agent in range(agents - 1)]
        wanted = learner(graph=pairs(agents - 1), **options).fit(array[:, :-1]).combination_
        np.testing.assert_array_equal(found.combination_, wanted)
    # Whoever ranks gives the beliefs as they are.
    with pytest.warns(headwater.HeadwaterWarning):
        assert len(headwater.rank(found.model_, array)) == agents - 1


def test_no_name_in_csv_is_run_by_a_spreadsheet(tmp_path: Path) -> None:
    _, truth = headwater.simulate(graph=[("=1+1", "b"), ("b", "=1+1")], hypotheses=2, steps=1, burn_in=1)
    headwater.export(truth, tmp_path / "net.csv")
    assert "'=1+1,b," in (tmp_path / "net.csv").read_text()
    headwater.export(truth, tmp_path / "net.csv", raw_csv=True)
    assert "\n=1+1,b," in (tmp_path / "net.csv").read_text()

"""Rankings, explanations, comparisons, networks, pages."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest

import headwater
from headwater import GSL, StateSpace, Whitened


def test_rank(model: headwater.Model, beliefs: np.ndarray) -> None:
    frame = headwater.rank(model)
    assert list(frame["rank"]) == [1, 2, 3, 4, 5, 6] and set(frame["agent"]) == set(model.agents)
    order = [model.agents.index(agent) for agent in frame["agent"]]
    for name in ("centrality", "informativeness", "influence", "share"):
        np.testing.assert_array_equal(frame[name], getattr(model, name)[order])
    assert "share_low" not in frame and "p_value" not in frame and "silent_share" not in frame
    assert (headwater.rank(model, beliefs)["silent_share"] == 0).all()


def test_how_sure(model: headwater.Model, beliefs: np.ndarray) -> None:
    found = headwater.ranking(model, beliefs, bootstrap=40, null=40)
    frame = found.frame
    assert ((frame["share_low"] <= frame["share_high"]) & (frame["rank_low"] <= frame["rank_high"])).all()
    assert frame["p_value"].between(0, 1).all() and frame["top_k_probability"].between(0, 1).all()
    assert list(found.edges.columns) == ["source", "target", "weight", "p_value", "significant"]
    assert headwater.ranking(model, beliefs).edges is None
    again = headwater.rank(model, beliefs, bootstrap=40, null=40, threads=1)
    pandas.testing.assert_frame_equal(again, frame)
    other = headwater.rank(model, beliefs, bootstrap=40, null=40, seed=22)
    assert not other["p_value"].equals(frame["p_value"])


def test_true_means_two_hundred(model: headwater.Model, beliefs: np.ndarray) -> None:
    by_flag = headwater.rank(model, beliefs, bootstrap=True)
    pandas.testing.assert_frame_equal(by_flag, headwater.rank(model, beliefs, bootstrap=200))
    pandas.testing.assert_frame_equal(headwater.rank(model, beliefs, bootstrap=False), headwater.rank(model, beliefs))


def test_top(model: headwater.Model, beliefs: np.ndarray) -> None:
    frame = headwater.rank(model, beliefs, bootstrap=20, top=2)
    assert len(frame) == 2
    whole = headwater.ranking(model, beliefs, bootstrap=20, top=2)
    assert abs(sum(row.get("top_k_probability", 0) for row in whole.json["agents"]) - 2) < 1e-9


def test_what_goes_with_a_frame(model: headwater.Model) -> None:
    attrs = headwater.rank(model).attrs
    assert attrs["supported"] is model.verdict.supported and attrs["verdict"] == model.verdict.text
    assert attrs["outcome"] == model.verdict.outcome
    assert attrs["truth"] == model.truth and set(attrs["divergence"]) == set(model.hypotheses) - {model.truth}


def test_graphs_add_popularity(model: headwater.Model) -> None:
    star = [("0", agent) for agent in "12345"] + [(agent, "0") for agent in "1"]
    frame = headwater.rank(model, graph=star).set_index("agent")
    assert frame["in_degree"]["0"] == 5 and frame["pagerank"].idxmax() == "0"


def test_estimators_paths_and_models(beliefs: np.ndarray, tmp_path: Path) -> None:
    learner = Whitened().fit(beliefs)
    learner.model_.save(tmp_path / "model.json")
    wanted = headwater.rank(learner.model_)
    for given in (learner, tmp_path / "model.json", str(tmp_path / "model.json")):
        pandas.testing.assert_frame_equal(headwater.rank(given), wanted)
    pandas.testing.assert_frame_equal(learner.model_.rank(top=3), headwater.rank(learner, top=3))


def test_an_estimator_knows_whether_it_took_log_ratios() -> None:
    ratios, _ = headwater.simulate(agents=5, hypotheses=2, steps=150, log_ratios=True)
    learner = Whitened(log_ratios=True).fit(ratios)
    pandas.testing.assert_frame_equal(
        headwater.rank(learner, ratios), headwater.rank(learner.model_, ratios, log_ratios=True)
    )
    with pytest.raises(ValueError):
        headwater.rank(learner.model_, ratios)


def test_verdicts(
    model: headwater.Model, beliefs: np.ndarray, world: tuple[np.ndarray, headwater.Model]
) -> None:
    verdict = model.verdict
    assert verdict.outcome == "not-tested" and not verdict.supported and not verdict and str(verdict) == verdict.text
    with pytest.warns(headwater.NotTested):
        assert headwater.ranking(model).verdict == verdict
    assert "given, not learned" in world[1].verdict.text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tested = headwater.ranking(model, beliefs, null=40)
        headwater.rank(world[1])
    assert tested.supported and tested.verdict and tested.verdict.outcome == "supported"
    assert tested.verdict.p_value == tested.json["verdict"]["p_value"] <= 0.05 and tested.text == str(tested.verdict)


def test_with_a_graph_the_graph_test_decides(model: headwater.Model, beliefs: np.ndarray) -> None:
    agents = model.agents
    ring = [(agents[k], agents[(k + step) % len(agents)]) for k in range(len(agents)) for step in (1, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", headwater.NoEvidence)
        found = headwater.ranking(model, beliefs, graph=ring)
        shifted = headwater.ranking(model, beliefs, graph=ring, null=40)
        grouped = headwater.ranking(model, beliefs, graph=ring, groups={agent: int(agent) % 2 for agent in agents})
    verdict, told = found.verdict, found.json["verdict"]
    assert verdict.test == "graph-test" and verdict.outcome != "not-tested"
    assert verdict.graph_test == told["graph_test"] and verdict.p_value == told["graph_test"]["p_value"]
    assert verdict.supported == (verdict.p_value <= 0.05) == verdict.common_news_excluded
    assert {"unguarded_p", "shift_p", "direction_p"} <= set(verdict.graph_test) and len(verdict.companions) >= 2
    assert isinstance(hash(verdict), int)
    # Circular shifts add p-values of agents and edges, and leave the verdict.
    assert shifted.verdict.p_value == verdict.p_value and shifted.json["verdict"]["shifts_p_value"] <= 1
    assert "p_value" in shifted.frame and "p_value" not in found.frame
    assert grouped.verdict.graph_test is not None and grouped.verdict.graph_test["groups_given"]
    with pytest.raises(ValueError, match="groups are those of the graph test"):
        headwater.rank(model, beliefs, groups={"0": 1})
    with pytest.raises(ValueError, match="names none of the agents(.|\n)*hint: give the group"):
        headwater.rank(model, beliefs, graph=ring, groups={"nobody": 1})
    with pytest.raises(ValueError, match="no account ever changes its opinion(.|\n)*hint: "):
        headwater.rank(model, np.full_like(beliefs, 1 / 3), graph=ring)


def test_explain(model: headwater.Model) -> None:
    told = headwater.explain(model, "2", top=3)
    assert told["agent"] == "2" and len(told["sources"]) == 3 and len(told["shapes"]) <= 3 and "what_if" not in told
    assert model.explain(2, top=3) == told
    for kind in ("remove", "neutral"):
        change = headwater.what_if(model, "2", kind)
        assert change == headwater.explain(model, "2", kind)["what_if"] and change["kind"] == kind
        assert 0 < change["belief_before"] < 1


def test_compare(model: headwater.Model, world: tuple[np.ndarray, headwater.Model], beliefs: np.ndarray) -> None:
    exact = headwater.compare(model, world[1])
    rough = headwater.compare(GSL(0.05, window=5).fit(beliefs), world[1], top=2)
    assert exact["combination_error"] < 1e-18 < rough["combination_error"] and exact["top_k_hit"] == 1.0
    assert headwater.compare(model, model)["adaptation_error"] == 0


def test_networkx(model: headwater.Model) -> None:
    pytest.importorskip("networkx")
    graph = headwater.to_networkx(model)
    assert graph.is_directed() and list(graph) == model.agents
    assert graph.number_of_edges() == np.count_nonzero(model.combination)
    for source, target, weight in graph.edges(data="weight"):
        assert weight == model.combination[int(source), int(target)] != 0
    assert graph.nodes["3"] == {
        name: getattr(model, name)[3] for name in ("centrality", "informativeness", "influence", "share")
    }
    assert isinstance(graph.nodes["3"]["share"], float)


@pytest.mark.parametrize("ending", ["gexf", "graphml", "csv", "parquet", "json"])
def test_export(ending: str, model: headwater.Model, tmp_path: Path) -> None:
    headwater.export(model, tmp_path / f"network.{ending}")
    headwater.export(model, tmp_path / f"ranked.{ending}", ranking=headwater.ranking(model))
    assert (tmp_path / f"network.{ending}").stat().st_size > 100


def test_report(
    model: headwater.Model, beliefs: np.ndarray, world: tuple[np.ndarray, headwater.Model], tmp_path: Path
) -> None:
    page = headwater.report(model, beliefs=beliefs, truth=world[1], title="Trams & <b>more</b>")
    assert "Trams &amp; &lt;b&gt;more" in page.html and "<b>more" not in page.html
    path = headwater.report(model, tmp_path / "report.html", beliefs=beliefs)
    assert path == tmp_path / "report.html" and path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    assert headwater.report(model, beliefs=beliefs).html == path.read_text(encoding="utf-8"), "the same bytes again"
    ranked = headwater.ranking(model, beliefs, bootstrap=20)
    assert headwater.report(model, ranking=ranked).html != headwater.report(model).html
    with pytest.raises(OSError):
        page.save(tmp_path / "nowhere" / "report.html")


def test_models(model: headwater.Model, tmp_path: Path) -> None:
    assert repr(model) == "<headwater.Model of 6 agents and 3 hypotheses, whitened, δ = 0.05>"
    for ending in ("json", "npz"):
        model.save(tmp_path / f"model.{ending}")
        again = headwater.Model.load(tmp_path / f"model.{ending}")
        assert again == model and headwater.read_model(str(tmp_path / f"model.{ending}")) == model
    assert model.reference == "h0" and model.steps == 120 and 0 <= (model.agreement or 0) <= 1
    assert model.innovation is not None and model.innovation.shape == (6, 2, 2)
    assert model.likelihoods is not None and len(model.likelihoods) == 6
    assert model.changes == [] and model.diagnostics["steps"] == 120
    with pytest.raises(TypeError):
        hash(model)


@pytest.mark.filterwarnings("ignore::headwater.HeadwaterWarning")
def test_ranking_of_the_others(quiet: np.ndarray, beliefs: np.ndarray) -> None:
    noisy = StateSpace(rounds=3).fit(quiet)
    assert {"share_low", "silent_share"} <= set(headwater.rank(noisy, quiet, bootstrap=20))
    paper = headwater.ranking(GSL(0.05, window=5).fit(beliefs), beliefs, bootstrap=20)
    assert any("whitened learner" in note for note in paper.notes)

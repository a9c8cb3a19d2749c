"""Parameters, learned attributes, streams, copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import headwater
from conftest import long_table
from headwater import GSL, StateSpace, Whitened

LEARNERS = [Whitened(), StateSpace(rounds=3), GSL(0.05, window=5)]
LEARNED = ["model_", "combination_", "evidence_", "adaptation_", "centrality_", "informativeness_", "influence_"]
LEARNED += ["diagnostics_", "agents_", "hypotheses_", "truth_", "n_features_in_"]


def name(learner: object) -> str:
    return type(learner).__name__


@pytest.mark.parametrize("learner", LEARNERS, ids=name)
def test_parameters_are_stored_as_given(learner: Any) -> None:
    odd = object()
    for key in learner.get_params():
        assert getattr(type(learner)(**{key: odd}), key) is odd
    fresh = type(learner)(**learner.get_params())
    assert fresh.get_params() == learner.get_params()
    assert fresh.set_params(log_ratios=True) is fresh and fresh.log_ratios
    with pytest.raises(ValueError, match="has no parameter 'colour'; there are adaptation"):
        fresh.set_params(colour=1, log_ratios=False)
    assert fresh.log_ratios, "nothing is set when one of them is unknown"


def test_only_the_papers_learner_takes_a_parameter_by_place() -> None:
    assert GSL(0.05).adaptation == 0.05
    for learner in (Whitened, StateSpace):
        with pytest.raises(TypeError):
            learner(0.05)


def test_what_was_given_is_shown() -> None:
    assert repr(Whitened()) == "Whitened()"
    assert repr(GSL(0.05, graph=pandas.DataFrame())) == "GSL(adaptation=0.05, graph=<DataFrame>)"
    assert repr(StateSpace(common={"ann": 1}, weights="edges")) == "StateSpace(weights='edges', common=<dict>)"


@pytest.mark.parametrize("learner", LEARNERS, ids=name)
def test_learned_attributes(learner: Any, beliefs: np.ndarray) -> None:
    learner = type(learner)(**learner.get_params())
    for attribute in LEARNED:
        assert not hasattr(learner, attribute)
        with pytest.raises(headwater.NotFitted, match="is not fitted"):
            getattr(learner, attribute)
    assert learner.fit(beliefs) is learner
    assert learner.combination_.shape == (6, 6) and learner.evidence_.shape == (6, 2)
    assert learner.centrality_.shape == learner.informativeness_.shape == learner.influence_.shape == (6,)
    np.testing.assert_allclose(learner.centrality_.sum(), 1.0)
    np.testing.assert_allclose(learner.influence_, learner.centrality_ * learner.informativeness_)
    assert isinstance(learner.adaptation_, float) and isinstance(learner.diagnostics_["warnings"], list)
    assert learner.agents_ == list("012345") and learner.hypotheses_ == ["h0", "h1", "h2"]
    assert learner.n_features_in_ == 6 and learner.truth_ in learner.hypotheses_
    if learner.constraint == "simplex":
        np.testing.assert_allclose(learner.combination_.sum(axis=0), 1.0)


@pytest.mark.parametrize("learner", LEARNERS, ids=name)
def test_the_same_again(learner: Any, beliefs: np.ndarray) -> None:
    once, again = (
        type(learner)(**{**learner.get_params(), "threads": threads}).fit(beliefs).model_ for threads in (None, 1)
    )
    assert once == again and once != object()


@pytest.mark.parametrize("learner", LEARNERS, ids=name)
@pytest.mark.parametrize("way", ["pickle", "copy", "deepcopy"])
def test_copies(learner: Any, way: str, beliefs: np.ndarray) -> None:
    ways = {"pickle": lambda given: pickle.loads(pickle.dumps(given)), "copy": copy.copy, "deepcopy": copy.deepcopy}
    fresh = type(learner)(**learner.get_params())
    assert not hasattr(ways[way](fresh), "model_")
    fitted = fresh.fit(beliefs)
    again = ways[way](fitted)
    assert again.get_params() == fitted.get_params() and again.model_ == fitted.model_
    np.testing.assert_array_equal(again.combination_, fitted.combination_)
    assert {key for key in vars(again) if key.endswith("_")} == {key for key in vars(fitted) if key.endswith("_")}


@pytest.mark.parametrize("learner", LEARNERS, ids=name)
def test_clones(learner: Any, beliefs: np.ndarray) -> None:
    base = pytest.importorskip("sklearn.base")
    fitted = type(learner)(**learner.get_params()).fit(beliefs)
    again = base.clone(fitted)
    assert again.get_params() == fitted.get_params() and not hasattr(again, "model_")
    with_objects = base.clone(
        type(learner)(**{**learner.get_params(), "graph": pandas.DataFrame({"source": ["0"], "target": ["1"]})})
    )
    assert list(with_objects.graph.columns) == ["source", "target"]


def test_fit_forgets(beliefs: np.ndarray, quiet: np.ndarray) -> None:
    learner = StateSpace(rounds=3).fit(quiet)
    assert learner.n_features_in_ == 4
    assert learner.fit(beliefs).n_features_in_ == 6


def test_a_fit_that_cannot_be_done_leaves_what_was_there(beliefs: np.ndarray) -> None:
    learner = Whitened().fit(beliefs)
    before = learner.model_
    with pytest.raises(ValueError):
        learner.fit(beliefs[:, :, 0])
    assert learner.model_ is before


def test_exact_where_it_can_be(world: tuple[np.ndarray, headwater.Model]) -> None:
    beliefs, truth = world
    learner = Whitened().fit(beliefs)
    np.testing.assert_allclose(learner.combination_, truth.combination, atol=1e-9)
    assert abs(learner.adaptation_ - truth.adaptation) < 1e-9
    assert {column["status"] for column in learner.diagnostics_["columns"]} == {"certified"}


def test_the_papers_learner_needs_a_number(beliefs: np.ndarray) -> None:
    sentence = "cannot estimate δ and needs a number for adaptation"
    with pytest.raises(ValueError, match=sentence):
        GSL().fit(beliefs)
    with pytest.raises(ValueError, match=sentence):
        GSL().learn_one(beliefs[0])


def test_the_papers_learner_with_what_is_known(world: tuple[np.ndarray, headwater.Model]) -> None:
    beliefs, truth = world
    plain = GSL(0.05, window=5).fit(beliefs)
    knowing = GSL(0.05, window=5, evidence=truth).fit(beliefs)
    there = GSL(0.05, window=5, initial=truth, learning_rate=1e-9).fit(beliefs)
    np.testing.assert_allclose(there.combination_, truth.combination, atol=1e-4)
    assert not np.array_equal(plain.combination_, knowing.combination_)
    assert plain.settings_["window"] == 5 and plain.settings_["learning_rate"] == 0.1


def test_tuning_chooses(beliefs: np.ndarray) -> None:
    learner = GSL(0.05, tune=True).fit(beliefs)
    assert {"window", "learning_rate", "sparsity"} <= learner.settings_.keys()
    assert learner.tune is True and learner.window == 50, "parameters stay as given"


def test_choice_and_common(quiet: np.ndarray) -> None:
    plain = StateSpace(rounds=3).fit(quiet)
    assert plain.choice_ is None
    graph = [(source, target) for source in range(4) for target in range(4)]
    assert isinstance(StateSpace(rounds=3, graph=graph).fit(quiet).choice_, str)
    whole = StateSpace(rounds=3, common="network").fit(quiet)
    named = StateSpace(rounds=3, common=dict.fromkeys("0123", "all")).fit(quiet)
    assert whole.diagnostics_["smoothing"]["common"]["groups"] == [0, 0, 0, 0]
    np.testing.assert_array_equal(whole.combination_, named.combination_)
    with pytest.warns(headwater.HeadwaterWarning, match="2 agents without a group"):
        some = StateSpace(rounds=3, common={"1": "red", "2": "blue"}).fit(quiet)
    assert some.diagnostics_["smoothing"]["common"]["groups"] == [0, 1, 2, 0]
    with pytest.raises(ValueError, match="names none of the agents"):
        StateSpace(common={"ann": "red"}).fit(quiet)
    with pytest.raises(ValueError, match="must be None"):
        StateSpace(common="everybody").fit(quiet)


def test_speaker_strengths_need_a_graph(quiet: np.ndarray) -> None:
    with pytest.raises(ValueError, match="speaker strengths need a graph"):
        StateSpace(weights="strengths").fit(quiet)


def test_a_stream_knows_what_a_fit_knows(world: tuple[np.ndarray, headwater.Model]) -> None:
    beliefs, truth = world
    stream = Whitened()
    for frame in beliefs:
        assert stream.learn_one(frame) is stream
    np.testing.assert_allclose(stream.combination_, truth.combination, atol=1e-9)
    assert stream.changes_ == [] and stream.agents_ == list("012345") and stream.n_features_in_ == 6
    many = Whitened().learn_many(beliefs)
    assert many.model_ == stream.model_
    one_by_one = Whitened().learn_many(frame for frame in beliefs)
    assert one_by_one.model_ == stream.model_


def test_the_papers_learner_on_a_stream(beliefs: np.ndarray) -> None:
    whole = GSL(0.05, window=5).fit(beliefs)
    stream = GSL(0.05, window=5)
    for frame in beliefs:
        stream.learn_one(frame)
    np.testing.assert_allclose(stream.combination_, whole.combination_, rtol=1e-10, atol=1e-13)
    assert stream.changes_ == [] and whole.changes_ == [] and stream.settings_["window"] == 5


@pytest.mark.parametrize(
    "setting", [{"passes": 2}, {"tune": True}, {"initial": "model.json"}, {"evidence": "truth.json"}]
)
def test_what_a_stream_cannot_do(setting: dict[str, Any], beliefs: np.ndarray) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(setting))} is for fit"):
        GSL(0.05, **setting).learn_one(beliefs[0])


def test_too_few_frames_are_said(beliefs: np.ndarray) -> None:
    stream = Whitened().learn_one(beliefs[0])
    assert not hasattr(stream, "combination_")
    with pytest.raises(headwater.NotFitted, match="needed"):
        _ = stream.combination_
    assert stream.agents_ == list("012345") and stream.changes_ == []


def test_changes_are_noticed() -> None:
    beliefs, truth = headwater.simulate(agents=8, steps=600, changes=["topology:300:0.1"], seed=3)
    stream = Whitened()
    steps = []
    for step, frame in enumerate(beliefs):
        before = len(stream.changes_) if step else 0
        stream.learn_one(frame)
        steps += [step] * (len(stream.changes_) - before)
    assert steps and all(300 <= step <= 310 for step in steps)
    assert {change["kind"] for change in stream.changes_} == {"topology"}
    assert all(set(change["listeners"]) <= set(stream.agents_) for change in stream.changes_)
    np.testing.assert_allclose(stream.combination_, truth.combination, atol=1e-6)
    followed = Whitened(recent=200).fit(beliefs)
    assert [change["since"] for change in followed.changes_] == [change["since"] for change in stream.changes_]


def test_a_whole_fit_keeps_no_stream(beliefs: np.ndarray) -> None:
    with pytest.raises(RuntimeError, match="cannot continue as a stream"):
        Whitened().fit(beliefs).learn_one(beliefs[0])
    assert not hasattr(StateSpace(), "learn_one")


@pytest.mark.parametrize("learner", [Whitened(), GSL(0.05, window=5)], ids=name)
def test_streams_are_copied_as_they_stand(learner: Any, beliefs: np.ndarray) -> None:
    whole = copy.copy(learner).learn_many(beliefs)
    half = copy.copy(learner).learn_many(beliefs[:60])
    again = pickle.loads(pickle.dumps(half))
    assert again.learn_many(beliefs[60:]).model_ == whole.model_
    deep = copy.deepcopy(half)
    deep.learn_many(beliefs[60:])
    assert half.learn_many(beliefs[60:]).model_ == deep.model_ == whole.model_, "a deep copy is a stream of its own"


def named_frames(beliefs: np.ndarray) -> list[dict[str, np.ndarray]]:
    return [{f"agent {place}": belief for place, belief in enumerate(frame)} for frame in beliefs]


@pytest.mark.parametrize("learner", [Whitened(), GSL(0.05, window=5)], ids=name)
def test_frames_by_name(learner: Any, beliefs: np.ndarray) -> None:
    by_place = copy.copy(learner).learn_many(beliefs)
    by_name = copy.copy(learner)
    for frame in named_frames(beliefs):
        by_name.learn_one(dict(sorted(frame.items(), reverse=True)) if by_name._stream else frame)
    assert by_name.agents_ == [f"agent {place}" for place in range(6)]
    np.testing.assert_array_equal(by_name.combination_, by_place.combination_)
    at_once = copy.copy(learner).learn_many(named_frames(beliefs))
    assert at_once.model_ == by_name.model_


def test_single_numbers_are_the_reference() -> None:
    beliefs, _ = headwater.simulate(agents=4, hypotheses=2, steps=100)
    by_number = Whitened().learn_many([{agent: frame[agent, 0] for agent in range(4)} for frame in beliefs])
    np.testing.assert_allclose(by_number.combination_, Whitened().learn_many(beliefs).combination_, atol=1e-6)
    ratios = np.log(beliefs[:, :, 0] / beliefs[:, :, 1])
    by_ratio = Whitened(log_ratios=True).learn_many([{agent: frame[agent] for agent in range(4)} for frame in ratios])
    flat = Whitened(log_ratios=True)
    for frame in ratios:
        flat.learn_one(frame)
    assert by_ratio.model_ == flat.model_


@pytest.mark.filterwarnings("ignore::headwater.HeadwaterWarning")
def test_absent_none_nan_and_masked_are_silent(beliefs: np.ndarray) -> None:
    models = []
    for silence in ("absent", "none", "nan", "array", "masked"):
        stream = Whitened()
        for step, frame in enumerate(beliefs):
            given: Any = (
                named_frames(beliefs[step : step + 1])[0] if silence in ("absent", "none", "nan") else frame.copy()
            )
            if step == 70 and silence == "absent":
                del given["agent 3"]
            elif step == 70 and silence in ("none", "nan"):
                given["agent 3"] = None if silence == "none" else np.nan
            elif step == 70 and silence == "array":
                given[3] = np.nan
            elif step == 70:
                given = np.ma.masked_array(given, mask=np.arange(6)[:, None].repeat(3, axis=1) == 3)
            stream.learn_one(given)
        models.append(stream.combination_)
    for model in models[1:]:
        np.testing.assert_array_equal(models[0], model)


def test_strangers_in_a_stream(beliefs: np.ndarray) -> None:
    stream = Whitened().learn_one(named_frames(beliefs)[0])
    with pytest.raises(headwater.UnknownName, match='there is no agent "zed" here; known: agent 0, agent 1'):
        stream.learn_one({"zed": [0.5, 0.3, 0.2]})
    with pytest.raises(ValueError, match='agent "agent 1" has 2 numbers where others have 3'):
        stream.learn_one({"agent 0": [0.5, 0.3, 0.2], "agent 1": [0.5, 0.5]})


@pytest.mark.parametrize(
    "frame", [np.full(6, 0.5), np.full((2, 6, 3), 1 / 3), np.full((5, 3), 1 / 3), np.full((6, 2), 0.5)]
)
def test_frames_of_another_shape(frame: np.ndarray, beliefs: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected|must be"):
        Whitened().learn_many(beliefs[:5]).learn_one(frame)


def test_nothing_to_begin_with() -> None:
    with pytest.raises(ValueError, match="all agents are silent"):
        Whitened().learn_one({"ann": None})
    assert not hasattr(Whitened().learn_many([]), "agents_")


def test_a_bad_first_frame_begins_nothing(beliefs: np.ndarray) -> None:
    stream = Whitened()
    with pytest.raises(ValueError):
        stream.learn_one(np.full((6, 3), 0.9))
    assert stream.learn_one({"ann": 0.5, "bob": 0.4}).agents_ == ["ann", "bob"]


def test_frames_before_a_bad_one_are_taken(beliefs: np.ndarray) -> None:
    stream = Whitened().learn_many(beliefs[:60])
    assert stream.model_.steps == 60
    broken = beliefs[60:80].copy()
    broken[10] = 0.9
    with pytest.raises(ValueError):
        stream.learn_many(broken)
    assert stream.model_ == Whitened().learn_many(beliefs[:70]).model_


@pytest.mark.parametrize("maker", [pandas.DataFrame, polars.DataFrame])
def test_streams_of_tables(maker: Any, beliefs: np.ndarray) -> None:
    table = maker(long_table(beliefs[:60]))
    stream = Whitened().learn_many(table).learn_many(maker(long_table(beliefs[60:])))
    np.testing.assert_array_equal(stream.combination_, Whitened().learn_many(beliefs).combination_)
    assert stream.hypotheses_ == ["h0", "h1", "h2"]

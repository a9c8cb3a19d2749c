"""What a person might well do: frames by name, silence in a stream, columns for frames, numbers that are none."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import headwater
import numpy as np
import pandas as pd
import polars as pl
import pytest
from headwater import GSL, Whitened

BELIEFS, TRUTH = headwater.simulate(agents=4, hypotheses=3, steps=60)
AGENTS = ["ann", "bob", "cy", "di"]


def long(names: tuple[str, ...] = ("p", "q", "r")) -> pd.DataFrame:
    frame = {"time": np.repeat(np.arange(60), 4), "agent": AGENTS * 60}
    return pd.DataFrame({**frame, **{name: BELIEFS[..., place].ravel() for place, name in enumerate(names)}})


@pytest.mark.parametrize("order", [["p", "q", "r"], ["r", "p", "q"]])
def test_hypotheses_of_a_stream_go_by_name(order: list[str]) -> None:
    frame = long()
    first, rest = frame[frame.time < 30], frame[frame.time >= 30]
    whole = Whitened().learn_many(frame)
    stream = Whitened().learn_many(first).learn_many(rest[["time", "agent", *order]])
    assert stream.hypotheses_ == ["p", "q", "r"] and stream.changes_ == whole.changes_
    np.testing.assert_allclose(stream.evidence_, whole.evidence_, atol=1e-9)
    with pytest.raises(headwater.UnknownName, match="x, y, z, but those of this stream are p, q, r"):
        stream.learn_many(long(("x", "y", "z")))


def test_silence_in_a_frame_by_name() -> None:
    stream = Whitened().learn_many(BELIEFS)
    for frame in ({}, dict.fromkeys("0123"), {"0": float("nan")}):
        stream.learn_one(frame)
    silent = BELIEFS.copy(), np.full((3, 4, 3), np.nan)
    assert stream.model_ == Whitened().learn_many(np.concatenate(silent)).model_
    assert "12 of 252 beliefs are missing" in stream.diagnostics_["warnings"][0]


def test_what_was_noticed_before_a_mistake_stays() -> None:
    beliefs, _ = headwater.simulate(agents=8, hypotheses=3, steps=900, changes=["state:400"])
    bad = beliefs.copy()
    bad[800, 0, 0] = 7.0
    stream = Whitened(forget=0.99).learn_many(beliefs[:10])
    with pytest.raises(ValueError, match="sum to"):
        stream.learn_many(bad[10:])
    assert [change["kind"] for change in stream.changes_] == ["state"]
    # The first frames make a stream even when a later one of them cannot be used.
    begun = Whitened(forget=0.99)
    with pytest.raises(ValueError, match="sum to"):
        begun.learn_many(bad)
    assert begun.changes_ == stream.changes_


def test_a_frame_is_not_one_step_nor_a_column_a_frame() -> None:
    frame = long()
    for given in (frame[frame.time == 0], pd.DataFrame(BELIEFS[0], index=AGENTS)):
        with pytest.raises(TypeError, match="goes to learn_many"):
            Whitened().learn_one(given)
    for column in (frame.p, pl.Series(frame.p), frame.index):
        with pytest.raises(ValueError, match="shape"):
            Whitened().fit(column)


@pytest.mark.parametrize("texts", [pd.DataFrame({"user": ["a", "b"], "text": ["x", "y"]}), {"a": "x"}])
def test_texts_are_a_column(texts: Any) -> None:
    with pytest.raises(TypeError, match="give its column of texts"):
        headwater.score(texts)


@pytest.mark.parametrize("shape", [(), (60,), (60, 6, 0), (60, 4, 2, 1)])
def test_a_masked_array_of_a_wrong_shape_is_told_like_any_other(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError) as plain:
        Whitened().fit(np.full(shape, 0.5))
    with pytest.raises(ValueError) as masked:
        Whitened().fit(np.ma.masked_array(np.full(shape, 0.5), mask=np.zeros(shape, bool)))
    assert str(plain.value) == str(masked.value)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda: Whitened(rounds=-1).fit(BELIEFS), "rounds"),
        (lambda: Whitened(recent=-1).learn_many(BELIEFS), "recent"),
        (lambda: Whitened(threads=-1).fit(BELIEFS), "threads"),
        (lambda: Whitened(threads=0).fit(BELIEFS), "threads"),
        (lambda: Whitened(threads=10**6).fit(BELIEFS), "threads"),
        (lambda: Whitened(adaptation="auto").fit(BELIEFS), "adaptation"),
        (lambda: GSL(0.05, window=-1).fit(BELIEFS), "window"),
        (lambda: headwater.rank(TRUTH, BELIEFS, bootstrap=-1), "bootstrap"),
        (lambda: headwater.rank(TRUTH, seed=-1), "seed"),
        (lambda: headwater.explain(TRUTH, "0", top=-1), "top"),
        (lambda: headwater.simulate(agents=-1), "agents"),
        (lambda: headwater.score(["x"], threads=-1), "threads"),
    ],
)
def test_numbers_that_are_none_are_named(wrong: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} is "):
        wrong()


def test_a_data_frame_is_no_ranking() -> None:
    with pytest.raises(TypeError, match=r"headwater\.ranking"):
        headwater.report(TRUTH, ranking=headwater.rank(TRUTH))


def test_files_that_are_not_there_are_so_whatever_asks_for_them(tmp_path: Path) -> None:
    posts = tmp_path / "posts.csv"
    posts.write_text("user,time,text\na,2024-01-01,x\n")
    away = tmp_path / "away"
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        headwater.report(TRUTH, away / "page.html")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        headwater.export(TRUTH, away / "network.gexf")
    with pytest.raises(FileNotFoundError, match="cannot read"):
        headwater.discover(posts, tmp_path / "out", graph=str(away))


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["u0", "u1", "u2"])])
def test_posts_of_words_that_stand_for_others(kind: Any) -> None:
    posts = pl.DataFrame(
        {
            "user": [f"u{post % 3}" for post in range(60)],
            "time": [f"2024-01-{1 + post // 3:02}T12:00:00Z" for post in range(60)],
            "text": ["good day" if post % 2 else "bad day" for post in range(60)],
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = headwater.beliefs_from_posts(posts)
        given = headwater.beliefs_from_posts(posts.with_columns(pl.col("user").cast(kind)))
    assert given.equals(wanted)

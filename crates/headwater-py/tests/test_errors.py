"""Errors, variant by variant: the kind that docs/reference/python.md promises, the library's text, and a hint in the words
of keyword arguments."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest

import headwater
from conftest import long_table
from headwater import GSL, StateSpace, Whitened

BELIEFS, TRUTH = headwater.simulate(agents=4, hypotheses=2, steps=60, seed=7)
MODEL = Whitened().fit(BELIEFS).model_


def changed(step: int, agent: int, values: Any) -> np.ndarray:
    array = BELIEFS.copy()
    array[step, agent] = values
    return array


def table(**columns: Any) -> pandas.DataFrame:
    return pandas.DataFrame(long_table(BELIEFS)).assign(**columns)


def twice() -> pyarrow.Table:
    """Only pyarrow's tables can have two columns of one name."""
    return pyarrow.table(long_table(BELIEFS)).rename_columns(["time", "agent", "h0", "h0"])


def posts(**columns: Any) -> pandas.DataFrame:
    return pandas.DataFrame(
        {"user": ["ann", "bob"], "time": ["2024-05-01", "2024-05-02"], "text": ["great", "awful"], **columns}
    )


def days() -> pandas.DataFrame:
    """Twelve days of two users."""
    said = ["great", "awful", "fine", "a mess", "lovely"]
    rows = [
        (user, f"2024-05-{day:02}", said[(day * place) % 5])
        for day in range(1, 13)
        for place, user in enumerate(("ann", "bob"), 2)
    ]
    return pandas.DataFrame(rows, columns=["user", "time", "text"])


# What is raised, what is said, and what leads to it, by variants of the library's errors.
CASES: dict[str, tuple[Any, str, Callable[[], Any]]] = {
    "Shape": (ValueError, "expected", lambda: Whitened().fit(BELIEFS[0])),
    "Parameter": (ValueError, "ridge is -1, but must be", lambda: Whitened(ridge=-1.0).fit(BELIEFS)),
    "Parameter, stream": (ValueError, "forget is 2, but must be", lambda: Whitened(forget=2.0).learn_one(BELIEFS[0])),
    "Parameter, paper": (ValueError, "adaptation is 2, but must be", lambda: GSL(2.0).fit(BELIEFS)),
    "DuplicateName": (ValueError, "twice", lambda: Whitened().fit(twice())),
    "UnknownName": (KeyError, 'there is no agent "zed" here; known: ', lambda: headwater.explain(MODEL, "zed")),
    "TooFewAgents": (ValueError, "a network needs at least 2", lambda: Whitened().fit(BELIEFS[:, :1])),
    "TooFewHypotheses": (ValueError, "an opinion needs at least 2", lambda: Whitened().fit(np.ones((60, 4, 1)))),
    "NotReady": (ValueError, "time steps seen, but .* are needed", lambda: Whitened().fit(BELIEFS[:2])),
    "NotReady, stream": (
        headwater.NotFitted,
        "time steps seen, but .* are needed",
        lambda: Whitened().learn_one(BELIEFS[0]).model_,
    ),
    "NeverSpeaks": (ValueError, "these agents never speak: 2", lambda: Whitened().fit(changed(slice(None), 2, np.nan))),
    "DuplicateBelief": (
        ValueError,
        "already has a belief at time 3; keep one",
        lambda: Whitened().fit(pandas.concat([table(), table()[12:13]])),
    ),
    "Belief": (ValueError, "sum", lambda: Whitened().fit(changed(3, 2, [0.9, 0.9]))),
    "Sparse": (
        ValueError,
        "only 60 of them are present",
        lambda: Whitened().fit(table(time=lambda frame: frame["time"] * 10**6)),
    ),
    "Diverged": (
        RuntimeError,
        "the estimate diverged at step(.|\\n)*hint: use learning_rate=",
        lambda: GSL(0.05, learning_rate=1e6, window=2).fit(BELIEFS),
    ),
    "Graph": (ValueError, "strongly connected", lambda: headwater.simulate(graph=[("a", "b"), ("b", "c")])),
    "Files, missing": (OSError, "none.json: cannot read", lambda: headwater.read_model("none.json")),
    "Files, beliefs": (OSError, "none.csv: cannot read", lambda: Whitened().fit("none.csv")),
    "Files, graph": (
        OSError,
        "none.csv: cannot (be )?read",
        lambda: Whitened(graph="none.csv").fit(BELIEFS),
    ),
    "Files, folder": (OSError, "there is no folder", lambda: MODEL.save("nowhere/model.json")),
    "Posts, columns": (
        ValueError,
        "there is no text",
        lambda: headwater.beliefs_from_posts(posts().drop(columns="text")),
    ),
    "Posts, query": (ValueError, "AND or OR", lambda: headwater.beliefs_from_posts(posts(), topic="two words")),
    "Posts, option": (ValueError, "IANA", lambda: headwater.beliefs_from_posts(posts(), timezone="Mars/Olympus")),
    "Posts, bad rows": (
        ValueError,
        "2 of 2 rows cannot be read",
        lambda: headwater.beliefs_from_posts(posts(time=["?", "?"]), max_bad=0),
    ),
    "Posts, nothing left": (
        ValueError,
        "no post is left of 2 rows",
        lambda: headwater.beliefs_from_posts(posts(), topic="tram"),
    ),
    "Posts, one user": (
        ValueError,
        "only one user is left",
        lambda: headwater.beliefs_from_posts(posts(), users=["ann"]),
    ),
    "Posts, missing": (FileNotFoundError, "none.csv: cannot read", lambda: headwater.beliefs_from_posts("none.csv")),
    "Posts, scorer": (ValueError, "roberta.* needs", lambda: headwater.score(["a"], "roberta")),
    "Posts, bin": (ValueError, "^bin: found", lambda: headwater.beliefs_from_posts(posts(), bin="month")),
    "Posts, date": (ValueError, "^since: found", lambda: headwater.beliefs_from_posts(posts(), since="soon")),
    "Posts, share": (ValueError, "^max_bad: found", lambda: headwater.beliefs_from_posts(posts(), max_bad="few")),
    "Posts, languages": (
        ValueError,
        "lang and any_language",
        lambda: headwater.beliefs_from_posts(posts(), lang="en", any_language=True),
    ),
    "Posts, preset": (
        ValueError,
        "hint: use either columns or preset",
        lambda: headwater.beliefs_from_posts(posts(), preset="x-v2", columns={"text": "body"}),
    ),
    "Posts, no preset": (ValueError, "^preset is", lambda: headwater.beliefs_from_posts(posts(), preset="usenet")),
    "Posts, no scorer": (ValueError, "^scorer is", lambda: headwater.beliefs_from_posts(posts(), scorer="me")),
    "Posts, no model": (ValueError, "needs model", lambda: headwater.beliefs_from_posts(posts(), scorer="roberta")),
    "Posts, needless model": (ValueError, "^model is an argument of", lambda: headwater.beliefs_from_posts(posts(), model="m")),
    "Discover, bins": (ValueError, 'hint: .*bin="6h"', lambda: headwater.discover(posts())),
    "Discover, graph": (
        ValueError,
        'hint: .*columns=\\{"user"',
        lambda: headwater.discover(posts(), graph=[("zed", "yan")]),
    ),
    "Discover, edges": (
        ValueError,
        "omit graph",
        lambda: headwater.discover(days(), graph=[("ann", "zed"), ("bob", "zed")]),
    ),
    "Discover, users": (
        ValueError,
        "the same names in users and graph",
        lambda: headwater.discover(posts(), graph=[("ann", "bob")], users=["zed"]),
    ),
    "Discover, scores": (
        ValueError,
        "use another scorer",
        lambda: headwater.discover(days().assign(text="great"), null=0),
    ),
    "Discover, strengths": (
        ValueError,
        "hint: give graph",
        lambda: headwater.discover(posts(), weights="strengths"),
    ),
    "Discover, constraint": (
        ValueError,
        'use weights="edges"',
        lambda: headwater.discover(posts(), graph=[("ann", "bob")], weights="strengths", constraint="free"),
    ),
    "Discover, key": (FileNotFoundError, "hint: make a key", lambda: headwater.discover(posts(), pseudonymise="none")),
    "Discover, common": (ValueError, "^common is", lambda: headwater.discover(posts(), common="groups.csv")),
    "Discover, groups": (
        ValueError,
        "names none of the agents",
        lambda: headwater.discover(days(), common={"zed": 1}, null=0),
    ),
    "Discover, draws": (ValueError, "^bootstrap is 3", lambda: headwater.discover(posts(), bootstrap=3)),
    "Discover, top": (ValueError, "^top is 0", lambda: headwater.discover(posts(), top=0)),
    "Discover, missing": (FileNotFoundError, "none.csv", lambda: headwater.discover("none.csv")),
    "Discover, parameter": (ValueError, "^ridge is -1", lambda: headwater.discover(posts(), ridge=-1.0)),
    "World": (ValueError, "^edge_probability is", lambda: headwater.simulate(edge_probability=2.0)),
    "Report": (
        ValueError,
        "ranking",
        lambda: headwater.report(MODEL, ranking=headwater.ranking(headwater.simulate(agents=3, steps=9)[1])),
    ),
    "Constraint": (ValueError, "constraint", lambda: Whitened(constraint="tight").fit(BELIEFS)),
    "Export": (ValueError, "gexf", lambda: headwater.export(MODEL, "network.docx")),
    "Draws": (ValueError, "need the beliefs", lambda: headwater.rank(MODEL, bootstrap=True)),
    "Draws, too few": (ValueError, "20", lambda: headwater.rank(MODEL, BELIEFS, bootstrap=3)),
    "Model": (TypeError, "expected a Model", lambda: headwater.rank(BELIEFS)),
    "Texts, one": (TypeError, "put it into a list", lambda: headwater.score("great")),
    "Texts, none": (ValueError, "position 1 is None", lambda: headwater.score(["great", None])),
    "Texts, nan": (
        ValueError,
        "position 1 is nan",
        lambda: headwater.score(pandas.Series(["great", float("nan")], dtype=object)),
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("variant", CASES)
def test_each_variant(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, sentence, lead = CASES[variant]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=sentence) as caught:
        lead()
    assert not str(caught.value).startswith(("'", '"')), "a sentence, not a quoted key"
    assert not re.search(r"--[a-z]", str(caught.value)), "keyword arguments, not options of the command line"
    assert list(tmp_path.iterdir()) == [], "nothing is half-written"


def test_no_text_of_the_package_names_an_option_of_the_command_line() -> None:
    for module in sorted(Path(headwater.__file__).parent.glob("*.py")):
        texts = [line for line in module.read_text().splitlines() if "raise " in line or "tell(" in line]
        assert not any(re.search(r"--[a-z]", text) for text in texts), module


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(headwater.UnknownName) as caught:
        headwater.explain(MODEL, "zed")
    assert isinstance(caught.value, KeyError) and str(caught.value) == 'there is no agent "zed" here; known: 0, 1, 2, 3'


def test_a_damaged_model(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"format": "headwater-model/9"}')
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / "model.json"))):
        headwater.read_model(tmp_path / "model.json")


def said(program: Any, *arguments: Any) -> str:
    """What the command line says; `program` made sure that it is there."""
    path = program.__closure__[0].cell_contents
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode in (1, 2)
    return next(line for line in done.stderr.splitlines() if line.startswith("error: ")).removeprefix("error: ")


@pytest.mark.parametrize(
    ("arguments", "lead"),
    [
        (["explain", "model.json", "--agent", "zed"], lambda: headwater.explain("model.json", "zed")),
        (["rank", "none.json"], lambda: headwater.rank("none.json")),
        (["learn", "short.npy", "--out", "m.json"], lambda: Whitened().fit("short.npy")),
        (["learn", "broken.npy", "--out", "m.json"], lambda: Whitened().fit("broken.npy")),
        (["learn", "flat.npy", "--out", "m.json"], lambda: Whitened().fit("flat.npy")),
        (["learn", "good.npy", "--ridge=-1", "--out", "m.json"], lambda: Whitened(ridge=-1.0).fit("good.npy")),
        (
            ["learn", "good.npy", "--weights=strengths", "--out", "m.json"],
            lambda: StateSpace(weights="strengths").fit("good.npy"),
        ),
        (
            ["beliefs", "posts.csv", "--topic=a b", "--out", "b.csv"],
            lambda: headwater.beliefs_from_posts("posts.csv", topic="a b"),
        ),
        (
            ["beliefs", "posts.csv", "--topic=tram", "--out", "b.csv"],
            lambda: headwater.beliefs_from_posts("posts.csv", topic="tram"),
        ),
        (
            ["discover", "posts.csv", "--topic=tram", "--out", "d"],
            lambda: headwater.discover("posts.csv", "d", topic="tram"),
        ),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_the_text_is_the_command_lines(
    arguments: list[str], lead: Callable[[], Any], program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    MODEL.save("model.json")
    for name, array in {
        "good": BELIEFS,
        "short": BELIEFS[:2],
        "broken": changed(3, 2, [0.9, 0.9]),
        "flat": BELIEFS[0],
    }.items():
        np.save(f"{name}.npy", array)
    posts().to_csv("posts.csv", index=False)
    with pytest.raises((ValueError, KeyError, OSError, RuntimeError)) as caught:
        lead()
    assert said(program, *arguments) == str(caught.value).splitlines()[0]


def test_warnings_name_the_callers_line(quiet: np.ndarray) -> None:
    with pytest.warns(headwater.HeadwaterWarning) as caught:
        Whitened().fit(quiet)
    assert {Path(warning.filename).name for warning in caught} == {Path(__file__).name}
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == len(set(texts)), "each once"


def test_kinds_of_warnings() -> None:
    for kind in (headwater.NoEvidence, headwater.NotTested):
        assert issubclass(kind, headwater.HeadwaterWarning) and issubclass(kind, UserWarning)
    noise = np.random.default_rng(0).normal(size=(200, 5))
    alone = Whitened(log_ratios=True).fit(noise)
    with pytest.warns(headwater.NoEvidence, match="No evidence"):
        headwater.rank(alone, noise, null=40)
    with pytest.warns(headwater.NotTested, match="hint: null=True"):
        headwater.rank(alone, noise)

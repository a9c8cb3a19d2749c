"""The golden cases by Python and by the command line: the same bits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import headwater
from conftest import ROOT
from headwater import GSL, StateSpace, Whitened

GOLDEN = sorted((ROOT / "crates/headwater/tests/golden").glob("gsl_*.json"))

pytestmark = pytest.mark.filterwarnings("ignore::headwater.HeadwaterWarning")

Program = Callable[..., str]


def same(found: headwater.Model, wanted: headwater.Model) -> None:
    """Bit for bit, and the rest of the model, too."""
    for name in ("combination", "evidence", "innovation", "centrality", "informativeness", "influence", "share"):
        met, other = getattr(found, name), getattr(wanted, name)
        assert (met is None) == (other is None)
        if met is not None:
            np.testing.assert_array_equal(met, other, name)
    for name in (
        "agents",
        "hypotheses",
        "reference",
        "truth",
        "agreement",
        "adaptation",
        "method",
        "likelihoods",
        "verdict",
    ):
        assert getattr(found, name) == getattr(wanted, name), name
    assert found.diagnostics == wanted.diagnostics


@pytest.fixture(params=GOLDEN, ids=lambda path: path.stem)
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return json.loads(request.param.read_text())


@pytest.fixture
def ratios(case: dict[str, Any]) -> np.ndarray:
    return np.array(case["log_beliefs"])


@pytest.fixture
def truth(case: dict[str, Any], tmp_path: Path) -> Path:
    """The known part of a golden case as a truth."""
    agents, hypotheses = case["agents"], case["hypotheses"]
    known = {
        "format": "headwater-model/1",
        "agents": [str(agent) for agent in range(agents)],
        "hypotheses": [f"h{index}" for index in range(hypotheses)],
        "reference": "h0",
        "truth": f"h{case['truth']}",
        "agreement": 1.0,
        "adaptation": case["adaptation"],
        "method": "given",
        "combination": case["combination"],
        "evidence": case["true"]["evidence"],
        "diagnostics": {"columns": [], "column_sum_spread": None, "skill": None, "warnings": []},
    }
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(known))
    return path


def learned(program: Program, folder: Path, ratios: np.ndarray, *options: Any) -> headwater.Model:
    np.save(folder / "beliefs.npy", ratios)
    # The compact format keeps every bit; so does JSON, which the next test looks at.
    program("learn", folder / "beliefs.npy", "--log-ratios", "--out", folder / "model.npz", "--quiet", *options)
    return headwater.read_model(folder / "model.npz")


def test_whitened(ratios: np.ndarray, program: Program, tmp_path: Path) -> None:
    for options in ({}, {"constraint": "free"}, {"adaptation": 0.05}, {"ridge": 0.1}):
        arguments = [f"--{name}={value}" for name, value in options.items()]
        wanted = learned(program, tmp_path, ratios, "--method", "whitened", *arguments)
        same(Whitened(log_ratios=True, **options).fit(ratios).model_, wanted)


def test_gsl(case: dict[str, Any], ratios: np.ndarray, truth: Path, program: Program, tmp_path: Path) -> None:
    settings = case["settings"]
    options = {"window": settings["window"], "learning_rate": settings["rate"]}
    options |= {name: settings[name] for name in ("batch", "sparsity") if name in settings}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    arguments.append(f"--adaptation={case['adaptation']}")
    if settings.get("known_evidence"):
        arguments += ["--evidence", str(truth)]
        options["evidence"] = headwater.read_model(truth)
    wanted = learned(program, tmp_path, ratios, "--method", "gsl", *arguments)
    found = GSL(case["adaptation"], log_ratios=True, **options).fit(ratios)
    same(found.model_, wanted)
    np.testing.assert_allclose(found.combination_, case["learned"]["combination"], rtol=1e-9, atol=1e-12)


def test_state_space(case: dict[str, Any], ratios: np.ndarray, truth: Path, program: Program, tmp_path: Path) -> None:
    short = ratios[:100].copy()
    short[np.random.default_rng(5).random(short.shape[:2]) < 0.2] = np.nan
    wanted = learned(program, tmp_path, short, "--rounds", 4)
    same(StateSpace(log_ratios=True, rounds=4).fit(short).model_, wanted)


def test_files_tables_and_arrays(ratios: np.ndarray, program: Program, tmp_path: Path) -> None:
    wanted = learned(program, tmp_path, ratios, "--method", "whitened")
    same(Whitened(log_ratios=True).fit(tmp_path / "beliefs.npy").model_, wanted)
    steps, agents, width = ratios.shape
    columns = {"time": np.repeat(np.arange(steps), agents), "agent": np.tile(np.arange(agents).astype(str), steps)}
    columns |= {f"h{index + 1}": ratios[:, :, index].ravel() for index in range(width)}
    table = pandas.DataFrame(columns)
    found = Whitened(log_ratios=True).fit(table)
    np.testing.assert_array_equal(found.combination_, wanted.combination)
    np.testing.assert_array_equal(found.evidence_, wanted.evidence)
    for ending in ("json", "npz"):
        found.model_.save(tmp_path / f"again.{ending}")
        assert headwater.read_model(tmp_path / f"again.{ending}") == found.model_


def test_rank_explain_compare(ratios: np.ndarray, truth: Path, program: Program, tmp_path: Path) -> None:
    model = learned(program, tmp_path, ratios, "--method", "whitened")
    path, said = tmp_path / "model.npz", tmp_path / "beliefs.npy"
    options = ["--beliefs", said, "--log-ratios", "--bootstrap", 20, "--null", 20, "--seed", 3, "--format", "json"]
    wanted = json.loads(program("rank", path, *options))
    found = headwater.ranking(model, ratios, log_ratios=True, bootstrap=20, null=20, seed=3)
    assert found.json == wanted
    assert list(found.frame["agent"]) == [row["agent"] for row in wanted["agents"]]
    for name in ("share", "share_low", "rank_high", "p_value", "silent_share"):
        np.testing.assert_array_equal(found.frame[name], [row[name] for row in wanted["agents"]])
    told = json.loads(program("explain", path, "--agent", "1", "--what-if", "remove", "--format", "json"))
    assert headwater.explain(model, "1", "remove") == told and headwater.what_if(model, 1) == told["what_if"]
    assert headwater.compare(model, truth) == json.loads(program("compare", path, truth))


def test_simulate(program: Program, tmp_path: Path) -> None:
    options = {
        "agents": 7,
        "hypotheses": 3,
        "steps": 40,
        "silence": 0.2,
        "seed": 5,
        "network": "star",
        "likelihoods": "released",
    }
    program(
        "simulate",
        "--out",
        tmp_path,
        "--as",
        "npy",
        "--quiet",
        *(f"--{name}={value}" for name, value in options.items()),
    )
    said, truth = headwater.simulate(**options)
    np.testing.assert_array_equal(said, np.load(tmp_path / "beliefs.npy"))
    wanted = headwater.read_model(tmp_path / "truth.json")
    np.testing.assert_array_equal(truth.combination, wanted.combination)
    np.testing.assert_array_equal(truth.evidence, wanted.evidence)


def test_changes(program: Program, tmp_path: Path) -> None:
    said, _ = headwater.simulate(agents=8, steps=400, changes=["topology:200:0.1"], seed=3)
    np.save(tmp_path / "beliefs.npy", said)
    lines = program("learn", tmp_path / "beliefs.npy", "--out", tmp_path / "model.npz", "--follow").splitlines()
    wanted = [json.loads(line) for line in lines]
    found = Whitened().learn_many(said)
    assert [(change["kind"], change["since"], change["listeners"]) for change in found.changes_] == [
        (change["kind"], change["since"], change["listeners"]) for change in wanted
    ]
    np.testing.assert_array_equal(found.combination_, headwater.read_model(tmp_path / "model.npz").combination)
    for name, value in {"forget": 0.99, "recent": 150}.items():
        program("learn", tmp_path / "beliefs.npy", "--out", tmp_path / "model.npz", f"--{name}={value}", "--quiet")
        wanted_model = headwater.read_model(tmp_path / "model.npz")
        followed = Whitened(**{name: value}).fit(said)
        same(followed.model_, wanted_model)
        assert followed.changes_ == wanted_model.changes


def test_posts(posts: pandas.DataFrame, program: Program, tmp_path: Path) -> None:
    posts.to_csv(tmp_path / "posts.csv", index=False)
    program(
        "beliefs", tmp_path / "posts.csv", "--out", tmp_path / "beliefs.parquet", "--timezone=Europe/Berlin", "--quiet"
    )
    wanted = pandas.read_parquet(tmp_path / "beliefs.parquet")
    for given in (posts, tmp_path / "posts.csv", [tmp_path / "posts.csv"]):
        found = headwater.beliefs_from_posts(given, timezone="Europe/Berlin")
        pandas.testing.assert_frame_equal(found, wanted, check_exact=True, check_dtype=False)
    program("score", tmp_path / "posts.csv", "--out", tmp_path / "scored.csv", "--quiet")
    scored = pandas.read_csv(tmp_path / "scored.csv")
    for name, column in headwater.score(posts["text"]).items():
        np.testing.assert_allclose(column, scored[name], rtol=1e-5)


def test_the_command_of_the_wheel(program: Program, tmp_path: Path) -> None:
    command = Path(sys.executable).parent / "headwater"
    if not command.exists():
        pytest.skip("the package is not installed as a wheel")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == program("--version")
    wrong = subprocess.run([command, "rank", tmp_path / "none.json"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "error:" in wrong.stderr and "Traceback" not in wrong.stderr
    assert subprocess.run([command, "learn"], capture_output=True).returncode == 2

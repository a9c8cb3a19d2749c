"""The program against NumPy: golden files are what the transcription gives, and files cross the border unharmed.

HEADWATER names the program under test.
"""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_golden

PROGRAM = os.environ["HEADWATER"]
GOLDEN = pathlib.Path(__file__).parent.parent / "crates/headwater/tests/golden"


def run(*arguments, folder):
    done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def leaves(value):
    if isinstance(value, dict):
        for key in sorted(value):
            yield from leaves(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, float):
        yield value


def test_golden_files_are_what_the_transcription_gives(tmp_path):
    subprocess.run([sys.executable, pathlib.Path(__file__).parent / "make_golden.py", tmp_path], check=True)
    names = sorted(path.name for path in GOLDEN.glob("*.json"))
    assert names == sorted(path.name for path in tmp_path.glob("*.json"))
    for name in names:
        kept, made = (list(leaves(json.loads((folder / name).read_text()))) for folder in (GOLDEN, tmp_path))
        np.testing.assert_allclose(made, kept, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_in_models_out(tmp_path, order, dtype):
    combination, _, truth, log_beliefs, _ = make_golden.world(6, 3, 0.05, 300, 5)
    beliefs = np.exp(-np.concatenate([np.zeros((300, 6, 1)), log_beliefs], axis=2))
    beliefs /= beliefs.sum(2, keepdims=True)
    np.save(tmp_path / "b.npy", np.asarray(beliefs, dtype=dtype, order=order))
    run("learn", "b.npy", "--out", "m.npz", "--method", "gsl", "--adaptation", 0.05, "--window", 10,
        "--learning-rate", 0.3, folder=tmp_path)
    wanted, evidence = make_golden.gsl(log_beliefs, 0.05, 0.3, 10, np.full((6, 6), 1 / 6))
    model = np.load(tmp_path / "m.npz", allow_pickle=False)
    # float32 input keeps seven digits of a probability.
    tolerance = 1e-10 if dtype is np.float64 else 1e-3
    np.testing.assert_allclose(model["combination"], wanted, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(model["evidence"], evidence, rtol=tolerance, atol=100 * tolerance)
    meta = json.loads(str(model["meta"]))
    assert (meta["format"], meta["method"], meta["reference"]) == ("headwater-model/2", "gsl", "h0")
    assert model["innovation"].shape == (6, 2, 2)
    # Centrality by another eigensolver.
    stochastic = np.maximum(model["combination"], 0)
    stochastic /= stochastic.sum(0)
    ranking = json.loads(run("rank", "m.npz", "--format", "json", folder=tmp_path))
    found = {row["agent"]: row["centrality"] for row in ranking["agents"]}
    np.testing.assert_allclose([found[str(agent)] for agent in range(6)], make_golden.perron(stochastic), rtol=1e-9)


def test_models_of_numpy_are_read(tmp_path):
    combination, _, truth, _, divergence = make_golden.world(5, 3, 0.1, 1, 6)
    evidence = divergence[:, 1:] - divergence[:, :1]
    meta = {"format": "headwater-model/1", "agents": list("abcde"), "hypotheses": ["x", "y", "z"],
            "truth": "xyz"[truth], "adaptation": 0.1, "method": "given"}
    rows, columns = np.nonzero(combination.T)
    sparse = {"combination_data": combination.T[rows, columns], "combination_indices": columns,
              "combination_indptr": np.searchsorted(rows, np.arange(6))}
    np.savez(tmp_path / "dense.npz", combination=combination, evidence=evidence, meta=json.dumps(meta))
    np.savez(tmp_path / "fortran.npz", combination=np.asfortranarray(combination), evidence=evidence,
             meta=json.dumps(meta))
    np.savez_compressed(tmp_path / "sparse.npz", evidence=evidence, meta=json.dumps(meta), **sparse)
    wanted = make_golden.perron(combination) * divergence.sum(1)
    for name in ["dense.npz", "fortran.npz", "sparse.npz"]:
        ranking = json.loads(run("rank", name, "--format", "json", folder=tmp_path))
        found = {row["agent"]: row["influence"] for row in ranking["agents"]}
        np.testing.assert_allclose([found[agent] for agent in "abcde"], wanted, rtol=1e-9)


def test_the_lyapunov_equation(tmp_path):
    """Error probabilities of a two-hypothesis world against the solution of the vectorised equation."""
    run("simulate", "--out", "w", "--agents", 7, "--hypotheses", 2, "--edge-probability", 0.5, folder=tmp_path)
    truth = json.loads((tmp_path / "w/truth.json").read_text())
    a, delta = np.array(truth["combination"]), truth["adaptation"]
    spread = np.array(truth["innovation"])[:, 0, 0]
    keep = (1 - delta) ** 2
    system = np.eye(49) - keep * np.kron(a.T, a.T)
    covariance = np.linalg.solve(system, (delta**2 * np.diag(spread)).reshape(-1)).reshape(7, 7)
    mean = delta * np.linalg.solve(np.eye(7) - (1 - delta) * a.T, np.array(truth["evidence"])[:, 0])
    from math import erfc, sqrt
    wanted = [0.5 * erfc(m / sqrt(2 * v)) for m, v in zip(mean, np.diag(covariance))]
    ranking = json.loads(run("rank", "w/truth.json", "--format", "json", folder=tmp_path))
    found = {int(row["agent"]): row["error_probability"] for row in ranking["agents"]}
    np.testing.assert_allclose([found[agent] for agent in range(7)], wanted, rtol=1e-9)

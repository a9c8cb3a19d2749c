"""What several tests need: small worlds, and the program to compare with."""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import headwater

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def world() -> tuple[np.ndarray, headwater.Model]:
    """Six agents, three hypotheses, 120 complete steps."""
    return headwater.simulate(agents=6, hypotheses=3, steps=120, seed=7)


@pytest.fixture(scope="session")
def beliefs(world: tuple[np.ndarray, headwater.Model]) -> np.ndarray:
    return world[0]


@pytest.fixture(scope="session")
def model(beliefs: np.ndarray) -> headwater.Model:
    return headwater.Whitened().fit(beliefs).model_


@pytest.fixture(scope="session")
def quiet() -> np.ndarray:
    """Four agents, two hypotheses, 60 steps with silence."""
    return headwater.simulate(agents=4, hypotheses=2, steps=60, silence=0.3, seed=7)[0]


@pytest.fixture(scope="session")
def posts() -> pandas.DataFrame:
    """Twenty days of four users, who sound different from day to day."""
    sentences = ["what a wonderful day, love it", "this is fine", "this is a mess", "awful, the worst", "pretty good"]
    rows = [
        {
            "user": user,
            "time": f"2024-05-{day + 1:02}T{10 + place}:00:00Z",
            "text": f"The tram: {sentences[(day * (place + 2) + place) % 5]}",
        }
        for day in range(20)
        for place, user in enumerate(["ann", "bob", "cem", "dee"])
    ]
    return pandas.DataFrame(rows)


@pytest.fixture(scope="session")
def program() -> Callable[..., str]:
    """The command line built by cargo: arguments in, standard output out."""
    path = Path(os.environ.get("HEADWATER", ROOT / "target/debug/headwater"))
    if not path.exists():
        pytest.skip(f"there is no {path}: build it, or set HEADWATER")

    def run(*arguments: Any) -> str:
        done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def hushed() -> Any:
    """Warnings are not what this test is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def long_table(array: np.ndarray) -> dict[str, list[Any]]:
    """Probabilities T×N×|Θ| as the columns of a long table, without the silent."""
    cells = [(step, agent) for step, agent in np.ndindex(array.shape[:2]) if not np.isnan(array[step, agent]).any()]
    columns: dict[str, list[Any]] = {"time": [step for step, _ in cells], "agent": [str(agent) for _, agent in cells]}
    for index in range(array.shape[2]):
        columns[f"h{index}"] = [float(array[cell][index]) for cell in cells]
    return columns

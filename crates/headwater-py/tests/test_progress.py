"""How far long work has come."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

import headwater
from headwater import GSL, StateSpace, Whitened
from headwater.progress import reporting


@pytest.mark.parametrize(
    "learner", [StateSpace(rounds=30), GSL(0.05, window=5, passes=300)], ids=lambda learner: type(learner).__name__
)
def test_a_function_is_told(learner: Any, beliefs: np.ndarray) -> None:
    told: list[tuple[str, int, int]] = []
    learner.set_params(progress=lambda *what: told.append(what)).fit(beliefs)
    assert told, "at least the end is told"
    for what, done, total in told:
        assert isinstance(what, str) and 0 <= done and (total == 0 or done <= total)


def test_what_a_function_raises_ends_the_work(beliefs: np.ndarray, model: headwater.Model) -> None:
    def refuse(what: str, done: int, total: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        headwater.rank(model, beliefs, bootstrap=20_000, progress=refuse)


def test_a_bar_is_shown_and_closed(
    beliefs: np.ndarray, model: headwater.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tqdm")
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    headwater.rank(model, beliefs, bootstrap=400, progress=True)
    assert "resampling" in screen.getvalue() and "400" in screen.getvalue()


def test_bars_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with pytest.raises(KeyboardInterrupt), reporting(True) as report:
        assert report is not None
        report("first", 1, 2)
        report("first", 2, 2)
        report("second", 5, 0)
        raise KeyboardInterrupt
    assert "first: 100%" in screen.getvalue() and "second: 5it" in screen.getvalue()
    assert screen.getvalue().endswith("\n"), "closed"


def test_no_bar_without_tqdm(monkeypatch: pytest.MonkeyPatch, beliefs: np.ndarray) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        Whitened(progress=True).fit(beliefs)


def test_what_progress_may_be(beliefs: np.ndarray) -> None:
    with pytest.raises(TypeError, match="must be True, False or a function"):
        Whitened(progress="often").fit(beliefs)

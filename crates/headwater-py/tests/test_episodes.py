"""Episodes: several conversations of the same agents over one network."""

from __future__ import annotations

import numpy as np
import pytest

import headwater as hw
from headwater.beliefs import as_beliefs

pd = pytest.importorskip("pandas")


def world(steps: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    ratios = np.cumsum(rng.normal(size=(steps, 5, 1)), axis=0) * 0.1
    positive = 1.0 / (1.0 + np.exp(-ratios))
    return np.concatenate([positive, 1.0 - positive], axis=2)


def test_a_list_and_a_dictionary_of_arrays_are_episodes() -> None:
    array = world(60)
    both = as_beliefs([array[:30], array[35:]])
    assert both.episodes == ["0", "1"]
    assert (both.steps, len(both.agents)) == (55, 5)
    assert as_beliefs({"tax": array[:30], "war": array[35:]}).episodes == ["tax", "war"]
    assert as_beliefs(array).episodes is None
    # Frames of one conversation, as before.
    assert as_beliefs(list(array)).episodes is None


def test_frames_have_a_column_of_episodes() -> None:
    array = world(40)
    both = as_beliefs({"tax": array[:20], "war": array[20:]})
    frame = pd.DataFrame(both.columns())
    assert list(frame.columns[:3]) == ["episode", "time", "agent"]
    assert frame.groupby("episode").size().to_dict() == {"tax": 100, "war": 100}
    again = as_beliefs(frame)
    assert again.episodes == ["tax", "war"]
    np.testing.assert_allclose(again.array(), both.array(), atol=1e-12)
    assert "episode" not in pd.DataFrame(as_beliefs(array).columns()).columns


def test_nothing_is_learned_from_the_step_between_episodes() -> None:
    array = world(60)
    apart = hw.Whitened().fit([array[:30], array[30:]])
    joined = hw.Whitened().fit(array)
    assert not np.allclose(apart.combination_, joined.combination_)
    swapped = hw.Whitened().fit([array[30:], array[:30]])
    np.testing.assert_allclose(apart.combination_, swapped.combination_, atol=1e-8)


def test_what_episodes_do_not_allow_says_why() -> None:
    array = world(30)
    with pytest.raises(ValueError, match="single time step"):
        as_beliefs([array, array[:1]])
    with pytest.raises(RuntimeError, match="2 episodes"):
        hw.Whitened(recent=20).fit([array, array])
    frame = pd.DataFrame({"episode": ["x", "x", ""], "time": [0, 1, 2], "agent": ["a", "b", "a"], "yes": 0.5, "no": 0.5})
    with pytest.raises(ValueError, match="episode"):
        as_beliefs(frame)

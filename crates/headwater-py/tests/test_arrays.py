"""Arrays of every kind: they work, or a sentence says why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headwater
from headwater import Whitened


def unaligned(array: np.ndarray) -> np.ndarray:
    buffer = bytearray(array.nbytes + 1)
    shifted = np.frombuffer(buffer, dtype=np.uint8)[1:].view(array.dtype).reshape(array.shape)
    shifted[...] = array
    assert not shifted.flags.aligned
    return shifted


def every_other(array: np.ndarray) -> np.ndarray:
    wide = np.full((2 * array.shape[0], array.shape[1], 2 * array.shape[2]), 7.0)
    wide[::2, :, ::2] = array
    return wide[::2, :, ::2]


def read_only(array: np.ndarray) -> np.ndarray:
    fixed = array.copy()
    fixed.flags.writeable = False
    return fixed


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "strided": every_other,
    "reversed": lambda array: array[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
    "transposed": lambda array: np.ascontiguousarray(array.transpose(2, 0, 1)).transpose(1, 2, 0),
    "read-only": read_only,
    "unaligned": unaligned,
    "big-endian": lambda array: array.astype(">f8"),
    "long double": lambda array: array.astype(np.longdouble),
    "objects": lambda array: array.astype(object),
    "nested lists": lambda array: array.tolist(),
    "masked, nothing hidden": np.ma.masked_array,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_the_same(layout: str, beliefs: np.ndarray, model: headwater.Model) -> None:
    given = LAYOUTS[layout](beliefs)
    before = np.array(given, dtype=float)
    found = Whitened().fit(given)
    np.testing.assert_array_equal(found.combination_, model.combination)
    np.testing.assert_array_equal(found.evidence_, model.evidence)
    np.testing.assert_array_equal(np.array(given, dtype=float), before, "beliefs are left as they are")


@pytest.mark.parametrize("kind", ["<f4", ">f4"])
def test_single_precision_is_taken_and_said(kind: str, beliefs: np.ndarray) -> None:
    with pytest.warns(headwater.HeadwaterWarning, match="float32"):
        found = Whitened().fit(beliefs.astype(kind))
    assert found.combination_.dtype == np.float64
    assert all(column["status"] != "certified" for column in found.diagnostics_["columns"])


@pytest.mark.filterwarnings("ignore::headwater.HeadwaterWarning")
def test_half_precision_log_ratios_and_whole_numbers() -> None:
    generator = np.random.default_rng(3)
    ratios = generator.normal(size=(80, 4))
    for kind in (np.float16, np.int64, np.int8, np.uint8):
        given = np.abs(8 * ratios).astype(kind)
        wanted = Whitened(log_ratios=True).fit(given.astype(np.float32 if kind is np.float16 else np.float64))
        np.testing.assert_array_equal(Whitened(log_ratios=True).fit(given).combination_, wanted.combination_)


def test_half_precision_probabilities_do_not_sum_to_one(beliefs: np.ndarray) -> None:
    with pytest.raises(ValueError, match="sum"):
        Whitened().fit(beliefs.astype(np.float16))


def test_log_ratios_with_two_and_with_three_axes() -> None:
    ratios, _ = headwater.simulate(agents=5, hypotheses=2, steps=80, log_ratios=True)
    assert ratios.shape == (80, 5, 1)
    flat = Whitened(log_ratios=True).fit(ratios[:, :, 0])
    deep = Whitened(log_ratios=True).fit(ratios)
    np.testing.assert_array_equal(flat.combination_, deep.combination_)
    assert flat.hypotheses_ == ["h0", "h1"] and flat.n_features_in_ == 5


def test_probabilities_and_log_ratios_agree(beliefs: np.ndarray) -> None:
    ratios = np.log(beliefs[:, :, :1] / beliefs[:, :, 1:])
    by_ratios = Whitened(log_ratios=True).fit(ratios)
    np.testing.assert_allclose(by_ratios.combination_, Whitened().fit(beliefs).combination_, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "log_ratios"),
    [((5,), False), ((5, 4), False), ((2, 5, 4, 2), False), ((), False), ((5,), True), ((2, 5, 4, 2), True)],
)
def test_wrong_shapes_name_the_one_met_and_the_one_wanted(shape: tuple[int, ...], log_ratios: bool) -> None:
    with pytest.raises(ValueError, match="expected|must be") as caught:
        Whitened(log_ratios=log_ratios).fit(np.full(shape, 0.5))
    for length in shape:
        assert str(length) in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((0, 4, 2), "no time steps"),
        ((50, 1, 2), "at least 2"),
        ((50, 0, 2), "at least 2"),
        ((50, 4, 1), "at least 2"),
        ((2, 4, 2), "needed"),
    ],
)
def test_too_little_of_something(shape: tuple[int, ...], sentence: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=sentence):
        Whitened().fit(np.full(shape, 1 / max(shape[2], 1)))


def test_nan_is_silence(beliefs: np.ndarray) -> None:
    silent = beliefs.copy()
    silent[10, 2] = np.nan
    with pytest.warns(headwater.HeadwaterWarning, match="1 of 720 beliefs are missing"):
        Whitened().fit(silent)


def test_half_a_belief_is_refused_and_named(beliefs: np.ndarray) -> None:
    broken = beliefs.copy()
    broken[10, 2, 1] = np.nan
    with pytest.raises(ValueError, match=r"10, 2"):
        Whitened().fit(broken)


@pytest.mark.parametrize("bad", [np.inf, -0.5, 1.5])
def test_what_is_no_probability_is_refused_and_named(bad: float, beliefs: np.ndarray) -> None:
    broken = beliefs.copy()
    broken[10, 2] = [bad, 0.3, 0.7 - bad]
    with pytest.raises(ValueError, match=r"10, 2"):
        Whitened().fit(broken)


def test_a_mask_is_silence_whatever_it_hides(beliefs: np.ndarray) -> None:
    gaps = beliefs.copy()
    gaps[10, 2] = np.nan
    masked = np.ma.masked_array(beliefs.copy(), mask=np.zeros(beliefs.shape, dtype=bool))
    masked[10, 2] = np.ma.masked
    masked.data[10, 2] = 1e20
    with pytest.warns(headwater.HeadwaterWarning, match="1 of 720"):
        found = Whitened().fit(masked)
    with pytest.warns(headwater.HeadwaterWarning, match="1 of 720"):
        wanted = Whitened().fit(gaps)
    np.testing.assert_array_equal(found.combination_, wanted.combination_)


def test_a_mask_over_two_axes() -> None:
    ratios = np.ma.masked_array(np.random.default_rng(1).normal(size=(60, 4)))
    ratios[3, 1] = np.ma.masked
    with pytest.warns(headwater.HeadwaterWarning, match="1 of 240"):
        Whitened(log_ratios=True).fit(ratios)


def test_half_a_mask_is_refused_and_named(beliefs: np.ndarray) -> None:
    masked = np.ma.masked_array(beliefs)
    masked[10, 2, 1] = np.ma.masked
    with pytest.raises(ValueError, match="step 10, agent 2: some hypotheses are masked"):
        Whitened().fit(masked)


@pytest.mark.parametrize("kind", ["complex128", "U8", "datetime64[D]"])
def test_what_is_no_number_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=r"[Cc]omplex data not supported|beliefs must be numbers"):
        Whitened().fit(np.zeros((50, 4, 2), dtype=kind))


def test_sparse_matrices_are_refused() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="toarray"):
        Whitened(log_ratios=True).fit(sparse.csr_array(np.eye(50, 4)))


def test_learned_arrays_are_kept_and_read_only(model: headwater.Model) -> None:
    assert model.combination is model.combination
    for name in ("combination", "evidence", "centrality", "informativeness", "influence", "share"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(model, name)[0] = 0.0


@pytest.mark.filterwarnings("ignore::headwater.HeadwaterWarning")
def test_simulated_silence_is_nan() -> None:
    said, truth = headwater.simulate(agents=5, hypotheses=3, steps=100, silence=0.3)
    missing = np.isnan(said)
    assert said.shape == (100, 5, 3) and 0.2 < missing.mean() < 0.4
    np.testing.assert_array_equal(missing.any(axis=2), missing.all(axis=2))
    np.testing.assert_allclose(said[~missing].reshape(-1, 3).sum(axis=1), 1.0)
    assert truth.agents == ["0", "1", "2", "3", "4"] and truth.method == "given"


def test_large_models_on_a_graph_are_sparse() -> None:
    scipy = pytest.importorskip("scipy.sparse")
    agents = 5001
    ring = [(agent, (agent + 1) % agents) for agent in range(agents)]
    ring += [(target, source) for source, target in ring]
    _, truth = headwater.simulate(graph=ring, hypotheses=2, steps=1, burn_in=1)
    assert isinstance(truth.combination, scipy.csc_array) and truth.combination.shape == (agents, agents)
    np.testing.assert_allclose(truth.combination.sum(axis=0), 1.0)

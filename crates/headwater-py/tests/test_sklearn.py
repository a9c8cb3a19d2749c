"""The estimator checks of scikit-learn. They speak of tables T×N, so that they run with log-ratios of two hypotheses;
those that do not apply are listed here and in docs/reference/python.md with the reason."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from headwater import GSL, StateSpace, Whitened

checks = pytest.importorskip("sklearn.utils.estimator_checks")

NOT_APPLICABLE = {
    "check_estimators_empty_data_messages": "the sentence speaks of agents and time steps, not of features and samples",
    "check_fit2d_1feature": "the sentence speaks of agents: one of them is no network",
    "check_fit2d_1sample": "the sentence speaks of time steps",
}

pytestmark = pytest.mark.filterwarnings("ignore")


def learners() -> list[Any]:
    return [Whitened(log_ratios=True), StateSpace(log_ratios=True, rounds=2), GSL(0.05, window=2, log_ratios=True)]


with warnings.catch_warnings():
    # Our base class is not theirs, on purpose.
    warnings.simplefilter("ignore")
    parametrized = checks.parametrize_with_checks(
        learners(), expected_failed_checks=lambda _: NOT_APPLICABLE, xfail_strict=True
    )


@parametrized
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_tags() -> None:
    utils = pytest.importorskip("sklearn.utils")
    tags = utils.get_tags(Whitened())
    assert not tags.input_tags.two_d_array and tags.input_tags.three_d_array and tags.input_tags.allow_nan
    assert utils.get_tags(Whitened(log_ratios=True)).input_tags.two_d_array
    assert tags.requires_fit and not tags.target_tags.required


def test_is_fitted(beliefs: np.ndarray) -> None:
    validation = pytest.importorskip("sklearn.utils.validation")
    exceptions = pytest.importorskip("sklearn.exceptions")
    learner = Whitened()
    with pytest.raises(exceptions.NotFittedError):
        validation.check_is_fitted(learner)
    validation.check_is_fitted(learner.fit(beliefs))
    validation.check_is_fitted(Whitened().learn_many(beliefs))
    with pytest.raises(exceptions.NotFittedError):
        validation.check_is_fitted(Whitened().learn_one(beliefs[0]))


def test_the_last_step_of_a_pipeline(beliefs: np.ndarray) -> None:
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    ratios = preprocessing.FunctionTransformer(lambda array: np.log(array[:, :, :1] / array[:, :, 1:]))
    line = pipeline.make_pipeline(ratios, Whitened(log_ratios=True)).fit(beliefs)
    assert line[-1].n_features_in_ == 6

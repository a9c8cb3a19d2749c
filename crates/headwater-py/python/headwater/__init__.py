"""Headwater finds where opinions come from: who listens to whom, how well informed each one is, and who therefore
drives what a group ends up believing. It does so from public beliefs alone, and says so when the data do not support an
answer.

Beliefs are arrays T×N×|Θ| of probabilities (NaN is silence) or long data frames with the columns time, agent and one
per hypothesis. Three estimators learn from them: `Whitened` (complete beliefs), `StateSpace` (noise and silence) and
`GSL` (the paper's learner).

>>> import headwater
>>> beliefs, truth = headwater.simulate(agents=20, steps=100)
>>> learner = headwater.Whitened().fit(beliefs)
>>> headwater.compare(learner, truth)["top_k_hit"]  # the true three most influential, found
1.0

`rank` says who drives opinion and how sure that is, `explain` why, `report` makes a page of it, and `discover` does
everything from a data frame of posts. The guide is docs/how-to/python.md.
"""

from __future__ import annotations

from ._headwater import __version__
from .beliefs import read_beliefs, simulate
from .display import Verdict
from .errors import HeadwaterWarning, NoEvidence, NotFitted, NotTested, UnknownName
from .estimators import GSL, StateSpace, Whitened
from .influence import Page, Ranking, compare, explain, rank, ranking, report, what_if
from .model import Model, export, read_model, to_networkx
from .posts import Discovery, beliefs_from_posts, discover, score

__all__ = [
    "GSL",
    "Discovery",
    "HeadwaterWarning",
    "Model",
    "NoEvidence",
    "NotFitted",
    "NotTested",
    "Page",
    "Ranking",
    "StateSpace",
    "UnknownName",
    "Verdict",
    "Whitened",
    "__version__",
    "beliefs_from_posts",
    "compare",
    "discover",
    "explain",
    "export",
    "rank",
    "ranking",
    "read_beliefs",
    "read_model",
    "report",
    "score",
    "simulate",
    "to_networkx",
    "what_if",
]

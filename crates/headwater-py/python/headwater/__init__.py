"""Headwater finds influencers from public beliefs: who listens to whom, how well informed each agent is, and who drives
the opinion of the group. It reports intervals and a permutation test, and says so when the data do not support an answer.

Beliefs are arrays T×N×|Θ| of probabilities (NaN is silence) or long data frames with the columns time, agent and one
per hypothesis. Three estimators learn from them: `Whitened` (complete beliefs), `StateSpace` (noise and silence) and
`GSL` (the paper's learner).

>>> import headwater
>>> beliefs, truth = headwater.simulate(agents=20, steps=100)
>>> learner = headwater.Whitened().fit(beliefs)
>>> headwater.compare(learner, truth)["top_k_hit"]  # share of the true top three that was found
1.0

`rank` ranks the agents by influence, `explain` explains the rank of one agent, `report` makes a page, and `discover` ranks
influencers from posts. The guide is docs/how-to/python.md.
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

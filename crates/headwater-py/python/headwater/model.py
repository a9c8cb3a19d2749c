"""Models: arrays by name, display in notebooks, networkx, and export to other programs."""

from __future__ import annotations

import importlib
import json
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from . import _headwater, display
from .display import Verdict
from .errors import tell

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .beliefs import BeliefsLike
    from .frames import Frame
    from .influence import RankOptions, Ranking

_Array = TypeVar("_Array", bound="NDArray[np.float64] | None")

# Up to this many agents the weights are a plain array.
_DENSE_AGENTS = 5000
# Up to this many the network is drawn.
_DRAWN_AGENTS = 300


class Model:
    """A learned network: weights, evidence, influence, and how it was learned.

    Arrays are computed on first access, cached, and read-only. Models are made by estimators, `simulate` and
    `read_model`.

    >>> from headwater import simulate
    >>> _, truth = simulate(agents=4, steps=10)
    >>> truth
    <headwater.Model of 4 agents and 5 hypotheses, given, δ = 0.05>
    >>> truth.combination.sum(axis=0).round(12)  # the weights of each listener sum to one
    array([1., 1., 1., 1.])
    """

    def __init__(self, compiled: _headwater.Model) -> None:
        self._compiled = compiled

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """A model or truth in a .json or .npz file."""
        return cls(_headwater.Model.load(os.fspath(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a .json file, or .npz, which is smaller and faster. The file is written atomically."""
        self._compiled.save(os.fspath(path))

    @property
    def agents(self) -> list[str]:
        """Names, in the order of all arrays."""
        return self._compiled.agents

    @property
    def hypotheses(self) -> list[str]:
        """Names; the first is the reference."""
        return self._compiled.hypotheses

    @property
    def reference(self) -> str:
        """θ_0, the reference of the log-ratios."""
        return self._compiled.reference

    @property
    def truth(self) -> str | None:
        """The hypothesis the network settles on."""
        return self._compiled.truth

    @property
    def agreement(self) -> float | None:
        """The share of agents that agree with `truth`."""
        return self._compiled.agreement

    @property
    def adaptation(self) -> float:
        """δ, the weight of private evidence in a belief."""
        return self._compiled.adaptation

    @property
    def method(self) -> str:
        """How it was learned: "whitened", "state-space", "gsl", "as-released" or "given"."""
        return self._compiled.method

    @property
    def steps(self) -> int | None:
        """Number of steps it was learned from."""
        return self._compiled.steps

    @property
    def sparse(self) -> bool:
        """Whether only the edges of a graph are stored."""
        return self._compiled.sparse

    @cached_property
    def combination(self) -> Any:
        """The weights N×N, rows = speakers, columns = listeners.

        An array; beyond 5000 agents on a graph a ``scipy.sparse.csc_array``.
        """
        agents = len(self.agents)
        if not self.sparse or agents <= _DENSE_AGENTS:
            return _fixed(self._compiled.dense())
        try:
            csc_array = importlib.import_module("scipy.sparse").csc_array
        except ImportError as error:
            raise ImportError(
                f"the weights of {agents} agents are a scipy sparse array, and scipy is not installed: pip install scipy"
            ) from error
        return csc_array(self._compiled.csc(), shape=(agents, agents))

    @cached_property
    def evidence(self) -> NDArray[np.float64]:
        """L̄, N×H: the mean log-likelihood ratio of each agent's private observations."""
        return _fixed(self._compiled.evidence)

    @cached_property
    def innovation(self) -> NDArray[np.float64] | None:
        """N×H×H: covariance of those ratios, where it was learned."""
        return _fixed(self._compiled.innovation)

    @cached_property
    def centrality(self) -> NDArray[np.float64]:
        """Weight that the network gives each agent, directly and through others; sums to one."""
        return _fixed(self._compiled.centrality)

    @cached_property
    def informativeness(self) -> NDArray[np.float64]:
        """How strongly each agent's own evidence supports the truth, summed over the alternatives."""
        return _fixed(self._compiled.informativeness)

    @cached_property
    def influence(self) -> NDArray[np.float64]:
        """Centrality × informativeness."""
        return _fixed(self._compiled.influence)

    @cached_property
    def share(self) -> NDArray[np.float64] | None:
        """Each agent's share of all influence, of the absolute values where some are negative; sums to one. None where
        every influence is zero."""
        return _fixed(self._compiled.share)

    @property
    def sign(self) -> NDArray[np.int8] | None:
        """+1 or −1 for each agent, the sign of the influence. None where no influence is negative."""
        return self._compiled.sign

    @cached_property
    def likelihoods(self) -> list[dict[str, Any]] | None:
        """Distribution of each agent's private observations, where it could be recovered."""
        return cast("list[dict[str, Any]] | None", json.loads(self._compiled.likelihoods()))

    @cached_property
    def diagnostics(self) -> dict[str, Any]:
        """Status of each listener's weights, forecast skill, warnings."""
        return cast("dict[str, Any]", json.loads(self._compiled.diagnostics()))

    @cached_property
    def changes(self) -> list[dict[str, Any]]:
        """Detected changes, where they were tracked."""
        return cast("list[dict[str, Any]]", json.loads(self._compiled.changes()))

    @property
    def verdict(self) -> Verdict:
        """Whether the data support an answer, without a permutation test; `ranking` with `null` runs one."""
        return Verdict.from_parts(self._compiled.verdict())

    def rank(self, beliefs: BeliefsLike | None = None, **options: Unpack[RankOptions]) -> Frame:
        """The ranking of the agents by influence: `headwater.rank` of this model."""
        from .influence import rank

        return rank(self, beliefs, **options)

    def explain(
        self, agent: str | int, what_if: Literal["remove", "neutral"] | None = None, top: int = 10
    ) -> dict[str, Any]:
        """Why an agent has its rank: `headwater.explain` of this model."""
        from .influence import explain

        return explain(self, agent, what_if, top)

    def __eq__(self, other: object) -> bool:
        return self._compiled == other._compiled if isinstance(other, Model) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._compiled.to_bytes(),)

    def __repr__(self) -> str:
        counts = f"{len(self.agents)} agents and {len(self.hypotheses)} hypotheses"
        return f"<headwater.Model of {counts}, {self.method}, δ = {self.adaptation:.4g}>"

    def _repr_html_(self) -> str:
        drawn = len(self.agents) <= _DRAWN_AGENTS
        return display.page(
            self.verdict,
            display.agents_table(self._compiled.rank().columns()),
            display.picture(self._compiled.figure("network"), "who listens to whom") if drawn else "",
            display.note(repr(self).strip("<>")),
        )


class Fitted(Protocol):
    """A fitted estimator."""

    @property
    def model_(self) -> Model: ...


ModelLike: TypeAlias = "Model | Fitted | str | os.PathLike[str]"


def as_model(model: ModelLike) -> Model:
    """A model, an estimator that has one, or a file."""
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        return Model.load(model)
    if hasattr(type(model), "model_"):
        return model.model_
    raise TypeError(f"expected a Model, a fitted estimator, or the path of a model, not {type(model).__name__}")


def compiled(model: ModelLike | None) -> _headwater.Model | None:
    """The compiled model."""
    return None if model is None else as_model(model)._compiled


def read_model(path: str | os.PathLike[str]) -> Model:
    """Reads a model or truth, .json or .npz.

    >>> from tempfile import TemporaryDirectory
    >>> from headwater import simulate
    >>> truth = simulate(agents=4, steps=10)[1]
    >>> with TemporaryDirectory() as folder:
    ...     truth.save(f"{folder}/truth.json")
    ...     read_model(f"{folder}/truth.json") == truth
    True
    """
    return Model.load(path)


def compiled_ranking(ranking: Ranking | None) -> _headwater.Ranking | None:
    """The compiled ranking."""
    if ranking is not None and not hasattr(ranking, "_compiled"):
        raise TypeError(
            f"ranking is a {type(ranking).__name__}, but must be the result of headwater.ranking (rank returns only its data "
            "frame), or for report the ranking.json of discover"
        )
    return None if ranking is None else ranking._compiled


def export(
    model: ModelLike, path: str | os.PathLike[str], *, ranking: Ranking | None = None, raw_csv: bool = False
) -> None:
    """Writes the network for other programs: .gexf, .graphml, .csv, .parquet or .json. A `ranking` adds its columns.
    In .csv, names that a spreadsheet would run as a formula begin with an apostrophe, unless `raw_csv` is true.

    >>> import os
    >>> from tempfile import TemporaryDirectory
    >>> from headwater import simulate
    >>> with TemporaryDirectory() as folder:
    ...     export(simulate(agents=4, steps=10)[1], f"{folder}/network.csv")
    ...     sorted(os.listdir(folder))
    ['network.csv', 'network.nodes.csv']
    """
    tell(as_model(model)._compiled.export(os.fspath(path), compiled_ranking(ranking), raw_csv))


def to_networkx(model: ModelLike) -> Any:
    """The network as a ``networkx.DiGraph``: edges from speaker to listener with their `weight`, self-weights included;
    agents with `centrality`, `informativeness`, `influence` and `share`.

    >>> from headwater import simulate
    >>> graph = to_networkx(simulate(agents=5, steps=10)[1])
    >>> round(sum(weight for _, _, weight in graph.in_edges("0", data="weight")), 12)
    1.0
    """
    try:
        graph = importlib.import_module("networkx").DiGraph()
    except ImportError as error:
        raise ImportError("to_networkx needs networkx, which is not installed: pip install networkx") from error
    model = as_model(model)
    columns: dict[str, Any] = {
        name: getattr(model, name) for name in ("centrality", "informativeness", "influence", "share")
    }
    present = {name: values.tolist() for name, values in columns.items() if values is not None}
    for place, agent in enumerate(model.agents):
        graph.add_node(agent, **{name: values[place] for name, values in present.items()})
    edges = model._compiled.edges()
    weights = np.asarray(edges["weight"], dtype=np.float64).tolist()
    graph.add_weighted_edges_from(zip(edges["source"], edges["target"], weights))
    return graph


def _restored(data: bytes) -> Model:
    return Model(_headwater.Model.from_bytes(data))


def _fixed(array: _Array) -> _Array:
    """Makes a cached array read-only."""
    if array is not None:
        array.flags.writeable = False
    return array

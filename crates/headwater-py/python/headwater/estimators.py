"""Estimators with the conventions of scikit-learn: learned attributes have a trailing underscore.

Parameters are stored as given and checked by `fit`. scikit-learn is not required; its ``clone`` works. `Whitened` and `GSL`
also learn from streams with the conventions of river: `learn_one`, `learn_many`, `changes_`.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from . import _headwater
from .beliefs import BeliefsLike, Cells, FrameLike, Silent, aligned, as_beliefs, cells, stacked
from .errors import NotFitted, real, tell, whole
from .frames import is_frame
from .graphs import GraphLike, agent_name, as_graph
from .model import Model, ModelLike, compiled
from .progress import ProgressLike, reporting

if TYPE_CHECKING:
    from typing_extensions import Self

    from .posts import Common

Constraint: TypeAlias = Literal["simplex", "free"]
_Stream: TypeAlias = _headwater.Tracker | _headwater.GslStream


class _Learner:
    """Base of all estimators: parameters by name, and learned attributes taken from the model."""

    log_ratios: bool
    progress: ProgressLike
    _model: Model | None = None
    _stream: _Stream | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters by name; what was learned stays until the next `fit`."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; there are {', '.join(known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def _check_numbers(self) -> None:
        """Checks the types of numeric parameters; the compiled part checks their ranges."""
        for field in fields(cast(Any, self)):
            kind = str(field.type).partition(" ")[0]
            if kind in ("int", "float"):
                (whole if kind == "int" else real)(**{field.name: getattr(self, field.name)})

    @property
    def model_(self) -> Model:
        """The learned model."""
        if self._model is None and self._stream is None:
            raise NotFitted(f"this {type(self).__name__} is not fitted: call fit first")
        if self._model is None and self._stream is not None:
            try:
                self._model = Model(self._stream.model())
            except (ValueError, RuntimeError) as error:
                raise NotFitted(str(error)) from error
        return cast(Model, self._model)

    @property
    def combination_(self) -> Any:
        """The weights N×N, rows = speakers, columns = listeners; see `Model.combination`."""
        return self.model_.combination

    @property
    def evidence_(self) -> NDArray[np.float64]:
        """L̄, N×H."""
        return self.model_.evidence

    @property
    def adaptation_(self) -> float:
        """δ, as given or as estimated."""
        return self.model_.adaptation

    @property
    def centrality_(self) -> NDArray[np.float64]:
        """Weight that the network gives each agent, directly and through others; sums to one."""
        return self.model_.centrality

    @property
    def informativeness_(self) -> NDArray[np.float64]:
        """How strongly each agent's own evidence supports the truth."""
        return self.model_.informativeness

    @property
    def influence_(self) -> NDArray[np.float64]:
        """Centrality × informativeness."""
        return self.model_.influence

    @property
    def diagnostics_(self) -> dict[str, Any]:
        """Status of the weights, forecast skill, warnings."""
        return self.model_.diagnostics

    @property
    def agents_(self) -> list[str]:
        """Names of the agents, in the order of all arrays."""
        return self.model_.agents if self._stream is None else self._stream.agents

    @property
    def hypotheses_(self) -> list[str]:
        """Names of the hypotheses; the first is the reference."""
        return self.model_.hypotheses

    @property
    def truth_(self) -> str | None:
        """The hypothesis the network settles on."""
        return self.model_.truth

    @property
    def n_features_in_(self) -> int:
        """The number of agents."""
        return len(self.agents_)

    def _learned(self, model: _headwater.Model, beliefs: _headwater.Beliefs) -> Self:
        self._model, self._stream = Model(model), None
        tell([*beliefs.warnings, *model.warnings()])
        return self

    def __repr__(self) -> str:
        changed = ", ".join(
            f"{field.name}={_short(getattr(self, field.name))}"
            for field in fields(cast(Any, self))
            if _short(getattr(self, field.name)) != _short(field.default)
        )
        return f"{type(self).__name__}({changed})"

    def _repr_html_(self) -> str | None:
        return self.model_._repr_html_() if self.__sklearn_is_fitted__() else None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        utils = importlib.import_module("sklearn.utils")
        # T×N log-ratios of two hypotheses are the only beliefs that scikit-learn would call a table.
        shapes = utils.InputTags(two_d_array=self.log_ratios, three_d_array=True, allow_nan=True)
        return utils.Tags(estimator_type=None, target_tags=utils.TargetTags(required=False), input_tags=shapes)


class _Streaming(_Learner):
    """Base of estimators that learn from streams."""

    @property
    def changes_(self) -> list[dict[str, Any]]:
        """Detected changes: time, kind, listeners, since."""
        if self._stream is None:
            return list(self.model_.changes)
        return cast("list[dict[str, Any]]", json.loads(self._stream.changes()))

    def learn_one(self, frame: FrameLike) -> Self:
        """Learns from one step: N×|Θ| probabilities (with `log_ratios` N×H or N), or a dict of them by agent, in which a
        single number is the probability of the reference. Agents that are absent, None or NaN are silent.

        The first frame, or the first call of `learn_many`, defines the agents.
        """
        if is_frame(frame):
            raise TypeError(
                "learn_one takes an array N×|Θ| or a dict by agent; a data frame of one or more steps goes to learn_many"
            )
        return self._take(*stacked([frame], self._known(), self.log_ratios, self._width()))

    def learn_many(self, frames: BeliefsLike | Iterable[FrameLike]) -> Self:
        """Learns from several steps: an array T×N×|Θ|, a list of frames as for `learn_one`, a long data frame, or a file."""
        if isinstance(frames, str) or hasattr(frames, "__fspath__") or is_frame(frames):
            beliefs = as_beliefs(cast(BeliefsLike, frames), self.log_ratios)
            known = self._known()
            names = beliefs.agents if known is None else known
            hypotheses = beliefs.hypotheses if self._stream is None else self._stream.hypotheses
            return self._take(aligned(beliefs, names, hypotheses), None, names, hypotheses)
        if isinstance(frames, np.ndarray):
            array, silent = cells(frames)
            return self._take(array, silent, None)
        given = list(cast("Iterable[FrameLike]", frames))
        return self._take(*stacked(given, self._known(), self.log_ratios, self._width())) if given else self

    def _known(self) -> list[str] | None:
        """The agents of a stream under way."""
        if self._stream is None and self._model is not None:
            raise RuntimeError(
                f"this {type(self).__name__} was fitted to a whole series and cannot continue as a stream; use an unfitted "
                "estimator (sklearn.base.clone makes one) and learn from the first frame on"
            )
        return None if self._stream is None else self._stream.agents

    def _width(self) -> int | None:
        """Numbers of a belief in a stream under way."""
        return None if self._stream is None else len(self._stream.hypotheses) - self.log_ratios

    def _take(
        self, array: Cells, silent: Silent, names: Sequence[str] | None, hypotheses: Sequence[str] | None = None
    ) -> Self:
        # Named hypotheses come from a table, and that in the library's own shape.
        log_ratios = self.log_ratios or hypotheses is not None
        known = self._known()
        if array.ndim != 3 and not (log_ratios and array.ndim == 2):
            raise ValueError(f"frames have shape {array.shape}, but must be T×N×{'H or T×N' if log_ratios else '|Θ|'}")
        if known is None:
            self._check_numbers()
            width = (array.shape[2] if array.ndim == 3 else 1) + log_ratios
            agents = names or [str(agent) for agent in range(array.shape[1])]
            stream = self._open(agents, hypotheses or [f"h{index}" for index in range(width)])
            return self._feed(stream, array, log_ratios, silent)
        return self._feed(cast(_Stream, self._stream), array, log_ratios, silent)

    def _feed(self, stream: _Stream, array: Cells, log_ratios: bool, silent: Silent) -> Self:
        """Pushes frames; those before an invalid one are kept."""
        try:
            with reporting(self.progress) as report:
                stream.push(array, log_ratios, silent, report)
        finally:
            if stream.seen:
                self._model, self._stream = None, stream
        return self

    def _open(self, agents: Sequence[str], hypotheses: Sequence[str]) -> _Stream:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if self._stream is not None:
            state["_stream"] = (type(self._stream), self._stream.to_bytes())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("_stream"), tuple):
            kind, data = state["_stream"]
            state = {**state, "_stream": kind.from_bytes(data)}
        vars(self).update(state)


@dataclass(kw_only=True, eq=False, repr=False)
class Whitened(_Streaming):
    """Feasible generalised least squares: exact from a few dozen steps where the data allow it.

    For complete beliefs; silence is filled with the last belief, with a warning. With `forget` or `recent` a changing
    network is tracked, and `changes_` lists the detected changes.

    >>> from headwater import simulate
    >>> beliefs, truth = simulate(agents=8, steps=100)
    >>> learner = Whitened().fit(beliefs)
    >>> bool(abs(learner.combination_ - truth.combination).max() < 1e-6)
    True
    >>> stream = Whitened()
    >>> for frame in beliefs:
    ...     stream = stream.learn_one(frame)
    >>> stream.changes_
    []
    """

    adaptation: float | None = None
    constraint: Constraint = "simplex"
    ridge: float = 0.0
    rounds: int | None = None
    symbols: bool = True
    budget: float | None = None
    graph: GraphLike | None = None
    forget: float | None = None
    recent: int | None = None
    log_ratios: bool = False
    progress: ProgressLike = False
    threads: int | None = None

    def fit(self, beliefs: BeliefsLike, y: object = None) -> Self:
        """Learns from a whole series; earlier results are discarded."""
        self._check_numbers()
        given = as_beliefs(beliefs, self.log_ratios)
        with reporting(self.progress) as report:
            model = _headwater.whitened(
                given,
                adaptation=self.adaptation,
                constraint=self.constraint,
                ridge=self.ridge,
                rounds=self.rounds,
                symbols=self.symbols,
                budget=self.budget,
                graph=as_graph(self.graph),
                forget=self.forget,
                recent=self.recent,
                progress=report,
                threads=self.threads,
            )
        return self._learned(model, given)

    def _open(self, agents: Sequence[str], hypotheses: Sequence[str]) -> _headwater.Tracker:
        return _headwater.Tracker(
            agents,
            hypotheses,
            adaptation=self.adaptation,
            constraint=self.constraint,
            ridge=self.ridge,
            symbols=self.symbols,
            forget=self.forget,
            recent=self.recent,
            graph=as_graph(self.graph),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class StateSpace(_Learner):
    """For noise and silence: a Kalman smoother estimates the beliefs together with the network.

    There is no `learn_one`: every round of the fit uses the whole series. `choice_` tells which kind of `weights` was
    selected and why, where there was a choice. The posterior of speaker strengths on a graph, or with two
    hypotheses of edges among up to 60 agents, is sampled, unless `sampling` is false or there are too many beliefs: `chains` chains (a
    quarter as many for edges) make up to `draws` draws each, the estimates are posterior means, and `rank` has credible
    intervals. `sketch` is a first answer for very large graphs: strengths by a short search, without intervals and
    forecast skill.

    >>> from headwater import simulate
    >>> beliefs, _ = simulate(agents=4, hypotheses=2, steps=60, silence=0.3)
    >>> StateSpace(rounds=5).fit(beliefs).centrality_.shape
    (4,)
    """

    adaptation: float | None = None
    constraint: Constraint = "simplex"
    ridge: float = 0.0
    weights: Literal["auto", "edges", "strengths"] | None = None
    shrinkage: float | None = None
    rounds: int | None = None
    tolerance: float | None = None
    sampling: bool = True
    sketch: bool = False
    draws: int = 1000
    chains: int = 16
    seed: int = 21
    graph: GraphLike | None = None
    common: Common = None
    log_ratios: bool = False
    progress: ProgressLike = False
    threads: int | None = None

    def fit(self, beliefs: BeliefsLike, y: object = None) -> Self:
        """Learns from a whole series; earlier results are discarded."""
        self._check_numbers()
        given = as_beliefs(beliefs, self.log_ratios)
        with reporting(self.progress) as report:
            model, choice = _headwater.state_space(
                given,
                adaptation=self.adaptation,
                constraint=self.constraint,
                ridge=self.ridge,
                weights=self.weights,
                shrinkage=self.shrinkage,
                rounds=self.rounds,
                tolerance=self.tolerance,
                sampling=(self.draws, self.chains) if self.sampling else None,
                sketch=self.sketch,
                seed=self.seed,
                graph=as_graph(self.graph),
                groups=self._groups(given.agents),
                progress=report,
                threads=self.threads,
            )
        self.choice_ = choice
        return self._learned(model, given)

    def _groups(self, agents: Sequence[str]) -> list[int] | None:
        """The number of each agent's group, whose lagged mean is the common trend; agents without a group form one."""
        if self.common is None:
            return None
        if self.common == "network":
            return [0] * len(agents)
        if not isinstance(self.common, Mapping):
            raise ValueError(f'common is {self.common!r}, but must be None, "network", or the group of each agent by name')
        given = {agent_name(agent): str(group) for agent, group in self.common.items()}
        unnamed = sum(agent not in given for agent in agents)
        if unnamed == len(agents):
            raise ValueError("common names none of the agents; use the same names (case-sensitive)")
        if unnamed:
            tell([f"{unnamed} agent{'s' * (unnamed > 1)} without a group in common: treated as a group of their own"])
        numbers: dict[str | None, int] = {}
        return [numbers.setdefault(given.get(agent), len(numbers)) for agent in agents]


@dataclass(eq=False, repr=False)
class GSL(_Streaming):
    """The paper's learner (graph social learning), stochastic gradient descent. `adaptation`, δ, must be given.

    `tune` chooses `window`, `learning_rate` and `sparsity` by the forecast error on the last fifth of the steps; the
    parameters in use are in `settings_`. `evidence` is a model whose L̄ is taken as known, `initial` one to start from.

    >>> from headwater import simulate
    >>> beliefs, truth = simulate(agents=8, steps=2000)
    >>> learner = GSL(0.05, window=20).fit(beliefs)
    >>> learner.settings_["window"], learner.combination_.shape
    (20, (8, 8))
    """

    adaptation: float | None = None
    _: KW_ONLY
    window: int = 50
    learning_rate: float = 0.1
    batch: int = 1
    sparsity: float = 0.0
    passes: int = 1
    constraint: Constraint = "free"
    tune: bool = False
    graph: GraphLike | None = None
    evidence: ModelLike | None = None
    initial: ModelLike | None = None
    log_ratios: bool = False
    progress: ProgressLike = False
    threads: int | None = None

    def fit(self, beliefs: BeliefsLike, y: object = None) -> Self:
        """Learns from a whole series; earlier results are discarded."""
        self._check_numbers()
        adaptation = self._number()
        given = as_beliefs(beliefs, self.log_ratios)
        with reporting(self.progress) as report:
            model, settings = _headwater.gsl(
                given,
                adaptation,
                window=None if self.tune else self.window,
                learning_rate=None if self.tune else self.learning_rate,
                batch=self.batch,
                sparsity=None if self.tune else self.sparsity,
                passes=self.passes,
                constraint=self.constraint,
                tune=self.tune,
                graph=as_graph(self.graph),
                evidence=compiled(self.evidence),
                initial=compiled(self.initial),
                progress=report,
                threads=self.threads,
            )
        self.settings_: dict[str, Any] = json.loads(settings)
        return self._learned(model, given)

    def _open(self, agents: Sequence[str], hypotheses: Sequence[str]) -> _headwater.GslStream:
        usual = {"passes": 1, "tune": False, "evidence": None, "initial": None}
        for name, value in usual.items():
            if getattr(self, name) != value:
                raise ValueError(f"a stream goes by once and begins with nothing known: {name} is for fit")
        settings = {name: getattr(self, name) for name in ("window", "learning_rate", "batch", "sparsity")}
        stream = _headwater.GslStream(
            agents, hypotheses, self._number(), constraint=self.constraint, graph=as_graph(self.graph), **settings
        )
        self.settings_ = settings
        return stream

    def _number(self) -> float:
        if self.adaptation is None:
            raise ValueError(
                "GSL cannot estimate δ and needs a number for adaptation; the paper uses 0.05 for simulations and 0.0001 for "
                "posts"
            )
        return self.adaptation


def _short(value: object) -> str:
    """A parameter as it is shown: data frames and models by their kind only."""
    return repr(value) if value is None or isinstance(value, bool | int | float | str) else f"<{type(value).__name__}>"

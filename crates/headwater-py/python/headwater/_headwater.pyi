"""The compiled part: conversions and calls into the Rust library. Use :mod:`headwater` instead."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

__version__: str

# Called now and then from the thread that waits: what is being done, how much of it, of how much (0 where not known).
_Progress = Callable[[str, int, int], None]
_Column = NDArray[Any] | list[str]
# Outcome, sentence, p-value of the permutation test.
_Verdict = tuple[
    Literal["supported", "no-evidence", "not-tested"],
    str,
    float | None,
    Literal["graph-test", "speaker-heard", "circular-shifts"] | None,
    bool,
    str | None,  # JSON: the graph test
    list[str],
]

@final
class Beliefs:
    """T steps of N agents, as log-ratios."""

    @staticmethod
    def from_array(
        array: NDArray[np.float64] | NDArray[np.float32],
        log_ratios: bool = False,
        silent: NDArray[np.bool_] | None = None,
        agents: Sequence[str] | None = None,
        hypotheses: Sequence[str] | None = None,
    ) -> Beliefs: ...
    @staticmethod
    def from_arrow(stream: object, log_ratios: bool = False) -> Beliefs: ...
    @staticmethod
    def from_file(path: str, log_ratios: bool = False) -> Beliefs: ...
    @staticmethod
    def from_episodes(names: Sequence[str], parts: Sequence[Beliefs]) -> Beliefs: ...
    @property
    def episodes(self) -> list[str] | None: ...
    @property
    def agents(self) -> list[str]: ...
    @property
    def hypotheses(self) -> list[str]: ...
    @property
    def steps(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    @property
    def warnings(self) -> list[str]: ...
    def columns(self, log_ratios: bool = False) -> dict[str, _Column]: ...
    def array(self, log_ratios: bool = False) -> NDArray[np.float64]: ...

@final
class Graph:
    """Who may listen to whom, by name."""

    @staticmethod
    def from_file(path: str) -> Graph: ...
    @staticmethod
    def from_pairs(sources: Sequence[str], targets: Sequence[str], weights: Sequence[float] | None = None) -> Graph: ...

@final
class Model:
    """A learned or given model."""

    @staticmethod
    def load(path: str) -> Model: ...
    @staticmethod
    def from_bytes(data: bytes) -> Model: ...
    def to_bytes(self) -> bytes: ...
    def save(self, path: str) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def agents(self) -> list[str]: ...
    @property
    def hypotheses(self) -> list[str]: ...
    @property
    def reference(self) -> str: ...
    @property
    def truth(self) -> str | None: ...
    @property
    def agreement(self) -> float | None: ...
    @property
    def adaptation(self) -> float: ...
    @property
    def method(self) -> str: ...
    @property
    def steps(self) -> int | None: ...
    @property
    def sparse(self) -> bool: ...
    def dense(self) -> NDArray[np.float64]:
        """N×N, rows = speakers, columns = listeners, in column order."""
    def csc(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """data, indices, indptr: column = listener."""
    @property
    def evidence(self) -> NDArray[np.float64]: ...
    @property
    def innovation(self) -> NDArray[np.float64] | None: ...
    @property
    def centrality(self) -> NDArray[np.float64]: ...
    @property
    def informativeness(self) -> NDArray[np.float64]: ...
    @property
    def influence(self) -> NDArray[np.float64]: ...
    @property
    def share(self) -> NDArray[np.float64] | None: ...
    @property
    def sign(self) -> NDArray[np.int8] | None: ...
    def likelihoods(self) -> str:
        """JSON: a list with an entry per agent, or null."""
    def warnings(self) -> list[str]: ...
    def diagnostics(self) -> str:
        """JSON: the diagnostics of the model file."""
    def changes(self) -> str:
        """JSON: a list of {"time", "step", "since", "kind", "listeners", "truth"}."""
    def verdict(self) -> _Verdict: ...
    def rank(
        self,
        beliefs: Beliefs | None = None,
        graph: Graph | None = None,
        groups: dict[str, str] | None = None,
        bootstrap: int | None = None,
        null: int | None = None,
        top: int = 3,
        seed: int = 21,
        progress: _Progress | None = None,
        threads: int | None = None,
    ) -> Ranking: ...
    def explain(self, agent: str, what_if: Literal["remove", "neutral"] | None = None, top: int = 10) -> str:
        """JSON, as `headwater explain --format json` prints it."""
    def compare(self, truth: Model, top: int = 3) -> str:
        """JSON, as `headwater compare` prints it."""
    def edges(self) -> dict[str, _Column]:
        """source, target, weight: all weights that are not zero, self-weights included."""
    def page(
        self,
        ranking: Ranking | None = None,
        beliefs: Beliefs | None = None,
        graph: Graph | None = None,
        truth: Model | None = None,
        title: str = "",
    ) -> str:
        """The report page as HTML."""
    def figure(self, name: Literal["ranking", "network", "heat"]) -> str:
        """A figure as SVG."""
    def export(self, path: str, ranking: Ranking | None = None, raw_csv: bool = False) -> list[str]:
        """.gexf, .graphml, .csv, .parquet or .json, as `headwater export` writes it; warnings."""

@final
class Ranking:
    """A ranking with its verdict."""

    @staticmethod
    def from_json(text: str) -> Ranking: ...
    def json(self) -> str:
        """As `headwater rank --format json` prints it."""
    def columns(self) -> dict[str, _Column]:
        """The agents' rows, column by column; columns that were not computed are absent, missing cells are NaN or ""."""
    @property
    def verdict(self) -> _Verdict: ...
    @property
    def given(self) -> bool:
        """Whether the model was given, so that there is nothing to test."""
    @property
    def notes(self) -> list[str]: ...
    @property
    def too_few_steps(self) -> list[str]:
        """What was asked for and is not possible with so few time steps."""

# Learners; all may take long, give the interpreter lock away, and end within a second of Ctrl-C.
# `support` is a graph; `constraint` "simplex" or "free".
def whitened(
    beliefs: Beliefs,
    adaptation: float | None = None,
    constraint: str = "simplex",
    ridge: float = 0.0,
    rounds: int | None = None,
    symbols: bool = True,
    budget: float | None = None,
    graph: Graph | None = None,
    forget: float | None = None,  # with one of these two the network is followed as it changes
    recent: int | None = None,
    progress: _Progress | None = None,
    threads: int | None = None,
) -> Model: ...
def state_space(
    beliefs: Beliefs,
    adaptation: float | None = None,
    constraint: str = "simplex",
    ridge: float = 0.0,
    weights: str | None = None,  # "auto", "edges", "strengths"; None: auto with a graph, edges without
    shrinkage: float | None = None,
    rounds: int | None = None,
    tolerance: float | None = None,
    sampling: tuple[int, int] | None = None,  # draws and chains of the posterior; None: it is not sampled
    sketch: bool = False,
    seed: int = 21,
    graph: Graph | None = None,
    groups: Sequence[int] | None = None,  # the group of each agent, for the common trend (lagged group mean)
    progress: _Progress | None = None,
    threads: int | None = None,
) -> tuple[Model, str | None]: ...  # the model, and why these weights were chosen
def gsl(
    beliefs: Beliefs,
    adaptation: float,
    window: int | None = None,
    learning_rate: float | None = None,
    batch: int | None = None,
    sparsity: float | None = None,
    passes: int | None = None,
    constraint: str = "free",
    tune: bool = False,
    graph: Graph | None = None,
    evidence: Model | None = None,
    initial: Model | None = None,
    progress: _Progress | None = None,
    threads: int | None = None,
) -> tuple[Model, str]: ...  # the model, and the settings in use as JSON

@final
class Tracker:
    """The whitened learner on a stream, with change detection."""

    def __new__(
        cls,
        agents: Sequence[str],
        hypotheses: Sequence[str],
        adaptation: float | None = None,
        constraint: str = "simplex",
        ridge: float = 0.0,
        symbols: bool = True,
        forget: float | None = None,
        recent: int | None = None,
        graph: Graph | None = None,
    ) -> Tracker: ...
    def push(
        self,
        frames: NDArray[np.float64] | NDArray[np.float32],
        log_ratios: bool = False,
        silent: NDArray[np.bool_] | None = None,
        progress: _Progress | None = None,
    ) -> None:
        """Takes T×N×|Θ| frames (or log-ratios)."""
    @property
    def seen(self) -> int: ...
    @property
    def agents(self) -> list[str]: ...
    @property
    def hypotheses(self) -> list[str]: ...
    def changes(self) -> str:
        """JSON: the changes detected so far, as in `Model.changes`."""
    def model(self) -> Model: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Tracker: ...

@final
class GslStream:
    """The paper's learner on a stream."""

    def __new__(
        cls,
        agents: Sequence[str],
        hypotheses: Sequence[str],
        adaptation: float,
        window: int | None = None,
        learning_rate: float | None = None,
        batch: int | None = None,
        sparsity: float | None = None,
        constraint: str = "free",
        graph: Graph | None = None,
    ) -> GslStream: ...
    def push(
        self,
        frames: NDArray[np.float64] | NDArray[np.float32],
        log_ratios: bool = False,
        silent: NDArray[np.bool_] | None = None,
        progress: _Progress | None = None,
    ) -> None: ...
    @property
    def seen(self) -> int: ...
    @property
    def agents(self) -> list[str]: ...
    @property
    def hypotheses(self) -> list[str]: ...
    def changes(self) -> str:
        """JSON: the changes detected so far, as in `Model.changes`."""
    def model(self) -> Model: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> GslStream: ...

def simulate(
    network: str = "er",
    agents: int = 20,
    edge_probability: float = 0.2,
    blocks: int = 4,
    weights: str = "uniform",
    graph: Graph | None = None,
    allow_reducible: bool = False,
    hypotheses: int = 5,
    likelihoods: str = "appendix",
    influential: int | None = None,
    influential_scale: float = 0.5,
    other_scale: float = 0.05,
    truth: int = 0,
    adaptation: float = 0.05,
    steps: int = 1000,
    burn_in: int = 500,
    silence: float = 0.0,
    changes: Sequence[str] = ...,
    seed: int = 21,
    progress: _Progress | None = None,
) -> tuple[Beliefs, Model]: ...
@final
class Posts:
    """Posts in files, or a data frame of them in memory."""

    @staticmethod
    def from_files(paths: Sequence[str]) -> Posts: ...
    @staticmethod
    def from_arrow(stream: object) -> Posts:
        """Any data frame with __arrow_c_stream__."""

@final
class PostOptions:
    """Options of reading, selection and scoring."""

    def __new__(
        cls,
        *,
        topic: Sequence[str] = ...,
        since: str | None = None,
        until: str | None = None,
        bin: str = "day",
        timezone: str = "UTC",
        reposts: str = "keep",
        lang: Sequence[str] = ...,
        any_language: bool = False,
        min_posts: int = 1,
        users: str | Sequence[str] | None = None,  # a file, or names
        hypotheses: int = 2,
        scorer: str = "builtin",
        model: str | None = None,
        carry_forward: bool = False,
        preset: str | None = None,
        columns: Sequence[tuple[str, str]] = ...,  # field, column
        max_bad: str | None = None,
        date_order: str | None = None,  # "mdy", "dmy"
        score_range: str | None = None,  # "-1..1"
    ) -> PostOptions: ...

@final
class Discovery:
    """The results of a run."""

    @property
    def folder(self) -> PathLike[str] | str | None: ...
    @property
    def model(self) -> Model: ...
    @property
    def ranking(self) -> Ranking: ...
    @property
    def run(self) -> str:
        """JSON: the record of the run."""
    def page(self) -> str:
        """The report page as HTML."""
    def edges(self) -> dict[str, _Column]:
        """source, target, weight; with the null test p_value and significant; from a sampled posterior low, high, probability."""
    def beliefs(self) -> dict[str, _Column]:
        """time, agent, a column per hypothesis, posts."""

def beliefs_from_posts(
    posts: Posts, options: PostOptions, progress: _Progress | None = None
) -> tuple[dict[str, _Column], list[str]]:
    """Columns as those of `Discovery.beliefs`, and warnings."""

def discover(
    posts: Posts,
    options: PostOptions,
    out: str | None = None,
    graph: Graph | str | None = None,  # a file, or a graph
    bootstrap: int = 200,
    null: int | None = None,
    top: int = 3,
    seed: int = 21,
    force: bool = False,
    pseudonymise: str | None = None,
    adaptation: float | None = None,
    constraint: str = "simplex",
    ridge: float = 0.0,
    weights: str | None = None,
    shrinkage: float | None = None,
    rounds: int | None = None,
    sampling: tuple[int, int] | None = None,
    sketch: bool = False,
    common: dict[str, str] | str | None = None,
    groups: dict[str, str] | None = None,
    raw_csv: bool = False,
    progress: _Progress | None = None,
    threads: int | None = None,
) -> tuple[Discovery, list[str]]:
    """The results of the pipeline, and warnings. Nothing is written unless `out` is given."""

def score(
    texts: Sequence[str],
    scorer: Literal["builtin", "roberta"] = "builtin",
    model: str | None = None,
    progress: _Progress | None = None,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """n×3: negative, neutral, positive."""

def write_text(path: str, text: str) -> None: ...
def run(arguments: Sequence[str]) -> int:
    """Runs the command line (`headwater` is the first argument) and returns the exit code."""

"""Beliefs: from arrays, long data frames, files, frames of a stream and simulations, to arrays T×N×|Θ| with NaN for silence
and data frames with the columns time, agent and one per hypothesis."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _headwater
from .errors import UnknownName, tell, whole
from .frames import ArrowStream, Frame, is_frame, make_frame, stream_of
from .graphs import GraphLike, agent_name, as_graph
from .progress import ProgressLike, reporting

if TYPE_CHECKING:
    from .model import Model

BeliefsLike: TypeAlias = "ArrayLike | os.PathLike[str] | ArrowStream | _headwater.Beliefs"
FrameLike: TypeAlias = "ArrayLike | Mapping[str, ArrayLike | None]"
Cells: TypeAlias = "NDArray[np.float64] | NDArray[np.float32]"
Silent: TypeAlias = "NDArray[np.bool_] | None"


def as_beliefs(beliefs: BeliefsLike, log_ratios: bool = False) -> _headwater.Beliefs:
    """Beliefs for a learner.

    A dictionary of beliefs by name, or a list of arrays T×N×|Θ|, holds the episodes of one network: time starts anew in each, and
    nothing passes from one to the next. In a data frame a column `episode` says the same.

    >>> import numpy as np
    >>> as_beliefs({"tax": np.full((3, 4, 2), 0.5), "war": np.full((2, 4, 2), 0.5)}).episodes
    ['tax', 'war']
    >>> as_beliefs(np.full((30, 4, 2), 0.5)).agents
    ['0', '1', '2', '3']
    """
    if isinstance(beliefs, _headwater.Beliefs):
        return beliefs
    if isinstance(beliefs, str | os.PathLike):
        return _headwater.Beliefs.from_file(os.fspath(beliefs), log_ratios)
    episodes = _episodes(beliefs)
    if episodes is not None:
        parts = [as_beliefs(cast("BeliefsLike", part), log_ratios) for part in episodes.values()]
        return _headwater.Beliefs.from_episodes(list(episodes), parts)
    if is_frame(beliefs):
        return _headwater.Beliefs.from_arrow(stream_of(beliefs), log_ratios)
    array, silent = cells(beliefs)
    return _headwater.Beliefs.from_array(array, log_ratios, silent)


def _episodes(beliefs: object) -> dict[str, object] | None:
    """Beliefs of several episodes by name; None where there is one. A list of matrices is one episode, frame by frame."""
    # scipy's sparse arrays of one kind are dictionaries.
    if isinstance(beliefs, dict) and not hasattr(beliefs, "tocsc"):
        return {str(name): part for name, part in beliefs.items()}
    if isinstance(beliefs, list | tuple) and beliefs and all(np.ndim(part) == 3 for part in beliefs):
        return {str(number): part for number, part in enumerate(beliefs)}
    return None


def cells(values: object) -> tuple[Cells, Silent]:
    """Numbers as the compiled part takes them, copied only where their type makes it necessary, and which cells a mask
    hides."""
    if hasattr(values, "tocsc"):
        raise TypeError("beliefs must be a dense array T×N×|Θ| with NaN for silence, not a sparse one: use .toarray()")
    array = np.asarray(values.data if isinstance(values, np.ma.MaskedArray) else values)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: beliefs must be real numbers, not {array.dtype}")
    if array.dtype.kind not in "fiubO":
        raise ValueError(f"beliefs must be numbers, not {array.dtype}")
    # Single precision is kept: the learner decides by it what can be exact.
    few = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    numbers = np.require(array, np.float32 if few else np.float64, "A")
    # A wrong shape is reported for the numbers, not for the mask.
    fitting = array.ndim in (2, 3) and array.size > 0
    return numbers, _hidden(np.ma.getmask(values)) if fitting and isinstance(values, np.ma.MaskedArray) else None


def _hidden(mask: Any) -> Silent:
    """The agents whose beliefs are masked; a belief is masked as a whole or not at all."""
    if mask is np.ma.nomask or mask.ndim < 3:
        return None if mask is np.ma.nomask else cast("NDArray[np.bool_]", mask)
    silent = mask.all(axis=-1)
    halves = np.argwhere(mask.any(axis=-1) != silent)
    if len(halves):
        step, agent = halves[0]
        raise ValueError(
            f"step {step}, agent {agent}: some hypotheses are masked and others are not; mask all of them for silence"
        )
    return cast("NDArray[np.bool_]", silent)


def stacked(
    frames: Iterable[FrameLike], agents: Sequence[str] | None, log_ratios: bool, width: int | None = None
) -> tuple[Cells, Silent, list[str] | None]:
    """Frames of a stream, one after the other, as T×N×|Θ|, and the names of the agents where the frames name them."""
    given = list(frames)
    if given and all(isinstance(frame, Mapping) for frame in given):
        named = [
            {agent_name(name): value for name, value in cast("Mapping[str, Any]", frame).items()} for frame in given
        ]
        names = list(agents) if agents is not None else list(dict.fromkeys(name for frame in named for name in frame))
        return _by_name(named, names, log_ratios, width), None, names
    stack: Any = np.ma.stack if any(isinstance(frame, np.ma.MaskedArray) for frame in given) else np.stack
    array, silent = cells(stack([frame if isinstance(frame, np.ndarray) else np.asarray(frame) for frame in given]))
    wanted = (2, 3) if log_ratios else (3,)
    if array.ndim not in wanted:
        shapes = "N×H or N log-ratios" if log_ratios else "N×|Θ| probabilities"
        raise ValueError(f"a frame has shape {array.shape[1:]}, but must be {shapes}")
    return array, silent, None


def _by_name(
    frames: Sequence[Mapping[str, Any]], names: Sequence[str], log_ratios: bool, width: int | None
) -> NDArray[np.float64]:
    places = {name: place for place, name in enumerate(names)}
    rows = [
        (step, _place(name, places), _belief(value, log_ratios))
        for step, frame in enumerate(frames)
        for name, value in frame.items()
        if value is not None
    ]
    if width is None:
        width = max((len(belief) for _, _, belief in rows), default=0)
    if width == 0:
        raise ValueError("all agents are silent in the first frames, so the number of hypotheses is not known")
    array = np.full((len(frames), len(names), width), np.nan)
    for step, place, belief in rows:
        # A single NaN is silence, whatever the number of hypotheses.
        if len(belief) == width:
            array[step, place] = belief
        elif not np.isnan(belief).all():
            raise ValueError(f"agent {json.dumps(names[place])} has {len(belief)} numbers where others have {width}")
    return array


def _belief(value: Any, log_ratios: bool) -> NDArray[np.float64]:
    belief = np.asarray(value, dtype=np.float64)
    if belief.ndim == 0:
        # The probability of the reference; there are two hypotheses.
        return belief.reshape(1) if log_ratios else np.array([belief, 1.0 - belief])
    return belief


def _place(name: str, places: Mapping[str, int]) -> int:
    if name not in places:
        known = list(places)[:5] + (["…"] if len(places) > 5 else [])
        raise UnknownName(f"there is no agent {json.dumps(name)} here; known: {', '.join(known)}")
    return places[name]


def aligned(beliefs: _headwater.Beliefs, agents: Sequence[str], hypotheses: Sequence[str]) -> NDArray[np.float64]:
    """Log-ratios T×N×H of these agents and hypotheses, in this order; NaN where an agent says nothing."""
    array = beliefs.array(log_ratios=True)
    if beliefs.hypotheses != list(hypotheses):
        places = {name: place for place, name in enumerate(beliefs.hypotheses)}
        strangers = set(places).symmetric_difference(hypotheses)
        if strangers:
            raise UnknownName(
                f"the hypotheses are {', '.join(beliefs.hypotheses)}, but those of this stream are {', '.join(hypotheses)}"
            )
        # log ψ(θ_0)/ψ(θ_j) for all j, seen from another reference.
        whole = np.concatenate([np.zeros_like(array[..., :1]), array], axis=2)[..., [places[name] for name in hypotheses]]
        whole[np.isnan(array).any(axis=2)] = np.nan
        array = np.ascontiguousarray(whole[..., 1:] - whole[..., :1])
    if beliefs.agents == list(agents):
        return array
    places = {name: place for place, name in enumerate(agents)}
    wide = np.full((array.shape[0], len(places), array.shape[2]), np.nan)
    wide[:, [_place(name, places) for name in beliefs.agents]] = array
    return wide


def read_beliefs(path: str | os.PathLike[str], log_ratios: bool = False) -> Frame:
    """Reads beliefs (.csv, .parquet or .npy) as a data frame: time (in UTC), agent, a column per hypothesis, posts.

    With `log_ratios` the numbers in the file are log-ratios, and so are those of the data frame.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/beliefs.npy", np.full((3, 2, 2), 0.5))
    ...     len(read_beliefs(f"{folder}/beliefs.npy"))
    6
    """
    beliefs = _headwater.Beliefs.from_file(os.fspath(path), log_ratios)
    tell(beliefs.warnings)
    return make_frame(beliefs.columns(log_ratios))


def simulate(
    *,
    network: Literal["er", "star", "preferential", "blocks"] = "er",
    agents: int = 20,
    edge_probability: float = 0.2,
    blocks: int = 4,
    weights: Literal["uniform", "metropolis", "random"] = "uniform",
    graph: GraphLike | None = None,
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
    changes: Sequence[str] = (),
    seed: int = 21,
    log_ratios: bool = False,
    progress: ProgressLike = False,
) -> tuple[NDArray[np.float64], Model]:
    """Simulates a network: the beliefs of its agents, T×N×|Θ| with NaN for silence, and the true model.

    The options are those of ``headwater simulate``: `likelihoods` is "appendix", "released" or "gaussian[:DIM]", the
    first `influential` agents are the well-informed ones, `changes` are "topology:EVERY:PROBABILITY",
    "state:STEP[:INDEX]" and "likelihoods:STEP". With `log_ratios` the array is T×N×H.

    >>> beliefs, truth = simulate(agents=6, hypotheses=3, steps=50)
    >>> beliefs.shape, truth.hypotheses[0] == truth.truth
    ((50, 6, 3), True)
    """
    whole(agents=agents, blocks=blocks, hypotheses=hypotheses, influential=influential, truth=truth, steps=steps)
    whole(burn_in=burn_in, seed=seed)
    from .model import Model

    with reporting(progress) as report:
        said, model = _headwater.simulate(
            network=network,
            agents=agents,
            edge_probability=edge_probability,
            blocks=blocks,
            weights=weights,
            graph=as_graph(graph),
            allow_reducible=allow_reducible,
            hypotheses=hypotheses,
            likelihoods=likelihoods,
            influential=influential,
            influential_scale=influential_scale,
            other_scale=other_scale,
            truth=truth,
            adaptation=adaptation,
            steps=steps,
            burn_in=burn_in,
            silence=silence,
            changes=changes,
            seed=seed,
            progress=report,
        )
    return said.array(log_ratios), Model(model)

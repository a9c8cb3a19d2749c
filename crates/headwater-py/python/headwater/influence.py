"""Ranking with intervals and p-values, explanations, comparison with the truth, and the report page of a model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, cast, overload

from . import _headwater, display
from .beliefs import BeliefsLike, as_beliefs
from .display import Verdict
from .errors import NoEvidence, NotTested, tell, whole
from .frames import Column, Frame, kind_of, make_frame
from .graphs import GraphLike, agent_name, as_graph
from .model import ModelLike, as_model, compiled, compiled_ranking
from .progress import ProgressLike, reporting

# Resamples and circular shifts where no number is given.
USUAL_DRAWS = 200
# k of top_k_probability by default.
_TOP = 3

Draws: TypeAlias = "int | bool | None"


class RankOptions(TypedDict, total=False):
    """Keyword arguments of `rank`."""

    graph: GraphLike | None
    groups: Mapping[str, object] | None
    bootstrap: Draws
    null: Draws
    top: int | None
    seed: int
    log_ratios: bool | None
    progress: ProgressLike
    threads: int | None


class Ranking:
    """A ranking with its verdict, edges and notes."""

    def __init__(self, ranked: _headwater.Ranking, kind: str | None = None, top: int | None = None) -> None:
        self._compiled = ranked
        self._kind = kind
        self._top = top

    @cached_property
    def _columns(self) -> dict[str, Column]:
        return {name: column[: self._top] for name, column in self._compiled.columns().items()}

    @cached_property
    def json(self) -> dict[str, Any]:
        """The whole ranking, as ``headwater rank --format json`` prints it."""
        return cast("dict[str, Any]", json.loads(self._compiled.json()))

    @cached_property
    def frame(self) -> Frame:
        """A row per agent, the most influential first."""
        said = {name: self.json[name] for name in ("truth", "agreement", "reference", "divergence")}
        verdict = {"verdict": self.text, "outcome": self.verdict.outcome, "supported": self.supported}
        return make_frame(self._columns, self._kind, {**verdict, **said, "notes": self.notes})

    @cached_property
    def edges(self) -> Frame | None:
        """Edges with p-values, the smallest first; None without `null`. With 90 % intervals `low` and `high`, and the
        `probability` that there is such an edge, where the posterior was sampled."""
        return edges_frame(self.json.get("edges"), self._kind)

    @property
    def verdict(self) -> Verdict:
        """Whether the data support an answer. Read it first."""
        return Verdict.from_parts(self._compiled.verdict)

    @property
    def supported(self) -> bool:
        """Whether the data support an answer."""
        return self.verdict.supported

    @property
    def text(self) -> str:
        """The verdict as a sentence."""
        return self.verdict.text

    @property
    def notes(self) -> list[str]:
        """Notes to be read with the numbers."""
        return self._compiled.notes

    def __repr__(self) -> str:
        first = ", ".join(list(self._columns["agent"][:_TOP]))
        return f"<headwater.Ranking {self.verdict.outcome}: {first}, …>"

    def _repr_html_(self) -> str:
        return display.page(self.verdict, display.agents_table(self._columns), *map(display.note, self.notes))


def edges_frame(edges: list[dict[str, Any]] | None, kind: str | None) -> Frame | None:
    """Rows of edges as a data frame."""
    if edges is None:
        return None
    columns: dict[str, list[Any]] = {
        name: [edge[name] for edge in edges] for name in ("source", "target", "weight", "p_value", "significant")
    }
    for name in ("low", "high", "probability"):
        if any(name in edge for edge in edges):
            columns[name] = [edge.get(name, float("nan")) for edge in edges]
    return make_frame(columns, kind)


def ranking(
    model: ModelLike,
    beliefs: BeliefsLike | None = None,
    *,
    graph: GraphLike | None = None,
    groups: Mapping[str, object] | None = None,
    bootstrap: Draws = None,
    null: Draws = None,
    top: int | None = None,
    seed: int = 21,
    log_ratios: bool | None = None,
    progress: ProgressLike = False,
    threads: int | None = None,
) -> Ranking:
    """Like `rank`, but returns the verdict, the edges and the notes together with the data frame.

    >>> from headwater import simulate
    >>> found = ranking(simulate(agents=6, steps=10)[1])
    >>> found.verdict.outcome, found.text
    ('not-tested', 'Not tested: this model was given, not learned.')
    """
    whole(bootstrap=bootstrap, null=null, top=top, seed=seed, threads=threads)
    said = beliefs_of(model, beliefs, log_ratios)
    if said is None and (bootstrap or null):
        raise ValueError("bootstrap and null refit the model and need the beliefs that it was learned from")
    with reporting(progress) as report:
        ranked = as_model(model)._compiled.rank(
            beliefs=said,
            graph=as_graph(graph),
            groups=groups_of(groups),
            bootstrap=_draws(bootstrap),
            null=_draws(null),
            top=_TOP if top is None else top,
            seed=seed,
            progress=report,
            threads=threads,
        )
    found = Ranking(ranked, kind_of(beliefs), top)
    tell(ranked.too_few_steps)
    if not ranked.given:
        warn_of(found.verdict, possible=not ranked.too_few_steps)
    return found


def groups_of(groups: Mapping[str, object] | None) -> dict[str, str] | None:
    """The group of each agent, by name."""
    return None if groups is None else {agent_name(agent): str(group) for agent, group in groups.items()}


def warn_of(verdict: Verdict, *, possible: bool = True) -> None:
    """Warns where the data do not support an answer, or nothing was tested."""
    if verdict.outcome == "no-evidence":
        tell([verdict.text], NoEvidence)
    elif verdict.outcome == "not-tested":
        hint = "null=True runs the permutation test; a graph with the beliefs, the graph test" if possible else "give beliefs over more time steps"
        tell([f"{verdict.text}\nhint: {hint}"], NotTested)


def rank(
    model: ModelLike,
    beliefs: BeliefsLike | None = None,
    *,
    graph: GraphLike | None = None,
    groups: Mapping[str, object] | None = None,
    bootstrap: Draws = None,
    null: Draws = None,
    top: int | None = None,
    seed: int = 21,
    log_ratios: bool | None = None,
    progress: ProgressLike = False,
    threads: int | None = None,
) -> Frame:
    """Ranks the agents by influence: a data frame with a row per agent, the most influential first.

    `beliefs`, from which the model was learned, add numbers of posts and silence; with them `bootstrap` adds 90 %
    intervals and `null` p-values (True: 200 draws each). `graph` adds followers and PageRank, and with `beliefs` the graph
    test, which then decides the verdict; `groups` are the groups of the agents for it (agent: group), otherwise communities
    of the graph. `top` limits the rows and is the k of `top_k_probability` (3 by default). Warns `NoEvidence` where the
    data do not support an answer, and `NotTested` where no test was run; pandas' ``attrs`` hold the verdict.

    >>> from headwater import Whitened, simulate
    >>> beliefs, _ = simulate(agents=6, steps=200)
    >>> frame = rank(Whitened().fit(beliefs), beliefs, top=3)
    >>> list(frame["rank"])
    [1, 2, 3]
    """
    found = ranking(
        model,
        beliefs,
        graph=graph,
        groups=groups,
        bootstrap=bootstrap,
        null=null,
        top=top,
        seed=seed,
        log_ratios=log_ratios,
        progress=progress,
        threads=threads,
    )
    return found.frame


def _draws(draws: Draws) -> int | None:
    return USUAL_DRAWS if draws is True else draws or None


def beliefs_of(model: ModelLike, beliefs: BeliefsLike | None, log_ratios: bool | None) -> _headwater.Beliefs | None:
    """The beliefs of a model; an estimator determines whether they are log-ratios."""
    if beliefs is None:
        return None
    return as_beliefs(beliefs, bool(getattr(model, "log_ratios", False)) if log_ratios is None else log_ratios)


def explain(
    model: ModelLike, agent: str | int, what_if: Literal["remove", "neutral"] | None = None, top: int = 10
) -> dict[str, Any]:
    """Explains the rank of an agent: `sources` of the expected belief with the strongest paths, the agents influenced
    (`shapes`), recovered `likelihoods`, and with `what_if` the effect of removing the agent or of keeping them neutral.

    >>> from headwater import simulate
    >>> told = explain(simulate(agents=6, steps=10)[1], "0")
    >>> told["agent"], round(sum(source["attribution"] for source in told["sources"]), 12)
    ('0', 1.0)
    """
    whole(top=top)
    return cast("dict[str, Any]", json.loads(as_model(model)._compiled.explain(agent_name(agent), what_if, top)))


def what_if(model: ModelLike, agent: str | int, kind: Literal["remove", "neutral"] = "remove") -> dict[str, Any]:
    """What the others would believe if an agent were removed ("remove") or stayed neutral between the hypotheses
    ("neutral").

    >>> from headwater import simulate
    >>> sorted(what_if(simulate(agents=6, steps=10)[1], 0))[:3]
    ['agents', 'belief_after', 'belief_before']
    """
    return cast("dict[str, Any]", explain(model, agent, kind)["what_if"])


def compare(model: ModelLike, truth: ModelLike, top: int = _TOP) -> dict[str, Any]:
    """Compares a model with the truth, agents matched by name: errors of weights, evidence, shares and δ, and the share
    of the true `top` agents that was found.

    >>> from headwater import Whitened, simulate
    >>> beliefs, truth = simulate(steps=100)
    >>> compare(Whitened().fit(beliefs), truth)["top_k_hit"]
    1.0
    """
    whole(top=top)
    return cast("dict[str, Any]", json.loads(as_model(model)._compiled.compare(as_model(truth)._compiled, top)))


class Page:
    """The report page; a notebook shows it, `save` writes it."""

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the file atomically and returns its path."""
        path = Path(path)
        _headwater.write_text(str(path), self.html)
        return path

    def __repr__(self) -> str:
        return f"<headwater.Page of {len(self.html)} characters>"

    def _repr_html_(self) -> str:
        return display.inset(self.html)


@overload
def report(
    model: ModelLike,
    path: None = None,
    *,
    ranking: Ranking | str | os.PathLike[str] | None = None,
    beliefs: BeliefsLike | None = None,
    graph: GraphLike | None = None,
    truth: ModelLike | None = None,
    title: str = "",
    log_ratios: bool | None = None,
) -> Page: ...
@overload
def report(
    model: ModelLike,
    path: str | os.PathLike[str],
    *,
    ranking: Ranking | str | os.PathLike[str] | None = None,
    beliefs: BeliefsLike | None = None,
    graph: GraphLike | None = None,
    truth: ModelLike | None = None,
    title: str = "",
    log_ratios: bool | None = None,
) -> Path: ...
def report(
    model: ModelLike,
    path: str | os.PathLike[str] | None = None,
    *,
    ranking: Ranking | str | os.PathLike[str] | None = None,
    beliefs: BeliefsLike | None = None,
    graph: GraphLike | None = None,
    truth: ModelLike | None = None,
    title: str = "",
    log_ratios: bool | None = None,
) -> Page | Path:
    """The report page of a model: verdict, ranking, network, a card per agent, opinions over time.

    With a `path` the page is written there, and the path returned; without one a notebook shows it. It shows the given
    `ranking` (a `Ranking`, or the ranking.json of ``discover``) and never resamples.

    >>> from headwater import simulate
    >>> report(simulate(agents=4, steps=10)[1]).html.startswith("<!doctype html>")
    True
    """
    if isinstance(ranking, str | os.PathLike):
        ranking = Ranking(_headwater.Ranking.from_json(Path(ranking).read_text(encoding="utf-8")))
    page = Page(
        as_model(model)._compiled.page(
            ranking=compiled_ranking(ranking),
            beliefs=beliefs_of(model, beliefs, log_ratios),
            graph=as_graph(graph),
            truth=compiled(truth),
            title=title,
        )
    )
    return page if path is None else page.save(path)

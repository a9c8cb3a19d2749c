"""Who may hear whom. In: a path, a data frame, pairs, or a networkx graph. Out: the compiled part's graph."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from . import _headwater
from .frames import ArrowStream, is_frame, names_of, values_of

GraphLike: TypeAlias = "str | os.PathLike[str] | ArrowStream | Iterable[Any] | _headwater.Graph"
Edges: TypeAlias = tuple[list[str], list[str], "list[float] | None"]


def as_graph(graph: GraphLike | None) -> _headwater.Graph | None:
    """What learners take as their support.

    >>> as_graph([("ann", "bob"), ("bob", "ann", 0.5)])
    Traceback (most recent call last):
    ValueError: some edges have a weight and others have none; give all of them one, or none
    """
    if graph is None or isinstance(graph, _headwater.Graph):
        return graph
    if isinstance(graph, str | os.PathLike):
        return _headwater.Graph.from_file(os.fspath(graph))
    return _headwater.Graph.from_pairs(*_edges(graph))


def agent_name(name: object) -> str:
    """Agents have names; numbers, as arrays and networkx have them, are taken as names."""
    if isinstance(name, str):
        return name
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return str(name)
    raise TypeError(f"{name!r} is no name of an agent; wanted a string or a whole number")


def _edges(graph: Any) -> Edges:
    """Sources, targets, and weights where all edges have one."""
    if is_frame(graph):
        met = names_of(graph)
        if not {"source", "target"} <= set(met):
            raise ValueError(f"a graph has the columns source,target[,weight]; met {','.join(met)}")
        rows: Iterable[Sequence[Any]] = zip(
            *(values_of(graph[name]) for name in ("source", "target", "weight") if name in met)
        )
    elif hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        directed = graph if graph.is_directed() else graph.to_directed()
        rows = (edge if edge[2] is not None else edge[:2] for edge in directed.edges(data="weight"))
    else:
        rows = graph
    sources: list[str] = []
    targets: list[str] = []
    weights: list[float] = []
    for row in rows:
        if isinstance(row, str) or not 2 <= len(row) <= 3:
            raise ValueError(f"met the edge {row!r}; wanted (source, target) or (source, target, weight)")
        sources.append(agent_name(row[0]))
        targets.append(agent_name(row[1]))
        weights.extend(float(weight) for weight in row[2:])
    if weights and len(weights) < len(sources):
        raise ValueError("some edges have a weight and others have none; give all of them one, or none")
    return sources, targets, weights or None

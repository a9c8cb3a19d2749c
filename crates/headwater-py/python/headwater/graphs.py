"""Graphs of who may listen to whom: from a path, a data frame, pairs, or a networkx graph."""

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
    """The graph for a learner.

    >>> as_graph([("ann", "bob"), ("bob", "ann", 0.5)])
    Traceback (most recent call last):
    ValueError: some edges have a weight and others do not; give a weight to all edges or to none
    """
    if graph is None or isinstance(graph, _headwater.Graph):
        return graph
    if isinstance(graph, str | os.PathLike):
        return _headwater.Graph.from_file(os.fspath(graph))
    return _headwater.Graph.from_pairs(*_edges(graph))


def agent_name(name: object) -> str:
    """The name of an agent; integers, as in arrays and networkx, are converted."""
    if isinstance(name, str):
        return name
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return str(name)
    raise TypeError(f"{name!r} is not the name of an agent, which must be a string or an integer")


def _edges(graph: Any) -> Edges:
    """Sources, targets, and weights where all edges have one."""
    if is_frame(graph):
        met = names_of(graph)
        if not {"source", "target"} <= set(met):
            raise ValueError(f"a graph needs the columns source,target[,weight], not {','.join(met)}")
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
            raise ValueError(f"the edge {row!r} must be (source, target) or (source, target, weight)")
        sources.append(agent_name(row[0]))
        targets.append(agent_name(row[1]))
        weights.extend(float(weight) for weight in row[2:])
    if weights and len(weights) < len(sources):
        raise ValueError("some edges have a weight and others do not; give a weight to all edges or to none")
    return sources, targets, weights or None

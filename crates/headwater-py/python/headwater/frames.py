"""Data frames: pandas, polars, pyarrow, or any other with the Arrow PyCapsule interface. Results have the same kind, or that
of the first of the three that is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, cast

from numpy.typing import NDArray

# Which kind is known at run time only.
Frame: TypeAlias = Any
# What a data frame is made of.
Column: TypeAlias = "NDArray[Any] | list[str]"

KINDS = ("pandas", "polars", "pyarrow")


class ArrowStream(Protocol):
    """An object that exports its columns as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def kind_of(value: object) -> str | None:
    """The library of a data frame or a column, where it is a supported one.

    >>> kind_of([1, 2]) is None
    True
    """
    roots = (base.__module__.partition(".")[0] for base in type(value).__mro__)
    return next((root for root in roots if root in KINDS), None)


def is_frame(value: object) -> bool:
    """Whether something is a data frame, even one without Arrow export."""
    # A single column can be handed over as well, and is none.
    one_column = getattr(value, "ndim", 2) == 1 or type(value).__name__ in ("Series", "ChunkedArray")
    return not one_column and (hasattr(value, "__arrow_c_stream__") or kind_of(value) is not None)


def stream_of(frame: object) -> ArrowStream:
    """The Arrow stream of a data frame."""
    kind = kind_of(frame)
    if kind == "pandas":
        if importlib.util.find_spec("pyarrow") is None:
            raise ImportError(
                "a pandas data frame is handed over by pyarrow, which is not installed: pip install pyarrow"
            )
        frame = _without_index(frame)
    if not hasattr(frame, "__arrow_c_stream__"):
        cure = {"pandas": "pandas 2.2 or later can: pip install -U pandas", "polars": "collect() it first"}
        raise TypeError(
            f"a {type(frame).__module__}.{type(frame).__name__} cannot be exported as an Arrow stream; "
            f"{cure.get(kind or '', 'give a data frame')}"
        )
    return cast(ArrowStream, frame)


def _without_index(frame: Any) -> Any:
    """A named index becomes columns; an unnamed one is dropped."""
    named = any(name is not None for name in frame.index.names)
    return frame.reset_index(drop=not named)


def make_frame(columns: Mapping[str, Column], kind: str | None = None, notes: Mapping[str, Any] | None = None) -> Frame:
    """A data frame of these columns. `notes` are attached where the kind supports it (pandas' attrs)."""
    kind = kind or next((name for name in KINDS if importlib.util.find_spec(name) is not None), None)
    if kind is None:
        raise ImportError("the result is a data frame: pip install pandas, polars or pyarrow")
    library = importlib.import_module(kind)
    if kind == "pyarrow":
        return library.table(dict(columns))
    frame = library.DataFrame(dict(columns))
    if kind == "pandas":
        frame.attrs.update(notes or {})
    return frame


def names_of(frame: Any) -> list[str]:
    """The names of a data frame's columns."""
    return [str(name) for name in (frame.column_names if hasattr(frame, "column_names") else frame.columns)]


def values_of(column: Any) -> list[Any]:
    """The values of a column or of another sequence as a list."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return cast("list[Any]", getattr(column, method)())
    return list(column)

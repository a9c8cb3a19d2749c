"""Progress reports: ``progress=True`` for a bar, or a function that the library calls."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

Report: TypeAlias = Callable[[str, int, int], None]
ProgressLike: TypeAlias = bool | Report


@contextmanager
def reporting(progress: ProgressLike) -> Iterator[Report | None]:
    """The function for the library; the bar is closed at the end in any case.

    >>> with reporting(False) as report:
    ...     print(report)
    None
    """
    if progress is False:
        yield None
    elif progress is True:
        bars = _Bars()
        try:
            yield bars
        finally:
            bars.close()
    elif callable(progress):
        yield progress
    else:
        raise TypeError(f"progress is {progress!r}, but must be True, False or a function of what, done and total")


class _Bars:
    """A tqdm bar per kind of work, one after the other."""

    def __init__(self) -> None:
        try:
            self._open = importlib.import_module("tqdm.auto").tqdm
        except ImportError as error:
            raise ImportError("progress=True shows tqdm's bar, which is not installed: pip install tqdm") from error
        self._what: str | None = None
        self._bar: Any = None

    def __call__(self, what: str, done: int, total: int) -> None:
        if what != self._what:
            self.close()
            self._what, self._bar = what, self._open(desc=what, total=total or None)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

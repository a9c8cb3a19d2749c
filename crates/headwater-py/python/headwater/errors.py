"""Exceptions and warnings.

The library's own errors are built-in exceptions, with hints that name keyword arguments: ``ValueError`` (the data or an
option cannot be used), ``KeyError`` (a name that is not there), ``RuntimeError`` (something that cannot be computed)
and ``OSError`` (a file). This module defines the others."""

from __future__ import annotations

import numbers
import sys
import warnings
from collections.abc import Iterable


class UnknownName(KeyError):
    """An unknown agent or hypothesis.

    >>> str(UnknownName("there is no agent here"))  # a KeyError would add quotes
    'there is no agent here'
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NotFitted(ValueError, AttributeError):
    """The estimator is not fitted, or has seen too few steps."""


class HeadwaterWarning(UserWarning):
    """A warning about the data or a fit."""


class NoEvidence(HeadwaterWarning):
    """The data do not support an answer; the ranking may be due to chance."""


class NotTested(HeadwaterWarning):
    """No permutation test was run; whether the data support an answer is not known."""


def tell(texts: Iterable[str], category: type[Warning] = HeadwaterWarning) -> None:
    """Warns of each text once, at the calling line outside this package."""
    level = 1
    while sys._getframe(level).f_globals.get("__package__") == __package__ and sys._getframe(level).f_back is not None:
        level += 1
    for text in dict.fromkeys(texts):
        warnings.warn(text, category, stacklevel=level + 1)


def whole(**given: object) -> None:
    """Refuses arguments that are not non-negative integers, by name; None is accepted.

    >>> whole(rounds=-1)
    Traceback (most recent call last):
    ValueError: rounds is -1, but must be a non-negative integer
    """
    for name, value in given.items():
        if value is not None and not (isinstance(value, numbers.Integral) and int(value) >= 0):
            raise ValueError(f"{name} is {value!r}, but must be a non-negative integer")


def real(**given: object) -> None:
    """Refuses arguments that are not numbers, by name; None is accepted."""
    for name, value in given.items():
        if value is not None and not isinstance(value, numbers.Real):
            raise ValueError(f"{name} is {value!r}, but must be a number")

"""What can go wrong, and what deserves a warning. In: sentences of the library. Out: exceptions and warnings.

The library's own errors are built-in exceptions, with hints that name keyword arguments: ``ValueError`` (the data or an
option cannot be used), ``KeyError`` (a name that is not there), ``RuntimeError`` (something that cannot be computed)
and ``OSError`` (a file). Here are those that needed a name."""

from __future__ import annotations

import numbers
import sys
import warnings
from collections.abc import Iterable


class UnknownName(KeyError):
    """A name of an agent or a hypothesis that is not there.

    >>> str(UnknownName("there is no agent here"))  # a KeyError would add quotes
    'there is no agent here'
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NotFitted(ValueError, AttributeError):
    """Something was asked of an estimator that has not learned, or not seen enough."""


class HeadwaterWarning(UserWarning):
    """What a reader must know of the data or of a fit."""


class NoEvidence(HeadwaterWarning):
    """The data do not support an answer: what follows is a list of numbers, not a finding."""


class NotTested(HeadwaterWarning):
    """No permutation test was run, so that nothing shows whether the data support an answer."""


def tell(texts: Iterable[str], category: type[Warning] = HeadwaterWarning) -> None:
    """Warns of each text once, naming the line outside this package that led here."""
    level = 1
    while sys._getframe(level).f_globals.get("__package__") == __package__ and sys._getframe(level).f_back is not None:
        level += 1
    for text in dict.fromkeys(texts):
        warnings.warn(text, category, stacklevel=level + 1)


def whole(**given: object) -> None:
    """Refuses what is no whole number from zero on, by the name of its parameter; None is what is not given.

    >>> whole(rounds=-1)
    Traceback (most recent call last):
    ValueError: rounds is -1, but must be a whole number, zero or more
    """
    for name, value in given.items():
        if value is not None and not (isinstance(value, numbers.Integral) and int(value) >= 0):
            raise ValueError(f"{name} is {value!r}, but must be a whole number, zero or more")


def real(**given: object) -> None:
    """Refuses what is no number, by the name of its parameter; None is what is not given."""
    for name, value in given.items():
        if value is not None and not isinstance(value, numbers.Real):
            raise ValueError(f"{name} is {value!r}, but must be a number")

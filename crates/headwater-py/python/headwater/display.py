"""HTML for notebooks; names are escaped as untrusted text."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, TypeAlias

# Rows of a table; the rest is counted.
SHOWN = 10

_CELL = "padding:0.15em 0.8em;text-align:{}"


_COLOURS = {"supported": "#1b7f5c", "no-evidence": "#b1480b", "not-tested": "#52616a"}

Outcome: TypeAlias = Literal["supported", "no-evidence", "not-tested"]

DecidingTest: TypeAlias = Literal["graph-test", "speaker-heard", "circular-shifts"]

# As the compiled part has it.
Parts: TypeAlias = "tuple[Outcome, str, float | None, DecidingTest | None, bool, str | None, list[str]]"


@dataclass(frozen=True)
class Verdict:
    """Whether the data support an answer, and why. Its truth value is that of `supported`.

    `outcome` is "supported", "no-evidence" (a test was run and failed) or "not-tested" (none was run). `test` names the
    test that decided: "graph-test", "speaker-heard" or "circular-shifts"; `p_value` is its p-value. `common_news_excluded`
    is True where the support is by the graph test, which common news cannot pass. `graph_test` is its result, `companions`
    are sentences on what was found beside it and what limits it; they never decide.

    >>> verdict = Verdict("no-evidence", "No evidence", 0.4)
    >>> verdict.supported, bool(verdict), str(verdict)
    (False, False, 'No evidence')
    """

    outcome: Outcome
    text: str
    p_value: float | None = None
    test: DecidingTest | None = None
    common_news_excluded: bool = False
    graph_test: Mapping[str, Any] | None = field(default=None, hash=False)
    companions: tuple[str, ...] = ()

    @classmethod
    def from_parts(cls, parts: Parts) -> Verdict:
        """The verdict that the compiled part tells."""
        outcome, text, p_value, test, excluded, graph_test, companions = parts
        graph = None if graph_test is None else json.loads(graph_test)
        return cls(outcome, text, p_value, test, excluded, graph, tuple(companions))

    @property
    def supported(self) -> bool:
        """Whether the data support an answer."""
        return self.outcome == "supported"

    def __bool__(self) -> bool:
        return self.supported

    def __str__(self) -> str:
        return self.text


def percent(share: float) -> str:
    """A share as a percentage; empty for NaN.

    >>> percent(0.1234), percent(float("nan"))
    ('12.3%', '')
    """
    return "" if share != share else f"{100 * share:.1f}%"


def number(value: float) -> str:
    """Four significant digits; empty for NaN."""
    return "" if value != value else f"{value:.4g}"


def page(verdict: Verdict, *parts: str) -> str:
    """The verdict, then the rest."""
    bar = f"border-left:4px solid {_COLOURS[verdict.outcome]};padding:0.2em 0.8em;margin:0.4em 0;max-width:60em"
    return f'<div><p style="{bar}">{escape(verdict.text)}</p>{"".join(parts)}</div>'


def note(text: str) -> str:
    """A remark below the numbers."""
    return f'<p style="color:#52616a;margin:0.4em 0">{escape(text)}</p>'


def agents_table(columns: Mapping[str, Any]) -> str:
    """The first agents of a ranking, with intervals and p-values where known."""
    shown: list[tuple[str, str, Callable[[Any], str]]]
    shown = [("", "rank", str), ("agent", "agent", str), ("share", "share", percent)]
    shown += [("90% from", "share_low", percent), ("to", "share_high", percent), ("p", "p_value", number)]
    shown += [("centrality", "centrality", number), ("informativeness", "informativeness", number)]
    shown += [("posts", "posts", str), ("silent", "silent_share", percent)]
    if "sign" in columns:
        columns = {**columns, "share": [sign * share for sign, share in zip(columns["sign"], columns["share"])]}
    present = [(heading, name, say) for heading, name, say in shown if name in columns]
    count = len(columns["agent"])
    rows = ([say(columns[name][row]) for _, name, say in present] for row in range(min(SHOWN, count)))
    more = note(f"and {count - SHOWN} more") if count > SHOWN else ""
    return table([heading for heading, _, _ in present], rows) + more


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Text to the left where it is a name, numbers to the right."""
    sides = ["left" if name == "agent" else "right" for name in header]

    def line(tag: str, cells: Sequence[str]) -> str:
        return (
            "<tr>"
            + "".join(f'<{tag} style="{_CELL.format(side)}">{escape(cell)}</{tag}>' for side, cell in zip(sides, cells))
            + "</tr>"
        )

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', header)}</thead><tbody>{body}</tbody></table>"


def picture(svg: str, what: str) -> str:
    """A figure as an image: nothing in it can run, or clash with other figures of the notebook."""
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(what)}" style="max-width:32em;width:100%" src="data:image/svg+xml;base64,{data}">'


def inset(html: str, height: int = 720) -> str:
    """A whole page within another, without access to it."""
    style = f"width:100%;height:{height}px;border:1px solid #d9d5cb"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(html)}"></iframe>'

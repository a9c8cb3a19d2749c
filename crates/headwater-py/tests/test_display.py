"""What a notebook shows: the verdict first, and names that cannot do harm."""

from __future__ import annotations

import base64
import html
import re
from html.parser import HTMLParser

import numpy as np
import pandas
import pytest

import headwater
from headwater import GSL, StateSpace, Whitened

HOSTILE = ['<script>alert("x")</script>', '"><img src=x onerror=alert(1)>', "a&b </td></table>", "'; --", "ünïcode 🚋"]


class Tags(HTMLParser):
    """The elements of a page, and their text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def hostile() -> headwater.Model:
    array, _ = headwater.simulate(agents=5, hypotheses=3, steps=100)
    rows = [(step, HOSTILE[agent], *array[step, agent]) for step, agent in np.ndindex(100, 5)]
    table = pandas.DataFrame(rows, columns=["time", "agent", "<b>yes</b>", "no", "perhaps"])
    return Whitened().fit(table).model_


def picture(page: str) -> str:
    data = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert data is not None
    return base64.b64decode(data[1]).decode()


def test_models(model: headwater.Model) -> None:
    page = model._repr_html_()
    tags = Tags(page)
    assert tags.text[0] == model.verdict.text, "the verdict first"
    assert tags.names.count("tr") == 1 + 6 and "img" in tags.names
    for agent in headwater.rank(model)["agent"]:
        assert agent in tags.text
    assert picture(page).startswith("<svg")


def test_hostile_names_are_text(hostile: headwater.Model) -> None:
    pages = [hostile._repr_html_(), headwater.ranking(hostile)._repr_html_()]
    for page in pages:
        tags = Tags(page)
        assert not {"script", "b"} & set(tags.names) and tags.names.count("table") == 1
        assert set(HOSTILE) <= set(tags.text)
    assert "<script" not in picture(pages[0])
    assert "onerror=" not in re.sub(r">[^<]*<", "><", picture(pages[0])), "not in any attribute"


def test_the_page_is_shut_in(hostile: headwater.Model) -> None:
    page = headwater.report(hostile)
    shown = page._repr_html_()
    assert Tags(shown).names == ["iframe"] and 'sandbox="allow-scripts"' in shown
    inside = re.search(r'srcdoc="([^"]*)"', shown)
    assert inside is not None and html.unescape(inside[1]) == page.html
    assert repr(page).startswith("<headwater.Page of ")


def test_estimators_show_their_model(beliefs: np.ndarray) -> None:
    for learner in (Whitened(), GSL(0.05, window=5), StateSpace(rounds=2)):
        assert learner._repr_html_() is None
        assert learner.fit(beliefs)._repr_html_() == learner.model_._repr_html_()
    assert Whitened().learn_one(beliefs[0])._repr_html_() is None


def test_long_rankings_are_cut_and_counted() -> None:
    _, truth = headwater.simulate(agents=30, steps=10)
    page = truth._repr_html_()
    assert Tags(page).names.count("tr") == 11 and "and 20 more" in page


def test_large_networks_are_not_drawn() -> None:
    _, truth = headwater.simulate(agents=400, hypotheses=2, steps=1, burn_in=1, edge_probability=0.05)
    assert "img" not in Tags(truth._repr_html_()).names


def test_rankings_show_how_sure(model: headwater.Model, beliefs: np.ndarray) -> None:
    tested = headwater.ranking(model, beliefs, bootstrap=20, null=20)
    page = tested._repr_html_()
    assert {"90% from", "to", "p", "silent"} <= set(Tags(page).text)
    assert repr(tested).startswith("<headwater.Ranking supported: ")
    assert repr(headwater.ranking(model)).startswith("<headwater.Ranking not-tested: ")

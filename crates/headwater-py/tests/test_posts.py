"""Posts to beliefs, scores, and everything at once."""

from __future__ import annotations

import datetime
import json
import tempfile
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import headwater
from headwater import beliefs_from_posts, discover, score
from headwater.frames import kind_of


def test_rows_of_users_and_days(posts: pandas.DataFrame) -> None:
    said = beliefs_from_posts(posts)
    assert list(said.columns) == ["time", "agent", "positive", "negative", "posts"]
    assert len(said) == 80 and list(said["agent"][:4]) == ["ann", "bob", "cem", "dee"]
    np.testing.assert_allclose(said["positive"] + said["negative"], 1.0)
    assert (said["posts"] == 1).all() and str(said["time"][0]).startswith("2024-05-01")


def test_what_came_out_goes_in(posts: pandas.DataFrame) -> None:
    said = beliefs_from_posts(posts)
    learner = headwater.StateSpace(rounds=3).fit(said)
    assert learner.agents_ == ["ann", "bob", "cem", "dee"] and learner.hypotheses_ == ["positive", "negative"]


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"since": "2024-05-03"}, 72),
        ({"until": datetime.date(2024, 5, 3)}, 12),
        ({"since": datetime.datetime(2024, 5, 3, 11, tzinfo=datetime.timezone.utc)}, 71),
        ({"bin": "week"}, 16),
        ({"users": ["ann", "bob"]}, 40),
        ({"topic": "wonderful OR awful"}, None),
        ({"topic": ["wonderful", "awful"]}, None),
        ({"hypotheses": 3}, 80),
        ({"carry_forward": True, "topic": "wonderful OR awful"}, None),
        ({"min_posts": 20}, 80),
        (
            {
                "timezone": zoneinfo.ZoneInfo("America/New_York"),
                "reposts": "drop",
                "any_language": True,
                "max_bad": 0.5,
            },
            80,
        ),
        ({"lang": ["en", "de"]}, 80),
    ],
)
@pytest.mark.filterwarnings("ignore::headwater.HeadwaterWarning")
def test_options(options: dict[str, Any], rows: int | None, posts: pandas.DataFrame) -> None:
    said = beliefs_from_posts(posts, **options)
    assert rows is None or len(said) == rows
    assert ("neutral" in said) == (options.get("hypotheses") == 3)


def test_two_ways_to_say_either(posts: pandas.DataFrame) -> None:
    query, list_of_topics = (
        beliefs_from_posts(posts, topic="wonderful OR awful"),
        beliefs_from_posts(posts, topic=["wonderful", "awful"]),
    )
    pandas.testing.assert_frame_equal(query, list_of_topics)
    filled = beliefs_from_posts(posts, topic="wonderful OR awful", carry_forward=True)
    assert len(filled) > len(query)


def test_other_columns_and_own_scores(posts: pandas.DataFrame) -> None:
    renamed = posts.rename(columns={"text": "body", "user": "author"})
    pandas.testing.assert_frame_equal(
        beliefs_from_posts(renamed, columns={"text": "body", "user": "author"}), beliefs_from_posts(posts)
    )
    scored = posts.drop(columns="text").assign(score=np.linspace(0.1, 0.9, len(posts)))
    said = beliefs_from_posts(scored, scorer="column")
    np.testing.assert_allclose(said["positive"], scored["score"])


@pytest.mark.parametrize("kind", ["timestamps", "naive timestamps", "seconds"])
def test_times_of_a_data_frame(kind: str, posts: pandas.DataFrame) -> None:
    times = pandas.to_datetime(posts["time"])
    if kind == "naive timestamps":
        times = times.dt.tz_localize(None)
    elif kind == "seconds":
        times = (times - pandas.Timestamp("1970-01-01", tz="UTC")) // pandas.Timedelta("1s")
    pandas.testing.assert_frame_equal(beliefs_from_posts(posts.assign(time=times)), beliefs_from_posts(posts))
    given = polars.from_pandas(posts.assign(time=times))
    assert beliefs_from_posts(given)["agent"].to_list() == list(beliefs_from_posts(posts)["agent"])


def test_files(posts: pandas.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    posts[:40].to_csv("-first.csv", index=False)
    posts[40:].to_json("second.jsonl", orient="records", lines=True)
    said = beliefs_from_posts(["-first.csv", Path("second.jsonl")])
    pandas.testing.assert_frame_equal(said, beliefs_from_posts(posts))


def test_other_languages_are_warned_of(posts: pandas.DataFrame) -> None:
    marked = posts.assign(lang=["de"] * 4 + ["en"] * 76)
    with pytest.warns(headwater.HeadwaterWarning, match="4 posts marked with another language"):
        assert len(beliefs_from_posts(marked)) == 76


def test_unreadable_rows_are_warned_of(posts: pandas.DataFrame) -> None:
    with pytest.warns(headwater.HeadwaterWarning, match="time"):
        beliefs_from_posts(posts.assign(time=["?", *posts["time"][1:]]))


def test_scores(posts: pandas.DataFrame) -> None:
    frame = score(["what a wonderful day", "awful, the worst", ""])
    assert list(frame.columns) == ["negative", "neutral", "positive", "score"]
    np.testing.assert_allclose(frame[["negative", "neutral", "positive"]].sum(axis=1), 1.0)
    np.testing.assert_array_equal(frame["score"], frame["positive"] / (frame["negative"] + frame["positive"]))
    assert frame["score"][0] > 0.8 > 0.2 > frame["score"][1]


def test_scores_keep_the_index(posts: pandas.DataFrame) -> None:
    texts = posts.set_index("user")["text"][:6]
    frame = score(texts)
    assert frame.index.equals(texts.index)
    assert texts.to_frame().reset_index().join(frame.reset_index(drop=True))["score"].notna().all()
    assert kind_of(score(polars.Series(list(texts)))) == "polars"
    assert len(score([])) == 0 and len(score(np.array(["a", "b"]))) == 2


@pytest.mark.filterwarnings("ignore::headwater.HeadwaterWarning")
class TestDiscover:
    def test_everything(self, posts: pandas.DataFrame, tmp_path: Path) -> None:
        found = discover(posts, tmp_path / "found", bootstrap=20, null=20, rounds=3, top=2)
        names = {
            "beliefs.parquet",
            "model.json",
            "ranking.json",
            "ranking.csv",
            "edges.csv",
            "report.html",
            "network.gexf",
            "run.json",
        }
        assert found.folder == tmp_path / "found" and names <= {path.name for path in found.folder.iterdir()}
        assert found.page.html.startswith("<!doctype html>") and found.verdict.text[:20] in found.page.html
        assert found.model.agents == ["ann", "bob", "cem", "dee"]
        pandas.testing.assert_frame_equal(found.beliefs, beliefs_from_posts(posts))
        assert list(found.ranking["rank"]) == [1, 2, 3, 4] and found.ranking.attrs["verdict"] == found.verdict.text
        assert {"share_low", "p_value"} <= set(found.ranking) and found.supported is found.verdict.supported
        assert found.run["verdict"]["outcome"] == found.verdict.outcome and found.verdict.p_value is not None
        assert list(found.edges.columns)[:5] == ["source", "target", "weight", "p_value", "significant"]
        assert found.edges["significant"].dtype == bool and found.edges["weight"].dtype == float
        assert found.run["seed"] == 21 and found.run["options"]["rounds"] == 3
        assert found.verdict.text.split(":")[0] in found._repr_html_() and "<iframe" in found._repr_html_()
        assert str(found.folder) in repr(found)

    def test_again_is_the_same(self, posts: pandas.DataFrame, tmp_path: Path) -> None:
        options: dict[str, Any] = {"bootstrap": 0, "null": 0, "rounds": 3, "sampling": False}
        first = discover(posts, tmp_path, **options)
        stages = first.run["stages"]
        again = discover(posts, tmp_path, **options)
        assert again.run["stages"] == stages and again.model == first.model
        assert "share_low" not in again.ranking and list(again.edges.columns) == ["source", "target", "weight"]

    def test_in_memory_is_the_same(self, posts: pandas.DataFrame, tmp_path: Path) -> None:
        options: dict[str, Any] = {"bootstrap": 20, "null": 20, "rounds": 3, "top": 2}
        held, written = discover(posts, **options), discover(posts, tmp_path / "found", **options)
        assert held.folder is None and " in " not in repr(held).partition(":")[0]
        assert held.model == written.model and held.verdict == written.verdict
        for name in ("ranking", "beliefs", "edges"):
            pandas.testing.assert_frame_equal(getattr(held, name), getattr(written, name), check_exact=True)
        changing = {"timings", "stages"}
        record, other = ({**found.run, **dict.fromkeys(changing)} for found in (held, written))
        assert record == other
        # What a folder keeps is what is returned.
        assert headwater.read_model(tmp_path / "found/model.json") == held.model
        assert json.loads((tmp_path / "found/ranking.json").read_text()) == held._ranking.json
        kept = pandas.read_parquet(tmp_path / "found/beliefs.parquet")
        pandas.testing.assert_frame_equal(held.beliefs, kept, check_exact=True, check_dtype=False)
        kept = pandas.read_csv(tmp_path / "found/edges.csv", float_precision="round_trip")
        pandas.testing.assert_frame_equal(held.edges, kept, check_exact=True, check_dtype=False)

    @pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
    @pytest.mark.parametrize("length", ["day", "6h"])
    def test_days_with_23_or_25_hours(self, length: str, zone: str, posts: pandas.DataFrame) -> None:
        times = pandas.to_datetime(posts["time"])
        for shift in ("-45D", "170D"):
            moved = posts.assign(time=times + pandas.Timedelta(shift))
            found = discover(moved, bootstrap=0, null=0, rounds=2, timezone=zone, bin=length)
            pandas.testing.assert_frame_equal(
                found.beliefs, beliefs_from_posts(moved, timezone=zone, bin=length), check_exact=True
            )

    def test_nothing_is_written(self, posts: pandas.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "key").touch(0o600)
        (tmp_path / "key").write_bytes(bytes(range(32)))
        empty = tmp_path / "empty"
        empty.mkdir()
        monkeypatch.chdir(empty)
        monkeypatch.setenv("TMPDIR", str(empty))
        monkeypatch.setattr(tempfile, "tempdir", str(empty))
        opened: list[str] = []
        monkeypatch.setattr(tempfile, "mkdtemp", lambda *_, **__: opened.append("folder"))
        monkeypatch.setattr(tempfile, "mkstemp", lambda *_, **__: opened.append("file"))
        pairs = [("ann", "bob"), ("bob", "cem"), ("cem", "dee"), ("dee", "ann")]
        empty.chmod(0o500)
        found = discover(
            posts,
            graph=pairs,
            users=["ann", "bob", "cem", "dee"],
            common={"ann": 1, "bob": 1, "cem": 2, "dee": 2},
            pseudonymise=tmp_path / "key",
            bootstrap=20,
            null=20,
            rounds=3,
        )
        assert found.folder is None and len(found.ranking) == 4
        assert found.page.html and len(found.edges) and len(found.beliefs) and found.run["counts"]["kept"] == 80
        beliefs_from_posts(posts, users=["ann", "bob"])
        assert not opened and list(empty.iterdir()) == []
        empty.chmod(0o700)

    @pytest.mark.parametrize("kind", ["pairs", "frame", "file"])
    def test_graphs(self, kind: str, posts: pandas.DataFrame, tmp_path: Path) -> None:
        pairs = [
            (source, target)
            for source in ("ann", "bob", "cem", "dee")
            for target in ("ann", "bob", "cem", "dee")
            if source < target or target == "ann"
        ]
        frame = pandas.DataFrame(pairs, columns=["source", "target"])
        frame.to_csv(tmp_path / "graph.csv", index=False)
        graph = {"pairs": pairs, "frame": polars.from_pandas(frame), "file": tmp_path / "graph.csv"}[kind]
        found = discover(posts, graph=graph, weights="edges", bootstrap=0, null=0, rounds=3)
        assert "in_degree" in found.ranking and found.model.sparse

    def test_groups_are_those_of_the_graph_test(self, posts: pandas.DataFrame) -> None:
        users = ["ann", "bob", "cem", "dee"]
        pairs = [(one, users[(place + 1) % 4]) for place, one in enumerate(users)]
        options: dict[str, Any] = {"bootstrap": 0, "null": 0, "rounds": 3}
        found = discover(posts, graph=pairs, groups=dict.fromkeys(users, "all"), **options)
        verdict = found.run["verdict"]
        assert verdict.get("graph_untestable") or verdict["graph_test"]["groups_given"]
        assert found.run["options"]["groups"] == "in memory"
        with pytest.raises(ValueError, match="groups are those of the graph test"):
            discover(posts, groups={"ann": 1}, **options)

    def test_fit_options(self, posts: pandas.DataFrame) -> None:
        options: dict[str, Any] = {"adaptation": 0.2, "constraint": "free", "ridge": 0.1, "shrinkage": 10.0, "rounds": 3}
        found = discover(
            posts, bootstrap=0, null=0, common={"ann": "a, b", "bob": 'c"d', "cem": "a, b", "dee": "e"}, **options
        )
        by_hand = headwater.StateSpace(common={"ann": 1, "bob": 2, "cem": 1, "dee": 3}, **options).fit(
            beliefs_from_posts(posts)
        )
        np.testing.assert_allclose(found.model.combination, by_hand.combination_, atol=1e-12)
        assert abs(found.model.adaptation - 0.2) < 1e-12
        network = discover(posts, bootstrap=0, null=0, rounds=3, common="network")
        assert network.model.diagnostics["smoothing"]["common"] is not None

    def test_pseudonyms(self, posts: pandas.DataFrame, tmp_path: Path) -> None:
        (tmp_path / "key").touch(0o600)
        (tmp_path / "key").write_bytes(bytes(range(32)))
        found = discover(posts, tmp_path / "found", pseudonymise=tmp_path / "key", bootstrap=0, null=0, rounds=3)
        assert all(agent.startswith("u-") for agent in found.model.agents)
        assert "cem" not in (tmp_path / "found" / "ranking.json").read_text()

    def test_kinds_of_frames(self, posts: pandas.DataFrame) -> None:
        found = discover(polars.from_pandas(posts), bootstrap=0, null=0, rounds=3)
        assert {kind_of(found.ranking), kind_of(found.beliefs), kind_of(found.edges)} == {"polars"}

    def test_progress(self, posts: pandas.DataFrame) -> None:
        told: list[str] = []
        discover(posts, bootstrap=20, null=0, rounds=3, progress=lambda what, done, total: told.append(what))
        assert told

    def test_unknown_options(self, posts: pandas.DataFrame) -> None:
        with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
            discover(posts, colour="red")  # type: ignore[call-arg]

    def test_ranking_json_makes_a_page(self, posts: pandas.DataFrame, tmp_path: Path) -> None:
        found = discover(posts, tmp_path, bootstrap=20, null=0, rounds=3)
        page = headwater.report(found.model, ranking=tmp_path / "ranking.json", beliefs=found.beliefs)
        assert json.loads((tmp_path / "ranking.json").read_text())["verdict"]["text"][:20] in page.html


def test_no_evidence_is_warned_of(posts: pandas.DataFrame) -> None:
    with pytest.warns(headwater.NoEvidence) as caught:
        found = discover(posts, bootstrap=0, null=20, rounds=3)
    assert not found.supported and not found.verdict and found.verdict.outcome == "no-evidence"
    assert not any(issubclass(warning.category, headwater.NotTested) for warning in caught)


def test_a_test_that_was_not_run_is_warned_of(posts: pandas.DataFrame) -> None:
    with pytest.warns(headwater.NotTested, match="no permutation test was run(.|\n)*hint: null=True") as caught:
        found = discover(posts, bootstrap=0, null=0, rounds=3)
    assert not found.supported and found.verdict.outcome == "not-tested" and found.verdict.p_value is None
    assert not any(issubclass(warning.category, headwater.NoEvidence) for warning in caught)


def test_numbers_limit_plain_numbers(posts: pandas.DataFrame) -> None:
    numbered = posts.assign(time=[place // 4 + 0.5 for place in range(80)])
    assert len(beliefs_from_posts(numbered, bin=1, since=2, until=5.5)) == 16
    with pytest.raises(ValueError, match="plain numbers"):
        beliefs_from_posts(numbered, bin=1, since="2024-05-03")
    with pytest.raises(ValueError, match="3 is a plain number"):
        beliefs_from_posts(posts, since=3)


def test_few_days_are_ranked_without_what_takes_more(posts: pandas.DataFrame) -> None:
    few = posts[posts["time"] < "2024-05-11"]
    with pytest.warns(headwater.HeadwaterWarning) as caught:
        found = discover(few, bootstrap=20, null=20, rounds=3)
    texts = [str(warning.message) for warning in caught]
    assert any(text.startswith("no intervals: resampling needs at least 11") for text in texts)
    assert any(text.startswith("no permutation test: there are too few time steps") for text in texts)
    assert any("hint: give beliefs over more time steps" in text for text in texts)
    assert found.verdict.outcome == "not-tested" and len(found.ranking) == 4
    with pytest.warns(headwater.HeadwaterWarning, match="no intervals"):
        headwater.rank(found.model, found.beliefs, bootstrap=20, null=20)


def test_warnings_speak_of_keywords(posts: pandas.DataFrame) -> None:
    marked = posts.assign(lang=["de"] * 4 + ["en"] * 76)
    with pytest.warns(headwater.HeadwaterWarning, match="any_language=True keeps them") as caught:
        discover(marked, bootstrap=0, null=0, rounds=2, graph=[("ann", "bob"), ("bob", "cem"), ("ann", "zed")])
    texts = [str(warning.message) for warning in caught]
    assert any("1 account of the graph without a kept post" in text for text in texts)
    assert any("1 account outside the graph" in text for text in texts)
    assert not any("--" in text for text in texts)
    with pytest.warns(headwater.HeadwaterWarning, match="and 2 more unreadable rows"):
        discover(posts.assign(time=["?"] * 7 + list(posts["time"][7:])), bootstrap=0, null=0, rounds=2, max_bad=10)


def test_dates_with_the_year_last_need_an_order() -> None:
    posts = pandas.DataFrame({"user": ["ann", "bob"], "time": ["05/01/2024", "05/13/2024"], "text": ["great", "awful"]})
    with pytest.raises(ValueError, match="date_order=\"mdy\""):
        beliefs_from_posts(posts)
    said = beliefs_from_posts(posts, date_order="mdy")
    assert [str(time)[:10] for time in said["time"]] == ["2024-05-01", "2024-05-13"]


def test_scores_and_times_in_units_of_their_own() -> None:
    times = [step / 4 for step in range(48)]
    scores = [step * 7 % 20 / 10 - 1 for step in range(48)]
    posts = pandas.DataFrame({"user": ["ann", "bob"] * 24, "time": times, "score": scores})
    with pytest.raises(ValueError, match="score_range"):
        beliefs_from_posts(posts, scorer="column", bin=0.5)
    with pytest.warns(UserWarning, match="clipped"):
        said = beliefs_from_posts(posts, scorer="column", score_range=(-1, 1), bin=0.5)
    assert list(said["time"][:4]) == [0, 0, 1, 1] and max(said["time"]) == 23
    assert said["positive"][1] == pytest.approx((scores[1] + 1) / 2)
    with pytest.warns(UserWarning):
        found = discover(posts, scorer="column", score_range="-1..1", bin=0.5, bootstrap=0, null=0)
    assert list(found.beliefs["time"][:4]) == [0, 0, 1, 1]


def test_files_of_platforms_are_recognised(tmp_path: Path) -> None:
    message = {"id": 1, "type": "message", "date_unixtime": "1714557600", "from": "Ann", "from_id": "user1", "text": ["great"]}
    other = message | {"id": 2, "from": "Bob", "from_id": "user2", "text": [{"type": "bold", "text": "awful"}]}
    export = {"name": "chat", "id": 1, "messages": [message, other]}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(export, indent=1))
    for preset in (None, "telegram"):
        said = beliefs_from_posts(path, preset=preset)
        assert list(said["agent"]) == ["Ann", "Bob"] and list(said["positive"] > 0.5) == [True, False]
    with pytest.raises(ValueError, match="zeeschuimer"):
        beliefs_from_posts(path, preset="myspace")  # type: ignore[arg-type]

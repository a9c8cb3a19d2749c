"""From posts to influencers. In: files or data frames of posts, texts. Out: scores, beliefs, and everything that
``headwater discover`` makes of them, by the same door as the command line's."""

from __future__ import annotations

import csv
import datetime
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast

from . import _headwater, display
from .display import Verdict
from .errors import NoEvidence, tell, whole
from .frames import ArrowStream, Frame, is_frame, kind_of, make_frame, stream_of, values_of
from .graphs import GraphLike, graph_file
from .influence import Draws, Page, Ranking
from .model import Model
from .progress import ProgressLike, reporting

if TYPE_CHECKING:
    from typing_extensions import Unpack

PathLike: TypeAlias = "str | os.PathLike[str]"
PostsLike: TypeAlias = "PathLike | Sequence[PathLike] | ArrowStream"
Common: TypeAlias = "Literal['network'] | Mapping[str, object] | None"


class PostOptions(TypedDict, total=False):
    """Which posts count, and as what."""

    topic: str | Sequence[str] | None
    since: str | datetime.date | None
    until: str | datetime.date | None
    bin: str
    timezone: str | datetime.tzinfo
    reposts: Literal["keep", "drop"]
    lang: str | Sequence[str] | None
    any_language: bool
    min_posts: int
    users: PathLike | Sequence[str] | None
    hypotheses: Literal[2, 3]
    scorer: Literal["builtin", "roberta", "column"]
    model: PathLike | None
    carry_forward: bool
    preset: Literal["x-v2", "x-v1", "bluesky", "mastodon", "4cat"] | None
    columns: Mapping[str, str] | None
    max_bad: int | float | str | None


def beliefs_from_posts(
    posts: PostsLike,
    *,
    topic: str | Sequence[str] | None = None,
    since: str | datetime.date | None = None,
    until: str | datetime.date | None = None,
    bin: str = "day",
    timezone: str | datetime.tzinfo = "UTC",
    reposts: Literal["keep", "drop"] = "keep",
    lang: str | Sequence[str] | None = None,
    any_language: bool = False,
    min_posts: int = 1,
    users: PathLike | Sequence[str] | None = None,
    hypotheses: Literal[2, 3] = 2,
    scorer: Literal["builtin", "roberta", "column"] = "builtin",
    model: PathLike | None = None,
    carry_forward: bool = False,
    preset: Literal["x-v2", "x-v1", "bluesky", "mastodon", "4cat"] | None = None,
    columns: Mapping[str, str] | None = None,
    max_bad: int | float | str | None = None,
    progress: ProgressLike = False,
) -> Frame:
    """Posts become beliefs: a row per user and bin in which the user said something about the topic.

    `posts` is a data frame, a file (CSV, JSON lines, Parquet; plain, gzip or zstd), or several. `columns` says which
    column holds what, ``{"text": "body", "user": "author.handle"}``; `users` is a file or a list of names; `max_bad` a
    share (0.05, "5%") or a number of rows that may be unreadable. The rest are the options of ``headwater beliefs``.

    >>> import pandas
    >>> posts = pandas.DataFrame({
    ...     "user": ["ann", "bob"],
    ...     "time": ["2024-05-01T10:00:00Z", "2024-05-01T11:00:00Z"],
    ...     "text": ["What a great day", "This is awful"],
    ... })
    >>> beliefs = beliefs_from_posts(posts)
    >>> list(beliefs["agent"]), list(beliefs["positive"] > 0.5)
    (['ann', 'bob'], [True, False])
    """
    options = PostOptions(
        topic=topic,
        since=since,
        until=until,
        bin=bin,
        timezone=timezone,
        reposts=reposts,
        lang=lang,
        any_language=any_language,
        min_posts=min_posts,
        users=users,
        hypotheses=hypotheses,
        scorer=scorer,
        model=model,
        carry_forward=carry_forward,
        preset=preset,
        columns=columns,
        max_bad=max_bad,
    )
    with TemporaryDirectory(prefix="headwater-") as name:
        folder = Path(name)
        out = folder / "beliefs.parquet"
        _call("beliefs", posts, folder, {**_options(options, folder), "out": out}, progress)
        return make_frame(_headwater.read_parquet(str(out)), kind_of(posts))


def score(
    texts: Iterable[str],
    scorer: Literal["builtin", "roberta"] = "builtin",
    model: PathLike | None = None,
    *,
    progress: ProgressLike = False,
    threads: int | None = None,
) -> Frame:
    """How negative, neutral and positive each text is, and `score` = positive/(negative + positive).

    A Series of pandas keeps its index. "roberta" takes the folder of a model, or its name on the model hub.

    >>> frame = score(["What a great day", "This is awful"])
    >>> list(frame["score"] > 0.5)
    [True, False]
    """
    if isinstance(texts, str):
        raise TypeError("texts is a single string; put it into a list")
    if is_frame(texts) or isinstance(texts, Mapping):
        raise TypeError(f"texts is a {type(texts).__name__}; give its column of texts")
    whole(threads=threads)
    given = values_of(texts)
    for position, text in enumerate(given):
        if not isinstance(text, str):
            raise ValueError(f"the text at position {position} is {text!r}; wanted a string")
    with reporting(progress) as report:
        scores = _headwater.score(given, scorer, None if model is None else os.fspath(model), report, threads)
    negative, neutral, positive = scores.T
    columns = {
        "negative": negative,
        "neutral": neutral,
        "positive": positive,
        "score": positive / (negative + positive),
    }
    frame = make_frame(columns, kind_of(texts))
    if kind_of(texts) == "pandas":
        frame.index = cast(Any, texts).index
    return frame


class Discovery:
    """What `discover` found. Read the verdict first."""

    def __init__(self, folder: Path, kind: str | None, keep: TemporaryDirectory[str] | None) -> None:
        self.folder = folder
        self._kind = kind
        # A temporary folder goes with this object.
        self._keep = keep

    @cached_property
    def model(self) -> Model:
        """Who listens to whom."""
        return Model.load(self.folder / "model.json")

    @cached_property
    def _ranking(self) -> Ranking:
        text = (self.folder / "ranking.json").read_text(encoding="utf-8")
        return Ranking(_headwater.Ranking.from_json(text), self._kind)

    @property
    def ranking(self) -> Frame:
        """A row per user, the most influential first."""
        return self._ranking.frame

    @property
    def verdict(self) -> Verdict:
        """Whether the data support an answer."""
        return self._ranking.verdict

    @property
    def supported(self) -> bool:
        """Whether they do."""
        return self.verdict.supported

    @cached_property
    def beliefs(self) -> Frame:
        """What the users believed, bin by bin."""
        return make_frame(_headwater.read_parquet(str(self.folder / "beliefs.parquet")), self._kind)

    @cached_property
    def edges(self) -> Frame:
        """Who hears whom: source, target, weight, and with the null p_value and significant, the surest first."""
        kinds: dict[str, Any] = {"weight": float, "p_value": float, "significant": "true".__eq__}
        with (self.folder / "edges.csv").open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            names, rows = table.fieldnames or [], list(table)
        return make_frame({name: [kinds.get(name, str)(row[name]) for row in rows] for name in names}, self._kind)

    @cached_property
    def run(self) -> dict[str, Any]:
        """The record of the run: inputs with their hashes, options, seed, counts, timings."""
        return cast("dict[str, Any]", json.loads((self.folder / "run.json").read_text(encoding="utf-8")))

    @property
    def page(self) -> Path:
        """The page that shows all of it."""
        return self.folder / "report.html"

    def __repr__(self) -> str:
        return f"<headwater.Discovery in {self.folder}: {self.verdict.text}>"

    def _repr_html_(self) -> str:
        shown = Page(self.page.read_text(encoding="utf-8"))
        return display.page(self.verdict, shown._repr_html_())


def discover(
    posts: PostsLike,
    out: PathLike | None = None,
    *,
    graph: GraphLike | None = None,
    bootstrap: Draws = 200,
    null: Draws = None,
    top: int = 3,
    pseudonymise: PathLike | None = None,
    adaptation: float | None = None,
    constraint: Literal["simplex", "free"] = "simplex",
    ridge: float = 0.0,
    weights: Literal["auto", "edges", "strengths"] | None = None,
    shrinkage: float | None = None,
    rounds: int | None = None,
    common: Common = None,
    seed: int = 21,
    progress: ProgressLike = False,
    threads: int | None = None,
    **options: Unpack[PostOptions],
) -> Discovery:
    """Everything from posts to a ranking: beliefs, a model, who drives opinion and how sure that is, and a page.

    Takes all options of `beliefs_from_posts`, and those of `StateSpace`, which does the fit. `out` is the folder to
    write; interrupted, the same call goes on where it stopped. Without one a temporary folder lives as long as the
    result. `null` is 200 up to 100 users unless said otherwise; 0 or False leaves `null` or `bootstrap` out. Warns
    `NoEvidence` where the data do not support an answer."""
    unknown = options.keys() - PostOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"discover() got an unexpected keyword argument {min(unknown)!r}")
    keep = TemporaryDirectory(prefix="headwater-found-") if out is None else None
    found = Path(keep.name if keep is not None else cast(PathLike, out))
    with TemporaryDirectory(prefix="headwater-") as name:
        folder = Path(name)
        asked = {
            **_options(options, folder),
            "out": found,
            "graph": graph_file(graph, folder),
            "bootstrap": _draws(bootstrap),
            "null": None if null is None else _draws(null),
            "top": top,
            "pseudonymise": pseudonymise,
            "adaptation": adaptation,
            "constraint": constraint,
            "ridge": ridge,
            "weights": weights,
            "shrinkage": shrinkage,
            "rounds": rounds,
            "common": _table(common.items(), ("agent", "group"), folder) if isinstance(common, Mapping) else common,
            "seed": seed,
        }
        _call("discover", posts, folder, asked, progress, threads)
    discovery = Discovery(found, kind_of(posts), keep)
    if not discovery.supported:
        tell([discovery.verdict.text], NoEvidence)
    return discovery


def _draws(draws: Draws) -> int:
    return 200 if draws is True else int(draws or 0)


def _call(
    command: str,
    posts: PostsLike,
    folder: Path,
    options: Mapping[str, object],
    progress: ProgressLike,
    threads: int | None = None,
) -> None:
    """A command of the command line that starts from posts; its warnings are ours."""
    arguments = [command, *_files(posts, folder)]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is True:
                arguments.append(f"--{name}")
            elif one is not None and one is not False:
                arguments.append(f"--{name}={one}")
    with reporting(progress) as report:
        _, warnings = _headwater.call(arguments, report, threads)
    tell(warnings)


def _files(posts: PostsLike, folder: Path) -> list[str]:
    if is_frame(posts):
        path = folder / "posts.parquet"
        _headwater.write_parquet(stream_of(posts), str(path))
        return [str(path)]
    paths = [posts] if isinstance(posts, str | os.PathLike) else list(cast("Sequence[PathLike]", posts))
    # A file may be called like an option.
    return [f"./{path}" if os.fspath(path).startswith("-") else os.fspath(path) for path in paths]


def _options(options: PostOptions, folder: Path) -> dict[str, object]:
    """Options as the command line spells them; a list stands for an option that is repeated."""
    given: dict[str, Any] = dict(options)
    spelled: dict[str, Any] = {}
    for name, value in given.items():
        if name in ("since", "until"):
            value = value.isoformat() if isinstance(value, datetime.date) else value
            name = "from" if name == "since" else "to"
        elif name == "topic":
            value = _listed(value)
        elif name == "lang":
            value = None if value is None else ",".join(_listed(value))
        elif name == "users" and value is not None and not isinstance(value, str | os.PathLike):
            value = _table(([user] for user in value), ["user"], folder)
        elif name == "columns":
            name, value = "map", [f"{field}={column}" for field, column in (value or {}).items()]
        elif name == "max_bad" and isinstance(value, float):
            value = f"{100 * value:g}%"
        spelled[name.replace("_", "-")] = value
    return spelled


def _listed(value: str | Sequence[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else list(value or [])


def _table(rows: Iterable[Iterable[object]], header: Sequence[str], folder: Path) -> str:
    """A small CSV file, named by what is in it."""
    path = folder / f"{'-'.join(header)}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)
    return str(path)

"""From posts to influencers: scores, beliefs, and the pipeline of ``headwater discover``."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast

from . import _headwater, display
from .display import Verdict
from .errors import tell, whole
from .frames import ArrowStream, Frame, is_frame, kind_of, make_frame, stream_of, values_of
from .graphs import GraphLike, agent_name, as_graph
from .influence import USUAL_DRAWS, Draws, Page, Ranking, groups_of, warn_of
from .model import Model
from .progress import ProgressLike, reporting

if TYPE_CHECKING:
    from typing_extensions import Unpack

PathLike: TypeAlias = "str | os.PathLike[str]"
PostsLike: TypeAlias = "PathLike | Sequence[PathLike] | ArrowStream"
Preset: TypeAlias = (
    'Literal["x-v2", "x-v1", "x-archive", "bluesky", "mastodon", "reddit", "telegram", "zeeschuimer", "4cat"]'
)
Common: TypeAlias = "Literal['network'] | Mapping[str, object] | None"


class PostOptions(TypedDict, total=False):
    """Options of reading, selection and scoring."""

    topic: str | Sequence[str] | None
    since: str | float | datetime.date | None
    until: str | float | datetime.date | None
    bin: str | float
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
    preset: Preset | None
    date_order: Literal["mdy", "dmy"] | None
    score_range: tuple[float, float] | str | None
    columns: Mapping[str, str] | None
    max_bad: int | float | str | None


def beliefs_from_posts(
    posts: PostsLike,
    *,
    topic: str | Sequence[str] | None = None,
    since: str | float | datetime.date | None = None,
    until: str | float | datetime.date | None = None,
    bin: str | float = "day",
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
    preset: Preset | None = None,
    date_order: Literal["mdy", "dmy"] | None = None,
    score_range: tuple[float, float] | str | None = None,
    columns: Mapping[str, str] | None = None,
    max_bad: int | float | str | None = None,
    progress: ProgressLike = False,
) -> Frame:
    """Turns posts into beliefs: a row per user and time bin with posts about the topic.

    `posts` is a data frame, a file (CSV, JSON, Parquet; plain, compressed or in an archive), or several. Files of
    platforms are recognised; `preset` names the platform. `date_order` says whether the month ("mdy") or the day ("dmy")
    comes first in dates whose year is last; `score_range` (-1, 1) is the range of the column score. Where times are plain
    numbers, `bin` is a number in their units, and `time` the number of the bin. `columns` maps
    fields to columns, ``{"text": "body", "user": "author.handle"}``; `users` is a file or a list of names; `max_bad` a
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
        date_order=date_order,
        score_range=score_range,
        columns=columns,
        max_bad=max_bad,
    )
    with reporting(progress) as report:
        columns_of_frame, warnings = _headwater.beliefs_from_posts(_posts(posts), _options(options), report)
    tell(warnings)
    return make_frame(columns_of_frame, kind_of(posts))


def score(
    texts: Iterable[str],
    scorer: Literal["builtin", "roberta"] = "builtin",
    model: PathLike | None = None,
    *,
    progress: ProgressLike = False,
    threads: int | None = None,
) -> Frame:
    """Sentiment of each text: `negative`, `neutral`, `positive`, and `score` = positive/(negative + positive).

    A pandas Series keeps its index. "roberta" needs the folder of a model, or its name on the model hub.

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
            raise ValueError(f"the text at position {position} is {text!r}, but must be a string")
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
    """The results of `discover`. Read the verdict first.

    Everything is in memory; `folder` is the folder that was written, or None.
    """

    def __init__(self, found: _headwater.Discovery, kind: str | None = None) -> None:
        self._compiled = found
        self._kind = kind

    @property
    def folder(self) -> Path | None:
        """The folder that was written, or None."""
        return None if self._compiled.folder is None else Path(self._compiled.folder)

    @cached_property
    def model(self) -> Model:
        """The learned network."""
        return Model(self._compiled.model)

    @cached_property
    def _ranking(self) -> Ranking:
        return Ranking(self._compiled.ranking, self._kind)

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
        """Whether the data support an answer."""
        return self.verdict.supported

    @cached_property
    def beliefs(self) -> Frame:
        """The beliefs that the model was learned from: a row per user and bin with a post."""
        return make_frame(self._compiled.beliefs(), self._kind)

    @cached_property
    def edges(self) -> Frame:
        """The edges: source, target, weight; with the permutation test p_value and significant, the smallest p-value first;
        where the posterior was sampled low and high (90 %), and the probability that there is such an edge where edges may
        be absent."""
        return make_frame(self._compiled.edges(), self._kind)

    @cached_property
    def run(self) -> dict[str, Any]:
        """The record of the run: inputs with their hashes, options, seed, counts, timings."""
        return cast("dict[str, Any]", json.loads(self._compiled.run))

    @cached_property
    def page(self) -> Page:
        """The report page: a notebook displays it, its `save` writes it."""
        return Page(self._compiled.page())

    def __repr__(self) -> str:
        where = "" if self.folder is None else f" in {self.folder}"
        return f"<headwater.Discovery{where}: {self.verdict.text}>"

    def _repr_html_(self) -> str:
        return display.page(self.verdict, self.page._repr_html_())


def discover(
    posts: PostsLike,
    out: PathLike | None = None,
    *,
    graph: GraphLike | None = None,
    groups: Mapping[str, object] | None = None,
    bootstrap: Draws = USUAL_DRAWS,
    null: Draws = None,
    top: int = 3,
    force: bool = False,
    pseudonymise: PathLike | None = None,
    adaptation: float | None = None,
    constraint: Literal["simplex", "free"] = "simplex",
    ridge: float = 0.0,
    weights: Literal["auto", "edges", "strengths"] | None = None,
    shrinkage: float | None = None,
    rounds: int | None = None,
    sampling: bool = True,
    sketch: bool = False,
    draws: int = 1000,
    chains: int = 16,
    common: Common = None,
    raw_csv: bool = False,
    seed: int = 21,
    progress: ProgressLike = False,
    threads: int | None = None,
    **options: Unpack[PostOptions],
) -> Discovery:
    """Ranks influencers from posts: beliefs, a model, a ranking with intervals and a permutation test, a page.

    Takes all options of `beliefs_from_posts`, and those of `StateSpace`, which does the fit. Everything stays in memory
    unless `out` names a folder to write; with a folder an interrupted call can be resumed. A folder with
    results of other inputs (posts, graph, users, groups) is refused unless `force` is true. In its CSV files names that a spreadsheet would run as a
    formula begin with an apostrophe, unless `raw_csv` is true. With `graph` the graph test decides the verdict; `groups` are
    the groups of the users for it (user: group), otherwise communities of the graph. `null` is 200 up to
    100 users and 0 above, unless given; 0 or False turns `null` or `bootstrap` off. Warns `NoEvidence` where the data do
    not support an answer, and `NotTested` where no test was run."""
    unknown = options.keys() - PostOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"discover() got an unexpected keyword argument {min(unknown)!r}")
    whole(
        bootstrap=bootstrap, null=null, top=top, seed=seed, rounds=rounds, draws=draws, chains=chains, threads=threads
    )
    with reporting(progress) as report:
        found, warnings = _headwater.discover(
            _posts(posts),
            _options(options),
            out=None if out is None else os.fspath(out),
            graph=os.fspath(graph) if isinstance(graph, str | os.PathLike) else as_graph(graph),
            bootstrap=_draws(bootstrap),
            null=None if null is None else _draws(null),
            top=top,
            seed=seed,
            force=force,
            pseudonymise=None if pseudonymise is None else os.fspath(pseudonymise),
            adaptation=adaptation,
            constraint=constraint,
            ridge=ridge,
            weights=weights,
            shrinkage=shrinkage,
            rounds=rounds,
            sampling=(draws, chains) if sampling else None,
            sketch=sketch,
            common=_common(common),
            groups=groups_of(groups),
            raw_csv=raw_csv,
            progress=report,
            threads=threads,
        )
    tell(warnings)
    discovery = Discovery(found, kind_of(posts))
    warn_of(discovery.verdict, possible=not found.ranking.too_few_steps)
    return discovery


def _draws(draws: Draws) -> int:
    return USUAL_DRAWS if draws is True else int(draws or 0)


def _common(common: Common) -> dict[str, str] | str | None:
    if isinstance(common, Mapping):
        return {agent_name(agent): str(group) for agent, group in common.items()}
    return common


def _posts(posts: PostsLike) -> _headwater.Posts:
    """Posts for the compiled part: a data frame in memory, or files."""
    if is_frame(posts):
        return _headwater.Posts.from_arrow(stream_of(posts))
    paths = [posts] if isinstance(posts, str | os.PathLike) else list(cast("Sequence[PathLike]", posts))
    return _headwater.Posts.from_files([os.fspath(path) for path in paths])


def _options(options: PostOptions) -> _headwater.PostOptions:
    """Options for the compiled part; None stands for the default."""
    whole(min_posts=options.get("min_posts"), hypotheses=options.get("hypotheses"))
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for name in ("since", "until"):
        if isinstance(given.get(name), datetime.date):
            given[name] = given[name].isoformat()
        elif name in given:
            given[name] = str(given[name])
    for name in ("topic", "lang"):
        if name in given:
            given[name] = [given[name]] if isinstance(given[name], str) else list(given[name])
    if "users" in given:
        users = given["users"]
        path = isinstance(users, str | os.PathLike)
        given["users"] = os.fspath(users) if path else [str(user) for user in users]
    if "columns" in given:
        given["columns"] = list(given["columns"].items())
    if "bin" in given:
        given["bin"] = str(given["bin"])
    if not isinstance(given.get("score_range", ""), str):
        low, high = given["score_range"]
        given["score_range"] = f"{low}..{high}"
    if "max_bad" in given:
        most = given["max_bad"]
        given["max_bad"] = f"{100 * most:g}%" if isinstance(most, float) else str(most)
    if "timezone" in given:
        given["timezone"] = str(given["timezone"])
    if "model" in given:
        given["model"] = os.fspath(given["model"])
    return _headwater.PostOptions(**given)

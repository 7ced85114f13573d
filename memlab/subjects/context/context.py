"""``lab.context``: memories for a prompt within a token budget, and metrics of contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import Micros, When
from memlab.kernel.base.disk import writing
from memlab.kernel.base.display import Displayed, clip, details, table, text_table
from memlab.kernel.base.printable import printable
from memlab.kernel.journal import Event
from memlab.kernel.recall import Filters, Hits
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.slates import ATTRIBUTED, Slate
from memlab.kernel.state import State, validate_text, visible_rows
from memlab.kernel.verbs.core import PARTS, Core, Latencies
from memlab.kernel.verbs.recalling.asking import Questions
from memlab.subjects.context.injection import FileNames, Injection
from memlab.subjects.context.writing import WARNINGS, Sheet, TokenizerSize
from memlab.subjects.reading.sentences import count_tokens

# Settings that a context reports.
_SETTINGS = ("tier-1-tokens", "tier-2-tokens", "tier-3-tokens", "always-kinds", "limit")


# Columns of ``Context.frame`` and ``Context.left_out``.
_INJECTED: dict[str, Any] = {
    "memory_id": pl.Int64,
    "tier": pl.Int64,
    "form": pl.String,
    "tokens": pl.Int64,
    "reason": pl.String,
}
_LEFT_OUT: dict[str, Any] = {"memory_id": pl.Int64, "what": pl.String, "why": pl.String}


@dataclass(frozen=True)
class Context(Displayed):
    """A prompt context for a task, as ``text``, ``markdown`` or ``messages()``.

    Attributes
    ----------
    task
        The task.
    text
        The text for a prompt: the memories between two marks, or "" without memories.
    markdown
        The memories as a quotation in Markdown.
    tokens
        The tokens of ``text``, by ``tokens=`` or at four bytes each. Neither ``text`` nor ``markdown`` exceeds
        ``budget``.
    budget
        The maximum number of tokens.
    hits
        The injected memories as hits of the logged recall, for ``lab.feedback(context.hits[0],
        ...)`` and ``lab.agents.credits.answer(answer, context.hits)``.
    pack
        The name of the pack that selected the memories.
    pack_hash
        The hash of the pack that selected the memories.
    seed
        The seed of the lab, from which exploration items are drawn.
    settings
        The settings of the pack that limit the context.
    modules
        The modules of the project that the task names and the text describes
        (``lab.agents.modules``).

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("Refresh tokens expire after 30 days")
    >>> context = lab.context("fix the token refresh", budget=200)
    >>> context.frame["memory_id"].to_list(), context.tokens <= 200
    ([1], True)
    """

    task: str
    text: str
    markdown: str
    tokens: int
    budget: int
    hits: Hits = field(repr=False)
    _memories: Mapping[str, Sequence[Any]] = field(repr=False, compare=False)
    _missing: Mapping[str, Sequence[Any]] = field(repr=False, compare=False)
    pack: str
    pack_hash: str
    seed: int
    settings: Mapping[str, float | bool | str] = field(repr=False)
    modules: tuple[str, ...] = ()

    # Two frames take as long as a tenth of a recall, and most callers read only the text.
    @cached_property
    def frame(self) -> pl.DataFrame:
        """One row per memory, in order.

        The columns are ``memory_id``, ``tier`` (1 always, 2 for the task, 3 further results,
        shortened), ``form`` ("warning", "note" or "fact"), ``tokens`` and ``reason``.
        """
        return pl.DataFrame(self._memories, schema=_INJECTED)

    @cached_property
    def left_out(self) -> pl.DataFrame:
        """One row per missing expected memory: its id, ``what`` (text) and ``why``."""
        return pl.DataFrame(self._missing, schema=_LEFT_OUT)

    @property
    def decision(self) -> int | None:
        """The number of the logged recall, or None if the recall was not logged."""
        return self.hits.decision

    @property
    def weak(self) -> bool:
        """Whether the recall probably contains no answer; if so, the text says so."""
        return self.hits.weak

    @property
    def slate(self) -> Slate:
        """The candidates of the recall, with their features."""
        return self.hits.slate

    def messages(self) -> list[dict[str, str]]:
        """Return the prompt text as one message of a conversation.

        Without memories, the list is empty.

        The role is "user", because memories have no more authority than their speakers.

        Returns
        -------
        list of dict
            Messages with ``role`` and ``content``.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("Refresh tokens expire after 30 days")
        >>> [message["role"] for message in lab.context("fix the token refresh").messages()]
        ['user']
        """
        return [{"role": "user", "content": self.text}] if self.text else []

    def __len__(self) -> int:
        """Return the number of memories in the context."""
        return len(self._memories["memory_id"])

    def __bool__(self) -> bool:
        """Return True, even if the context has no memories."""
        return True

    def __str__(self) -> str:
        return printable(self.text)

    @property
    def _summary(self) -> str:
        """The context summarized in one line."""
        recall = "not logged" if self.decision is None else f"recall {self.decision}"
        missing = f", {len(self.left_out)} left out" if len(self.left_out) else ""
        missing += "; weak" * self.weak
        return (
            f"{len(self)} {'memory' if len(self) == 1 else 'memories'} for {clip(self.task)!r}, "
            f"{self.tokens} of {self.budget} tokens{missing}; {recall}, pack {self.pack} [{self.pack_hash[:12]}]"
        )

    def __repr__(self) -> str:
        return printable(f"<Context: {self._summary}>\n{self.text}")

    def _display(self) -> object:
        texts = {hit.id: hit.text for hit in self.hits}
        rows = [
            (
                row["tier"],
                row["memory_id"],
                row["form"],
                row["tokens"],
                row["reason"],
                clip(texts[row["memory_id"]], 200),
            )
            for row in self.frame.iter_rows(named=True)
        ]
        whole = table(self._summary, ("tier", "id", "form", "tokens", "reason", "memory"), rows)
        left = table("", ("id", "what", "why"), self.left_out.rows())
        more = details(f"{len(self.left_out)} left out", left) if len(self.left_out) else None
        lines = table("", ("",), [(line,) for line in self.text.splitlines()])
        return whole, more, details("as text", lines)


class Contexts:
    """The prompt contexts of one lab."""

    def __init__(self, core: Core, questions: Questions) -> None:
        self._core, self._questions, self._files = core, questions, FileNames()

    def make(
        self,
        task: str,
        *,
        budget: int,
        session: str | None,
        project: str | None,
        files: str | Sequence[str],
        viewer: str | None,
        at: When | None,
        again: bool,
        log: bool,
        where: pl.Expr | None = None,
        tokens: Callable[[str], float] | None = None,
    ) -> Context:
        """Return the context for a task; see ``Lab.context``. ``where`` filters its memories."""
        paths = [files] if isinstance(files, str) else list(files)
        for file in paths:
            if not file.strip():
                raise InputError("A path in files= is empty. Pass paths such as src/auth.py.")
            validate_text(file, where="files")
        sheet = Sheet(budget) if tokens is None else Sheet(budget, TokenizerSize(tokens))
        injection = Injection(self._files, sheet, again=again)
        hits = self._questions.ask(
            "\n".join([task, " ".join(paths)] if paths else [task]),
            limit=None,
            project=project,
            session=session,
            filters=Filters.of(viewer=viewer, where=where),
            at=at,
            log=log and sheet.holds_any,
            use=injection,
        )
        sheet, pack = injection.sheet, hits.pack
        return Context(
            task=task,
            text=sheet.text,
            markdown=sheet.markdown,
            tokens=sheet.tokens,
            budget=budget,
            hits=hits,
            _memories=injection.columns,
            _missing=injection.left_out
            if hits.off is None
            else {"memory_id": [None], "what": ["all memories"], "why": [hits.off]},
            pack=pack.name,
            pack_hash=pack.hash,
            seed=self._core.seed,
            settings={name: pack.settings[name] for name in _SETTINGS},
            modules=injection.modules,
        )


# -- metrics of contexts: injected tokens, referenced memories, and the cost of discovering them
#
# All metrics but latencies are read from the journal. It has no wall time, so that equal inputs give
# equal journals: latencies are those of this process.


_HELPED = 0.5
"""Minimum reward at which a memory counts as referenced."""

_MAX_ROWS = 10
"""Maximum rows of a table in a notebook."""

# Columns of ``Metrics.contexts``, ``Metrics.memories`` and ``Metrics.frame``.
_CONTEXTS: dict[str, Any] = {
    "event": pl.Int64,
    "at": pl.Int64,
    "decision": pl.Int64,
    "agent": pl.String,
    "project": pl.String,
    "session": pl.String,
    "memories": pl.Int64,
    "referenced": pl.Int64,
    "tokens": pl.Int64,
    "budget": pl.Int64,
}
_MEMORIES: dict[str, Any] = {
    "memory_id": pl.Int64,
    "kind": pl.String,
    "file": pl.String,
    "what": pl.String,
    "injected": pl.Int64,
    "referenced": pl.Int64,
    "discovery": pl.Int64,
}
_FRAME: dict[str, Any] = {
    "metric": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "about": pl.String,
}


@dataclass(frozen=True)
class Metrics(Displayed):
    """Metrics of prompt contexts; ``metrics["coverage"]`` is the value of one metric.

    The metrics are contexts, searches, injected, referenced, referenced-share, tokens-injected,
    tokens-discovery, tokens-saved, coverage, memories, confidence, latency-embedding,
    latency-search and latency-write; ``frame`` describes each. Latencies are medians of this
    process.

    A memory is *referenced* by a context if it got a "success" or a reward of at least .5, or,
    without a judgement, if an answer was attributed to it. Its *discovery* cost is the number of
    tokens of the preceding turns of its session, divided by the number of memories from them. The
    cost is at least the number of tokens of its own text.

    *Saved* tokens are the discovery cost of referenced memories minus all injected tokens. The
    number is negative if contexts cost more tokens than they saved.

    Attributes
    ----------
    frame
        One row per metric: metric, value, unit, about.
    contexts
        One row per logged context: event, at, decision, agent, project, session, memories,
        referenced, tokens, budget.
    memories
        One row per injected memory: memory_id, kind, file, what (the beginning of its text),
        injected (how often), referenced (how often), discovery (tokens).

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("Refresh tokens expire after 30 days")
    >>> _ = lab.context("fix the token refresh")
    >>> lab.agents.metrics()["injected"]
    1.0
    """

    frame: pl.DataFrame
    contexts: pl.DataFrame = field(repr=False)
    memories: pl.DataFrame = field(repr=False)

    @property
    def gotchas(self) -> pl.DataFrame:
        """The injected memories that warn of problems, in descending order of use."""
        return self.memories.filter(pl.col("kind").is_in(sorted(WARNINGS)))

    @checked
    def __getitem__(self, metric: str) -> float | None:
        """Return the value of one metric, or None if it is undefined.

        Raises UnknownName if there is no such metric.
        """
        values: dict[str, float | None] = dict(self.frame.select("metric", "value").iter_rows())
        if metric not in values:
            raise UnknownName("metric", metric, values)
        return values[metric]

    @checked
    def report(self, path: str | Path) -> Path:
        """Write the metrics to one self-contained HTML file.

        Parameters
        ----------
        path
            The path of the file.

        Returns
        -------
        Path
            The path.

        Raises
        ------
        LabError
            If the file cannot be written.

        Examples
        --------
        >>> import memlab, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> memlab.open().agents.metrics().report(folder / "metrics.html").name
        'metrics.html'
        """
        target = Path(path).expanduser()
        page = (
            "<!doctype html><html lang='en'><meta charset='utf-8'><title>Metrics of prompt contexts</title>"
            f"<body style='font-family:system-ui,sans-serif;margin:2em;max-width:70em'>{self._repr_html_()}</body></html>"
        )
        with writing(f"the report {target}"):
            target.write_text(page, encoding="utf-8")
        return target

    def __repr__(self) -> str:
        rows = [
            [name, _format_number(value), unit] for name, value, unit, _ in self.frame.iter_rows()
        ]
        return printable("\n".join(text_table(["metric", "value", "unit"], rows, left=(0, 2))))

    def _display(self) -> object:
        rows = [
            (name, _format_number(value), unit, about)
            for name, value, unit, about in self.frame.iter_rows()
        ]
        whole = table("Metrics of prompt contexts", ("metric", "value", "unit", ""), rows)
        columns = ("memory_id", "file", "what", "injected", "referenced")
        gotchas = table("", columns, self.gotchas.head(_MAX_ROWS).select(columns).iter_rows())
        latest = self.contexts.tail(_MAX_ROWS).reverse()
        contexts = details("Latest contexts", table("", latest.columns, latest.iter_rows()))
        return whole, details("Most frequent gotchas", gotchas, opened=True), contexts


def compute_metrics(core: Core, *, since: Micros | None = None) -> Metrics:
    """Return the metrics of the contexts that were logged since an instant."""
    # A memory without turns in the lab has no discovery cost, so it enters no sum of tokens.
    with core.reading() as state:
        journal = core.store.journal
        first = -(2**63) if since is None else since
        logged = [
            e
            for e in journal.events(kinds=("inject",))
            if e.at >= first and "searched" not in e.body
        ]
        recalls = [event for event in journal.events(kinds=("recall",)) if event.at >= first]
        referenced = _find_referenced(journal.events(kinds=("feedback",)))
        injected = Counter(id for event in logged for id in event.body["ids"])
        referenced_by_id = Counter(
            id
            for event in logged
            for id in event.body["ids"]
            if (event.body["decision"], id) in referenced
        )
        contexts = pl.DataFrame(
            [_make_context_row(event, referenced) for event in logged],
            schema=_CONTEXTS,
            orient="row",
        )
        discovery = _Discovery(state)
        rows = [
            (
                id,
                state.names["kind"].value_at(id - 1),
                next(iter(state.lists["files"].value_at(id - 1)), None),
                clip(state.texts.value_at(id - 1), 100),
                count,
                referenced_by_id[id],
                discovery.tokens(id - 1),
            )
            for id, count in injected.items()
        ]
        memories = pl.DataFrame(rows, schema=_MEMORIES, orient="row")
        memories = memories.sort(
            "injected", "referenced", "memory_id", descending=[True, True, False]
        )
        in_use = state.names["status"].is_in(RECALLABLE)
        if (visible := visible_rows(state)) is not None:
            in_use = in_use & np.isin(np.arange(len(state)), visible)
        confidence = state.numbers["confidence"].values[in_use]
    injected_tokens = int(contexts["tokens"].sum())
    # The discovery cost is known only for memories from turns that the lab has.
    of_turns = memories.filter((pl.col("referenced") > 0) & pl.col("discovery").is_not_null())
    discovery_tokens = (
        int((of_turns["referenced"] * of_turns["discovery"]).sum()) if len(of_turns) else None
    )
    count, injected_count = int(in_use.sum()), int(contexts["memories"].sum())
    covered_count = sum(bool(in_use[id - 1]) for id in injected)
    searches = sum("budget" not in event.body for event in recalls)
    return Metrics(
        pl.DataFrame(
            [
                ("contexts", len(logged), "count", "contexts with at least one memory"),
                ("searches", searches, "count", "recalls on demand"),
                (
                    "injected",
                    injected_count,
                    "memories",
                    "memories in contexts, counted once per context",
                ),
                (
                    "referenced",
                    sum(referenced_by_id.values()),
                    "memories",
                    "injected memories that were used",
                ),
                (
                    "referenced-share",
                    _divide(sum(referenced_by_id.values()), injected_count),
                    "share",
                    "referenced divided by injected",
                ),
                ("tokens-injected", injected_tokens, "tokens", "of all contexts"),
                (
                    "tokens-discovery",
                    discovery_tokens,
                    "tokens",
                    "turns from which the referenced memories were learned; empty: unknown",
                ),
                (
                    "tokens-saved",
                    None if discovery_tokens is None else discovery_tokens - injected_tokens,
                    "tokens",
                    "discovery minus injected; empty: unknown, because no referenced memory comes from stored turns",
                ),
                (
                    "coverage",
                    _divide(covered_count, count),
                    "share",
                    "of the active memories that were in a context",
                ),
                ("memories", count, "memories", "active"),
                (
                    "confidence",
                    float(confidence.mean()) if count else None,
                    "share",
                    "mean of the active memories",
                ),
                *_make_latency_rows(core.latencies),
            ],
            schema=_FRAME,
            orient="row",
        ),
        contexts.with_columns(pl.col("at").cast(pl.Datetime("us", "UTC"))),
        memories,
    )


def _find_referenced(feedback: Iterable[Event]) -> set[tuple[int, int]]:
    """Return the recalled memories with helpful feedback, as pairs of recall and memory.

    The last explicit judgement of a pair decides. Without a judgement, a pair counts as helpful if
    its attributed reward was ever at least 0.5.
    """
    stated: dict[tuple[int, int], bool] = {}
    attributed: set[tuple[int, int]] = set()
    for event in feedback:
        body = event.body
        if body.get("decision") is None:
            continue
        key, reward = (body["decision"], body["memory"]), body.get("reward")
        helped = body.get("outcome") == "success" if reward is None else reward >= _HELPED
        if body.get("source") != ATTRIBUTED:
            stated[key] = helped
        elif helped:
            attributed.add(key)
    return {key for key in attributed if key not in stated} | {
        key for key, helped in stated.items() if helped
    }


def _make_context_row(event: Event, referenced: set[tuple[int, int]]) -> tuple[Any, ...]:
    """Build the row of ``Metrics.contexts`` for one logged context."""
    body = event.body
    helped = sum((body["decision"], id) in referenced for id in body["ids"])
    origin = (body.get("agent"), body.get("project"), body.get("session"))
    return (
        event.seq,
        event.at,
        body["decision"],
        *origin,
        len(body["ids"]),
        helped,
        body["tokens"],
        body["budget"],
    )


class _Discovery:
    """The cost of discovering memories, from the turns that the lab has."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._turns = state.names["kind"].is_in(["turn"])
        self._by_context: dict[int, tuple[NDArray[np.int64], NDArray[np.int64], int]] = {}

    def tokens(self, row: int) -> int | None:
        """Return the discovery cost of a memory in tokens, or None if no turns precede it.

        The cost is the tokens of the preceding turns of its session, divided by the number of
        memories of the session. The cost is at least the number of tokens of the memory's own text.
        """
        state = self._state
        own = count_tokens(state.texts.value_at(row) or "")
        context = int(state.contexts.codes[row])
        if context < 0 or self._turns[row]:
            return None
        if context not in self._by_context:
            rows = np.flatnonzero(state.contexts.codes == context)
            turns = rows[self._turns[rows]]
            turn_tokens = np.array(
                [count_tokens(text or "") for text in state.texts.to_list(turns)], dtype=np.int64
            )
            self._by_context[context] = (
                state.numbers["created"].values[turns],
                turn_tokens,
                len(rows) - len(turns),
            )
        created, turn_tokens, shared = self._by_context[context]
        before = created <= state.numbers["created"].values[row]
        return max(own, int(turn_tokens[before].sum()) // max(shared, 1)) if before.any() else None


def _make_latency_rows(measured: Latencies) -> Iterator[tuple[str, float | None, str, str]]:
    """Yield a row for each timed operation: name, median latency or None, unit, and a note with the number of calls."""
    for part in PARTS:
        typical, count = measured.typical(part)
        yield (
            f"latency-{part}",
            typical,
            "ms",
            f"median of the last {count:,} calls of this process",
        )


def _divide(part: float, whole: float) -> float | None:
    """Return ``part / whole``, or None if ``whole`` is 0."""
    return part / whole if whole else None


def _format_number(value: float | None) -> str:
    """Return a number as text, with three decimals unless it is whole; "" for None."""
    return "" if value is None else f"{value:,.0f}" if value == int(value) else f"{value:.3f}"

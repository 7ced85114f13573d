"""``lab.context``: memories for a prompt, within a budget of tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from memlab.subjects.context.writing import WARNINGS, Sheet
from memlab.subjects.reading.sentences import count_tokens

__all__ = ["Context", "Contexts", "Metrics", "metrics_of"]


_SETTINGS = ("tier-1-tokens", "tier-2-tokens", "tier-3-tokens", "always-kinds", "limit")


@dataclass(frozen=True)
class Context(Displayed):
    """What an agent is to know for a task: ``text`` between marks, ``markdown`` as a quotation, or ``messages()``.

    Attributes
    ----------
    task
        What it was asked for.
    text
        The memories between marks, for a prompt; empty where there is nothing to say.
    markdown
        The same as a quotation in Markdown.
    tokens
        The tokens of ``text``, at four bytes each; neither they nor those of ``markdown`` are ever above ``budget``.
    budget
        The tokens that were allowed.
    hits
        The hits of the recall, exactly the memories that were injected: ``lab.feedback(context.hits[0], ...)`` and
        ``lab.agents.credits.answer(answer, context.hits)`` judge them.
    frame
        A row for each memory, in order: memory_id, tier (1 always, 2 for the task, 3 cut), form ("warning", "note" or
        "fact"), tokens (in the longer of the two texts), reason.
    left_out
        A row for each memory that could have been expected: memory_id, what (it is), why (it is not there).
    pack
        The name of the pack that decided.
    pack_hash
        The hash of that pack.
    seed
        The seed of the lab, which decides the probes.
    settings
        The settings of the pack that bound it: the tokens of the tiers, always-kinds and limit.
    modules
        The modules of the project's map (``lab.agents.modules``) that the task speaks of and the text describes.
    """

    task: str
    text: str
    markdown: str
    tokens: int
    budget: int
    hits: Hits = field(repr=False)
    frame: pl.DataFrame = field(repr=False, compare=False)
    left_out: pl.DataFrame = field(repr=False, compare=False)
    pack: str
    pack_hash: str
    seed: int
    settings: Mapping[str, float | bool | str] = field(repr=False)
    modules: tuple[str, ...] = ()

    @property
    def decision(self) -> int | None:
        """The number of the recall; None if it was not logged."""
        return self.hits.decision

    @property
    def slate(self) -> Slate:
        """The candidates of the recall with their features."""
        return self.hits.slate

    def messages(self) -> list[dict[str, str]]:
        """The text as one message of a conversation; none where there is nothing to say.

        Its role is "user", as what is remembered has no more say than who said it.
        """
        return [{"role": "user", "content": self.text}] if self.text else []

    def __len__(self) -> int:
        """How many memories it holds."""
        return len(self.frame)

    def __bool__(self) -> bool:
        """True: it is there even where it holds nothing."""
        return True

    def __str__(self) -> str:
        return printable(self.text)

    @property
    def _summary(self) -> str:
        place = "not logged" if self.decision is None else f"recall {self.decision}"
        left = f", {len(self.left_out)} left out" if len(self.left_out) else ""
        return (
            f"{len(self)} memories for {clip(self.task)!r}, {self.tokens} of {self.budget} tokens{left}; {place}, pack "
            f"{self.pack} [{self.pack_hash[:12]}]"
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
    """The contexts that are asked of one lab."""

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
        log: bool,
    ) -> Context:
        """What is to be known for a task; see ``Lab.context``."""
        named = [files] if isinstance(files, str) else list(files)
        for file in named:
            if not file.strip():
                raise InputError("files are paths such as src/auth.py; one of them is empty.")
            validate_text(file, where="files")
        injection = Injection(self._files, budget)
        hits = self._questions.ask(
            "\n".join([task, " ".join(named)] if named else [task]),
            limit=None,
            project=project,
            session=session,
            filters=Filters.of(viewer=viewer),
            at=at,
            log=log and Sheet(budget).holds_any,
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
            frame=injection.frame,
            left_out=injection.left_out
            if hits.off is None
            else pl.DataFrame(
                [(None, "all memories", hits.off)], schema=injection.left_out.schema, orient="row"
            ),
            pack=pack.name,
            pack_hash=pack.hash,
            seed=self._core.seed,
            settings={name: pack.settings[name] for name in _SETTINGS},
            modules=injection.modules,
        )


# What contexts were worth: tokens that were injected, what of them was referenced, and what finding it out took.
#
# All but latencies is read from the journal. The journal holds no wall time, so that the same inputs give the same
# journal: latencies are those of the calls of this process.


_HELPED = 0.5
"""The reward from which a memory was referenced."""

_MOST_SHOWN = 10

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
    """What contexts were worth: ``metrics["coverage"]`` is one value, ``metrics.frame`` has all.

    The metrics are contexts, searches, injected, referenced, referenced-share, tokens-injected, tokens-discovery,
    tokens-saved, coverage, memories, confidence, latency-embedding, latency-search and latency-write; ``frame`` says
    what each is. Latencies are medians of the calls of this process: the journal holds no wall time, so another process
    has none of them.

    A memory was *referenced* by a context where somebody said of its recall that it helped (a success, or a reward of
    .5 at least), or where nobody said anything and an answer was attributed to it. Its *discovery* took the tokens of
    the turns of its session until it was remembered, shared by all that was remembered from them; at least those of its
    own text. *Saved* are the tokens of discovery of what was referenced, less all that were injected: below 0 where the
    contexts cost more than they gave.

    Attributes
    ----------
    frame
        A row for each metric: metric, value, unit, about.
    contexts
        A row for each context that was logged: event, at, decision, agent, project, session, memories, referenced,
        tokens, budget.
    memories
        A row for each memory that was injected: memory_id, kind, file, what (the beginning of its text), injected (how
        often), referenced (how often), discovery (the tokens that finding it out took).
    """

    frame: pl.DataFrame
    contexts: pl.DataFrame = field(repr=False)
    memories: pl.DataFrame = field(repr=False)

    @property
    def gotchas(self) -> pl.DataFrame:
        """The memories of ``memories`` that say what goes wrong, the most frequent first."""
        return self.memories.filter(pl.col("kind").is_in(sorted(WARNINGS)))

    @checked
    def __getitem__(self, metric: str) -> float | None:
        """The value of one metric, None where there is nothing to divide by; UnknownName for one that is not there."""
        known: dict[str, float | None] = dict(self.frame.select("metric", "value").iter_rows())
        if metric not in known:
            raise UnknownName("metric", metric, known)
        return known[metric]

    @checked
    def report(self, path: str | Path) -> Path:
        """Write one self-contained HTML file, and return its path."""
        target = Path(path).expanduser()
        page = (
            "<!doctype html><html lang='en'><meta charset='utf-8'><title>What contexts were worth</title>"
            "<body style='font-family:system-ui,sans-serif;margin:2em;max-width:70em'>"
            f"{self._repr_html_()}</body></html>"
        )
        with writing(f"the report {target}"):
            target.write_text(page, encoding="utf-8")
        return target

    def __repr__(self) -> str:
        rows = [[name, _number(value), unit] for name, value, unit, _ in self.frame.iter_rows()]
        return printable("\n".join(text_table(["metric", "value", "unit"], rows, left=(0, 2))))

    def _display(self) -> object:
        rows = [
            (name, _number(value), unit, about)
            for name, value, unit, about in self.frame.iter_rows()
        ]
        whole = table("What contexts were worth", ("metric", "value", "unit", ""), rows)
        heads = ("memory_id", "file", "what", "injected", "referenced")
        gotchas = table("", heads, self.gotchas.head(_MOST_SHOWN).select(heads).iter_rows())
        latest = self.contexts.tail(_MOST_SHOWN).reverse()
        contexts = details("the latest contexts", table("", latest.columns, latest.iter_rows()))
        return whole, details("the most frequent gotchas", gotchas, opened=True), contexts


def metrics_of(core: Core, *, since: Micros | None = None) -> Metrics:
    """The metrics of the contexts that were logged, from an instant on."""
    with core.reading() as state:
        journal = core.store.journal
        first = -(2**63) if since is None else since
        logged = [
            e
            for e in journal.events(kinds=("inject",))
            if e.at >= first and "searched" not in e.body
        ]
        recalls = [event for event in journal.events(kinds=("recall",)) if event.at >= first]
        referenced = _referenced(journal.events(kinds=("feedback",)))
        injected = Counter(id for event in logged for id in event.body["ids"])
        used = Counter(
            id
            for event in logged
            for id in event.body["ids"]
            if (event.body["decision"], id) in referenced
        )
        contexts = pl.DataFrame(
            [_context(event, referenced) for event in logged], schema=_CONTEXTS, orient="row"
        )
        discovery = _Discovery(state)
        rows = [
            (
                id,
                state.names["kind"].value_at(id - 1),
                next(iter(state.lists["files"].value_at(id - 1)), None),
                clip(state.texts.value_at(id - 1), 100),
                count,
                used[id],
                discovery.tokens(id - 1),
            )
            for id, count in injected.items()
        ]
        memories = pl.DataFrame(rows, schema=_MEMORIES, orient="row")
        memories = memories.sort(
            "injected", "referenced", "memory_id", descending=[True, True, False]
        )
        in_use = state.names["status"].is_in(RECALLABLE)
        if (seen := visible_rows(state)) is not None:
            in_use = in_use & np.isin(np.arange(len(state)), seen)
        confidence = state.numbers["confidence"].values[in_use]
    given = int(contexts["tokens"].sum())
    # what was referenced, and came of turns that the lab holds: of anything else nobody knows what finding it out took
    of_turns = memories.filter((pl.col("referenced") > 0) & pl.col("discovery").is_not_null())
    found = int((of_turns["referenced"] * of_turns["discovery"]).sum()) if len(of_turns) else None
    count, shown = int(in_use.sum()), int(contexts["memories"].sum())
    covered = sum(bool(in_use[id - 1]) for id in injected)
    searches = sum("budget" not in event.body for event in recalls)
    return Metrics(
        pl.DataFrame(
            [
                ("contexts", len(logged), "count", "contexts that held something"),
                ("searches", searches, "count", "recalls on demand beside them"),
                (
                    "injected",
                    shown,
                    "memories",
                    "that contexts held, each as often as it was there",
                ),
                (
                    "referenced",
                    sum(used.values()),
                    "memories",
                    "of these, of which something was used",
                ),
                (
                    "referenced-share",
                    _share(sum(used.values()), shown),
                    "share",
                    "referenced of injected",
                ),
                ("tokens-injected", given, "tokens", "of all contexts"),
                (
                    "tokens-discovery",
                    found,
                    "tokens",
                    "that finding out what was referenced took; none: unknown",
                ),
                (
                    "tokens-saved",
                    None if found is None else found - given,
                    "tokens",
                    "discovery less injected; none: unknown, as nothing that was referenced came of turns kept here",
                ),
                (
                    "coverage",
                    _share(covered, count),
                    "share",
                    "of the memories in use that a context ever held",
                ),
                ("memories", count, "memories", "in use"),
                (
                    "confidence",
                    float(confidence.mean()) if count else None,
                    "share",
                    "mean of the memories in use",
                ),
                *_latencies(core.latencies),
            ],
            schema=_FRAME,
            orient="row",
        ),
        contexts.with_columns(pl.col("at").cast(pl.Datetime("us", "UTC"))),
        memories,
    )


def _referenced(feedback: Iterable[Event]) -> set[tuple[int, int]]:
    """The pairs of a recall and a memory that helped: by what was stated last, else by the best attribution."""
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


def _context(event: Event, referenced: set[tuple[int, int]]) -> tuple[Any, ...]:
    body = event.body
    helped = sum((body["decision"], id) in referenced for id in body["ids"])
    where = (body.get("agent"), body.get("project"), body.get("session"))
    return (
        event.seq,
        event.at,
        body["decision"],
        *where,
        len(body["ids"]),
        helped,
        body["tokens"],
        body["budget"],
    )


class _Discovery:
    """What finding out took, by the turns that the lab holds."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._turns = state.names["kind"].is_in(["turn"])
        self._of: dict[int, tuple[NDArray[np.int64], NDArray[np.int64], int]] = {}

    def tokens(self, row: int) -> int | None:
        """The tokens of the turns before the memory in its session, by the memories that came of them; at least its
        own. None where the lab holds no such turn.
        """
        state = self._state
        own = count_tokens(state.texts.value_at(row) or "")
        context = int(state.contexts.codes[row])
        if context < 0 or self._turns[row]:
            return None
        if context not in self._of:
            rows = np.flatnonzero(state.contexts.codes == context)
            turns = rows[self._turns[rows]]
            said = np.array(
                [count_tokens(text or "") for text in state.texts.to_list(turns)], dtype=np.int64
            )
            self._of[context] = state.numbers["created"].values[turns], said, len(rows) - len(turns)
        created, said, shared = self._of[context]
        before = created <= state.numbers["created"].values[row]
        return max(own, int(said[before].sum()) // max(shared, 1)) if before.any() else None


def _latencies(measured: Latencies) -> Iterator[tuple[str, float | None, str, str]]:
    for part in PARTS:
        typical, count = measured.typical(part)
        yield (
            f"latency-{part}",
            typical,
            "ms",
            f"median of the last {count:,} calls of this process",
        )


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value == int(value) else f"{value:.3f}"

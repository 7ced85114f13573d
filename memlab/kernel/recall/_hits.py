"""The results of a recall: hits that explain their scores.

Hits render in a notebook and in a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked, get_item
from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.display import Displayed, Markup, bar, clip, details, table
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.english import asks_for_fact
from memlab.kernel.hooks import load_part
from memlab.kernel.index import Words, bm25, passages_of
from memlab.kernel.policies import Pack
from memlab.kernel.recall._population import Population
from memlab.kernel.slates import Slate
from memlab.kernel.state import State, read_words

if TYPE_CHECKING:
    from memlab.kernel.language import Policy
    from memlab.kernel.privacy import Finding


class Recalled(NamedTuple):
    """The fields of a memory that a hit shows."""

    id: int
    text: str
    kind: str
    ref: str | None
    speaker: str | None
    session: str | None
    project: str | None
    created: datetime


def read_memories(state: State, ids: Sequence[int]) -> list[Recalled]:
    """Return the fields of the memories ``ids`` that hits display.

    Reading column by column costs a fifth of reading whole memories.
    """
    rows = np.array(ids, dtype=np.int64) - 1
    names = [state.names[name] for name in ("kind", "speaker", "session", "project")]
    kinds, speakers, sessions, projects = read_words(names, rows)
    texts, refs = state.texts.to_list(rows), state.refs.to_list(rows)
    created = map(from_micros, state.numbers["created"].values[rows].tolist())
    return list(map(Recalled, ids, texts, kinds, refs, speakers, sessions, projects, created))


@dataclass(frozen=True)
class ScoreExplanation(Displayed):
    """The explanation of a hit's score, as returned by ``hit.explain()``.

    Parameters
    ----------
    memory
        The id of the memory.
    score
        The score that the policy computes.
    terms
        The additive terms of the active branch of the policy with their values, which sum to ``score``.
    policy, hash
        The name and the hash of the policy.
    features
        The values of the features that the policy reads.
    tree
        The whole computation, step by step.
    labels, groups
        A label in words for each of ``terms`` and its group, from the comments of the policy's text;
        empty strings where the policy has no comment.
    order
        A sentence about the slot ``select`` if it changed the rank of the candidate, else "".
    expressions
        Whether to print the expressions of the policy instead of the labels.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["Ana prefers tabs", "Ben prefers spaces"])
    >>> words = "(pack words) (defpolicy recall-score [coverage] (* 2 coverage))"
    >>> explanation = lab.recall("tabs", pack=words)[0].explain()
    >>> explanation.terms, explanation.score
    ((('(* 2 coverage)', 2.0),), 2.0)
    """

    memory: int
    score: float
    terms: tuple[tuple[str, float], ...]
    policy: str
    hash: str
    features: dict[str, float | bool | str | None]
    tree: Any = field(repr=False, compare=False)
    labels: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    order: str = ""
    expressions: bool = field(default=False, compare=False)

    @property
    def frame(self) -> pl.DataFrame:
        """The explanation as a frame with ``term``, ``value``, ``label`` and ``group``."""
        rows = [
            (*term, *words)
            for term, *words in zip(self.terms, self.labels, self.groups, strict=True)
        ]
        texts = dict.fromkeys(("label", "group"), pl.String)
        schema = {"term": pl.String, "value": pl.Float64, **texts}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def parts(self) -> tuple[tuple[str, str, float], ...]:
        """The group, label and value of each part of the score.

        The largest group is first, and within a group the largest part. A term without a label is
        listed by its expression, in the group "" unless the policy names one.
        """
        parts: tuple[tuple[str, str, float], ...] = load_part("group-terms")(self)
        return parts

    def _rows(self) -> list[tuple[str, float | None]]:
        """Return the printed lines of a score: a name and a value, or None for a line without a value.

        Parts are listed under the sum of their group, and parts that round to zero share one line.
        """
        rows: list[tuple[str, float | None]] = load_part("print-terms")(self)
        return rows

    @property
    def _title(self) -> str:
        return f"memory {self.memory} scores {self.score:.4f} by {self.policy} [{self.hash[:12]}]"

    @property
    def _notes(self) -> list[str]:
        reads = ", ".join(f"{name}={_short(value)}" for name, value in self.features.items())
        return [*([self.order] if self.order else []), f"reads {reads}"]

    def __repr__(self) -> str:
        rows = self._rows()
        width = min(max((len(text) for text, value in rows if value is not None), default=0), 72)
        lines = [
            f"  {text}" if value is None else f"  {text:<{width}}  {value:+.4f}"
            for text, value in rows
        ]
        return printable("\n".join([self._title, *lines, *(f"  {note}" for note in self._notes)]))

    def _display(self) -> object:
        rows = self._rows()
        top = max((abs(value) for _, value in rows if value is not None), default=0.0)
        cells = [
            (text, "", "") if value is None else (text, f"{value:+.4f}", bar(value, top))
            for text, value in rows
        ]
        whole = table(self._title, ("term", "value", ""), cells, notes=self._notes)
        return whole, details("step by step", self.tree)


@dataclass(frozen=True)
class Hit(Displayed):
    """One memory in the results of a recall.

    Parameters
    ----------
    id
        The id of the memory.
    rank
        The position in the results, from 1.
    score
        The score by the pack's ``recall-score``. Scores of different packs have different scales.
    text
        The whole text of the memory.
    kind
        The kind of the memory, such as "fact".
    ref
        The caller's own identifier of the memory.
    speaker
        The name of the speaker.
    session
        The session of the memory.
    project
        The project of the memory.
    created
        The time from which the memory counts, such as that of the message; aware, in UTC.
    decision
        The number of the logged recall, as ``lab.feedback(decision=)`` takes it; None if it was not logged.
    probe
        Whether the memory is an exploration item, drawn at random from the ranks below the top-k.
    also
        The ids of near-duplicates that are hidden behind this hit, by the setting ``collapse-above``.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("Ana prefers tabs", speaker="Ana")
    >>> hit = lab.recall("tabs")[0]
    >>> hit.rank, hit.text, hit.speaker
    (1, 'Ana prefers tabs', 'Ana')
    """

    id: int
    rank: int
    score: float
    text: str
    kind: str
    ref: str | None
    speaker: str | None
    session: str | None
    project: str | None
    created: datetime
    decision: int | None
    probe: bool
    also: tuple[int, ...]
    _hits: Hits

    @checked
    def explain(self, *, expressions: bool = False) -> ScoreExplanation:
        """Explain the score of this hit by the terms of the policy.

        Parameters
        ----------
        expressions
            Whether to print the expressions of the policy instead of their labels in words. The value of
            ``(inherited)``, one term by default, is then split into terms as well.

        Returns
        -------
        ScoreExplanation
            The terms that sum to the score, and the features that they read.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("Ana prefers tabs")
        >>> words = "(pack words) (defpolicy recall-score [coverage] (* 2 coverage))"
        >>> lab.recall("tabs", pack=words)[0].explain().features
        {'coverage': 1.0}
        """
        return self._hits.explain(self, expressions=expressions)

    @property
    def passage(self) -> str | None:
        """The passage of a long text that matches the query best, by BM25.

        The value is None if the text is one passage or shares no word with the query.
        """
        span = self._span
        return None if span is None else self.text[slice(*span)].strip()

    @property
    def _span(self) -> tuple[int, int] | None:
        """The start and end in the text of its best passage for the query, or None if no passage is best."""
        return best_span(
            self.text,
            passages_of(self.text),
            self._hits.slate.query,
            str(self._hits.pack.settings["language"]),
        )

    @checked
    def above(self, other: Hit | int | None = None) -> Any:
        """Explain why this hit ranks above another candidate.

        Parameters
        ----------
        other
            The other candidate, as a hit or a memory id; by default the best candidate that was not shown.

        Returns
        -------
        memlab.subjects.lens.Why
            The comparison, term by term.

        Raises
        ------
        InputError
            If every candidate was shown and ``other`` is None.
        UnknownName
            If ``other`` was no candidate of this recall.
        """
        return self._hits.why(self, other)

    def __repr__(self) -> str:
        mark = "probe, " if self.probe else ""
        return f"<Hit {self.rank}: {mark}memory {self.id}, score {self.score:.4f}, {clip(self.text, 60)!r}>"


class Hits(Sequence[Hit], Displayed):
    """The results of a recall, best first, as a sequence of ``Hit``.

    Parameters
    ----------
    slate
        The whole candidate pool with its features, scores and probabilities.
    pack
        The pack that ranked the candidates.
    decision
        The number of the logged recall; None if it was not logged.
    memories
        The fields of the shown memories, best first.
    redacted
        The secrets that were removed from the query before the search.
    off
        The reason why memory is switched off, so that there are no results and no log; None if it is on.
    repeated
        The ids of memories left out because the agent received them before in the session. ``again=True`` shows them.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["Ana prefers tabs", "Ben prefers spaces"])
    >>> hits = lab.recall("tabs")
    >>> hits.ids, len(hits), hits[0].text
    ((1, 2), 2, 'Ana prefers tabs')
    """

    def __init__(
        self,
        slate: Slate,
        pack: Pack,
        decision: int | None,
        memories: Sequence[Recalled],
        *,
        redacted: tuple[Finding, ...] = (),
        off: str | None = None,
        repeated: tuple[int, ...] = (),
    ) -> None:
        self.redacted = redacted
        self.off = off
        self.repeated = repeated
        self.slate = slate
        self.pack = pack
        self.decision = decision
        self._memories = memories

    @property
    def known(self) -> float | None:
        """The probability that the results contain the answer, from the slot ``known``.

        The value is None if the pack has no estimate, or if ``known`` was calibrated for another
        ``recall-score``, ``seed-score``, ``spread`` or ``cut``. Below the setting ``known-floor``
        at most ``unknown-limit`` memories are shown; without a value, none is hidden.
        """
        return self.slate.known

    @property
    def weak(self) -> bool:
        """Whether the results probably contain no answer.

        This is the case if ``known`` is below .4 and the query asks for a fact in English. Values of ``known`` were
        measured on such queries; on advice and on other languages they say little.
        """
        language = str(self.pack.settings["language"])
        return bool(self.ids) and is_weak(self.known, self.slate.query, language)

    @property
    def confidence(self) -> str:
        """The probability of an answer as a phrase, or the reason why it is unknown.

        It is empty if the pack does not estimate it.
        """
        return self.pack.uncalibrated if self.known is None else likely(self.known)

    def _hit(self, index: int) -> Hit:
        """Return the hit at an index of the results.

        Hits are built on access: a hit refers to its recall, and a recall with stored hits would wait for the garbage
        collector.
        """
        memory = self._memories[index]
        return Hit(
            id=memory.id,
            rank=index + 1,
            score=float(self.slate.scores[self.slate.places[index]]),
            text=memory.text,
            kind=memory.kind,
            ref=memory.ref,
            speaker=memory.speaker,
            session=memory.session,
            project=memory.project,
            created=memory.created,
            decision=self.decision,
            probe=memory.id in self.slate.probes,
            also=self.slate.also.get(memory.id, ()),
            _hits=self,
        )

    @cached_property
    def _position(self) -> dict[int, int]:
        """The index of each candidate in the slate, keyed by memory id."""
        return {memory: index for index, memory in enumerate(self.slate.ids.tolist())}

    def __len__(self) -> int:
        return len(self._memories)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    @checked
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        indices: int | Sequence[int] = get_item(range(len(self)), index, "hit")
        return (
            self._hit(indices)
            if isinstance(indices, int)
            else [self._hit(position) for position in indices]
        )

    def __iter__(self) -> Iterator[Hit]:
        return map(self._hit, range(len(self)))

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the shown memories, best first."""
        return self.slate.shown

    @property
    def probes(self) -> tuple[int, ...]:
        """The ids of the exploration items among the hits, which were drawn at random."""
        return self.slate.probes

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The hits with their logged features as a frame, best first.

        Columns: rank, memory_id, score, text, ref, speaker, session, project, then each feature of the slate
        (docs/reference/policy-language.md#features) under its name in a policy, such as ``pl.col("age-days")``. There is no
        column for ``hit.probe``.
        """
        # Iterating makes each hit once per column; a frame has few rows.
        head = pl.DataFrame(
            {
                "rank": [hit.rank for hit in self],
                "memory_id": [hit.id for hit in self],
                "score": [hit.score for hit in self],
                "text": [hit.text for hit in self],
                "ref": [hit.ref for hit in self],
                "speaker": [hit.speaker for hit in self],
                "session": [hit.session for hit in self],
                "project": [hit.project for hit in self],
            },
            schema={
                "rank": pl.Int64,
                "memory_id": pl.Int64,
                "score": pl.Float64,
                "text": pl.String,
                "ref": pl.String,
                "speaker": pl.String,
                "session": pl.String,
                "project": pl.String,
            },
        )
        return head.join(
            self.slate.frame.drop("score", "rank", "propensity"),
            on="memory_id",
            how="left",
            maintain_order="left",
        )

    @property
    def _policy(self) -> Policy:
        """The policy of the slot ``recall-score``."""
        return self.pack.policies["recall-score"]

    @cached_property
    def _aggregates(self) -> pl.DataFrame:
        """The values of the policy's aggregates over the pool, one row per candidate."""
        return self._policy.aggregates(self.slate.frame)

    def _index(self, memory: Hit | int) -> int:
        """Return the index of a candidate in the slate."""
        wanted = memory.id if isinstance(memory, Hit) else memory
        index = self._position.get(wanted)
        if index is None:
            raise UnknownName("memory", wanted, where="Among the candidates of this recall: ")
        return index

    def _values(
        self, index: int
    ) -> tuple[dict[str, float | bool | str | None], dict[str, float | None]]:
        """Return the values of a candidate's features and aggregates that the policy reads, by name.

        ``index`` is the row of the candidate in the slate's frame.
        """
        row = self.slate.frame.row(index, named=True)
        aggregates = self._aggregates.row(index, named=True) if self._aggregates.width else {}
        return {name: row[name] for name in self._policy.inputs}, aggregates

    @checked
    def explain(self, memory: Hit | int, *, expressions: bool = False) -> ScoreExplanation:
        """Explain the score of a candidate by the terms of the policy.

        Parameters
        ----------
        memory
            A hit or a memory id. The candidate need not have been shown.
        expressions
            Whether to print the expressions of the policy instead of their labels in words. The value of
            ``(inherited)``, one term by default, is then split into terms as well.

        Returns
        -------
        ScoreExplanation
            The terms that sum to the score, and the features that they read.

        Raises
        ------
        UnknownName
            If the memory was no candidate of this recall.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["Ana prefers tabs", "Ben prefers spaces"])
        >>> words = "(pack words) (defpolicy recall-score [coverage] (* 2 coverage))"
        >>> lab.recall("tabs", pack=words).explain(2).score
        0.0
        """
        index, policy = self._index(memory), self._policy
        values, aggregates = self._values(index)
        explanation = policy.explain(values, aggregates=aggregates, inherited=expressions)
        return ScoreExplanation(
            memory=int(self.slate.ids[index]),
            score=float(self.slate.scores[index]),
            terms=tuple((term.text, float(term.value)) for term in explanation.terms),
            policy=policy.name,
            hash=policy.hash,
            features=values,
            tree=explanation.tree,
            labels=tuple(term.label for term in explanation.terms),
            groups=tuple(term.group for term in explanation.terms),
            order=self._describe_order(index),
            expressions=expressions,
        )

    def _describe_order(self, index: int) -> str:
        """State how a candidate's rank in the pack's order differs from its rank by score.

        Returns "" if rank and score agree, and for a probe.
        """
        scores = self.slate.scores
        if self.slate.ids[index] in self.slate.probes or scores[index] != scores[index]:
            return ""
        by_score, rank = 1 + int((scores > scores[index]).sum()), int(self.slate.ranking[index])
        # Candidates with equal scores share the ranks from the first of them to the last.
        if by_score <= rank < by_score + int((scores == scores[index]).sum()):
            return ""
        selector = "slot select" if self.pack.selects else "settings mmr-weight and collapse-above"
        return f"rank {by_score} by score, rank {rank} after the {selector} of the pack"

    @checked
    def why(self, a: Hit | int, b: Hit | int | None = None) -> Any:
        """Compare the scores of two candidates, term by term.

        Parameters
        ----------
        a
            A hit or a memory id. The candidate need not have been shown.
        b
            The candidate to compare with. By default, this is the best candidate that was not shown
            if ``a`` was shown, and otherwise the lowest-ranked candidate that was shown and is no
            probe.

        Returns
        -------
        memlab.subjects.lens.Why
            The comparison: the terms in which the scores differ.

        Raises
        ------
        InputError
            If ``b`` is None and there is no candidate to compare with.
        UnknownName
            If a memory was no candidate of this recall: it was not found, not reached or not eligible.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["Ana prefers tabs", "Ben prefers spaces"])
        >>> words = "(pack words) (defpolicy recall-score [coverage] (* 2 coverage))"
        >>> lab.recall("tabs", pack=words).why(1, 2).difference
        2.0
        """
        first = self._index(a)
        if b is not None:
            second = self._index(b)
        elif self.slate.ids[first] in self.slate.shown:
            left_out = np.flatnonzero(~np.isin(self.slate.ids, self.slate.shown))
            if not len(left_out):
                raise InputError(
                    "Every candidate was returned, so no candidate is left for a default "
                    "comparison. Name two memories: why(a, b)."
                )
            second = int(left_out[np.argmin(self.slate.ranking[left_out])])
        else:
            first, second = self._last_shown(), first
        (values_a, aggregates_a), (values_b, aggregates_b) = (
            self._values(first),
            self._values(second),
        )
        names = (f"memory {self.slate.ids[first]}", f"memory {self.slate.ids[second]}")
        return self._policy.why(
            values_a, values_b, aggregates=(aggregates_a, aggregates_b), names=names
        )

    def _last_shown(self) -> int:
        """Return the slate index of the last shown item that is not an exploration item.

        Raises InputError if there is none.
        """
        for memory in reversed(self.slate.shown):
            if memory not in self.slate.probes:
                return self._position[memory]
        raise InputError(
            "No memory was returned for its score, so there is no default for a comparison. Name two memories: why(a, b)."
        )

    @property
    def _redactions(self) -> str:
        """A note on the number of secrets that were removed from the query, or ""."""
        count = len(self.redacted)
        return f"; {count} secret{'s' * (count > 1)} redacted in the query" if count else ""

    @property
    def _answered(self) -> str:
        """A note on the probability that the results contain the answer, or "" if it is unknown."""
        return f"; {self.confidence}" if self.confidence else ""

    @property
    def _unscored(self) -> str:
        """A note on candidates that cannot be shown, because their score is not finite, or ""."""
        count = int((~np.isfinite(self.slate.scores)).sum())
        return f"; {count} without a finite score cannot be shown" if count else ""

    @property
    def _notes(self) -> list[str]:
        """Notes on switched-off memory, weak results, repeated memories, probes and a random first result."""
        drawn = count_of(len(self.probes), "exploration item")
        packs = ", ".join((self.slate.challenge or {}).get("heads", ()))
        why = (
            f"not a result of {self.pack.name}; drawn at random for the challenge of {packs}"
            if packs
            else f"not in the top {len(self) - len(self.probes)}; drawn at random to explore"
        )
        probes = f"{drawn} (?): {why}"
        challenge = self.slate.challenge or {}
        heads = [
            challenge.get("live", []),
            *(head["ids"] for head in challenge.get("heads", {}).values()),
        ]
        is_first_drawn = (
            self.slate.sampler in ("lot", "draft", "ab")
            and len({tuple(head[:1]) for head in heads}) > 1
        )
        before = (
            f"{len(self.repeated)} left out, shown before in this session; again=True shows them"
        )
        return (
            ([self.off] if self.off else [])
            + ([f"weak: {WEAK}"] if self.weak else [])
            + ([before] if self.repeated else [])
            + ([probes] if self.probes else [])
            + (
                [
                    f"the first result was drawn at random: the packs disagree (design {self.slate.sampler})"
                ]
                if is_first_drawn
                else []
            )
        )

    def __repr__(self) -> str:
        pack = f"pack {self.pack.name} [{self.pack.hash[:12]}]"
        counts = f"{len(self)} of {len(self.slate)} candidates for {clip(self.slate.query, 70)!r}"
        lines = [f"{counts}, {pack}{self._answered}{self._unscored}{self._redactions}"]
        lines += self._notes
        for hit in self:
            who = f"{hit.speaker}: " if hit.speaker else ""
            mark = "?" if hit.probe else " "
            lines.append(
                f"{hit.rank:>3}{mark} {hit.score:7.4f}  #{hit.id:<6} {who}{clip(hit.passage or hit.text, 84)}"
            )
        return printable("\n".join(lines))

    def _display(self) -> object:
        top = max((abs(hit.score) for hit in self), default=0.0)
        has_speakers = any(hit.speaker for hit in self)
        rows = [
            (
                f"{hit.rank}",
                "probe" if hit.probe else "",
                f"{hit.score:.4f}",
                bar(hit.score, top, signed=False),
                hit.id,
                *([hit.speaker] if has_speakers else []),
                _display_text(hit),
                hit.kind,
            )
            for hit in self
        ]
        caption = (
            f"{len(self)} of {len(self.slate)} candidates for {clip(self.slate.query, 200)!r}, pack {self.pack.name} "
            f"[{self.pack.hash[:12]}]{self._answered}{self._unscored}{self._redactions}"
        )
        columns = (
            "rank",
            "",
            "score",
            "",
            "id",
            *(["speaker"] if has_speakers else []),
            "memory",
            "kind",
        )
        return table(caption, columns, rows, notes=self._notes)


WEAK = "probably no memory answers this"
"""The phrase for weak results."""

# Above this value are 95% of the answerable questions of each English benchmark, and below it more than half of LoCoMo's
# unanswerable ones (``experiments/known.py``).
_WEAK_BELOW = 0.4


def is_weak(known: float | None, query: str, language: str) -> bool:
    """Return whether the results for a query probably contain no answer.

    >>> is_weak(0.33, "What is the capital of Mongolia?", "english")
    True
    """
    return known is not None and known < _WEAK_BELOW and asks_for_fact(query, language)


def likely(probability: float) -> str:
    """Return a phrase for the probability that a recall contains the answer.

    >>> likely(0.634), likely(0.999)
    ('63% likely that one of these answers the question', 'more than 99% likely that one of these answers the question')
    """
    share = (
        "more than 99%"
        if probability > 0.99
        else "less than 1%"
        if probability < 0.01
        else f"{probability:.0%}"
    )
    return f"{share} likely that one of these answers the question"


def best_span(
    text: str, spans: Sequence[tuple[int, int]], question: str, language: str
) -> tuple[int, int] | None:
    """Return the span of a text's best passage for a query, or None if no passage is best.

    BM25 statistics come from this text alone, so that other memories do not change the choice.
    """
    if len(spans) <= 1:
        return None
    words = Words(None if language == "none" else language)
    words.append([text[start:stop] for start, stop in spans])
    hits = words.hits(words.query(question))
    rows, scores = bm25(
        hits, words.lengths, count=len(spans), mean_length=float(words.lengths.mean())
    )
    return spans[rows[np.argmax(scores)]] if len(rows) else None


def _display_text(hit: Hit) -> str:
    """Return the clipped text of a hit.

    For a long text, the best passage is shown, and it expands to the whole text.
    """
    span = hit._span
    if span is None:
        return clip(hit.text, 300) + _note_duplicates(hit)
    before, passage, after = hit.text[: span[0]], hit.text[slice(*span)], hit.text[span[1] :]
    whole = Markup("<div dir='auto' style='white-space:pre-wrap'>{}<mark>{}</mark>{}</div>")
    return details(clip(passage, 300) + _note_duplicates(hit), whole.format(before, passage, after))


def _note_duplicates(hit: Hit) -> str:
    """Return a note with the number of near-duplicates of a hit, or "" without any."""
    return f" (and {len(hit.also)}  near-duplicates)" if hit.also else ""


def _short(value: float | bool | str | None) -> str:
    """Format a float with four significant digits, and any other value with ``str``."""
    if isinstance(value, float) and not isinstance(value, bool | np.bool_):
        return f"{value:.4g}"
    return str(value)


# Memories similar to a given memory, by the cosine of their stored vectors.


# The columns that a frame of similar memories takes from the memories.
_WORDS = ("text", "kind", "ref", "speaker", "session", "project")


def similar(state: State, row: int, population: Population, *, limit: int) -> pl.DataFrame:
    """Return the memories of ``population`` nearest to the memory in ``row``.

    The memory itself is left out. Ties are broken by id. A memory that has no vector yet is similar
    to none.
    """
    vector = state.vectors.take(np.array([row]))[0]
    search = population.search
    if state.unembedded:
        search = {
            "rows": state.drop_unembedded(population.rows)
            if row >= state.unembedded
            else population.rows[:0]
        }
    rows, cosine = state.vectors.top(vector, limit + 1, **search)
    others = np.flatnonzero(rows != row)[:limit]
    ids = rows[others] + 1
    memories = read_memories(state, ids.tolist())
    return pl.DataFrame(
        [
            pl.Series("rank", np.arange(1, len(ids) + 1)),
            pl.Series("memory_id", ids),
            pl.Series("similarity", cosine[others]),
            *(
                pl.Series(name, [getattr(memory, name) for memory in memories], dtype=pl.String)
                for name in _WORDS
            ),
        ]
    )

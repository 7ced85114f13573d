"""What a recall shows: hits that render in a notebook and a terminal, and explain their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import checked, get_item
from memlab.kernel.base.display import Displayed, Markup, bar, clip, details, table
from memlab.kernel.base.printable import printable
from memlab.kernel.index import Words, bm25, passages_of
from memlab.kernel.policies import Pack
from memlab.kernel.recall._population import Population
from memlab.kernel.slates import Slate
from memlab.kernel.state import State, words_at

if TYPE_CHECKING:
    from memlab.kernel.language import Policy
    from memlab.kernel.privacy import Finding

__all__ = ["Hit", "Hits", "Recalled", "ScoreExplanation", "recalled", "similar"]


class Recalled(NamedTuple):
    """What a hit shows of its memory."""

    id: int
    text: str
    kind: str
    ref: str | None
    speaker: str | None
    session: str | None
    project: str | None


def recalled(state: State, ids: Sequence[int]) -> list[Recalled]:
    """What hits show of these memories, column by column: a fifth of the cost of whole memories."""
    rows = np.array(ids, dtype=np.int64) - 1
    names = [state.names[name] for name in ("kind", "speaker", "session", "project")]
    kinds, speakers, sessions, projects = words_at(names, rows)
    texts, refs = state.texts.take(rows), state.refs.take(rows)
    return list(map(Recalled, ids, texts, kinds, refs, speakers, sessions, projects))


@dataclass(frozen=True)
class ScoreExplanation(Displayed):
    """Why a hit has its score.

    ``terms`` are the additive terms of the policy's live branch, which sum to ``score``; ``tree`` is the whole
    computation.
    """

    memory: int
    score: float
    terms: tuple[tuple[str, float], ...]
    policy: str
    hash: str
    features: dict[str, float | bool | str | None]
    tree: Any = field(repr=False, compare=False)

    @property
    def frame(self) -> pl.DataFrame:
        """``term``, ``value``, in the order of the policy."""
        return pl.DataFrame(
            {"term": [text for text, _ in self.terms], "value": [value for _, value in self.terms]},
            schema={"term": pl.String, "value": pl.Float64},
        )

    def __repr__(self) -> str:
        width = max((len(text) for text, _ in self.terms), default=0)
        lines = [
            f"memory {self.memory} scores {self.score:.4f} by {self.policy} [{self.hash[:12]}]"
        ]
        lines += [f"  {text:<{min(width, 72)}}  {value:+.4f}" for text, value in self.terms]
        reads = ", ".join(f"{name}={_short(value)}" for name, value in self.features.items())
        return printable("\n".join([*lines, f"  reads {reads}"]))

    def _display(self) -> object:
        top = max((abs(value) for _, value in self.terms), default=0.0)
        rows = [(text, f"{value:+.4f}", bar(value, top)) for text, value in self.terms]
        reads = ", ".join(f"{name} = {_short(value)}" for name, value in self.features.items())
        head = f"memory {self.memory} scores {self.score:.4f} by {self.policy} [{self.hash[:12]}]"
        whole = table(head, ("term", "value", ""), rows, notes=[f"reads {reads}"])
        return whole, details("step by step", self.tree)


@dataclass(frozen=True)
class Hit(Displayed):
    """One memory that a recall showed.

    Attributes
    ----------
    id
        The id of the memory.
    rank
        Its position in what was shown, from 1.
    score
        What the pack's ``recall-score`` gave it; packs have scales of their own.
    text
        The whole text of the memory.
    kind
        What sort of memory it is.
    ref
        The caller's own identifier.
    speaker
        Who said it.
    session
        The session it came from.
    project
        The project it belongs to.
    decision
        The number of the logged recall, as ``lab.feedback(decision=)`` takes it; None where it was not logged.
    probe
        Whether it was drawn by chance from below the best, to learn about it.
    also
        The ids of memories so near to it that it was shown for them too, by the setting ``collapse-above``.
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
    decision: int | None
    probe: bool
    also: tuple[int, ...]
    _hits: Hits

    def explain(self) -> ScoreExplanation:
        """The terms of the recall score that sum to this hit's score, and the features that they read."""
        return self._hits.explain(self)

    @property
    def passage(self) -> str | None:
        """Of a long text, the passage that has most of the question's words, by BM25 among its passages.

        None where the text is one passage, or shares no word with the question.
        """
        span = self._span
        return None if span is None else self.text[slice(*span)].strip()

    @property
    def _span(self) -> tuple[int, int] | None:
        """Where the passage begins and ends."""
        return _answering(
            self.text, self._hits.slate.query, str(self._hits.pack.settings["language"])
        )

    @checked
    def above(self, other: Hit | int | None = None) -> Any:
        """Why this hit stands above another hit or candidate, or above the best that was not shown."""
        return self._hits.why(self, other)

    def __repr__(self) -> str:
        mark = "probe, " if self.probe else ""
        return f"<Hit {self.rank}: {mark}memory {self.id}, score {self.score:.4f}, {clip(self.text, 60)!r}>"


class Hits(Sequence[Hit], Displayed):
    """The hits of a recall, best first: a sequence of ``Hit``, with a length, to index and to slice.

    Attributes
    ----------
    slate
        The whole pool with its features, scores and probabilities.
    pack
        The pack that decided.
    decision
        The number of the logged recall; None where it was not logged.
    redacted
        What the privacy gate took out of the query before it was asked.
    off
        Why memory is switched off, so that nothing is shown or logged; None where it is on.
    repeated
        The ids of memories left out because the agent was given them before in the session; ``again=True`` shows them.
    """

    def __init__(
        self,
        slate: Slate,
        pack: Pack,
        decision: int | None,
        shown: Sequence[Recalled],
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
        self._shown = shown

    @property
    def known(self) -> float | None:
        """The probability that these memories contain the answer, by the pack's slot ``known``.

        None where the pack does not say, or has another ``recall-score`` than its ``known`` was calibrated for.
        Below the setting ``known-floor`` no more than ``unknown-limit`` are shown.
        """
        return self.slate.known

    def _hit(self, place: int) -> Hit:
        """Made where it is asked for: hits and their recall, each knowing the other, would wait for the collector."""
        memory = self._shown[place]
        return Hit(
            id=memory.id,
            rank=place + 1,
            score=float(self.slate.scores[self.slate.places[place]]),
            text=memory.text,
            kind=memory.kind,
            ref=memory.ref,
            speaker=memory.speaker,
            session=memory.session,
            project=memory.project,
            decision=self.decision,
            probe=memory.id in self.slate.probes,
            also=self.slate.also.get(memory.id, ()),
            _hits=self,
        )

    @cached_property
    def _position(self) -> dict[int, int]:
        """The place of each candidate in the slate."""
        return {memory: place for place, memory in enumerate(self.slate.ids.tolist())}

    def __len__(self) -> int:
        return len(self._shown)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Hit]: ...
    @checked
    def __getitem__(self, index: int | slice) -> Hit | list[Hit]:
        places: int | Sequence[int] = get_item(range(len(self)), index, "hit")
        return (
            self._hit(places) if isinstance(places, int) else [self._hit(place) for place in places]
        )

    def __iter__(self) -> Iterator[Hit]:
        return map(self._hit, range(len(self)))

    @property
    def ids(self) -> tuple[int, ...]:
        """The memories that were shown, best first."""
        return self.slate.shown

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row for each hit, best first: what was shown, and the features that were logged with it.

        Columns: rank, memory_id, score, text, ref, speaker, session, project, then a column for each feature
        (docs/policy-language.md#features) that the slate holds, spelled as in a policy: ``pl.col("age-days")``,
        ``pl.col("kind")``. ``probe`` is no column: see ``hit.probe``.
        """
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
        return self.pack.policies["recall-score"]

    @cached_property
    def _aggregates(self) -> pl.DataFrame:
        return self._policy.aggregates(self.slate.frame)

    def _index(self, memory: Hit | int) -> int:
        """Where a candidate stands in the slate."""
        wanted = memory.id if isinstance(memory, Hit) else memory
        index = self._position.get(wanted)
        if index is None:
            raise UnknownName(
                "candidate of this recall", wanted, (str(known) for known in self.ids)
            )
        return index

    def _values(
        self, index: int
    ) -> tuple[dict[str, float | bool | str | None], dict[str, float | None]]:
        """What the policy reads of a candidate: its features, and its row of aggregates."""
        row = self.slate.frame.row(index, named=True)
        aggregates = self._aggregates.row(index, named=True) if self._aggregates.width else {}
        return {name: row[name] for name in self._policy.inputs}, aggregates

    @checked
    def explain(self, memory: Hit | int) -> ScoreExplanation:
        """Why this candidate, a hit or a memory's id, has its score; it need not have been shown."""
        index, policy = self._index(memory), self._policy
        values, aggregates = self._values(index)
        explanation = policy.explain(values, aggregates=aggregates)
        terms = tuple((term.text, float(term.value)) for term in explanation.terms)
        return ScoreExplanation(
            memory=int(self.slate.ids[index]),
            score=float(self.slate.scores[index]),
            terms=terms,
            policy=policy.name,
            hash=policy.hash,
            features=values,
            tree=explanation.tree,
        )

    @checked
    def why(self, a: Hit | int, b: Hit | int | None = None) -> Any:
        """Compare two candidates, hits or ids of memories, shown or not, term by term: a ``memlab.subjects.lens.Why``.

        Without ``b``, what was not shown is compared with the last that was shown for its score ("why is it not
        here?"), and what was shown with the best that was not. UnknownName for what was no candidate of this recall:
        such a memory was not found, not reached or not eligible.
        """
        first = self._index(a)
        if b is not None:
            second = self._index(b)
        elif self.slate.ids[first] in self.slate.shown:
            left_out = np.flatnonzero(~np.isin(self.slate.ids, self.slate.shown))
            if not len(left_out):
                raise InputError(
                    "Every candidate was shown: say which one to compare with, why(a, b)."
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
        """The last one shown for its score: probes are shown to learn."""
        for memory in reversed(self.slate.shown):
            if memory not in self.slate.probes:
                return self._position[memory]
        raise InputError(
            "Nothing was shown for its score: say which one to compare with, why(a, b)."
        )

    @property
    def _redactions(self) -> str:
        return f"; {len(self.redacted)} secrets redacted in the question" if self.redacted else ""

    @property
    def _answered(self) -> str:
        return "" if self.known is None else f"; {likely(self.known)}"

    @property
    def _unscored(self) -> str:
        count = int((~np.isfinite(self.slate.scores)).sum())
        return f"; {count} have no finite score and are never shown" if count else ""

    @property
    def _notes(self) -> list[str]:
        drawn = sum(hit.probe for hit in self)
        best = f"not one of the {len(self) - drawn} best"
        probes = f"probe (?): {best}; shown by chance, at a random place, to learn of it"
        before = (
            f"{len(self.repeated)} left out, given before in this session; again=True shows them"
        )
        return (
            ([self.off] if self.off else [])
            + ([before] if self.repeated else [])
            + ([probes] if drawn else [])
        )

    def __repr__(self) -> str:
        pack = f"pack {self.pack.name} [{self.pack.hash[:12]}]"
        asked = f"{len(self)} of {len(self.slate)} candidates for {clip(self.slate.query, 70)!r}"
        lines = [f"{asked}, {pack}{self._answered}{self._unscored}{self._redactions}"]
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
        said = any(hit.speaker for hit in self)
        rows = [
            (
                f"{hit.rank}",
                "probe" if hit.probe else "",
                f"{hit.score:.4f}",
                bar(hit.score, top, signed=False),
                hit.id,
                *([hit.speaker] if said else []),
                _text_of(hit),
                hit.kind,
            )
            for hit in self
        ]
        caption = (
            f"{len(self)} of {len(self.slate)} candidates for {clip(self.slate.query, 200)!r}, pack {self.pack.name} "
            f"[{self.pack.hash[:12]}]{self._answered}{self._unscored}{self._redactions}"
        )
        heads = ("rank", "", "score", "", "id", *(["speaker"] if said else []), "memory", "kind")
        return table(caption, heads, rows, notes=self._notes)


def likely(known: float) -> str:
    """Write a probability that a recall has an answer.

    >>> likely(0.634), likely(0.999)
    ('63% likely that these memories contain the answer', 'more than 99% likely that these memories contain the answer')
    """
    share = "more than 99%" if known > 0.99 else "less than 1%" if known < 0.01 else f"{known:.0%}"
    return f"{share} likely that these memories contain the answer"


def _answering(text: str, question: str, language: str) -> tuple[int, int] | None:
    """The passage of a text with most of a question's words; of the text alone, so that no other memory moves it."""
    spans = passages_of(text)
    if len(spans) == 1:
        return None
    words = Words(None if language == "none" else language)
    words.append([text[start:stop] for start, stop in spans])
    hits = words.hits(words.query(question))
    rows, scores = bm25(
        hits, words.lengths, count=len(spans), mean_length=float(words.lengths.mean())
    )
    return spans[rows[np.argmax(scores)]] if len(rows) else None


def _text_of(hit: Hit) -> str:
    """The text, clipped; of a long one the passage, which opens to the whole with the passage marked."""
    span = hit._span
    if span is None:
        return clip(hit.text, 300) + _stands_for(hit)
    before, passage, after = hit.text[: span[0]], hit.text[slice(*span)], hit.text[span[1] :]
    whole = Markup("<div dir='auto' style='white-space:pre-wrap'>{}<mark>{}</mark>{}</div>")
    return details(clip(passage, 300) + _stands_for(hit), whole.format(before, passage, after))


def _stands_for(hit: Hit) -> str:
    return f" (and {len(hit.also)} like it)" if hit.also else ""


def _short(value: float | bool | str | None) -> str:
    if isinstance(value, float) and not isinstance(value, bool | np.bool_):
        return f"{value:.4g}"
    return str(value)


# The memories nearest to one of them, by the cosine of their stored vectors.


_WORDS = ("text", "kind", "ref", "speaker", "session", "project")


def similar(state: State, row: int, population: Population, *, limit: int) -> pl.DataFrame:
    """The ``limit`` nearest of ``population`` to the memory in ``row``, itself left out; ties by id.

    Memories that wait for their vectors are near nothing.
    """
    vector = state.vectors.take(np.array([row]))[0]
    search = population.search
    if state.unembedded:
        search = {
            "rows": state.embedded(population.rows)
            if row >= state.unembedded
            else population.rows[:0]
        }
    found, cosine = state.vectors.top(vector, limit + 1, **search)
    others = np.flatnonzero(found != row)[:limit]
    ids = found[others] + 1
    memories = recalled(state, ids.tolist())
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

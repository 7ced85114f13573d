"""``lab.agents.credits``: what an answer owes to the memories that a recall showed, logged as feedback.

An attributed reward is feedback without an outcome: evaluation reads it, and no memory is strengthened by what an
answer says of it. It counts for a memory of a recall until somebody states something of it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, UnknownName
from memlab.io.formats import messages_of
from memlab.kernel.base.arguments import AsGiven, Called, Within, checked
from memlab.kernel.base.clock import Micros, When
from memlab.kernel.base.display import Displayed, bar, table
from memlab.kernel.base.printable import printable
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Hits, Moment
from memlab.kernel.slates import ATTRIBUTED, Slate, question_of
from memlab.kernel.state import State
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import seen
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.recalling.asking import read_slate
from memlab.subjects.attribution.cues import Answer, Shown, cues
from memlab.subjects.attribution.known import LEAST, Calibrated, Calibration, Credited, calibration

__all__ = ["SHIPPED", "Attributed", "Attributions", "LabCredits", "Messages", "Turn", "turns_of"]


# A transcript as answers, each with what was asked before it, what tools were called with, and what came next.


_MOST_NESTED = 20


@dataclass(frozen=True)
class Turn:
    """One answer. ``asked`` are texts that a recall may have asked; ``decisions`` are the recalls that it names."""

    answer: str
    asked: tuple[str, ...]
    arguments: str
    reply: str
    decisions: tuple[int, ...] | None
    at: Any


def turns_of(transcript: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """The answers of a transcript, in order. InputError names the message that is none."""
    if isinstance(transcript, str | Mapping) or not isinstance(transcript, Iterable):
        raise InputError(f"A transcript is a list of messages, not {type(transcript).__name__}.")
    entries = Called(list, "transcript")(transcript)
    messages = messages_of(entries)
    turns: list[Turn] = []
    asked: list[str] = []
    arguments: list[str] = []
    decisions: list[int] | None = None
    place = -1
    for number, message in enumerate(messages):
        if message.place != place:
            place = message.place
            decisions = _decisions(entries[place], place, decisions)
        if message.role == "user":
            asked.append(message.text)
        for argument in message.arguments:
            arguments.append(argument)
            asked += _strings(argument)
        if message.role == "assistant" and message.text:
            later = (messages[after] for after in range(number + 1, len(messages)))
            reply = next((after.text for after in later if after.role == "user"), "")
            named = None if decisions is None else tuple(dict.fromkeys(decisions))
            turns.append(
                Turn(message.text, tuple(asked), "\n".join(arguments), reply, named, message.at)
            )
            asked, arguments, decisions = [], [], None
    return turns


def _decisions(message: object, place: int, before: list[int] | None) -> list[int] | None:
    """The recalls named so far, and those that this message names."""
    named = message.get("decision") if isinstance(message, Mapping) else None
    if named is None:
        return before
    several = [named] if isinstance(named, int) else named
    if not isinstance(several, Sequence) or not all(
        isinstance(one, int) and not isinstance(one, bool) for one in several
    ):
        raise InputError(
            f"The decision of message {place} is the number of a recall, or several, not {named!r:.60}."
        )
    return [*(before or ()), *several]


def _strings(argument: str) -> list[str]:
    """The texts within arguments written as JSON; of any other the whole."""
    try:
        value = json.loads(argument)
    except (ValueError, RecursionError):
        return [argument]
    found: list[str] = []
    level = [value]
    for _ in range(_MOST_NESTED):
        found += [one for one in level if isinstance(one, str)]
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return found


# The calibration of the default policy: experiments/attribution.py, the first half of its conversations.


_CURVE = (
    (0, 0.0002),
    (0.0013, 0.0002),
    (0.0025, 0.0046),
    (0.0042, 0.0046),
    (0.007, 0.0168),
    (0.0106, 0.0174),
    (0.0162, 0.0174),
    (0.0251, 0.043),
    (0.0361, 0.05),
    (0.05, 0.05),
    (0.0521, 0.1093),
    (0.0839, 0.1322),
    (0.1, 0.1322),
    (0.15, 0.2727),
    (0.2, 0.506),
    (0.3, 0.506),
    (0.35, 0.7241),
    (0.4, 0.7241),
    (0.45, 0.8095),
    (0.6, 0.8095),
    (0.65, 0.8182),
    (0.8, 0.8182),
    (0.85, 0.963),
    (0.9, 0.963),
    (0.95, 0.9998),
    (1, 0.9998),
)
"""Of answers of which a third were as they are, a third paraphrased and a third "I don't know"."""

SHIPPED = Calibration(
    policy="3cbd74c24cbc383c9f85a878f552b96a7f6926477506f6bbbd8117f6f6c2ae58",
    method="isotonic",
    pairs=4104,
    credit=tuple(credit for credit, _ in _CURVE),
    useful=tuple(useful for _, useful in _CURVE),
    brier=0.0288,
    before=0.0322,
)


Messages = Iterable[Mapping[str, Any]]
"""A transcript: ``role``, ``content`` and, where there are any, ``tool_calls``, ``decision`` and ``at``."""

_LOOKED_AT = 2_000
"""Events before the end of the log in which a transcript's recalls are looked for."""

_SCHEMA: dict[str, Any] = {
    "memory_id": pl.Int64,
    "credit": pl.Float64,
    "reward": pl.Float64,
    "confidence": pl.Float64,
    "status": pl.String,
    "cues": pl.List(pl.String),
}


@dataclass(frozen=True)
class Attributed(Displayed):
    """What an answer owes to each memory that a recall showed.

    ``frame`` has a row for each, in the order in which they were shown: ``memory_id``, ``credit`` (by the pack's
    policy ``credit``; null where it has no say), ``reward`` (the credit within 0..1), ``confidence`` (the chance that
    the reward is on the right side of a half), ``status`` ("logged", "no say", "stated": somebody judged it, "known":
    an answer to this recall was worth as much) and ``cues`` (those that are there, with their values).

    ``cut`` says whether some of the text was too long to be read, and ``listed`` how many memories the answer named by
    id beyond what is credited.
    """

    decision: int
    policy: str
    cut: bool
    listed: int
    frame: pl.DataFrame = field(repr=False, compare=False)

    def __len__(self) -> int:
        """How many rewards were logged."""
        return self.frame.filter(pl.col("status") == "logged").height

    def __bool__(self) -> bool:
        """True: it is there even where it logged nothing."""
        return True

    @property
    def _summary(self) -> str:
        cut = "; the text was too long and is read in part" * self.cut
        listed = f"; {self.listed} ids in one list: none counts as cited" if self.listed else ""
        return f"recall {self.decision}: {len(self)} of {self.frame.height} shown memories got a reward{cut}{listed}"

    def __repr__(self) -> str:
        lines = [f"<Attributed, {self._summary}, policy [{self.policy[:12]}]>"]
        for row in self.frame.iter_rows(named=True):
            credit = "   -" if row["credit"] is None else f"{row['credit']:4.2f}"
            lines.append(
                f"  #{row['memory_id']:<6} {credit}  {row['status']:<7} {', '.join(row['cues'])}"
            )
        return printable("\n".join(lines))

    def _display(self) -> object:
        rows = [
            (
                row["memory_id"],
                "" if row["credit"] is None else f"{row['credit']:.2f}",
                bar(row["credit"] or 0.0, 1.0),
                "" if row["confidence"] is None else f"{row['confidence']:.2f}",
                row["status"],
                ", ".join(row["cues"]),
            )
            for row in self.frame.iter_rows(named=True)
        ]
        return table(self._summary, ("id", "credit", "", "confidence", "", "cues"), rows)


class Attributions:
    """What answers owe to what was shown."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def answer(
        self,
        answer: str,
        hits: Hits | int,
        *,
        arguments: str | None,
        reply: str | None,
        at: When | None,
    ) -> Attributed:
        """Attribute one answer to one recall; see ``Lab.attribute``."""
        decision = hits.decision if isinstance(hits, Hits) else hits
        if decision is None:
            raise InputError(
                "This recall was not logged, so nothing can be attributed to it: recall with log=True."
            )
        return self._attributed(
            decision, answer, arguments or "", reply or "", self._core.instant(at)
        )

    def transcript(self, messages: Messages) -> tuple[Attributed, ...]:
        """Attribute each answer of a transcript to the recalls before it; see ``LabCredits.transcript``."""
        turns = turns_of(messages)
        asked = self._asked(turns)
        return tuple(
            self._attributed(
                decision, turn.answer, turn.arguments, turn.reply, self._core.instant(turn.at)
            )
            for turn, decisions in zip(turns, asked, strict=True)
            for decision in decisions
        )

    def _asked(self, turns: Sequence[Turn]) -> list[tuple[int, ...]]:
        """The recalls of each turn: those it names, else the last logged ones that asked what stands in it."""
        store = self._core.store
        if all(turn.decisions is not None for turn in turns):
            return [turn.decisions or () for turn in turns]
        head = store.journal.head
        by_question: dict[str, list[int]] = {}
        for decision, blob in store.journal.slates(max(0, head - _LOOKED_AT)):
            by_question.setdefault(_plain(question_of(blob, decision=decision).query), []).append(
                decision
            )
        found: list[tuple[int, ...]] = []
        for turn in reversed(turns):  # the last turn that asks has the last recall of that question
            if turn.decisions is not None:
                found.append(turn.decisions)
                continue
            places = [
                by_question[text]
                for text in dict.fromkeys(map(_plain, turn.asked))
                if by_question.get(text)
            ]
            found.append(tuple(sorted(decisions.pop() for decisions in places)))
        return found[::-1]

    def _attributed(
        self, decision: int, text: str, arguments: str, reply: str, now: Micros
    ) -> Attributed:
        store = self._core.store
        slate = read_slate(store, decision)
        with store.writing() as tx:
            pack = self._core.pack
            policy = pack.policies["credit"]
            answer = Answer(slate.query, text, slate.at, arguments, reply)
            ids, found = cues_of(store, pack, slate, answer)
            credit, says = credit_of(pack, found, ids)
            confidence = curve_of(store.state, pack).confidence(credit)
            known, mark = (
                store.state.projection(Credited),
                _mark(policy.hash, text, arguments, reply),
            )
            read = known.read(decision, mark)
            rows = []
            for place, id in enumerate(ids.tolist()):
                present = {
                    name: float(values[place]) for name, values in found.items() if values[place]
                }
                reward = max(float(credit[place]), 0.0)
                status = _status(
                    known,
                    decision,
                    id,
                    reward,
                    float(credit[place]),
                    says=bool(says[place]),
                    read=read,
                )
                if status == "logged":
                    body = {"decision": decision, "memory": id, "outcome": None, "reward": reward}
                    body |= {
                        "source": ATTRIBUTED,
                        "pack": slate.pack_hash,
                        "probe": id in slate.probes,
                    }
                    body |= {
                        "confidence": float(confidence[place]),
                        "policy": policy.hash,
                        "answer": mark,
                    }
                    tx.event(
                        "feedback",
                        {
                            **body,
                            "cues": {name: round(value, 4) for name, value in present.items()},
                        },
                        at=now,
                    )
                values = (
                    (float(credit[place]), reward, float(confidence[place]))
                    if says[place]
                    else (None, None, None)
                )
                rows.append(
                    (
                        id,
                        *values,
                        status,
                        [f"{name} {value:.2f}" for name, value in present.items()],
                    )
                )
        listed = int(found["listed"].sum()) if found else 0
        return Attributed(
            decision,
            policy.hash,
            answer.cut,
            listed,
            pl.DataFrame(rows, schema=_SCHEMA, orient="row"),
        )


class LabCredits:
    """``lab.agents.credits``: attributed rewards, those of a whole transcript, and how sure they are."""

    def __init__(self, core: Core, attributions: Attributions) -> None:
        self._core, self._attributions = core, attributions

    @checked
    def answer(
        self,
        answer: str,
        hits: Hits | Annotated[int, Within(1, 1 << 62)],
        *,
        arguments: str | None = None,
        reply: str | None = None,
        at: When | None = None,
    ) -> Attributed:
        """Read from an answer which of the memories that a recall showed it was made of, and log that as rewards.

        ``hits`` are those of a logged recall, or its number. ``arguments`` is what tools were called with, ``reply``
        what the user said next, who may put it right. The live pack's policy ``credit`` decides, of each shown memory,
        from named cues (``memlab.SLOTS["credit"]``): what only this memory has in common with the answer, dates as of
        when it was said, quotes, ids. Words of the question earn nothing by themselves.

        Each reward is feedback of source "attributed" with a confidence, for evaluation alone: it changes no memory.
        What somebody states of the same memory of the same recall takes its place. The same answer read twice changes
        nothing; of several answers to one recall the greatest credit counts, unless it was put right. No text is
        executed or believed, the first 20,000 characters are read, and more than five ids in an answer credit none.
        ``transcript`` reads the answers of a whole transcript. UnknownName for a recall not logged.

        >>> lab.agents.credits.answer("On 7 May 2023 [memory 12]", hits)                               # doctest: +SKIP
        """
        return self._attributions.answer(answer, hits, arguments=arguments, reply=reply, at=at)

    @checked
    def transcript(self, messages: Annotated[Messages, AsGiven]) -> tuple[Attributed, ...]:
        """Attribute every answer of a transcript to the recalls that came before it; see ``lab.agents.credits.answer``.

        ``messages`` are dicts of ``role`` and ``content`` (a text, or parts with texts), in order, with ``tool_calls``
        and ``at`` where there are any. A recall belongs to the next answer: one that a message names as its
        ``decision`` (or several), else the last that asked, word for word, what a user message or a tool's argument
        since the answer before says; the log's last 2,000 events are searched. What the user says after an answer is
        its ``reply``. Returned is one for each recall of each answer. InputError names the message that is none.

        >>> lab.agents.credits.transcript([{"role": "user", "content": "tabs or spaces?"},
        ...                         {"role": "assistant", "content": "You prefer tabs."}])   # doctest: +SKIP
        """
        return self._attributions.transcript(messages)

    @property
    @checked
    def frame(self) -> pl.DataFrame:
        """Every attributed reward that counts: decision, memory_id, reward, confidence, at."""
        feedback = self._core.store.slates().feedback.collect()
        counted = feedback.filter(pl.col("source") == ATTRIBUTED)
        return counted.select("decision", "memory_id", "reward", "confidence", "at")

    @property
    @checked
    def calibration(self) -> Calibration:
        """The curve from a credit to the chance of use that is in force for the live pack's policy."""
        with self._core.reading() as state:
            return curve_of(state, self._core.pack)

    @checked
    def calibrate(self, judged: pl.DataFrame | None = None) -> Calibration:
        """Fit that curve to what was judged, and use it from now on.

        ``judged`` has columns ``credit`` and ``useful``, both 0-1. Without it every memory of a recall counts that the
        live pack's policy credited and somebody judged: attribute, ask people about some, calibrate. Isotonic from 200
        pairs on, else logistic. InputError with fewer than 30, or if all were judged alike.

        >>> lab.agents.credits.calibrate()                                                        # doctest: +SKIP
        """
        with self._core.store.writing() as tx:
            policy = self._core.pack.policies["credit"].hash
            pairs = _judged(self._core.store, policy) if judged is None else _pairs(judged)
            if judged is None and len(pairs[0]) < LEAST:
                raise InputError(
                    f"A calibration needs {LEAST} credits that somebody judged too, and the log has {len(pairs[0])}: "
                    "lab.agents.credits.answer(answer, hits), then lab.feedback on some of those hits."
                )
            fitted = calibration(policy, *pairs)
            tx.event("calibrate", fitted.body, at=self._core.instant(None))
        return fitted


def cues_of(
    store: Store, pack: Pack, slate: Slate, answer: Answer
) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """The ids that a recall showed and the cues of each, as whoever asked sees the lab; needs the state to be held."""
    state = seen(store.journal, store.state, slate.filters.get("viewer"))
    ids, memories = _shown(state, pack, slate)
    return ids, cues(
        answer, memories, state.words_in(str(pack.settings["language"])), store.embedder
    )


def credit_of(
    pack: Pack, found: Mapping[str, NDArray[np.float64]], ids: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The credit of each memory, within -1..1, and whether the pack's policy says anything of it."""
    policy = pack.policies["credit"]
    if not len(ids):
        return np.zeros(0), np.zeros(0, dtype=np.bool_)
    declared = policy.signature.inputs
    given = {
        name: found[name] if declared[name].type == "num" else found[name] > 0
        for name in policy.inputs
    }
    values, nulls = policy.arrays(given, order=ids)
    values = np.broadcast_to(np.asarray(values, dtype=np.float64), len(ids))
    says = np.isfinite(values) if nulls is None else np.isfinite(values) & ~nulls
    return np.where(says, np.clip(values, -1.0, 1.0), 0.0), np.asarray(says)


def curve_of(state: State, pack: Pack) -> Calibration:
    """The calibration of the pack's policy: the lab's own, the shipped one, or the credit read as a chance."""
    policy = pack.policies["credit"].hash
    own = state.projection(Calibrated).of(policy)
    if own is not None:
        return own
    return (
        SHIPPED
        if policy == SHIPPED.policy
        else Calibration(policy, "none", 0, (0.0, 1.0), (0.0, 1.0), 0.0, 0.0)
    )


def _shown(state: State, pack: Pack, slate: Slate) -> tuple[NDArray[np.int64], list[Shown]]:
    """The ids and contents of what a recall showed, without what was purged since."""
    kept = [id for id in slate.shown if state.texts.at(id - 1)]
    ids = np.array(kept, dtype=np.int64)
    if not kept:
        return ids, []
    rows = ids - 1
    before = Moment(state, pack, rows, slate.at).before().tolist()
    vectors, created = state.vectors.take(rows), state.numbers["created"].values[rows].tolist()
    return ids, [
        Shown(
            id,
            state.texts.at(id - 1) or "",
            state.names["speaker"].at(id - 1),
            created[place],
            (state.texts.at(before[place]) or "") if before[place] >= 0 else "",
            vectors[place],
        )
        for place, id in enumerate(kept)
    ]


def _status(
    known: Credited,
    decision: int,
    memory: int,
    reward: float,
    credit: float,
    *,
    says: bool,
    read: bool,
) -> str:
    if not says:
        return "no say"
    if known.stated(decision, memory):
        return "stated"
    before = known.reward(decision, memory)
    if read or (before is not None and credit >= 0 and reward <= before):
        return "known"
    return "logged"


def _mark(policy: str, *texts: str) -> str:
    """By which the same answer is known again: so short that nobody can tell from it what the answer was."""
    return f"{zlib.crc32(chr(31).join((policy, *texts)).encode('utf-8', 'replace')) & 0xFFFF:04x}"


def _plain(text: str) -> str:
    return " ".join(text.split())


def _judged(store: Store, policy: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The credits by this policy of what somebody judged too, and the judgements."""
    credit: dict[tuple[int, int], float] = {}
    useful: dict[tuple[int, int], float] = {}
    for event in store.journal.events(kinds=("feedback",)):
        body = event.body
        key = (body["decision"], body["memory"])
        if body.get("source") == ATTRIBUTED:
            if body.get("policy") == policy:
                credit[key] = body["reward"]
        elif body["decision"] is not None:
            reward = body.get("reward")
            worth = (
                {"success": 1.0, "fail": 0.0}.get(body.get("outcome") or "")
                if reward is None
                else reward
            )
            if worth is not None and 0 <= worth <= 1:
                useful[key] = worth
    both = [key for key in credit if key in useful]
    return np.array([credit[key] for key in both]), np.array([useful[key] for key in both])


def _pairs(judged: pl.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    columns = []
    for name in ("credit", "useful"):
        if name not in judged.columns:
            raise UnknownName("column of the judged credits", name, judged.columns)
        values = judged[name].cast(pl.Float64, strict=False)
        if values.null_count() or not values.is_between(0, 1).all():
            raise InputError(
                f"Column {name} of the judged credits holds something else than a number from 0 to 1."
            )
        columns.append(values.to_numpy())
    return columns[0], columns[1]

"""``lab.agents.credits``: infer from an answer which retrieved memories it used.

The result is logged as feedback without an outcome. Evaluation reads that feedback, but no memory
is strengthened by it. It counts until a person judges the same memory of the same recall.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.io.formats import parse_messages
from memlab.kernel.base.arguments import AsGiven, Called, Within, checked
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.clock import Micros, When
from memlab.kernel.base.display import Displayed, bar, table
from memlab.kernel.base.printable import printable
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Hits, Moment
from memlab.kernel.slates import ATTRIBUTED, Slate, question_of
from memlab.kernel.state import State
from memlab.kernel.storage.store import Store
from memlab.kernel.storage.views import view_state
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.feedback import call_judged
from memlab.kernel.verbs.recalling.past import read_slate
from memlab.subjects.attribution.cues import Answer, RetrievedMemory, compute_cues
from memlab.subjects.attribution.known import (
    MIN_PAIRS,
    Calibrated,
    Calibration,
    Credited,
    fit_calibration,
)

# -- answers of a transcript, each with the queries before it, the arguments of tools and the user's reply


_MAX_NESTED = 20
"""The maximum depth at which the JSON arguments of a tool are searched for texts."""


@dataclass(frozen=True)
class Turn:
    """One answer of a transcript, with the messages around it.

    Attributes
    ----------
    answer
        The text of the answer.
    asked
        The texts before the answer that may have been the query of a recall.
    arguments
        The arguments of tools that were called before the answer, joined by line breaks.
    reply
        The next message of the user; "" if there is none.
    decisions
        The recalls that messages before the answer name; None if no message names one.
    at
        The time of the answer.
    """

    answer: str
    asked: tuple[str, ...]
    arguments: str
    reply: str
    decisions: tuple[int, ...] | None
    at: Any


def read_turns(transcript: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """Return the answers of a transcript in order of time, with their queries and recalls."""
    # A recall belongs to the next answer, so queries, arguments and decisions are collected until an answer follows.
    if isinstance(transcript, str | Mapping) or not isinstance(transcript, Iterable):
        raise InputError(
            f"A transcript must be a list of messages, not {type(transcript).__name__}."
        )
    entries = Called(list, "transcript")(transcript)
    messages = parse_messages(entries)
    turns: list[Turn] = []
    queries: list[str] = []
    arguments: list[str] = []
    decisions: list[int] | None = None
    entry = -1
    for number, message in enumerate(messages):
        if message.index != entry:
            entry = message.index
            decisions = _collect_decisions(entries[entry], entry, decisions)
        if message.role == "user":
            queries.append(message.text)
        for argument in message.arguments:
            arguments.append(argument)
            queries += _find_texts(argument)
        if message.role == "assistant" and message.text:
            later = (messages[after] for after in range(number + 1, len(messages)))
            reply = next((after.text for after in later if after.role == "user"), "")
            named_decisions = None if decisions is None else tuple(dict.fromkeys(decisions))
            turns.append(
                Turn(
                    message.text,
                    tuple(queries),
                    "\n".join(arguments),
                    reply,
                    named_decisions,
                    message.at,
                )
            )
            queries, arguments, decisions = [], [], None
    return turns


def _collect_decisions(message: object, number: int, before: list[int] | None) -> list[int] | None:
    """Return the recalls that earlier messages (`before`) and this message name, or None if none of them names one.

    `number` is the message's number in an error.
    """
    decision = message.get("decision") if isinstance(message, Mapping) else None
    if decision is None:
        return before
    numbers = [decision] if isinstance(decision, int) else decision
    if not isinstance(numbers, Sequence) or not all(
        isinstance(item, int) and not isinstance(item, bool) for item in numbers
    ):
        raise InputError(
            f"The decision of message {number} must be the number of a recall or a list of such numbers, not "
            f"{decision!r:.60}."
        )
    return [*(before or ()), *numbers]


def _find_texts(argument: str) -> list[str]:
    """Return the strings in JSON arguments, without keys and very deep values, or the whole text if it is not JSON."""
    try:
        value = json.loads(argument)
    except (ValueError, RecursionError):
        return [argument]
    texts: list[str] = []
    level = [value]
    for _ in range(_MAX_NESTED):
        texts += [item for item in level if isinstance(item, str)]
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return texts


# -- the calibration of the default policy, from the first half of the conversations of experiments/attribution.py


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
"""Pairs of a credit and the probability of use at that credit.

A third of the answers were verbatim, a third paraphrased, and a third said "I don't know".
"""

SHIPPED = Calibration(
    policy="3cbd74c24cbc383c9f85a878f552b96a7f6926477506f6bbbd8117f6f6c2ae58",
    method="isotonic",
    pairs=4104,
    credit=tuple(credit for credit, _ in _CURVE),
    useful=tuple(useful for _, useful in _CURVE),
    brier=0.0288,
    before=0.0322,
)
"""The calibration that is shipped for the default policy ``credit``."""


Messages = Iterable[Mapping[str, Any]]
"""A transcript: messages with ``role``, ``content``, and optionally ``tool_calls``, ``decision`` and ``at``."""

_SEARCHED_EVENTS = 2_000
"""The number of latest events of the log that are searched for a transcript's recalls."""

# The columns of ``Attributed.frame``.
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
    """The credit that one answer gives to each memory of a recall.

    Attributes
    ----------
    decision
        The number of the recall.
    policy
        The hash of the policy ``credit`` that decided.
    cut
        Whether some of the texts were too long to be read completely.
    listed
        The number of memories that the answer names by id, if it names too many to credit any;
        otherwise 0.
    frame
        A row for each memory, in the order of the hits:

        - ``memory_id``
        - ``credit``: null if the policy abstains
        - ``reward``: the credit, with negative values as 0
        - ``confidence``: the probability that the reward is on the correct side of .5
        - ``status``: "logged", "no say" (the policy abstains), "stated" (a person judged the
          memory) or "known" (an answer already gave at least this reward)
        - ``cues``: the cues of the answer, with their values

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
    >>> hits = lab.recall("tabs or spaces?")
    >>> attributed = lab.agents.credits.answer("Use tabs, as in [memory 1].", hits)
    >>> attributed.frame.columns[:3]
    ['memory_id', 'credit', 'reward']
    """

    decision: int
    policy: str
    cut: bool
    listed: int
    frame: pl.DataFrame = field(repr=False, compare=False)

    def __len__(self) -> int:
        """Return the number of logged rewards."""
        return self.frame.filter(pl.col("status") == "logged").height

    def __bool__(self) -> bool:
        """Return True, even if no reward was logged."""
        return True

    @property
    def _summary(self) -> str:
        """One line that describes the recall and the number of its rewards."""
        cut = "; the text is too long and was read in part" * self.cut
        listed = f"; {self.listed} ids in one list, none counts as cited" if self.listed else ""
        return f"recall {self.decision}: rewards for {len(self)} of {self.frame.height} hits{cut}{listed}"

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
    """The attribution of answers to the hits of recalls, in one lab."""

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
        """Attribute one answer to one recall; see ``lab.agents.credits.answer``."""
        decision = hits.decision if isinstance(hits, Hits) else hits
        if decision is None:
            raise InputError(
                "This recall was not logged, so no reward can belong to it. Recall with log=True."
            )
        return self._log_rewards(
            decision, answer, arguments or "", reply or "", self._core.instant(at)
        )

    def transcript(self, messages: Messages) -> tuple[Attributed, ...]:
        """Attribute each answer of a transcript to the recalls that preceded it."""
        turns = read_turns(messages)
        decisions_by_turn = self._find_decisions(turns)
        return tuple(
            self._log_rewards(
                decision, turn.answer, turn.arguments, turn.reply, self._core.instant(turn.at)
            )
            for turn, decisions in zip(turns, decisions_by_turn, strict=True)
            for decision in decisions
        )

    def _find_decisions(self, turns: Sequence[Turn]) -> list[tuple[int, ...]]:
        """Return the recalls that each turn names, or else the last recall of each of its queries, ascending."""
        # Turns are visited from the last to the first: of equal queries, the last recall belongs to the last turn.
        store = self._core.store
        if all(turn.decisions is not None for turn in turns):
            return [turn.decisions or () for turn in turns]
        head = store.journal.head
        by_question: dict[str, list[int]] = {}
        for decision, blob in store.journal.slates(max(0, head - _SEARCHED_EVENTS)):
            by_question.setdefault(
                _join_spaces(question_of(blob, decision=decision).query), []
            ).append(decision)
        result: list[tuple[int, ...]] = []
        for turn in reversed(turns):
            if turn.decisions is not None:
                result.append(turn.decisions)
                continue
            matches = [
                by_question[text]
                for text in dict.fromkeys(map(_join_spaces, turn.asked))
                if by_question.get(text)
            ]
            result.append(tuple(sorted(decisions.pop() for decisions in matches)))
        return result[::-1]

    def _log_rewards(
        self, decision: int, text: str, arguments: str, reply: str, now: Micros
    ) -> Attributed:
        """Log the rewards of one answer for the memories of one recall."""
        # The event stores the cues and a short checksum of the answer, but not the text of the answer.
        store = self._core.store
        slate = read_slate(store, decision)
        with store.writing() as tx:
            pack = self._core.pack
            policy = pack.policies["credit"]
            answer = Answer(slate.query, text, slate.at, arguments, reply)
            ids, cue_values = read_cues(store, pack, slate, answer)
            credit, decided = compute_credit(pack, cue_values, ids)
            confidence = get_calibration(store.state, pack).confidence(credit)
            credited, mark = (
                store.state.projection(Credited),
                _make_mark(policy.hash, text, arguments, reply),
            )
            is_read = credited.read(decision, mark)
            rows = []
            for index, id in enumerate(ids.tolist()):
                present = {
                    name: float(values[index])
                    for name, values in cue_values.items()
                    if values[index]
                }
                reward = max(float(credit[index]), 0.0)
                status = _find_status(
                    credited,
                    decision,
                    id,
                    reward,
                    float(credit[index]),
                    decided=bool(decided[index]),
                    is_read=is_read,
                )
                if status == "logged":
                    body = {
                        "decision": decision,
                        "memory": id,
                        "outcome": None,
                        "reward": reward,
                        "source": ATTRIBUTED,
                        "pack": slate.pack_hash,
                        "probe": id in slate.probes,
                        "confidence": float(confidence[index]),
                        "policy": policy.hash,
                        "answer": mark,
                        "cues": {name: round(value, 4) for name, value in present.items()},
                    }
                    tx.event("feedback", body, at=now)
                values = (
                    (float(credit[index]), reward, float(confidence[index]))
                    if decided[index]
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
        call_judged(self._core)
        ids_in_list = int(cue_values["listed"].sum()) if cue_values else 0
        return Attributed(
            decision,
            policy.hash,
            answer.cut,
            ids_in_list,
            pl.DataFrame(rows, schema=_SCHEMA, orient="row"),
        )


class LabCredits:
    """``lab.agents.credits``: rewards inferred from answers, and their confidence.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember("The user prefers tabs")
    >>> _ = lab.agents.credits.answer("Tabs [memory 1].", lab.recall("tabs or spaces?"))
    >>> lab.agents.credits.frame.columns
    ['decision', 'memory_id', 'reward', 'confidence', 'at']
    """

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
        """Infer which memories of a recall an answer used, and log rewards for them.

        The policy ``credit`` of the active pack decides from named cues
        (``memlab.SLOTS["credit"]``). Examples are words that only one memory shares with the
        answer, dates, quotes and ids. Words of the query alone give no credit.

        Parameters
        ----------
        answer
            The answer; its first 20,000 characters are read.
        hits
            The hits of a logged recall, or the number of the recall.
        arguments
            The arguments of tools that were called for the answer.
        reply
            The next message of the user, who may correct the answer.
        at
            The time of the answer; now by default.

        Returns
        -------
        Attributed
            The credit and reward of each hit.

        Raises
        ------
        InputError
            If the recall was not logged.
        UnknownName
            If no recall has this number.

        Notes
        -----
        A reward is feedback with the source "attributed" and a confidence. Evaluation uses it, and
        no memory is changed by it. A judgement by a person replaces it. The same answer counts
        once. Of several answers to one recall, the largest credit counts, unless the answer was
        corrected. An answer that names more than five ids credits none of them. No text is executed
        or believed.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
        >>> hits = lab.recall("tabs or spaces?")
        >>> attributed = lab.agents.credits.answer("Use tabs [memory 1].", hits)
        >>> attributed.decision == hits.decision
        True
        """
        return self._attributions.answer(answer, hits, arguments=arguments, reply=reply, at=at)

    @checked
    def transcript(self, messages: Annotated[Messages, AsGiven]) -> tuple[Attributed, ...]:
        """Attribute each answer of a transcript to the recalls that preceded it.

        Parameters
        ----------
        messages
            The messages in order: dicts of ``role`` and ``content`` (a text, or parts with texts),
            and optionally ``tool_calls``, ``decision`` and ``at``.

        Returns
        -------
        tuple of Attributed
            A result for each pair of a recall and an answer.

        Raises
        ------
        InputError
            If a message is invalid; the error gives its number.

        Notes
        -----
        A recall belongs to the next answer. A message may name the recall as its ``decision``.
        Otherwise it is the last recall whose query equals a user message or an argument of a tool
        since the previous answer. The latest 2,000 events of the log are searched. The user message
        after an answer is its ``reply``.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The user prefers tabs")
        >>> _ = lab.recall("tabs or spaces?")
        >>> messages = [
        ...     {"role": "user", "content": "tabs or spaces?"},
        ...     {"role": "assistant", "content": "You prefer tabs."},
        ... ]
        >>> len(lab.agents.credits.transcript(messages))
        1
        """
        return self._attributions.transcript(messages)

    @property
    @checked
    def frame(self) -> pl.DataFrame:
        """A frame with one row per reward in effect.

        The columns are ``decision``, ``memory_id``, ``reward``, ``confidence`` and ``at``.
        """
        feedback = self._core.store.slates().feedback.collect()
        counted = feedback.filter(pl.col("source") == ATTRIBUTED)
        return counted.select("decision", "memory_id", "reward", "confidence", "at")

    @property
    @checked
    def calibration(self) -> Calibration:
        """The active policy's curve from credit to probability of use."""
        with self._core.reading() as state:
            return get_calibration(state, self._core.pack)

    @checked
    def calibrate(self, judged: pl.DataFrame | None = None) -> Calibration:
        """Fit the curve from credit to probability of use, and activate the curve.

        The curve is isotonic if there are at least 200 pairs, otherwise logistic.

        Parameters
        ----------
        judged
            A frame with the columns ``credit`` and ``useful``, both from 0 to 1. By default it has
            every memory of a recall with a credit by the active policy and a judgement by a person.

        Returns
        -------
        Calibration
            The fitted curve, which is in use from now on.

        Raises
        ------
        InputError
            If there are fewer than 30 pairs, or all judgements are equal.

        Examples
        --------
        >>> import memlab
        >>> import polars as pl
        >>> lab = memlab.open()
        >>> credit = [number / 40 for number in range(40)]
        >>> judged = pl.DataFrame({"credit": credit, "useful": [float(c > 0.3) for c in credit]})
        >>> lab.agents.credits.calibrate(judged).method
        'logistic'
        """
        with self._core.store.writing() as tx:
            policy = self._core.pack.policies["credit"].hash
            pairs = (
                _read_judged(self._core.store, policy) if judged is None else _check_pairs(judged)
            )
            if judged is None and len(pairs[0]) < MIN_PAIRS:
                raise InputError(
                    f"A calibration needs {MIN_PAIRS} credited memories with a judgement, "
                    f"and the log has {len(pairs[0])}. Call "
                    "lab.agents.credits.answer(answer, hits), then lab.feedback on some of these hits."
                )
            fitted = fit_calibration(policy, *pairs)
            tx.event("calibrate", fitted.body, at=self._core.instant(None))
        return fitted


def read_cues(
    store: Store, pack: Pack, slate: Slate, answer: Answer
) -> tuple[Ints, dict[str, Floats]]:
    """Return the ids of a recall's hits, and the cues of each hit.

    The caller must hold the lock of the state.
    """
    state = view_state(store.journal, store.state, slate.filters.get("viewer"))
    ids, memories = _read_hits(state, pack, slate)
    return ids, compute_cues(
        answer, memories, state.get_words(str(pack.settings["language"])), store.embedder
    )


def compute_credit(pack: Pack, cue_values: Mapping[str, Floats], ids: Ints) -> tuple[Floats, Flags]:
    """Return each memory's credit from -1 to 1, and a mask of credits that are not null."""
    policy = pack.policies["credit"]
    if not len(ids):
        return np.zeros(0), np.zeros(0, dtype=np.bool_)
    declared = policy.signature.inputs
    inputs = {
        name: cue_values[name] if declared[name].type == "num" else cue_values[name] > 0
        for name in policy.inputs
    }
    values, nulls = policy.arrays(inputs, order=ids)
    values = np.broadcast_to(np.asarray(values, dtype=np.float64), len(ids))
    decided = np.isfinite(values) if nulls is None else np.isfinite(values) & ~nulls
    return np.where(decided, np.clip(values, -1.0, 1.0), 0.0), np.asarray(decided)


def get_calibration(state: State, pack: Pack) -> Calibration:
    """Return the calibration that applies to the ``credit`` policy of a pack.

    The lab's own calibration comes first, then the shipped calibration if it was fitted to this policy, then the
    identity.
    """
    policy = pack.policies["credit"].hash
    own = state.projection(Calibrated).of(policy)
    if own is not None:
        return own
    return (
        SHIPPED
        if policy == SHIPPED.policy
        else Calibration(policy, "none", 0, (0.0, 1.0), (0.0, 1.0), 0.0, 0.0)
    )


def _read_hits(state: State, pack: Pack, slate: Slate) -> tuple[Ints, list[RetrievedMemory]]:
    """Return the ids and the contents of a recall's hits, without purged memories."""
    ids_list = [id for id in slate.shown if state.texts.value_at(id - 1)]
    ids = np.array(ids_list, dtype=np.int64)
    if not ids_list:
        return ids, []
    rows = ids - 1
    before = Moment(state, pack, rows, slate.at).before().tolist()
    vectors, created = state.vectors.take(rows), state.numbers["created"].values[rows].tolist()
    return ids, [
        RetrievedMemory(
            id,
            state.texts.value_at(id - 1) or "",
            state.names["speaker"].value_at(id - 1),
            created[index],
            (state.texts.value_at(before[index]) or "") if before[index] >= 0 else "",
            vectors[index],
        )
        for index, id in enumerate(ids_list)
    ]


def _find_status(
    credited: Credited,
    decision: int,
    memory: int,
    reward: float,
    credit: float,
    *,
    decided: bool,
    is_read: bool,
) -> str:
    """Return the status of one memory, as in ``Attributed.frame``."""
    if not decided:
        return "no say"
    if credited.stated(decision, memory):
        return "stated"
    before = credited.reward(decision, memory)
    if is_read or (before is not None and credit >= 0 and reward <= before):
        return "known"
    return "logged"


def _make_mark(policy: str, *texts: str) -> str:
    """Return a 16-bit checksum of a policy's hash and an answer's texts, in hexadecimal; it cannot reveal the texts."""
    return f"{zlib.crc32(chr(31).join((policy, *texts)).encode('utf-8', 'replace')) & 0xFFFF:04x}"


def _join_spaces(text: str) -> str:
    """Return a text with each run of white space replaced by one space, and without any at its ends."""
    return " ".join(text.split())


def _read_judged(store: Store, policy: str) -> tuple[Floats, Floats]:
    """Return the policy's last credits of hits that people judged, and the last judgement of each, 0 to 1."""
    # A reward takes precedence over an outcome, because a reward can have more than two values.
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
            value = (
                {"success": 1.0, "fail": 0.0}.get(body.get("outcome") or "")
                if reward is None
                else reward
            )
            if value is not None and 0 <= value <= 1:
                useful[key] = value
    keys = [key for key in credit if key in useful]
    return np.array([credit[key] for key in keys]), np.array([useful[key] for key in keys])


def _check_pairs(judged: pl.DataFrame) -> tuple[Floats, Floats]:
    """Return the columns ``credit`` and ``useful`` of a frame. Raises InputError for a value outside 0 to 1."""
    columns = []
    for name in ("credit", "useful"):
        if name not in judged.columns:
            raise UnknownName("column in the table of judged credits", name, judged.columns)
        values = judged[name].cast(pl.Float64, strict=False)
        if values.null_count() or not values.is_between(0, 1).all():
            raise InputError(
                f"The column {name} of the judged credits must have a number from 0 to 1 in each row."
            )
        columns.append(values.to_numpy())
    return columns[0], columns[1]

"""What a pack asks of every recall, worked out once: its settings as numbers, what its slates say, its stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memlab.errors import ExtensionError, InputError, MemlabError, UnknownName
from memlab.kernel.graph import SPREAD_MODES
from memlab.kernel.language import Policy, Program, Value, possible_results
from memlab.kernel.policies import FEATURES, Challenge, Pack
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._moment import Moment
from memlab.kernel.recall._query import NO_ENTITIES, About, Question, QuestionFeatures
from memlab.kernel.recall._ranking import Selected, Selection, Shown, diversifies
from memlab.kernel.registry import Registry
from memlab.kernel.schema import RECALLABLE, STATUSES
from memlab.kernel.slates import Constants, Slate, constants_of
from memlab.kernel.state import State

__all__ = [
    "STAGES",
    "Ending",
    "Plan",
    "Plans",
    "Reached",
    "Run",
    "Stage",
    "coded",
    "ending_of",
    "in_recall",
    "is_over",
    "own_stage",
    "promoted",
    "status_of",
]


# What time has made of memories: the status that a pack gives them at an instant, whoever has asked before.
#
# Upkeep writes such statuses down. A recall asks for them itself, so that what is over, or has nothing left, is not
# shown and not revived for want of a pass.


Rows = NDArray[np.int64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

_IN_RECALL = np.array([word in RECALLABLE for word in STATUSES])
_NO_CODE = -3
"""Of no word, and not of null either."""
_NEVER = frozenset({("const", False)})
_WORDS: NDArray[Any] = np.array(STATUSES, dtype=object)


def in_recall(status: Codes) -> Flags:
    """Which of these statuses, places in ``STATUSES``, take part in recall."""
    return np.asarray(_IN_RECALL[status])


def status_of(state: State, rows: Rows) -> Codes:
    """The status of each row as its place in ``STATUSES``; a snapshot of an older version may count otherwise."""
    status = state.names["status"]
    return np.array([STATUSES.index(word) for word in status.vocabulary])[status.codes[rows]]


class Ending(NamedTuple):
    """Which memories a pack's ``promote`` and ``forget`` could take out of recall, known from their texts."""

    promotes: Literal["none", "mortal", "any"]
    """"mortal": those that have a time to live."""
    forgets: bool

    def possible(self, state: State) -> bool:
        """Whether they could take any memory of a state."""
        if self.forgets or self.promotes == "any":
            return True
        return self.promotes == "mortal" and state.numbers["ttl_days"].has_values


def ending_of(pack: Pack) -> Ending:
    """Which memories this pack could take out of recall."""
    promote, forgets = pack.policies["promote"], _may_forget(pack.policies["forget"])
    if _stays(possible_results(promote, {})):
        return Ending("none", forgets)
    mortal = _stays(possible_results(promote, {"ttl-days": None}))
    return Ending("mortal" if mortal else "any", forgets)


def is_over(moment: Moment) -> Flags:
    """Which of these memories take part in recall as it is written down, and no more by ``promote`` and ``forget``.

    What a policy can give is known from its text, so most packs ask only of what has a time to live: 7 microseconds
    where nothing has.
    """
    over = np.zeros(len(moment), dtype=np.bool_)
    promoting, forgets = _to_promote(moment), _may_forget(moment.pack.policies["forget"])
    if not len(promoting) and not forgets:
        return over
    before = status_of(moment.state, moment.rows)
    after = before.copy()
    if len(promoting):
        part = moment
        if len(promoting) < len(moment):
            part = Moment(moment.state, moment.pack, moment.rows[promoting], moment.now)
        after[promoting] = promoted(part, before[promoting])[1]
        over = ~_IN_RECALL[after]
    if forgets:
        standing = moment
        if (after != before).any():
            standing = Moment(moment.state, moment.pack, moment.rows, moment.now)
            standing.give(status=_WORDS[after])
        gone, nulls = standing.ask(moment.pack.policies["forget"])
        over = over | (gone if nulls is None else gone & ~nulls)
    return np.asarray(over & _IN_RECALL[before])


@lru_cache(maxsize=256)
def _may_forget(policy: Policy) -> bool:
    """Whether a ``forget`` policy could forget what takes part in recall."""
    if set(policy.inputs) <= {"status"} and not policy.derived:
        return any(policy.row({"status": word} if policy.inputs else {}) for word in RECALLABLE)
    return possible_results(policy, {}) != _NEVER


def _to_promote(moment: Moment) -> Rows:
    """The places of those that ``promote`` could take out of recall."""
    promotes = ending_of(moment.pack).promotes
    if promotes == "any":
        return np.arange(len(moment))
    if promotes == "none" or not moment.state.numbers["ttl_days"].has_values:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(~np.isnan(moment.number("ttl_days")))


def _stays(results: frozenset[tuple[str, Value]] | None) -> bool:
    """Whether a policy with these results takes nothing out of recall; null leaves a status as it is."""
    return results is not None and all(
        found == ("input", "status") or (found[0] == "const" and found[1] in (None, *RECALLABLE))
        for found in results
    )


def promoted(moment: Moment, before: Codes) -> tuple[Moment, Codes]:
    """The status that ``promote`` gives and keeps giving, and a moment that knows it.

    InputError if it never settles on one.
    """
    policy, after = moment.pack.policies["promote"], before
    for _ in STATUSES:
        codes, words = coded(*moment.ask(policy))
        places = np.array([*map(_place, words), _NO_CODE])
        new = np.where((codes >= 0) & _IN_RECALL[after], places[codes], after)
        moved = new != after
        if not moved.any():
            return moment, after
        # again, since other features may follow from the status
        after, moment = new, Moment(moment.state, moment.pack, moment.rows, moment.now)
        moment.give(status=_WORDS[after])
    place = int(np.argmax(moved))
    raise InputError(
        f"The promote policy of {moment.pack.name} never settles on a status of memory {moment.rows[place] + 1}, "
        f'the last was "{STATUSES[after[place]]}": of a status that it gave it has to give the same again.'
    )


def _place(status: str) -> int:
    if status not in STATUSES:
        raise UnknownName("status", status, STATUSES)
    return STATUSES.index(status)


def coded(values: NDArray[Any], nulls: Flags | None) -> tuple[Codes, tuple[str, ...]]:
    """Strings as codes of the words that occur, -1 for null. There are few words: each costs one comparison of all."""
    codes = np.full(len(values), -1)
    words: list[str] = []
    left = np.ones(len(values), dtype=np.bool_) if nulls is None else ~nulls
    if values.dtype == object:
        left &= values != None  # noqa: E711  elementwise
    while left.any():
        word = str(values[int(np.argmax(left))])
        same = left & (values == word)
        codes[same] = len(words)
        words.append(word)
        left &= ~same
    return codes, tuple(words)


# The stages of a recall, as a table: what each reads, what it gives, and the function that does it.
#
# question -> find -> admit -> seed -> spread -> cut -> score -> known -> select -> explore -> log
#
# An extension may replace a stage by one of its own (``Extension(stages=...)``), which gives the same.


@dataclass(frozen=True)
class Stage:
    """One step of a recall.

    Parameters
    ----------
    name
        One of those in the table of stages.
    doc
        What it does, in a sentence.
    reads, gives
        The attributes of a run that it reads, and those that it sets.
    run
        The function; it takes the run.
    """

    name: str
    doc: str
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    run: Callable[[Any], None] = field(compare=False)
    owner: str = ""


class Stages(Registry[Stage]):
    """The stages in their order. What an extension declares takes the place of memlab's own, until it is forgotten."""

    def __init__(self) -> None:
        super().__init__("stage", kind="stages", about="doc", check=_refusal)
        self._own: dict[str, Stage] = {}

    def declare(self, stages: Iterable[Stage]) -> None:
        """Set memlab's own stages, in their order."""
        self._own = {stage.name: stage for stage in stages}
        self._items = dict(self._own)
        self.changes += 1

    def refusal(self, item: Stage) -> str | None:
        """Return why ``item`` cannot take the place of a stage, or None."""
        if (fault := _refusal(item)) is not None:
            return fault
        own = self._own.get(item.name)
        if own is None:
            return f"There is no stage {item.name}: an extension replaces one of {', '.join(self._own)}."
        if missing := [name for name in own.gives if name not in item.gives]:
            return f"The stage {item.name} gives {' and '.join(own.gives)}; this one lacks {' and '.join(missing)}."
        present = self._items[item.name]
        if (
            present.owner
            and item.owner
            and present.owner.rpartition(" ")[0] != item.owner.rpartition(" ")[0]
        ):
            return f"The stage {item.name} is replaced by the extension {present.owner} already."
        return None

    def remove(self, extension: str) -> None:
        """Put memlab's own stages in the place of those of an extension."""
        kept = {
            name: self._own[name] if stage.owner.rpartition(" ")[0] == extension else stage
            for name, stage in self._items.items()
        }
        if kept != self._items:
            self._items = kept
            self.changes += 1


def _refusal(item: Stage) -> str | None:
    if not isinstance(item, Stage):
        return f"A stage is a memlab.kernel.recall.Stage, not {type(item).__name__}."
    return None if callable(item.run) else f"The stage {item.name} has no function: give run=."


STAGES = Stages()
"""The stages of every recall."""


def own_stage(name: str) -> Stage:
    """Return memlab's own stage of a name, for an extension to build on."""
    if name not in STAGES._own:
        raise InputError(f"There is no stage {name}; there are {', '.join(STAGES._own)}.")
    return STAGES._own[name]


def _checked_run(stage: Stage) -> Callable[[Any], None]:
    """Return the function of an extension's stage, with what it raises or gives wrongly as an ExtensionError."""

    def run_checked(run: Run) -> None:
        try:
            stage.run(run)
            fault = _fault_of(stage, run)
        except MemlabError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the code of a user raises is said under its name
            fault = f"failed with {type(error).__name__}: {error}"
        if fault is not None:
            raise ExtensionError(f"The stage {stage.name} of the extension {stage.owner} {fault}")

    return run_checked


def _fault_of(stage: Stage, run: Run) -> str | None:
    for name in stage.gives:
        if not hasattr(run, name):
            return f"did not set {name}: set each attribute of the run that the stage gives."
    if stage.name == "select":
        order = np.sort(run.selected.ranking.order)
        if not np.array_equal(order, np.arange(len(run.pool))):
            return "gave an order that does not hold each candidate of the pool once."
    return None


_RANKING = ("recall-score", "explore")
_BEGINS_WITH = ("question",)
"""What a recall has before its first stage."""

_KEPT = 32
"""Plans that are kept: those of the live pack, of its challengers, and of packs that are compared with them."""


@dataclass(frozen=True)
class Finding:
    """How many candidates are found, and by what."""

    dense: int
    lexical: int
    triggers: bool
    pool: int
    language: str
    k1: float
    b: float


@dataclass(frozen=True)
class Spreading:
    """How activation is carried over edges, from how many seeds and entities."""

    seeds: int
    steps: int
    threshold: float
    damping: float
    fan_out: int
    mode: Literal["cascade", "energy", "hops", "ppr"]
    entities: int
    entity_floor: float
    entities_first: bool


@dataclass(frozen=True)
class Showing:
    """How many are shown where nothing seems to answer, and what is drawn from the ranks below."""

    limit: int
    known_floor: float
    unknown_limit: int
    tells_known: bool
    selects: bool
    diversifies: bool
    probe_rate: float
    probe_depth: int
    probes: int


@dataclass(frozen=True)
class Logging:
    """What every slate under the pack says, and which features it holds."""

    policies: dict[str, str]
    fingerprints: dict[str, str]
    numeric: tuple[str, ...]
    words: tuple[str, ...]
    tests: dict[str, Policy]
    """The tests of sets that the policies of ranking make."""
    flags: tuple[str, ...]
    cut: str
    constants: Constants
    """The same, as bytes of a slate."""


@dataclass(frozen=True)
class Plan:
    """How one pack recalls."""

    pack: Pack
    find: Finding
    spread: Spreading
    show: Showing
    log: Logging
    ending: Ending
    """Which memories time may have taken out of recall."""
    eligible: tuple[bool, ...] | None
    """By the number of hops, whether a candidate may take part, where ``eligible`` reads nothing else."""
    stages: tuple[Stage, ...]

    def upto(self, name: str) -> tuple[Stage, ...]:
        """The stages up to the one of this name."""
        names = [stage.name for stage in self.stages]
        return self.stages[: names.index(name) + 1]


class Plans:
    """The plans of the packs that one embedder recalls under."""

    def __init__(self, embedder: str) -> None:
        self._embedder = embedder
        self._kept: dict[tuple[str, str, str, int, int], Plan] = {}

    def of(self, pack: Pack) -> Plan:
        """The plan of a pack; made again after an extension was registered or removed."""
        # two packs may have one hash, and another name or another score that ``known`` is calibrated for
        key = pack.hash, pack.name, pack.known_for, FEATURES.changes, STAGES.changes
        plan = self._kept.get(key)
        if plan is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            plan = self._kept[key] = compile_plan(pack, self._embedder)
        return plan


def compile_plan(pack: Pack, embedder: str) -> Plan:
    """Work out the plan of a pack. InputError if a stage reads what none before it gives."""
    return Plan(
        pack=pack,
        find=_finding(pack),
        spread=_spreading(pack),
        show=_showing(pack),
        log=_logging(pack, embedder),
        ending=ending_of(pack),
        eligible=_eligible_by_hops(pack),
        stages=_ordered(tuple(STAGES.values())),
    )


def _finding(pack: Pack) -> Finding:
    settings = pack.settings
    return Finding(
        dense=int(settings["dense-candidates"]),
        lexical=int(settings["lexical-candidates"]),
        triggers=bool(settings["triggers"]),
        pool=int(settings["pool"]),
        language=str(settings["language"]),
        k1=float(settings["bm25-k1"]),
        b=float(settings["bm25-b"]),
    )


def _spreading(pack: Pack) -> Spreading:
    settings = pack.settings
    return Spreading(
        seeds=int(settings["seeds"]),
        steps=int(settings["spread-steps"]),
        threshold=float(settings["spread-threshold"]),
        damping=float(settings["damping"]),
        fan_out=int(settings["fan-out"]),
        mode=next(mode for mode in SPREAD_MODES if mode == settings["spread-mode"]),
        entities=int(settings["entity-seeds"]),
        entity_floor=pack.number("entity-floor"),
        entities_first=settings["anchors"] == "entities-first",
    )


def _eligible_by_hops(pack: Pack) -> tuple[bool, ...] | None:
    policy, steps = pack.policies["eligible"], pack.count("spread-steps")
    if policy.derived or Program(policy).aggregates or not set(policy.inputs) <= {"hops"}:
        return None
    # what a selection names is one hop away
    hops = [{"hops": float(number)} for number in range(steps + 2)]
    return tuple(policy.row(given if policy.inputs else {}) is True for given in hops)


def _showing(pack: Pack) -> Showing:
    return Showing(
        limit=pack.count("limit"),
        known_floor=pack.number("known-floor"),
        unknown_limit=pack.count("unknown-limit"),
        tells_known=pack.tells_known,
        selects=pack.selects,
        diversifies=diversifies(pack),
        probe_rate=pack.number("probe-rate"),
        probe_depth=pack.count("probe-depth"),
        probes=pack.count("probes"),
    )


def _logging(pack: Pack, embedder: str) -> Logging:
    tests = {name: pack.policies[slot] for slot in _RANKING for name in pack.policies[slot].derived}
    read = {name for policy in pack.policies.values() for name in policy.inputs}
    kept = {
        name: feature
        for name, feature in FEATURES.items()
        if name in read or not (feature.on_demand or feature.owner)
    }
    numeric = tuple(name for name, feature in kept.items() if feature.type in ("num", "bool"))
    flags = [name for name, feature in kept.items() if feature.type == "bool"]
    flags += [name for name, policy in tests.items() if policy.derived[name].type == "bool"]
    policies = pack.policy_hashes
    fingerprints = {
        name: hash for name, hash in pack.fingerprints(embedder).items() if name in kept
    }
    fingerprints = {"embedder": embedder, **fingerprints, **_replaced()}
    return Logging(
        policies=policies,
        fingerprints=fingerprints,
        numeric=numeric,
        words=tuple(
            name for name, of in kept.items() if of.type == "str" and (of.on_demand or of.owner)
        ),
        tests=tests,
        flags=tuple(flags),
        cut=f"{pack.settings['pool']} best by cut {pack.policies['cut'].hash[:12]}, ties by id",
        constants=constants_of(
            names=[*numeric, *tests],
            policies=policies,
            settings=dict(pack.settings),
            fingerprints=fingerprints,
            flags=tuple(flags),
        ),
    )


def _replaced() -> dict[str, str]:
    """The stages that extensions replaced, for a slate to name."""
    return {f"stage {name}": stage.owner for name, stage in STAGES.items() if stage.owner}


def _ordered(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages in their order, each of which reads what those before it give."""
    given = set(_BEGINS_WITH)
    for stage in stages:
        lacking = [name for name in stage.reads if name not in given]
        if lacking:
            raise InputError(
                f"The stage {stage.name} reads {' and '.join(lacking)}, which no stage before it gives. "
                f"Before it there are {', '.join(sorted(given))}."
            )
        given.update(stage.gives)
    return tuple(
        replace(stage, run=_checked_run(stage)) if stage.owner else stage for stage in stages
    )


# One recall on its way through the stages.


Scores = NDArray[np.float64]


class Reached(NamedTuple):
    """What was found or reached by spreading: ascending rows, and what each has of it."""

    rows: Rows
    seed: Scores
    received: Scores
    activation: Scores
    hops: Scores


@dataclass
class Run:
    """One recall on its way through the stages: what it was asked, and what the stages so far gave."""

    plan: Plan
    state: State
    question: Question
    asked: QuestionFeatures
    limit: int
    about: About = NO_ENTITIES
    seed: int | None = None
    challenges: Sequence[Challenge] = ()
    selection: Selection | None = None
    rival: Callable[[Pack], Run] | None = None
    """The same question under the pack of a challenger, with nothing of it done."""

    found: Rows = field(init=False)
    direct: Candidates = field(init=False)
    seeds: Scores = field(init=False)
    reached: Reached = field(init=False)
    pool: Candidates = field(init=False)
    scores: Scores = field(init=False)
    known: float | None = field(init=False)
    selected: Selected = field(init=False)
    shown: Shown = field(init=False)
    challenge: dict[str, Any] | None = field(init=False, default=None)
    slate: Slate = field(init=False)

    def through(self, stages: Iterable[Stage]) -> Run:
        """Go through these stages."""
        for stage in stages:
            stage.run(self)
        return self

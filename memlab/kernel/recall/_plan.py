"""The compiled plan of a pack, and the run of one recall.

A plan has the settings as numbers, the stages in order, and the constant parts of the pack's
slates. A run is the state of a recall between stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from memlab.errors import ExtensionError, InputError, MemlabError
from memlab.kernel.base.arrays import Rows, Scores
from memlab.kernel.graph import SPREAD_MODES
from memlab.kernel.language import Policy, Program
from memlab.kernel.policies import FEATURES, Challenge, Pack
from memlab.kernel.recall._ending import Ending, analyse_ending
from memlab.kernel.recall._features import Candidates
from memlab.kernel.recall._query import NO_ENTITIES, About, Question, QuestionFeatures
from memlab.kernel.recall._ranking import Selected, Selection, Shown, diversifies
from memlab.kernel.recall._stages import STAGES, Stage
from memlab.kernel.slates import Constants, Slate, constants_of
from memlab.kernel.state import State

_RANKING = ("recall-score", "explore")
"""The slots whose tests of sets are logged.

Evaluation scores logged pools again, and reads these tests.
"""

_BEGINS_WITH = ("question",)
"""The attributes that a run has before its first stage."""

_CACHED_PLANS = 32
"""Maximum number of cached plans.

Plans are cached for the active pack, its challengers, and packs compared with them.
"""


@dataclass(frozen=True)
class Finding:
    """The settings of the stage ``find``: how many candidates each search returns."""

    dense: int
    lexical: int
    triggers: bool
    pool: int
    language: str
    k1: float
    b: float


@dataclass(frozen=True)
class Spreading:
    """The settings of the stage ``spread``."""

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
    """The settings of the stages ``known``, ``select`` and ``explore``."""

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
    """The constant parts of a pack's slates, and the names of the logged features."""

    policies: dict[str, str]
    fingerprints: dict[str, str]
    numeric: tuple[str, ...]
    words: tuple[str, ...]
    tests: dict[str, Policy]
    """The tests of sets in the ranking policies by name, each with a policy that contains it."""
    flags: tuple[str, ...]
    cut: str
    constants: Constants
    """The shared parts as encoded bytes."""


@dataclass(frozen=True)
class Plan:
    """The compiled form of one pack: settings, stages, and parts of its slates."""

    pack: Pack
    find: Finding
    spread: Spreading
    show: Showing
    log: Logging
    ending: Ending
    """Which memories ``promote`` and ``forget`` could remove from recall."""
    eligible: tuple[bool, ...] | None
    """Whether a candidate is eligible, by its number of hops; None if ``eligible`` reads other features."""
    stages: tuple[Stage, ...]
    _logs: dict[tuple[str, ...], Logging] = field(default_factory=dict, compare=False)
    """The log parts under challengers, by their hashes. A cache, because compiling takes as long as a recall."""

    def log_with(self, challengers: Sequence[Pack]) -> Logging:
        """Return the values that slates log while the given packs are challengers.

        Slates then include the features that the challengers read.
        """
        key = tuple(pack.hash for pack in challengers)
        logging = self._logs.get(key) if key else self.log
        if logging is None:
            if len(self._logs) >= _CACHED_PLANS:
                self._logs.clear()
            logging = _logging(self.pack, self.log.fingerprints["embedder"], challengers)
            self._logs[key] = logging
        return logging

    def stages_through(self, name: str) -> tuple[Stage, ...]:
        """Return the stages up to and including the stage ``name``."""
        names = [stage.name for stage in self.stages]
        return self.stages[: names.index(name) + 1]


class Plans:
    """A cache of the plans of packs."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str, str, str, int, int], Plan] = {}

    def get(self, pack: Pack, embedder: str) -> Plan:
        """Return the plan of a pack for an embedder, compiling the plan on first use.

        The plan is compiled again after an extension is registered or removed.
        """
        # Packs of the same hash may differ in name and in the score that ``known`` is calibrated for.
        key = embedder, pack.hash, pack.name, pack.known_for, FEATURES.changes, STAGES.changes
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _CACHED_PLANS:
                self._plans.clear()
            plan = self._plans[key] = compile_plan(pack, embedder)
        return plan


def compile_plan(pack: Pack, embedder: str) -> Plan:
    """Compile a pack to the plan of its recalls.

    Raises
    ------
    InputError
        If a stage reads an attribute that no earlier stage sets.
    """
    return Plan(
        pack=pack,
        find=_finding(pack),
        spread=_spreading(pack),
        show=_showing(pack),
        log=_logging(pack, embedder),
        ending=analyse_ending(pack),
        eligible=_eligible_by_hops(pack),
        stages=_ordered(tuple(STAGES.values())),
    )


def _finding(pack: Pack) -> Finding:
    """Compile the settings of the stage ``find``."""
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
    """Compile the settings of the stage ``spread``."""
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
    """Return whether ``eligible`` admits each number of hops up to ``spread-steps`` + 1; None if more than hops is read."""
    policy, steps = pack.policies["eligible"], pack.count("spread-steps")
    if policy.derived or Program(policy).aggregates or not set(policy.inputs) <= {"hops"}:
        return None
    # A memory that a selection requests counts as one hop away.
    hops = [{"hops": float(number)} for number in range(steps + 2)]
    return tuple(policy.row(inputs if policy.inputs else {}) is True for inputs in hops)


def _showing(pack: Pack) -> Showing:
    """Compile the settings that decide how many results are shown."""
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


def _logging(pack: Pack, embedder: str, challengers: Sequence[Pack] = ()) -> Logging:
    """Compile the list of values that a pack's slates log, including challengers' features."""
    packs = (*challengers, pack)
    tests = {
        name: other.policies[slot]
        for other in packs
        for slot in _RANKING
        for name in other.policies[slot].derived
    }
    own = pack.fingerprints(embedder)
    read = {name for policy in pack.policies.values() for name in policy.inputs}
    for challenger in challengers:
        # Evaluation would refuse a feature whose fingerprint differs under the challenger, so it is not stored.
        theirs = challenger.fingerprints(embedder)
        for policy in challenger.policies.values():
            read |= {name for name in policy.inputs if name in own and own[name] == theirs[name]}
    features = {
        name: feature
        for name, feature in FEATURES.items()
        if name in read or not (feature.on_demand or feature.owner)
    }
    numeric = tuple(name for name, feature in features.items() if feature.type in ("num", "bool"))
    flags = [name for name, feature in features.items() if feature.type == "bool"]
    flags += [name for name, policy in tests.items() if policy.derived[name].type == "bool"]
    policies = pack.policy_hashes
    fingerprints = {name: hash for name, hash in own.items() if name in features}
    fingerprints = {"embedder": embedder, **fingerprints, **_list_replaced()}
    return Logging(
        policies=policies,
        fingerprints=fingerprints,
        numeric=numeric,
        words=tuple(
            name
            for name, feature in features.items()
            if feature.type == "str" and (feature.on_demand or feature.owner)
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


def _list_replaced() -> dict[str, str]:
    """Return the owner of each stage of an extension, keyed by "stage NAME", to log with each recall."""
    return {f"stage {name}": stage.owner for name, stage in STAGES.items() if stage.owner}


def _ordered(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Check the order of stages and return them; errors of extensions' stages become ExtensionError.

    Raises InputError if a stage reads an attribute that is not yet set.
    """
    available = set(_BEGINS_WITH)
    for stage in stages:
        missing = [name for name in stage.reads if name not in available]
        if missing:
            raise InputError(
                f"The stage {stage.name} reads {' and '.join(missing)}, which no earlier stage sets. "
                f"Earlier stages set {', '.join(sorted(available))}."
            )
        available.update(stage.gives)
    return tuple(
        replace(stage, run=_checked_run(stage)) if stage.owner else stage for stage in stages
    )


def _checked_run(stage: Stage) -> Callable[[Any], None]:
    """Return an extension's stage function, wrapped so that its faults raise ExtensionError."""

    def run_checked(run: Run) -> None:
        """Run the stage, and re-raise its exceptions as ExtensionError."""
        try:
            stage.run(run)
            fault = _fault_of(stage, run)
        except MemlabError:
            raise
        except Exception as error:  # noqa: BLE001 - any error of the extension is reported under its name
            fault = f"failed with {type(error).__name__}: {error}"
        if fault is not None:
            raise ExtensionError(f"The stage {stage.name} of the extension {stage.owner} {fault}")

    return run_checked


def _fault_of(stage: Stage, run: Run) -> str | None:
    """Return the fault of a stage that left the run incomplete or wrong, or None if sound."""
    for name in stage.gives:
        if not hasattr(run, name):
            return f"did not set {name}. Set every attribute of the run that the stage declares in gives."
    if stage.name == "select" and not np.array_equal(
        np.sort(run.selected.ranking.order), np.arange(len(run.pool))
    ):
        return "set an order that does not contain each candidate of the pool exactly once."
    return None


class Reached(NamedTuple):
    """The candidates after spreading: ascending rows with their activation values."""

    rows: Rows
    seed: Scores
    received: Scores
    activation: Scores
    hops: Scores


@dataclass
class Run:
    """The state of one recall: the query, and the attributes set by stages so far."""

    plan: Plan
    state: State
    question: Question
    query: QuestionFeatures
    limit: int
    about: About = NO_ENTITIES
    seed: int | None = None
    explores: bool | Literal["within"] = True
    """Whether the pack's own probes are drawn, next to the results or ``within`` their number; challenges need no such
    consent."""
    challenges: Sequence[Challenge] = ()
    selection: Selection | None = None
    rival: Callable[[Pack], Run] | None = None
    """Return a new run of the same query under another pack, before its first stage."""

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

    def run_stages(self, stages: Iterable[Stage]) -> Run:
        """Run stages in order and return the run."""
        for stage in stages:
            stage.run(self)
        return self

"""What a pack asks of every recall, worked out once: its settings as numbers, what its slates say, its stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memlab.errors import InputError
from memlab.kernel.graph import SPREAD_MODES
from memlab.kernel.language import Policy, Program
from memlab.kernel.policies import FEATURES, Pack
from memlab.kernel.recall._stages import STAGES, Stage
from memlab.kernel.recall._standing import Ending, ending_of
from memlab.kernel.slates import Constants, constants_of

__all__ = ["Plan", "Plans"]

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
    hops = [{"hops": float(number)} for number in range(steps + 2)]  # what a selection names is one hop away
    return tuple(policy.row(given if policy.inputs else {}) is True for given in hops)


def _showing(pack: Pack) -> Showing:
    return Showing(
        limit=pack.count("limit"),
        known_floor=pack.number("known-floor"),
        unknown_limit=pack.count("unknown-limit"),
        tells_known=pack.tells_known,
        selects=pack.selects,
        probe_rate=pack.number("probe-rate"),
        probe_depth=pack.count("probe-depth"),
        probes=pack.count("probes"),
    )


def _logging(pack: Pack, embedder: str) -> Logging:
    tests = {name: pack.policies[slot] for slot in _RANKING for name in pack.policies[slot].derived}
    read = {name for policy in pack.policies.values() for name in policy.inputs}
    kept = {
        name: feature for name, feature in FEATURES.items() if name in read or not (feature.on_demand or feature.owner)
    }
    numeric = tuple(name for name, feature in kept.items() if feature.type in ("num", "bool"))
    flags = [name for name, feature in kept.items() if feature.type == "bool"]
    flags += [name for name, policy in tests.items() if policy.derived[name].type == "bool"]
    policies = pack.policy_hashes
    fingerprints = {name: hash for name, hash in pack.fingerprints(embedder).items() if name in kept}
    fingerprints = {"embedder": embedder, **fingerprints, **_replaced()}
    return Logging(
        policies=policies,
        fingerprints=fingerprints,
        numeric=numeric,
        words=tuple(name for name, of in kept.items() if of.type == "str" and (of.on_demand or of.owner)),
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
    return tuple(stages)

"""The operations: each name with its parameters, the verb of a lab that it calls, and what it touches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from memlab.kernel.language import with_setting
from memlab.kernel.policies import Pack, pack_from_sources
from memlab.kernel.schema import OUTCOMES
from memlab.subjects.programs import _arguments as read
from memlab.subjects.programs._adapt import ESTIMATORS, MISSING, adapt
from memlab.subjects.programs._arguments import Reader
from memlab.subjects.programs._lab import OperableLab

__all__ = ["OPERATIONS", "Operation", "Outcome"]

_SHOWN = 60

Arguments = Mapping[str, Any]
"""By parameter; what was left out is None. ``consent``: whether the caller allows what needs it."""


@dataclass(frozen=True)
class Outcome:
    """What an operation gave: a line, the value, the same as rows, and how many memories were touched."""

    line: str
    value: Any
    rows: list[dict[str, Any]]
    touched: int = 0


@dataclass(frozen=True)
class Operation:
    """One operation.

    ``does`` says what a person consents to: reads, adds to the memory, or changes how it decides. ``verb`` carries it
    out. ``required`` and ``optional`` are its arguments in order, each with what reads it; optional ones may be left
    out at the end, be nil, or be given by name after the others, as in ``:horizon "1d"``.
    ``needs`` is the least, or where it can be known the most, that it touches: asked before it is run.
    """

    doc: str
    does: Literal["reads", "adds", "decides"]
    verb: Callable[[OperableLab, Arguments], Outcome]
    required: Mapping[str, Reader] = field(default_factory=dict)
    optional: Mapping[str, Reader] = field(default_factory=dict)
    needs: Callable[[OperableLab, Arguments], int] = lambda lab, a: 0

    @property
    def parameters(self) -> dict[str, Reader]:
        return {**self.required, **self.optional}


def _remember(lab: OperableLab, a: Arguments) -> Outcome:
    fields = {"kind": a["type"], "importance": a["importance"], "ttl_days": a["ttl"], "tags": a["tags"]}
    memory = lab.remember(a["text"], **{name: value for name, value in fields.items() if value is not None})
    return Outcome(f"#{memory.id} {_shorten(memory.text)}", memory, [{"id": memory.id, "text": memory.text}], 1)


def _fact(lab: OperableLab, a: Arguments) -> Outcome:
    what = "object" if a["sort"] == "object" else "value"
    sure = {} if a["confidence"] is None else {"confidence": a["confidence"]}
    memory = lab.facts.add(a["subject"], a["predicate"], **{what: a["value"]}, **sure)
    return Outcome(f"#{memory.id} {_shorten(memory.text)}", memory, [{"id": memory.id, "text": memory.text}], 1)


def _recall(lab: OperableLab, a: Arguments) -> Outcome:
    hits = lab.recall(a["query"], limit=a["limit"])
    rows = [{"rank": hit.rank, "id": hit.id, "score": hit.score, "text": hit.text} for hit in hits]
    line = "; ".join(f"#{hit.id} {_shorten(hit.text)}" for hit in hits[:3])
    return Outcome(line or "nothing", hits, rows, len(hits))


def _recall_needs(lab: OperableLab, a: Arguments) -> int:
    limit = lab.policies.pack.count("limit") if a["limit"] is None else a["limit"]
    return min(int(limit), len(lab))


def _associate(lab: OperableLab, a: Arguments) -> Outcome:
    relation, weight = a["relation"] or "relates-to", 1.0 if a["weight"] is None else a["weight"]
    lab.graph.link(a["from"], a["to"], relation, weight=weight)
    row = {"from": a["from"], "to": a["to"], "relation": relation, "weight": weight}
    return Outcome(f"#{a['from']} {relation} #{a['to']} ({weight:g})", None, [row], 2)


def _feedback(lab: OperableLab, a: Arguments) -> Outcome:
    logged = lab.feedback(a["id"], a["outcome"], source="operation")
    row = {"event": logged.event, "id": logged.memory, "outcome": logged.outcome}
    return Outcome(f"#{logged.memory}: {logged.outcome}", logged, [row], 1)


def _consolidate(lab: OperableLab, a: Arguments) -> Outcome:
    done = lab.upkeep.consolidation.run()
    count = int(done.frame["count"].sum())
    return Outcome(f"{count} memories became {len(done)} summaries", done, done.frame.to_dicts(), count)


def _set_half_life(lab: OperableLab, a: Arguments) -> Outcome:
    days = a["half-life-days"]
    pack = lab.policies.use(_with_half_life(lab.policies.pack, days), reason=f"decay!: a half-life of {days:g} days")
    row = {"pack": pack.name, "hash": pack.hash, "half_life_days": days}
    return Outcome(f"base-half-life is {days:g} days, pack {pack.name} [{pack.hash[:12]}]", pack, [row])


def _with_half_life(live: Pack, days: float) -> Pack:
    """The pack with another base-half-life in its text, under what was installed over it."""
    text, *inherited = live.sources
    pack = pack_from_sources((with_setting(text, "base-half-life", days), *inherited))
    for slot, policy in live.policies.items():
        if pack.policies[slot].hash != policy.hash:
            pack = pack.with_policy(slot, policy)
    return pack


def _get_policy(lab: OperableLab, a: Arguments) -> Outcome:
    pack = lab.policies.pack
    rows = [{"slot": slot, "hash": policy.hash, "source": policy.source} for slot, policy in pack.policies.items()]
    return Outcome(f"pack {pack.name} [{pack.hash[:12]}]", pack, rows)


def _set_policy(lab: OperableLab, a: Arguments) -> Outcome:
    version = lab.policies.install(a["name"], a["code"], reason="set-policy-fn")
    row = {"slot": version.slot, "version": version.number, "hash": version.hash}
    return Outcome(f"{version} is live", version, [row])


def _adapt(lab: OperableLab, a: Arguments) -> Outcome:
    asked = {name: a[name] for name in ADAPT_OPTIONS if a[name] is not None}
    adapted = adapt(lab, consent=a["consent"], **asked)
    return Outcome(repr(adapted), adapted, adapted.frame.to_dicts())


def _stats(lab: OperableLab, a: Arguments) -> Outcome:
    found = lab.graph.stats(progress=False)
    totals = found.frames["totals"]
    line = ", ".join(f"{value:g} {measure}" for measure, value in totals.iter_rows())
    return Outcome(line, found, totals.to_dicts())


def _trace(lab: OperableLab, a: Arguments) -> Outcome:
    found = lab.graph.trace(a["id"], 2 if a["depth"] is None else a["depth"])
    paths = "1 path" if len(found.frame) == 1 else f"{len(found.frame)} paths"
    return Outcome(paths, found, found.frame.to_dicts(), len(found.frame))


def _activate(lab: OperableLab, a: Arguments) -> Outcome:
    given = {name: a[name] for name in ("steps", "decay", "threshold") if a[name] is not None}
    frame = lab.graph.activate(a["seeds"], **given)
    line = ", ".join(f"{row['name']} {row['activation']:.3g}" for row in frame.head(3).iter_rows(named=True))
    return Outcome(line, frame, frame.to_dicts(), len(frame))


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1]}…"


ADAPT_OPTIONS: dict[str, Reader] = {
    "missing": read.one_of(MISSING),
    "horizon": read.span,
    "cluster": read.text,
    "estimator": read.one_of(ESTIMATORS),
    "level": read.number(0.5, 0.999),
    "seed": read.integer(0, 2**32 - 1),
}
"""What ``(adapt-policy)`` takes, all of it optional, by place or by name: ``(adapt-policy "zero" :cluster "day")``."""


OPERATIONS: dict[str, Operation] = {
    "remember": Operation(
        "remember a text",
        "adds",
        _remember,
        {"text": read.text},
        {"type": read.kind, "importance": read.number(0, 1), "ttl": read.ttl, "tags": read.texts},
        needs=lambda lab, a: 1,
    ),
    "fact": Operation(
        "remember a fact about an entity",
        "adds",
        _fact,
        {"subject": read.text, "predicate": read.text, "value": read.text},
        {"confidence": read.number(0, 1), "sort": read.one_of(("value", "object"))},
        needs=lambda lab, a: 1,
    ),
    "recall": Operation(
        "recall what answers a question",
        "reads",
        _recall,
        {"query": read.text},
        {"limit": read.integer(1, 10_000)},
        needs=_recall_needs,
    ),
    "associate": Operation(
        "join two memories",
        "adds",
        _associate,
        {"from": read.memory_id, "to": read.memory_id},
        {"relation": read.relation, "weight": read.number(0, 1)},
        needs=lambda lab, a: 2,
    ),
    "feedback": Operation(
        "say how a memory did",
        "adds",
        _feedback,
        {"id": read.memory_id, "outcome": read.one_of(OUTCOMES)},
        needs=lambda lab, a: 1,
    ),
    "consolidate": Operation(
        "replace what is old by summaries",
        "adds",
        _consolidate,
        needs=lambda lab, a: int(lab.upkeep.consolidation.run(dry_run=True).frame["count"].sum()),
    ),
    "decay!": Operation(
        "set the days in which what is not recalled falls by half",
        "decides",
        _set_half_life,
        {"half-life-days": read.number(1e-6, 1e9)},
    ),
    "get-policy": Operation("show the policies that decide", "reads", _get_policy),
    "set-policy-fn": Operation(
        "put a policy into its slot", "decides", _set_policy, {"name": read.slot, "code": read.code}
    ),
    "adapt-policy": Operation(
        "propose what does better on the log and, on consent, install it or take the live one back",
        "decides",
        _adapt,
        optional=ADAPT_OPTIONS,
    ),
    "stats": Operation("show what the memory is like as a whole", "reads", _stats),
    "trace": Operation(
        "show how a memory is joined to others",
        "reads",
        _trace,
        {"id": read.memory_id},
        {"depth": read.integer(1, 10)},
        needs=lambda lab, a: 1,
    ),
    "activate": Operation(
        "spread activation from some memories",
        "reads",
        _activate,
        {"seeds": read.ids},
        {"steps": read.integer(0, 100), "decay": read.number(0, 1), "threshold": read.number()},
        needs=lambda lab, a: 1 if a["steps"] == 0 else len(a["seeds"]),
    ),
}

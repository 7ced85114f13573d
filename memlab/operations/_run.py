"""Operations carried out, one after the other, by the verbs of a lab."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from memlab.errors import InputError, MemlabError, PolicyLimitError
from memlab.language import with_setting
from memlab.operations._adapt import adapt
from memlab.operations._program import Call, Program
from memlab.operations._ran import Fuel, Ran, Step
from memlab.policies import Pack, pack_from_sources

if TYPE_CHECKING:
    from memlab.lab import Lab

__all__ = ["half_life_set", "run_program"]

_SHOWN = 60

Result = tuple[str, Any, list[dict[str, Any]], int]
"""What is said, the value, the same as rows, and how many memories were touched."""


def run_program(lab: Lab, program: Program, *, fuel: Fuel, memory: int | None = None) -> Ran:
    """Run what was read and checked. The journal says first that it is run: by which memory, which operations, the
    hash.

    Every operation is durable by itself. If one fails, those before it stay, and the error says which it was.
    """
    for what, value in (("operations", fuel.operations), ("memories", fuel.memories)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"The fuel of {what} is a whole number of at least 1, not {value!r}.")
    if len(program) > fuel.operations:
        last = program.calls[fuel.operations]
        raise last.error(PolicyLimitError, f"There are {len(program)} operations, and the fuel is {fuel.operations}.")
    body = {"memory": memory, "operations": [call.name for call in program.calls], "hash": program.hash}
    store = lab.store
    with store.writing() as tx:
        program.check_ids(len(store.state))
        event = tx.event("run", body, at=store.clock())
    steps: list[Step] = []
    touched = 0
    for number, call in enumerate(program.calls, 1):
        needs = _NEEDS[call.name](lab, call)
        if touched + needs > fuel.memories:
            raise call.error(
                PolicyLimitError,
                f"It may touch {needs:,} memories, and {fuel.memories - touched:,} of the fuel of {fuel.memories:,} "
                f"are left. {_before(number)}",
            )
        try:
            said, value, rows, used = _DO[call.name](lab, call)
        except MemlabError as error:
            error.add_note(
                f"Operation {number} of {len(program)}, line {call.line}: {call.source[:200]}. {_before(number)}"
            )
            raise
        touched += used
        steps.append(Step(call.name, call.line, call.source, said, used, rows, value))
    return Ran(tuple(steps), event, program.hash, touched, memory)


def _before(number: int) -> str:
    return "Nothing was done." if number == 1 else f"What came before it ({number - 1}) is done and stays."


# -- one function an operation ----------------------------------------------------------------------------------------


def _remember(lab: Lab, call: Call) -> Result:
    a = call.arguments
    fields = {"kind": a["type"], "importance": a["importance"], "ttl_days": a["ttl"], "tags": a["tags"]}
    memory = lab.remember(a["text"], **{name: value for name, value in fields.items() if value is not None})
    return f"#{memory.id} {_clip(memory.text)}", memory, [{"id": memory.id, "text": memory.text}], 1


def _recall(lab: Lab, call: Call) -> Result:
    hits = lab.recall(call.arguments["query"], limit=call.arguments["limit"])
    rows = [{"rank": hit.rank, "id": hit.id, "score": hit.score, "text": hit.text} for hit in hits]
    said = "; ".join(f"#{hit.id} {_clip(hit.text)}" for hit in hits[:3])
    return said or "nothing", hits, rows, len(hits)


def _associate(lab: Lab, call: Call) -> Result:
    a = call.arguments
    relation, weight = a["relation"] or "relates-to", 1.0 if a["weight"] is None else a["weight"]
    lab.graph.link(a["from"], a["to"], relation, weight=weight)
    row = {"from": a["from"], "to": a["to"], "relation": relation, "weight": weight}
    return f"#{a['from']} {relation} #{a['to']} ({weight:g})", None, [row], 2


def _feedback(lab: Lab, call: Call) -> Result:
    logged = lab.feedback(call.arguments["id"], call.arguments["outcome"], source="operation")
    row = {"event": logged.event, "id": logged.memory, "outcome": logged.outcome}
    return f"#{logged.memory}: {logged.outcome}", logged, [row], 1


def _consolidate(lab: Lab, call: Call) -> Result:
    done = lab.consolidation.run()
    count = int(done.frame["count"].sum())
    return f"{count} memories became {len(done)} summaries", done, done.frame.to_dicts(), count


def _decay(lab: Lab, call: Call) -> Result:
    days = call.arguments["half-life-days"]
    pack = half_life_set(lab, days)
    row = {"pack": pack.name, "hash": pack.hash, "half_life_days": days}
    return f"base-half-life is {days:g} days, pack {pack.name} [{pack.hash[:12]}]", pack, [row], 0


def half_life_set(lab: Lab, days: float) -> Pack:
    """Another base-half-life in the live pack: a logged change of its text, under what was installed over it."""
    live = lab.policies.pack
    text, *inherited = live.sources
    pack = pack_from_sources((with_setting(text, "base-half-life", days), *inherited))
    for slot, policy in live.policies.items():
        if pack.policies[slot].hash != policy.hash:
            pack = pack.with_policy(slot, policy)
    return lab.policies.use(pack, reason=f"decay!: a half-life of {days:g} days")


def _get_policy(lab: Lab, call: Call) -> Result:
    pack = lab.policies.pack
    rows = [{"slot": slot, "hash": policy.hash, "source": policy.source} for slot, policy in pack.policies.items()]
    return f"pack {pack.name} [{pack.hash[:12]}]", pack, rows, 0


def _set_policy(lab: Lab, call: Call) -> Result:
    version = lab.policies.install(call.arguments["name"], call.arguments["code"], reason="set-policy-fn")
    row = {"slot": version.slot, "version": version.number, "hash": version.hash}
    return f"{version} is live", version, [row], 0


def _adapt(lab: Lab, call: Call) -> Result:
    adapted = adapt(lab)
    return repr(adapted), adapted, adapted.frame.to_dicts(), 0


def _stats(lab: Lab, call: Call) -> Result:
    told = lab.graph.stats(progress=False)
    totals = told.frames["totals"]
    said = ", ".join(f"{value:g} {measure}" for measure, value in totals.iter_rows())
    return said, told, totals.to_dicts(), 0


def _trace(lab: Lab, call: Call) -> Result:
    depth = call.arguments["depth"]
    found = lab.graph.trace(call.arguments["id"], 2 if depth is None else depth)
    return f"{len(found.frame)} paths", found, found.frame.to_dicts(), len(found.frame)


def _activate(lab: Lab, call: Call) -> Result:
    a = call.arguments
    given = {name: a[name] for name in ("steps", "decay", "threshold") if a[name] is not None}
    frame = lab.graph.activate(a["seeds"], **given)
    said = ", ".join(f"{row['name']} {row['activation']:.3g}" for row in frame.head(3).iter_rows(named=True))
    return said, frame, frame.to_dicts(), len(frame)


def _clip(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1]}…"


def _none(lab: Lab, call: Call) -> int:
    return 0


def _limit_of(lab: Lab, call: Call) -> int:
    limit = call.arguments["limit"]
    return lab.policies.pack.count("limit") if limit is None else int(limit)


_DO: dict[str, Callable[[Any, Call], Result]] = {
    "remember": _remember,
    "recall": _recall,
    "associate": _associate,
    "feedback": _feedback,
    "consolidate": _consolidate,
    "decay!": _decay,
    "get-policy": _get_policy,
    "set-policy-fn": _set_policy,
    "adapt-policy": _adapt,
    "stats": _stats,
    "trace": _trace,
    "activate": _activate,
}

_NEEDS: dict[str, Callable[[Any, Call], int]] = {
    **dict.fromkeys(_DO, _none),
    "remember": lambda lab, call: 1,
    "recall": lambda lab, call: min(_limit_of(lab, call), len(lab)),
    "associate": lambda lab, call: 2,
    "feedback": lambda lab, call: 1,
    "consolidate": lambda lab, call: int(lab.consolidation.run(dry_run=True).frame["count"].sum()),
    "activate": lambda lab, call: 1 if call.arguments["steps"] == 0 else len(call.arguments["seeds"]),
    "trace": lambda lab, call: 1,
}
"""The least, or where it can be known the most, that an operation touches: asked before it is run."""

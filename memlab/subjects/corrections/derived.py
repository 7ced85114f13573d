"""What was derived from the words of a memory, and what it becomes when the words are corrected.

A correction is another memory that supersedes the first. Every field of the first that was given is carried over; what
was made of its old words is made again of the new ones here, and what cannot be made again is dropped. Nothing of this
is asked by the fold: the event carries the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memlab.policies import Pack
from memlab.schema import RELATIONS
from memlab.state import Change, State, values_of
from memlab.subjects.facts.fact_rows import fact_text
from memlab.subjects.remembering.inferred import summary_of, tags_of

__all__ = ["FACT", "fields_of", "rederived", "summaries_quoting", "without_summaries"]

FACT = ("subject", "predicate", "object", "value")
_DERIVED = RELATIONS.index("derived-from")
_MARKS = " .,;:!?"


def rederived(
    pack: Pack, old: str, new: str, carried: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of a corrected memory, and the names of those that were dropped.

    Parameters
    ----------
    pack
        The active pack; its settings ``write-summary`` and ``infer-tags`` say what is derived.
    old, new
        The words before and after.
    carried
        Fields of the memory that is corrected.
    given
        Fields that the caller gave with the correction; they win and are never dropped.
    """
    fields = dict(carried)
    if old == new:
        return fields, ()
    dropped: list[str] = []
    if "summary" in fields and "summary" not in given:
        # a summary that the pack made is made again by the caller of this; one that was given cannot be
        if not pack.settings["write-summary"] and fields["summary"] != summary_of(old):
            dropped.append("summary")
        del fields["summary"]
    if fields.get("tags") and "tags" not in given:
        entities = [fields.get(name) for name in ("subject", "object")]
        whole = pack.settings["infer-tags"] == "all"
        inferred = set(tags_of(old, (), entities)) if whole else set()
        fields["tags"] = [tag for tag in fields["tags"] if tag not in inferred]
    if fields.get("predicate") is not None and not any(name in given for name in FACT):
        after = _fact_after(old, new, fields)
        if after is None:
            dropped += [name for name in FACT if fields.pop(name, None) is not None]
        else:
            fields |= after
    return fields, tuple(dropped)


def _fact_after(old: str, new: str, fact: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the new value or object of a fact whose sentence was corrected; None where the words do not show it.

    The new sentence has to say the same of the same subject: it keeps what stood before and after the old value.
    """
    name = "object" if fact.get("object") is not None else "value"
    value = str(fact.get(name) or "")
    if not value:
        return None
    frames = []
    at = old.casefold().rfind(value.casefold())
    if at >= 0:
        frames.append((old[:at], old[at + len(value) :]))
    subject, predicate = str(fact["subject"]), str(fact["predicate"])
    before, _, after = fact_text(subject, predicate, "\x00").partition("\x00")
    frames.append((before, after))
    if subject.casefold() == "user":
        frames.append((f"The {before}", after))
    plain = new.strip(_MARKS)
    for start, stop in frames:
        start, stop = start.lstrip(), stop.strip(_MARKS)
        if not plain.casefold().startswith(start.casefold()) or not plain.casefold().endswith(stop.casefold()):
            continue
        said = plain[len(start) : len(plain) - len(stop)].strip(_MARKS)
        if said and len(said) <= 200:
            return {name: said}
    return None


def without_summaries(state: State, row: int, now: int, reason: str) -> Change:
    """Return what retires the summaries that quote a memory, and brings back the others that they stood for."""
    summaries = summaries_quoting(state, row)
    if not summaries:
        return Change()
    back = _consolidated_by(state, summaries, besides=row)
    parts = [values_of([one + 1 for one in summaries], status="deprecated", changed=now, reason=reason)]
    if back:
        parts.append(values_of([one + 1 for one in back], status="active", changed=now))
    return Change(set=parts)


def summaries_quoting(state: State, row: int) -> list[int]:
    """Return the rows of the summaries in use that consolidation made from a memory."""
    met = state.edges.crossings(np.array([row], dtype=np.int64))
    mine = (state.edges.relation[met.edge] == _DERIVED) & ~met.outgoing & (met.neighbour < len(state))
    status, kinds = state.names["status"], state.names["kind"]
    return [
        int(one) for one in met.neighbour[mine] if kinds.at(int(one)) == "summary" and status.at(int(one)) == "active"
    ]


def fields_of(state: State, row: int) -> dict[str, Any]:
    """Return the fields of a memory that are derived from its words, as far as it has them."""
    found: dict[str, Any] = {name: state.names[name].at(row) for name in FACT}
    found["summary"] = state.notes["summary"].at(row)
    return {name: value for name, value in found.items() if value is not None}


def _consolidated_by(state: State, summaries: Sequence[int], *, besides: int) -> list[int]:
    met = state.edges.crossings(np.array(sorted(summaries), dtype=np.int64))
    mine = (state.edges.relation[met.edge] == _DERIVED) & met.outgoing & (met.neighbour < len(state))
    status = state.names["status"]
    rows = sorted({int(one) for one in met.neighbour[mine]} - {besides})
    return [one for one in rows if status.at(one) == "consolidated"]

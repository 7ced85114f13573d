"""Which compared pairs may end a memory: those of one reach, and likely corrections."""

from __future__ import annotations

import numpy as np

from memlab.kernel.base.arrays import Flags, Floats
from memlab.kernel.schema import NEVER
from memlab.subjects.linking.candidates import RowView
from memlab.subjects.linking.compared import ComparedPairs
from memlab.subjects.linking.pairs import Pairs
from memlab.subjects.reading.change import Telling, correction_odds
from memlab.subjects.reading.denials import (
    corrects,
    denies_value,
    ends_value,
    replaces_named,
    reports_change,
)

READ = 1500
"""The characters that every embedder reads completely.

The vectors of longer texts may be near only because the texts begin alike.
"""
# A longer text says several things; a denial in one of its sentences need not be about the other text. Of 2,760 turns of
# chats that were stored as facts, three were ended without this limit and one with it, all wrongly.
_STATEMENT_WORDS = 60
_REACH = ("project", "scope", "branch", "season", "visibility")
# Kinds of memories about single events: what happened once ends no rule.
_INCIDENTS = ("gotcha", "environment-quirk", "error-pattern")
_INCIDENTS_OF_AGENTS = (*_INCIDENTS, "codebase-discovery")
# Log odds from 40 hand-written corrections and 40 complements of their statements. From _EVIDENT a statement is
# retired. With a lead of at least _LEAD over the next candidate, _CERTAIN suffices. A statement is hidden from _LIKELY,
# with that lead from _POSSIBLE. A memory that is called a correction hides from _STATED, with _SMALL_LEAD.
_EVIDENT, _CERTAIN, _LIKELY, _POSSIBLE, _STATED = 3.5, 1.5, 0.5, -1.0, -3.0
_LEAD, _SMALL_LEAD = 1.8, 0.5
# The candidates that may repeat a corrected statement, and the usual topic of a third candidate.
_REPEATED, _USUAL_TOPIC = 2, 2.0


def are_resolvable(pairs: Pairs, now: int) -> Flags:
    """Return which pairs are valid now and share project, scope and visibility."""
    is_allowed = have_same_reach(pairs, now)
    for side, positions in ((pairs.new, pairs.first), (pairs.old, pairs.second)):
        # a memory whose validity is over does not conflict with a valid memory
        valid_until = side.number("valid_until")[positions]
        is_allowed &= (valid_until == NEVER) | (valid_until > now)
    return is_allowed


def have_same_reach(pairs: Pairs, now: int) -> Flags:
    """Return which pairs are in effect and share project, scope and visibility."""
    is_allowed = np.ones(len(pairs), dtype=np.bool_)
    for column in _REACH:
        is_allowed &= pairs.same(column, none=True)
    scope = pairs.new.word("scope")[pairs.first]
    visibility = pairs.new.word("visibility")[pairs.first]
    is_allowed &= (scope != "session") | pairs.same("session", none=True)
    is_allowed &= (visibility != "private") | pairs.same("creator", none=True)
    for side, positions in ((pairs.new, pairs.first), (pairs.old, pairs.second)):
        is_allowed &= side.number("valid_from")[positions] <= now
    return is_allowed


def keep_corrections(compared: ComparedPairs, now: int) -> None:
    """Undo all decisions except those in which one statement corrects another.

    Statements of one project share most of their words. There, the odds decide too, and an edge leads
    to a statement that is probably corrected.
    """
    pairs = compared.pairs
    kinds, projects = pairs.new.word("kind"), pairs.new.word("project")
    confidences = (
        side.number("confidence")[positions]
        for side, positions in ((pairs.new, pairs.first), (pairs.old, pairs.second))
    )
    is_comparable = are_resolvable(pairs, now) & np.greater_equal(*confidences)
    is_comparable &= ~pairs.same("session")
    # what an agent says of its work ends a value that it names, and hides no other statement
    is_told = is_comparable & (pairs.new.word("provenance")[pairs.first] != "inferred")
    is_incident = np.isin(pairs.old.word("kind")[pairs.second], _INCIDENTS)
    is_comparable &= ~is_incident
    odds = _weigh_corrections(compared, is_comparable)
    is_certain, is_likely = _judge_odds(compared, odds)
    is_likely = _find_hidden(compared, is_likely, is_told, is_incident)
    for pair in range(len(compared.relation)):
        later, earlier = compared.texts(pair)
        kind, is_settled = kinds[pairs.first[pair]], compared.resolution[pair] == "keep-new"
        is_correction = compared.word(pair) in ("updates", "contradicts")
        is_report = kind == "correction" or reports_change(later)
        incidents = _INCIDENTS if is_told[pair] else _INCIDENTS_OF_AGENTS
        if kind in incidents:  # ends only the statement of a value that it names
            is_correction &= denies_value(later, earlier)
        elif projects[pairs.first[pair]] is None:
            is_correction &= is_report and corrects(later, earlier)
        else:
            names_value = is_comparable[pair] and ends_value(later, earlier)
            is_correction = is_report and (names_value or bool(is_likely[pair]))
            is_said = kind == "correction" or Telling(later, later).plain_sign >= 1
            is_settled = names_value or (is_said and bool(is_certain[pair]))
        if not is_correction or max(map(count_words, (later, earlier))) > _STATEMENT_WORDS:
            compared.keep_both(np.array([pair]), "none")
            continue
        compared.resolution[pair] = "keep-new" if is_settled else "keep-both"
        if is_likely[pair] or compared.word(pair) == "none":
            compared.relation[pair] = "updates"


def _find_hidden(
    compared: ComparedPairs, is_likely: Flags, is_told: Flags, is_incident: Flags
) -> Flags:
    """Return which earlier memories a report probably corrects, or replaces by name, number, version or path.

    One that shares less than half as many words with the report as another of them is about something else.
    """
    pairs, result = compared.pairs, is_likely & is_told
    messages, files, readings = _join_messages(pairs.new), pairs.new.files, pairs.new.readings
    kinds, shared = pairs.new.word("kind"), np.zeros(len(is_told), dtype=np.int64)
    for pair in np.flatnonzero(is_told).tolist():
        first, second = int(pairs.first[pair]), int(pairs.second[pair])
        later, earlier = readings[first].telling, pairs.old.readings[second].telling
        result[pair] |= replaces_named(
            *compared.texts(pair),
            around=messages[first],
            same_files=not files[first].isdisjoint(pairs.old.files[second]),
            incident=bool(is_incident[pair]),
            stated=kinds[first] == "correction",
        )
        shared[pair] = len(later.topic & earlier.topic) if later and earlier else 0
    for row in np.unique(compared.new[result]).tolist():
        own = result & (compared.new == row)
        result &= ~own | (2 * shared >= shared[own].max())
    return result


def _join_messages(side: RowView) -> list[str]:
    """Return the text of each memory with those of the other memories of its message, if it was told in one."""
    columns = side.word("session"), side.number("first_message"), side.word("provenance")
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    texts: dict[tuple[object, ...], list[str]] = {}
    for key, text in zip(keys, side.texts, strict=True):
        texts.setdefault(key, []).append(text)
    return [
        " ".join(texts[key]) if key[1] == key[1] and key[2] != "inferred" else "" for key in keys
    ]


def count_words(text: str) -> int:
    """Return the number of words of a text."""
    return len(text.split())


def _judge_odds(compared: ComparedPairs, odds: Floats) -> tuple[Flags, Flags]:
    """Return two masks: pairs of a certain correction, and pairs of a probable correction.

    One memory is corrected more often than several, so that its lead over the next one counts.
    """
    is_certain, is_likely = odds >= _EVIDENT, odds >= _LIKELY
    is_correction = compared.pairs.new.word("kind")[compared.pairs.first] == "correction"
    for row in np.unique(compared.new).tolist():
        own = np.flatnonzero(compared.new == row)
        first, *others = own[np.argsort(-odds[own], kind="stable")].tolist()
        if not np.isfinite(odds[first]):
            continue
        lead = odds[first] - odds[others[0]] if others else np.inf
        if lead >= _LEAD:
            is_certain[first] |= odds[first] >= _CERTAIN
            is_likely[first] |= odds[first] >= _POSSIBLE
        if is_correction[first] and lead >= _SMALL_LEAD:
            is_likely[first] |= odds[first] >= _STATED
    return is_certain, is_likely


def _weigh_corrections(compared: ComparedPairs, is_comparable: Flags) -> Floats:
    """Return the log odds that the later memory of each comparable pair corrects the earlier one.

    The odds of other pairs are -inf, but their topics count. The topic of a corrected memory is nearer
    than those of the other candidates. Two of them do not count, because others may repeat the memory.
    """
    pairs = compared.pairs
    near = np.nan_to_num(pairs.similarity)
    odds, topic = np.full(len(near), -np.inf), np.zeros(len(near))
    new, old = pairs.new.readings[pairs.first], pairs.old.readings[pairs.second]
    tellings = [(later.telling, earlier.telling) for later, earlier in zip(new, old, strict=True)]
    for pair, (later, earlier) in enumerate(tellings):
        if later and earlier and (shared := len(later.topic & earlier.topic)):
            smaller = min(len(later.topic), len(earlier.topic))
            topic[pair] = min(shared, 3) + shared / smaller + 4 * near[pair]
    for row in np.unique(compared.new).tolist():
        own = np.flatnonzero(compared.new == row)
        for pair in own[(topic[own] > 0) & is_comparable[own]].tolist():
            others = np.sort(topic[own[own != pair]])[::-1]
            lead = topic[pair] - max(
                others[_REPEATED] if len(others) > _REPEATED else 0, _USUAL_TOPIC
            )
            later, earlier = tellings[pair]
            verdict = pairs.verdicts[pair]
            ruled = verdict.certainty * (verdict.updates or verdict.conflicts)
            odds[pair] = correction_odds(
                later, earlier, ruled, near=float(near[pair]), lead=float(np.clip(lead, -1.5, 3))
            )
    return odds


def spare_stated(compared: ComparedPairs) -> None:
    """Keep user statements that only staged, second-hand memories contradict.

    Hearsay is a staged memory that was inferred or observed, for example on a web page.
    """
    resolved, pairs = compared.find_resolved(), compared.pairs
    if not len(resolved):
        return
    first, second = pairs.first[resolved], pairs.second[resolved]
    hearsay = np.isin(pairs.new.word("provenance")[first], ("inferred", "observed"))
    hearsay &= pairs.new.word("status")[first] == "staged"
    stated = np.isin(pairs.old.word("provenance")[second], ("user-stated", "user-corrected"))
    compared.keep_both(resolved[hearsay & stated & ~compared.is_merging(resolved)], "contradicts")


def spare_long(compared: ComparedPairs) -> None:
    """Keep both of two long, differing texts that count as duplicates.

    No embedder reads all of a long text, so its vector may miss the difference.
    """
    for pair in np.flatnonzero(
        (compared.relation == "duplicate") & (compared.resolution != "keep-both")
    ).tolist():
        later, earlier = compared.texts(pair)
        if max(len(later), len(earlier)) > READ and later != earlier:
            compared.resolution[pair] = "keep-both"

"""Find the recalls of a challenge, and their observations of the difference.

Each observation has bounds that hold for any draw and any rewards, because a confidence sequence
needs such bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arrays import Flags, Floats, Ints
from memlab.kernel.base.printable import count_of
from memlab.kernel.policies import error_share
from memlab.kernel.recall import drafted
from memlab.science.evaluation._credited import Credited
from memlab.science.evaluation._evidence import ARM, COLUMNS, Evidence, TopK
from memlab.science.evaluation._log import Challenged, Log, read_challenges
from memlab.science.evaluation._measure import Compared
from memlab.science.evaluation._prepared import Settings
from memlab.science.evaluation._sequence import Process


@dataclass(frozen=True)
class Observations:
    """Observations of the difference, within bounds that are known before the recall.

    A recall has several observations if it drew from groups that do not depend on each other. The
    difference of a recall is the sum of its observations.

    Attributes
    ----------
    recall
        The index of the recall of each observation, ascending. Each recall has at least one.
    lower, upper
        The lower and the upper value of the observed difference, f64[observations].
    floor, ceiling
        The bounds of the observed difference, f64[observations].
    """

    recall: Ints
    lower: Floats
    upper: Floats
    floor: Floats
    ceiling: Floats

    @property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The lower and upper values of the observations, and their lower and upper bounds."""
        return self.lower, self.upper, self.floor, self.ceiling

    def sums(self) -> list[Floats]:
        """Sum the values and the bounds by recall, f64[recalls] each."""
        return [
            np.bincount(self.recall, weights=values).astype(np.float64) for values in self.columns
        ]

    def process(self, course: Course, unit: float, heaviest: float) -> Process:
        """Return the observations as the input of a confidence sequence, ordered by ``course``.

        A block of several recalls is one observation, because its recalls depend on each other. It
        counts for ``heaviest`` recalls at most.
        """
        if len(course.first) < len(course.order):
            sizes = course.sizes.astype(np.float64)
            weights = np.minimum(sizes, heaviest)
            sums = [course.sums(values) * weights / sizes for values in self.sums()]
            return Process(sums[0], sums[1], sums[2], sums[3], weights, unit)
        turn = np.empty(len(course.order), dtype=np.int64)
        turn[course.order] = np.arange(len(turn))
        order = np.argsort(turn[self.recall], kind="stable")
        counts = np.bincount(self.recall)[course.order]
        lower, upper, floor, ceiling = (column[order] for column in self.columns)
        sizes = np.repeat(1.0 / counts, counts)
        return Process(lower, upper, floor, ceiling, sizes, unit, np.cumsum(counts) - 1)


# Columns of an arm from which bounds are computed.
_CERTAIN, _CERTAIN_REWARD, _PROBES, _REWARD, _SILENT, _UNSUPPORTED = (
    COLUMNS.index(name)
    for name in ("certain", "certain reward", "probes", "weighted reward", "silent", "unsupported")
)


@dataclass(frozen=True)
class Course:
    """The order in which recalls enter a sequence: by time, in blocks.

    Recalls that depend on each other form one block, which enters when its last recall ends.
    ``order`` holds the indices of the recalls. ``first`` is the index in ``order`` at which each
    block begins.
    """

    order: Ints
    first: Ints

    @classmethod
    def of(cls, log: Log, *, clustered: bool) -> Course:
        """Sort a log's recalls by time, in blocks of one recall or of one cluster."""
        order = np.arange(len(log))
        if "at" in log.decisions.columns and not log.decisions["at"].null_count():
            order = np.argsort(log.decisions["at"].to_physical().to_numpy(), kind="stable")
        if not clustered:
            return cls(order, np.arange(len(log)))
        end = np.zeros(log.clusters, dtype=np.int64)
        np.maximum.at(end, log.cluster[order], np.arange(len(log)))
        ends = end[log.cluster[order]]
        by_block = np.argsort(ends, kind="stable")
        return cls(order[by_block], np.flatnonzero(np.diff(ends[by_block], prepend=-1)))

    @property
    def sizes(self) -> Ints:
        """The number of recalls in each block, int64[blocks]."""
        return np.asarray(np.diff(self.first, append=len(self.order)))

    @property
    def last(self) -> Ints:
        """The index of the last recall in each block, int64[blocks]."""
        return np.asarray(self.order[self.first + self.sizes - 1])

    def sums(self, values: Floats) -> Floats:
        """Sum the values of recalls by block, f64[blocks]."""
        return np.asarray(np.add.reduceat(values[self.order], self.first))

    def before(self, values: Floats) -> Floats:
        """Sum values over all blocks before each recall's block, f64[recalls]."""
        sums = self.sums(values)
        earlier = np.empty(len(self.order))
        earlier[self.order] = np.repeat(np.cumsum(sums) - sums, self.sizes)
        return earlier


@dataclass(frozen=True)
class Duel:
    """The recalls in which a challenger competed with the live pack.

    ``own`` and ``base`` are the top-k of the challenger and of the live pack; a draft compares the
    parts that it can show. ``draws`` (f64[recalls]) is the maximum number of extra items that each
    recall may show. ``group`` (int64[n]) is the number of each candidate's group of independent
    draws within its recall, -1 without a group; ``grouped`` (bool[recalls]) says whether the recall
    logged its groups.
    """

    challenger: str
    live: str
    log: Log
    own: TopK
    base: TopK
    draws: Floats
    group: Ints
    grouped: Flags
    kind: str
    """The kind of the comparison: "ab", "draft" or "" for items."""
    scale: float
    """The factor of the rates of the confidence sequence, from the first recall's design."""
    shares: Floats | None
    """The probabilities of showing the challenger's and the live results, f64[recalls, 2].

    None unless the design is "ab".
    """
    arm: Ints
    """The pack whose results were shown: 1 for the challenger, -1 for the live pack, 0 for another."""
    same: Flags
    """Whether both packs have the same results in each recall, in any order unless lists are drawn."""
    number: int
    """The number of this comparison in the lab, or in a log that does not state it, from 1."""
    share: float
    """This comparison's share of the error probability of all verdicts together."""
    displaced: float
    """The share of the live pack's results that the recalls did not show: the cost of the design."""
    recall_cost: float | None
    """The loss of recall among the first results, by rewards; None without a positive reward."""
    notes: tuple[str, ...]


def find_duels(log: Log, wanted: str | None) -> list[Duel]:
    """Return the duel of each challenger, for its latest version and design.

    With ``wanted``, only the duel of that challenger is returned.
    """
    logged, hashes = read_challenges(log), _live_hashes(log)
    names = dict.fromkeys(name for challenge in logged if challenge for name in challenge.heads)
    if not names:
        raise InputError(
            'No recall of this log was challenged. Call lab.challenge("companion", '
            'reason="...") to compare a pack with the active pack from the next recall on.'
        )
    if wanted is not None and wanted not in names:
        raise UnknownName("challenger", wanted, names)
    numbers = _number_comparisons(logged, hashes)
    return [
        _find_duel(log, name, logged, hashes, numbers) for name in names if wanted in (None, name)
    ]


def _find_duel(
    log: Log,
    name: str,
    logged: Sequence[Challenged | None],
    hashes: Sequence[str | None],
    numbers: dict[_Version, tuple[int, float]],
) -> Duel:
    """Return the duel of the latest version of a challenger.

    Rewards of earlier versions say nothing about the version to install.
    """
    challenged = {
        index: challenge
        for index, challenge in enumerate(logged)
        if challenge is not None and name in challenge.heads
    }
    versions = {
        index: _identify_comparison(name, challenge, hashes[index])
        for index, challenge in challenged.items()
    }
    end = max(versions)
    latest = versions[end]
    current = {index: challenged[index] for index, version in versions.items() if version == latest}
    part, challenges = log.only(np.array(list(current), dtype=np.int64)), list(current.values())
    live = log.decisions["pack"][end] if "pack" in log.decisions.columns else "live"
    kind = latest[-1]
    heads = [challenge.heads[name].ids for challenge in challenges]
    lives = [challenge.live for challenge in challenges]
    whole = _logged_top_k("live", lives, part)
    if kind == "draft":  # only a part of the results was drafted
        lives, heads = map(list, zip(*map(_drafted_heads, lives, heads), strict=True))
    group, grouped = _find_groups(challenges, part)
    return Duel(
        name,
        live,
        part,
        _logged_top_k(name, heads, part),
        _logged_top_k("live", lives, part),
        np.array([challenge.draws for challenge in challenges]),
        group,
        grouped,
        kind,
        _scale_of(challenges[0]),
        np.array([[challenge.shares[name], challenge.shares[""]] for challenge in challenges])
        if kind == "ab"
        else None,
        np.array([{name: 1, "": -1}.get(challenge.whose, 0) for challenge in challenges]),
        np.array([_show_same(challenge, name) for challenge in challenges]),
        *numbers[latest],
        1 - float(part.exposed[whole.rows].sum()) / max(1, len(whole)),
        _measure_recall_cost(part, whole),
        _notes(name, live, len(challenged) - len(current), challenges),
    )


GROUP_RATES = 1.5
"""The factor of the rates of a sequence if items are drawn from groups of about two.

The best rate is the difference divided by the variance of a recall, and the variance falls with the
weights 1 / p. Factors were chosen on development conversations of LoCoMo among 1, 1.5, 2, 3 and 4.
Any factor that is fixed before the first reward gives a valid sequence.
"""
DRAFT_RATES = 3.0
"""The factor of the rates under a draft, whose credit has weights of 1."""


def _scale_of(challenge: Challenged) -> float:
    """Return the rate factor of a confidence sequence, given the design of its first recall.

    Logs without groups keep the rates that were in use when they were recorded.
    """
    if challenge.groups is None or (challenge.design == "extra" and challenge.extra == 1):
        return 1.0
    return DRAFT_RATES if challenge.kind == "draft" else GROUP_RATES


def _measure_recall_cost(log: Log, live: TopK) -> float | None:
    """Return the recall lost by showing the shown results instead of the active pack's results.

    The result is negative if the shown results are better, and None without a positive reward. Items
    with a positive reward are relevant. An item that was shown with probability p stands for 1 / p
    items like it.
    """
    relevant = np.flatnonzero(log.exposed & (log.reward > 0))
    chance = log.propensity[relevant]
    weight = 1 / np.where(chance > 0, chance, 1.0)
    if not len(relevant):
        return None
    first = log.position[relevant] <= log.limit[log.recall[relevant]]
    own = np.isin(relevant, live.rows)
    return float((weight[own].sum() - first.sum()) / weight.sum())


def _drafted_heads(
    live: list[int | str], own: list[int | str]
) -> tuple[list[int | str], list[int | str]]:
    """Return the parts of two result lists that a draft compares, including shared items."""
    live_half, own_half = drafted(live, own)
    shared = [item for item in live if item in own]
    return shared + live_half, shared + own_half


def _find_groups(challenges: Sequence[Challenged], log: Log) -> tuple[Ints, Flags]:
    """Return each candidate's group in its recall (-1: none), and whether each recall's groups are all known.

    Raises InputError for a recall that did not show exactly one item of each of its groups.
    """
    numbers = [
        (recall, number, item)
        for recall, challenge in enumerate(challenges)
        for number, group in enumerate(challenge.groups or ())
        for item in group
    ]
    items = pl.DataFrame(
        {
            "recall": [recall for recall, _, _ in numbers],
            "memory_id": pl.Series(
                [item for _, _, item in numbers], dtype=log.ids["memory_id"].dtype
            ),
        },
        schema_overrides={"recall": pl.Int64},
    )
    row = log.rows_of(items)
    recall, number = (np.array([entry[i] for entry in numbers], dtype=np.int64) for i in (0, 1))
    grouped = np.array([challenge.groups is not None for challenge in challenges])
    inside = row.is_not_null().to_numpy()
    grouped[recall[~inside]] = False  # The group of a deleted memory is not known in full.
    rows = row.drop_nulls().to_numpy().astype(np.int64)
    group = np.full(len(log.recall), -1)
    group[rows] = number[inside]
    first = np.flatnonzero(np.diff(recall, prepend=-1) | np.diff(number, prepend=-1))
    exposed = np.zeros(len(recall))
    exposed[inside] = log.exposed[rows]
    exposures = np.add.reduceat(exposed, first) if len(first) else exposed
    wrong = np.flatnonzero((exposures != 1) & grouped[recall[first]])
    if len(wrong):
        index = int(recall[first[wrong[0]]])
        raise InputError(
            f"The challenge of recall {log.decisions['decision'][index]} names a group of which {exposures[wrong[0]]:.0f} "
            "items were shown. Log the groups of which exactly one item was shown, or leave out the field groups."
        )
    return group, grouped


_Version = tuple[str, str, str | None, str]
"""The identity of a comparison: the challenger's name and hash, the live hash, and its kind."""


def _identify_comparison(name: str, challenge: Challenged, live: str | None) -> _Version:
    """Return the identity of a recall's comparison: challenger, its hash, live pack, and design."""
    return name, challenge.heads[name].hash, live, challenge.kind


def _show_same(challenge: Challenged, name: str) -> bool:
    """Return whether both packs show the same items, and in A/B designs the same order."""
    own = challenge.heads[name].ids
    return own == challenge.live or not (challenge.shares or {*own} ^ {*challenge.live})


def _number_comparisons(
    logged: Sequence[Challenged | None], hashes: Sequence[str | None]
) -> dict[_Version, tuple[int, float]]:
    """Return each comparison's number and its share of the error, in order of first recall.

    Both are read from the first recall of the comparison, so a part of the log has them too. A
    comparison that began before comparisons were numbered gets the next number, in the order of
    first recalls.
    """
    begun: dict[_Version, tuple[int, float]] = {}
    last = 0
    for index, challenge in enumerate(logged):
        if challenge is not None:
            for name, head in challenge.heads.items():
                version = _identify_comparison(name, challenge, hashes[index])
                if version not in begun:
                    number = head.number or last + 1
                    begun[version] = number, head.share or error_share(number)
                    last = max(last, number)
    return begun


def comparisons_begun(log: Log) -> int:
    """Return the highest number of any comparison in the log, or 0 without comparisons."""
    numbers = _number_comparisons(read_challenges(log), _live_hashes(log)).values()
    return max((number for number, _ in numbers), default=0)


def _live_hashes(log: Log) -> list[str | None]:
    """Return the hash of the live pack in each recall, or None if the hash was not logged."""
    return (
        log.decisions["pack_hash"].to_list()
        if "pack_hash" in log.decisions.columns
        else [None] * len(log)
    )


def _notes(name: str, live: str, others: int, challenges: Sequence[Challenged]) -> tuple[str, ...]:
    """Return remarks on omitted recalls, and on recalls with fewer results from the challenger."""
    short = sum(len(challenge.heads[name].ids) < len(challenge.live) for challenge in challenges)
    notes = []
    if others:
        notes.append(
            f"{count_of(others, 'recall')} left out: other versions of {name} or {live}, or another design."
        )
    if short:
        notes.append(
            f"{name} shows fewer items than {live} in {count_of(short, 'recall')}: it excludes candidates or gives them no "
            "score."
        )
    return tuple(notes)


def _logged_top_k(name: str, ids: Sequence[Sequence[int | str]], log: Log) -> TopK:
    """Return the logged top-k of a pack as row numbers of candidates.

    Items outside the pools are only counted, by recall.
    """
    items = pl.DataFrame(
        {
            "recall": np.repeat(np.arange(len(ids)), [len(ranking) for ranking in ids]),
            "memory_id": pl.Series(
                [memory for ranking in ids for memory in ranking], dtype=log.ids["memory_id"].dtype
            ),
        }
    )
    row = log.rows_of(items)
    outside = np.bincount(
        items["recall"].filter(row.is_null()).to_numpy(), minlength=len(log)
    ).astype(np.float64)
    return TopK(name, np.sort(row.drop_nulls().to_numpy().astype(np.int64)), outside)


def observe_items(
    duel: Duel, evidence: Evidence, compared: Compared, rate: Floats, settings: Settings
) -> Observations:
    """Return observations of the difference between packs, each based on single items.

    A recall that logged its groups has an observation for each group, and for each ungrouped item
    on which the packs differ. A recall without groups has one observation.
    """
    low, high = settings.reward_range
    arms = compared.totals[:, 1 : 1 + ARM], compared.totals[:, 1 + ARM : 1 + 2 * ARM]
    lower, upper = (
        _sum_weighted(arms[0], ends[0]) - _sum_weighted(arms[1], ends[1])
        for ends in ((low, high), (high, low))
    )
    assert compared.base is not None
    differing = evidence.differing_rows(compared.top_k, compared.base)
    heaviest = [
        _maximum_weight(arm, rows, duel, evidence, rate)
        for arm, rows in zip(arms, differing, strict=True)
    ]
    low, high = _reward_bounds(evidence.credited, settings)
    up, down = max(high, 0.0), min(low, 0.0)
    single = Observations(
        np.arange(len(duel.log)),
        lower,
        upper,
        heaviest[0] * down - heaviest[1] * up,
        heaviest[0] * up - heaviest[1] * down,
    )
    if not duel.grouped.any():
        return single
    outside = compared.top_k.outside, compared.base.outside
    return _split_by_group(duel, evidence, differing, outside, rate, settings, single)


def _split_by_group(
    duel: Duel,
    evidence: Evidence,
    differing: tuple[Ints, Ints],
    outside: tuple[Floats, Floats],
    rate: Floats,
    settings: Settings,
    single: Observations,
) -> Observations:
    """Split recalls with groups into one observation for each group and for each ungrouped item.

    At most one item of an observation is shown, so its bounds are the extremes of its items, not their
    sum. ``differing`` and ``outside`` have the items that only the challenger or only the live pack
    shows, in and outside the pools. ``single`` has one observation for each recall, kept for recalls
    without groups.
    """
    log = duel.log
    rows = np.concatenate(differing)
    sign = np.repeat([1.0, -1.0], [len(part) for part in differing])
    is_grouped = duel.grouped[log.recall[rows]]
    rows, sign = rows[is_grouped], sign[is_grouped]
    recall, columns = log.recall[rows], evidence.columns[rows]
    unknown = columns[:, _SILENT] + columns[:, _UNSUPPORTED]
    reward = columns[:, _CERTAIN_REWARD] + columns[:, _REWARD]
    first, second = (sign * (reward + unknown * end) for end in settings.reward_range)
    low, high = _reward_bounds(evidence.credited, settings)
    propensity = log.propensity[rows]
    weight = np.where(propensity > 0, 1.0 / np.maximum(propensity * rate[recall], 1e-300), 1.0)
    smallest, largest = (sign * weight * end for end in (min(low, 0.0), max(high, 0.0)))
    single_rows = int(duel.group.max(initial=-1)) + 1 + np.arange(len(rows))
    number = np.where(duel.group[rows] >= 0, duel.group[rows], single_rows)
    _, start, entry = np.unique(
        np.stack([recall, number]), axis=1, return_index=True, return_inverse=True
    )
    entry = entry.reshape(-1)  # NumPy 2.0 alone returns a column here.
    floor, ceiling = np.zeros(len(start)), np.zeros(len(start))
    np.minimum.at(floor, entry, np.minimum(smallest, largest))
    np.maximum.at(ceiling, entry, np.maximum(smallest, largest))
    split = (
        np.bincount(entry, weights=np.minimum(first, second), minlength=len(start)),
        np.bincount(entry, weights=np.maximum(first, second), minlength=len(start)),
        floor,
        ceiling,
    )
    # A recall has one more observation for items outside the pools or of unknown reward, or if the packs do not differ.
    own, base = outside
    differs = np.bincount(recall, minlength=len(log)) > 0
    rest = np.flatnonzero(duel.grouped & ((own + base > 0) | ~differs))
    low, high = settings.reward_range
    ends = own[rest] * low - base[rest] * high, own[rest] * high - base[rest] * low
    whole = np.flatnonzero(~duel.grouped)
    recalls = np.concatenate([recall[start], rest, whole])
    order = np.argsort(recalls, kind="stable")
    return Observations(
        recalls[order],
        *(
            np.concatenate([values, ends[index % 2], single.columns[index][whole]])[order]
            for index, values in enumerate(split)
        ),
    )


def observe_recalls(
    duel: Duel,
    log: Log,
    credited: Credited | None,
    course: Course,
    rate: Floats,
    settings: Settings,
) -> Observations:
    """Return one observation of the difference between packs for each recall.

    The observation is the reward of the recall minus the mean of earlier recalls, divided by the
    probability of the results shown. It is 0 if both packs have the same results. Unsupported items
    may have any reward within the range. ``log`` is the duel's log with calibrated attributed
    rewards.
    """
    assert duel.shares is not None
    low, high = settings.reward_range
    _check_exposures(duel, log)
    unknown = log.exposed & ~log.answered & (settings.missing == "bounds")
    unanswered = np.bincount(log.recall, weights=unknown, minlength=len(log))
    earned = (
        np.bincount(
            log.recall, weights=np.nan_to_num(log.reward) * log.answered, minlength=len(log)
        )
        / rate
    )
    # The mean of earlier recalls is a control variate. It is known before the draw, so it adds no bias.
    typical = course.before(earned) / (course.before(np.ones(len(log))) + 1.0)
    weight = np.where(
        duel.arm > 0, 1 / duel.shares[:, 0], np.where(duel.arm < 0, -1 / duel.shares[:, 1], 0.0)
    )
    ends = (
        weight * (earned + unanswered * low - typical),
        weight * (earned + unanswered * high - typical),
    )
    never = log.propensity == 0
    hidden = [
        np.bincount(log.recall[top_k.rows], weights=never[top_k.rows], minlength=len(log))
        + top_k.outside
        for top_k in (duel.own, duel.base)
    ]
    shortest, longest = hidden[0] * low - hidden[1] * high, hidden[0] * high - hidden[1] * low
    lower, upper = np.minimum(*ends) + shortest, np.maximum(*ends) + longest
    low, high = _reward_bounds(credited, settings)
    floors, ceilings = [np.zeros(len(log))], [np.zeros(len(log))]
    for top_k, share, sign in (
        (duel.own, duel.shares[:, 0], 1.0),
        (duel.base, duel.shares[:, 1], -1.0),
    ):
        size = np.bincount(log.recall[top_k.rows], weights=~never[top_k.rows], minlength=len(log))
        reach = [sign * (size * end / rate - typical) / share for end in (low, high)]
        floors.append(np.minimum(*reach))
        ceilings.append(np.maximum(*reach))
    floor, ceiling = np.minimum.reduce(floors), np.maximum.reduce(ceilings)
    lower, upper, floor, ceiling = (
        np.where(duel.same, 0.0, values)
        for values in (lower, upper, floor + shortest, ceiling + longest)
    )
    return Observations(np.arange(len(log)), lower, upper, floor, ceiling)


def _check_exposures(duel: Duel, log: Log) -> None:
    """Raise InputError if an A/B recall does not show as many items as its pack's results have."""
    count = np.bincount(log.recall, weights=log.exposed, minlength=len(log))
    for top_k, arm in ((duel.own, 1), (duel.base, -1)):
        wrong = (duel.arm == arm) & (
            count != np.bincount(log.recall[top_k.rows], minlength=len(log))
        )
        if wrong.any():
            index = int(np.argmax(wrong))
            size = int((log.recall[top_k.rows] == index).sum())
            raise InputError(
                f"Recall {log.decisions['decision'][index]} shows {count[index]:.0f} items, and the results of "
                f"{top_k.name} have {size}. With design ab, a recall must show the results of one pack: log what it "
                f"showed, or leave it out with slates.filter."
            )


def _reward_bounds(credited: Credited | None, settings: Settings) -> tuple[float, float]:
    """Return the minimum and maximum of a reward, calibrated rewards included."""
    return settings.reward_range if credited is None else credited.range_of(*settings.reward_range)


def _sum_weighted(arm: Floats, fill: float) -> Floats:
    """Return the weighted sum of an item set's rewards for each recall.

    Missing and unsupported rewards count as ``fill``.
    """
    _, _, certain_reward, _, _, reward, silent, unsupported = arm.T
    return np.asarray(certain_reward + reward + (silent + unsupported) * fill)


def _maximum_weight(
    arm: Floats, rows: Ints, duel: Duel, evidence: Evidence, rate: Floats
) -> Floats:
    """Return the upper bound of an item set's total weight in each recall.

    The result is f64[recalls] and is known before any item is drawn.
    """
    log = duel.log
    weight = np.zeros(len(log))
    probes = rows[evidence.probe[rows]]
    np.maximum.at(weight, log.recall[probes], 1.0 / log.propensity[probes])
    drawn = np.minimum(arm[:, _PROBES], duel.draws)
    return np.asarray((arm[:, _CERTAIN] + drawn * weight) / rate + arm[:, _UNSUPPORTED])


def answer_rate(log: Log, course: Course) -> Floats:
    """Return the share of shown items with feedback in earlier blocks, f64[recalls].

    Censored rewards are divided by this share. Five answered items of ten are added, so that early
    recalls have a share.
    """
    exposed, answered = (
        np.bincount(log.recall, weights=flags, minlength=len(log)).astype(np.float64)
        for flags in (log.exposed, log.answered)
    )
    if (exposed == answered).all():
        return np.ones(len(log))
    return np.clip((course.before(answered) + 5.0) / (course.before(exposed) + 10.0), 0.05, 1.0)

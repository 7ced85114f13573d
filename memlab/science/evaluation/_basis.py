"""The basis of a verdict: the design, its probabilities, the range of rewards, gates and versions.

A reader of a published verdict needs these facts to judge and repeat the verdict. They are facts of
the log, so they are stated for a withheld verdict too.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.kernel.base.arrays import Floats
from memlab.kernel.base.printable import count_of
from memlab.science.evaluation._duels import Duel, Observations
from memlab.science.evaluation._log import read_challenges
from memlab.science.evaluation._prepared import Settings
from memlab.science.evaluation._tests import Gate, share

DESIGNS = {
    "extra": "the results of the live pack, and extra items that only a challenger would show",
    "lot": "the items that all packs show, and a random draw of the disputed items",
    "ab": "the whole results of one pack, drawn for each recall",
    "draft": "the items that both packs show, and the better half of the other items of each",
}
"""What a recall shows under each design of a challenge."""

_LISTED = 8
"""The maximum number of groups on a page, so that it stays readable; ``Verdict.influence`` has all groups."""

SEQUENCE = (
    "A mixture of nonnegative supermartingales for the changing mean of bounded observations (Mineiro 2022, "
    "arXiv:2210.11133), with Ville's inequality. It is nonasymptotic: it needs no normal approximation and holds at "
    "every number of recalls at once."
)
"""The method of the anytime-valid interval, with its reference."""


@dataclass(frozen=True)
class Basis:
    """The facts on which a verdict is based.

    Parameters
    ----------
    design
        The design of the challenge: "extra", "lot", "ab" or "draft".
    hash, live_hash
        The hashes of the challenger and of the live pack; None if they were not logged.
    probabilities
        The smallest and the largest probability of a draw: of a disputed item, or of a
        pack's results with the design "ab". None if nothing was drawn.
    observation
        The minimum and maximum of one observation of the difference, on which the bounds of the
        sequence rest. They follow from the probabilities and the range of rewards. A recall has
        several observations if it drew from independent groups.
    displaced
        The share of the live pack's results that the recalls did not show, which is the cost of the
        design.
    recall_cost
        The recall that the shown results lost, compared with the results of the live pack. Items with a
        positive reward are relevant, weighted by the inverse of their probability. None if no item
        has a positive reward.
    rewards
        The minimum and maximum reward of an item.
    items, missing
        The number of items shown, and of those without feedback.
    period
        The times of the first and the last recall; None if the log has no times.
    seeds
        The seeds of the draws; empty if they were not logged.
    gates
        The gates of the verdict, in every state.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open(seed=7)
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> challenge = lab.challenge("companion", reason="an example")
    >>> for number in range(3):
    ...     hits = lab.recall("When do we deploy?", limit=1)
    ...     judgement = lab.feedback(hits[0], "success")
    >>> basis = lab.verdict(missing="zero")["companion"].basis
    >>> basis.design, basis.seeds
    ('extra', (7,))
    """

    design: str
    hash: str | None
    live_hash: str | None
    probabilities: tuple[float, float] | None
    observation: tuple[float, float]
    displaced: float
    recall_cost: float | None
    rewards: tuple[float, float]
    items: int
    missing: int
    period: tuple[Any, Any] | None
    seeds: tuple[int, ...]
    gates: tuple[Gate, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON values.

        Returns
        -------
        dict
            The keys are the attributes; a gate has its ``name``, ``state`` and ``threshold``.
        """
        gates = [
            {"name": gate.name, "state": gate.state, "threshold": gate.threshold}
            for gate in self.gates
        ]
        period = None if self.period is None else [end.isoformat() for end in self.period]
        return asdict(self) | {"gates": gates, "period": period}


def find_basis(
    duel: Duel, observations: Observations, settings: Settings, gates: tuple[Gate, ...]
) -> Basis:
    """Collect the facts on which the verdict on a duel is based."""
    log, columns = duel.log, duel.log.decisions.columns
    last = read_challenges(log.only(np.array([len(log) - 1])))[0]
    assert last is not None
    drawn = _probabilities(duel)
    # A reward that the caller counts as 0 is neither stated nor inferred.
    missing = log.exposed & ~log.stated & np.isnan(log.attributed)
    times = log.decisions["at"].drop_nulls() if "at" in columns else ()
    return Basis(
        design=last.design or ("ab" if last.shares else "extra"),
        hash=last.heads[duel.challenger].hash,
        live_hash=log.decisions["pack_hash"][-1] if "pack_hash" in columns else None,
        probabilities=(float(drawn.min()), float(drawn.max())) if len(drawn) else None,
        observation=(float(observations.floor.min()), float(observations.ceiling.max())),
        displaced=duel.displaced,
        recall_cost=duel.recall_cost,
        rewards=settings.reward_range,
        items=int(log.exposed.sum()),
        missing=int(missing.sum()),
        period=(times.min(), times.max()) if len(times) else None,  # type: ignore[union-attr]
        seeds=log.seeds,
        gates=tuple(dict.fromkeys(gates)),  # a closed gate may be a required one
    )


def describe_basis(basis: Basis, treatment: str) -> list[tuple[str, str]]:
    """Return the facts as pairs of label and text, with the treatment of missing feedback."""
    low, high = basis.rewards
    drawn = basis.probabilities and " to ".join(
        dict.fromkeys(f"{chance:.3g}" for chance in basis.probabilities)
    )
    silent = f"{basis.missing:,} of {count_of(basis.items, 'item')} shown"
    if basis.items:
        silent += f" ({share(basis.missing / basis.items)})"
    treatments = {"zero": "a reward of 0", "bounds": "any reward in the range"}
    counts = treatments.get(treatment, "left out")
    return [
        ("design", f"{basis.design}: {DESIGNS.get(basis.design, 'not described')}"),
        ("probabilities of the draws", drawn or "nothing was drawn"),
        ("results of the live pack that were not shown", share(basis.displaced)),
        (
            "recall lost among the results",
            "no rewards" if basis.recall_cost is None else f"{basis.recall_cost:+.3f}",
        ),
        ("reward of an item", f"{low:g} to {high:g}"),
        (
            "possible range of one observation of the difference",
            f"{basis.observation[0]:+.1f} to {basis.observation[1]:+.1f}",
        ),
        ("missing feedback", f"{silent}, {counts}"),
        (
            "period",
            "not logged"
            if basis.period is None
            else " to ".join(f"{end:%Y-%m-%d}" for end in basis.period),
        ),
        ("seed", ", ".join(map(str, basis.seeds)) or "not logged"),
        ("challenger, hash", basis.hash or "not logged"),
        ("live pack, hash", basis.live_hash or "not logged"),
    ]


def list_groups(influence: pl.DataFrame, difference: float) -> list[dict[str, Any]]:
    """Return the groups whose removal changes a difference most, as rows of ``influence``."""
    change = (pl.col("difference") - difference).abs()
    return influence.sort(change, descending=True, nulls_last=False).head(_LISTED).to_dicts()


def _probabilities(duel: Duel) -> Floats:
    """Return the probabilities in a duel: of both packs' lists in each recall, or of disputed items that are drawn."""
    if duel.shares is not None:
        return duel.shares.ravel()
    chance = duel.log.propensity[np.setxor1d(duel.own.rows, duel.base.rows)]
    return np.asarray(chance[(chance > 0) & (chance < 1)])

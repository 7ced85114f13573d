"""Policies that change with what worked: one step of ``(adapt-policy)``.

First back. Each earlier version of a slot is evaluated on the recalls that the live pack answered, compared with what
was shown there. It returns if it would have earned more, with its whole interval, adjusted for how many were compared,
and no gate closed. The two meet the same queries, so a time of harder queries moves neither. Where that tells nothing,
as in a log without exploration, what each version earned while it was live is compared (``compare_periods``): the best
earlier version returns if the live one fell below it when it was installed. That is confounded with time, and the
reason says so.

Else forward: the numbers of the live recall-score become parameters and are searched on the log. What the search finds
is installed only if it does better on recalls that the search has not seen, with the whole interval above zero. Else
nothing is changed, with the reason. Without consent nothing is changed at all: the step is proposed, with the evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import polars as pl

from memlab.errors import InputError, MemlabError, UnknownName
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.language import Policy
from memlab.kernel.policies import Pack, Version
from memlab.kernel.slates import Slates
from memlab.kernel.storage.store import Store
from memlab.subjects.lens import NumericLiteral, literals, parametrize
from memlab.subjects.programs.arguments import is_span
from memlab.subjects.programs.falls import Fall, find_fall, under

if TYPE_CHECKING:
    from memlab.science.evaluation import Period, PolicyValue, Tuning

# What operations need of a lab; ``memlab.subjects.lab.Lab`` has it.


class OperableLab(Protocol):
    """The verbs that operations call, and the policies that they read and change."""

    def __len__(self) -> int: ...
    @property
    def policies(self) -> Any: ...
    def slates(self) -> Any: ...
    def remember(self, text: str, **fields: Any) -> Any: ...
    def recall(self, query: str, *, limit: int | None) -> Any: ...
    @property
    def facts(self) -> Any: ...
    @property
    def graph(self) -> Any: ...
    @property
    def upkeep(self) -> Any: ...
    def feedback(self, hit: Any, outcome: str, *, source: str) -> Any: ...


Missing = Literal["zero", "censor", "inverse", "bounds"]
MISSING: tuple[Missing, ...] = get_args(Missing)
"""What missing feedback counts as; ``memlab.evaluate`` says what each of them is."""

Estimator = Literal["snips", "ht"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)

_SLOTS = ("recall-score", "seed-score", "half-life", "spread")
"""The slots that decide how candidates are scored, and so which head a logged pool would have had."""

_SLOT = "recall-score"
_MIN_JUDGED = 20
"""Recalls with a judgement below which nothing is searched: their clusters make no five folds of four."""

_MAX_PARAMETERS = 8
_SPAN = 1 / 4, 4.0
"""A number is searched from its quarter to four times itself, where what was left to chance bounds what is known."""

_WIDE_SPAN = 1 / 64, 16.0
"""By the order of what was shown, a number is searched further. Activation reaches 47 where importance is at most 1:
within a quarter of its weight it still decides alone. Of the first 6 labs of experiments/adaptation.py 3 find a better
weight for importance within the narrow span, 5 with this one and its budget."""

_FOLDS, _BUDGET, _WIDE_BUDGET = 5, 60, 200

_STRICTER = 5
"""The order of what was shown is asked where the value of what was not shown is unknown, so its error is a fifth."""

_ORDER = (
    "That is the share of pairs in order: of two memories that one recall showed and of which one earned more, how "
    "often that one stands first. It speaks for what was shown alone."
)

_EVIDENCE: dict[str, Any] = {
    "policy": pl.String,
    "value": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "recalls": pl.Int64,
    "verdict": pl.String,
    "why": pl.String,
}


@dataclass(frozen=True)
class Adapted(Displayed):
    """What one step did. ``action`` is installed, rolled back, proposed or kept; ``reason`` says why in a sentence.

    ``before`` and ``after`` are hashes of the slot's policy; of a proposal, ``after`` is what it would be. ``gain`` is
    the difference that decided, with its interval; None where nothing was compared. ``evidence`` has a row for each
    policy that was compared with the live one: ``policy``, ``value``, ``difference`` with ``low`` and ``high``, ``p``
    (Holm), ``recalls``, ``verdict``, and ``why`` there is none. A policy "..., while it was live" was compared by what
    it earned then. ``slot`` is "pack" where a whole pack would return.
    """

    slot: str
    action: Literal["installed", "rolled back", "proposed", "kept"]
    reason: str
    before: str
    after: str
    judged: int
    gain: tuple[float, float, float] | None = None
    params: tuple[tuple[str, float], ...] = ()
    evidence: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(schema=_EVIDENCE), repr=False
    )

    @property
    def frame(self) -> pl.DataFrame:
        """One row: slot, action, before, after, judged, gain, low, high, reason."""
        gain, low, high = self.gain or (None, None, None)
        return pl.DataFrame(
            {
                "slot": [self.slot],
                "action": [self.action],
                "before": [self.before],
                "after": [self.after],
                "judged": [self.judged],
                "gain": [gain],
                "low": [low],
                "high": [high],
                "reason": [self.reason],
            },
            schema_overrides={"gain": pl.Float64, "low": pl.Float64, "high": pl.Float64},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the row of ``frame``, ``params``, and the rows of ``evidence``, as JSON values."""
        return self.frame.row(0, named=True) | {
            "params": dict(self.params),
            "evidence": self.evidence.to_dicts(),
        }

    def __repr__(self) -> str:
        return printable(f"{self.slot} {self.action}: {self.reason}")

    def _display(self) -> object:
        return repr(self), self.evidence if self.evidence.height else None


def adapt(
    lab: OperableLab,
    *,
    missing: Missing | None = None,
    horizon: str | None = None,
    cluster: str | None = None,
    estimator: Estimator = "snips",
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    consent: bool = False,
    seed: int = 0,
) -> Adapted:
    """Revert what does worse, else install what does better, else say why nothing is done. Logged and reversible.

    Parameters
    ----------
    lab
        The lab.
    missing
        What missing feedback counts as, as in ``memlab.evaluate``: "zero", "censor", "inverse" or "bounds". Where the
        log needs it and it is not given, nothing is changed.
    horizon
        The time that each recall has to earn, such as "7d". Recalls that are younger are left out.
    cluster
        What belongs together and counts once: "day", "session", "decision" or a column of the decisions. Without it,
        the cluster of the log, and days where recalls that are near in time earn alike.
    estimator
        "snips" or "ht", as in ``memlab.evaluate``.
    level
        The probability with which nothing is called better wrongly, for each way of comparing.
    reward_range
        The smallest and the largest reward, where they are not 0 and 1.
    consent
        Whether to carry out the step. Without it, the step is proposed.
    seed
        The seed of the search for other numbers.

    Returns
    -------
    Adapted
        What was done or proposed, and the evidence.

    Raises
    ------
    InputError
        For a horizon that is no span of time, and for a cluster that is no column of the log.
    """
    if horizon is not None and not is_span(horizon):
        raise InputError(
            f'horizon is a number and m, h, d or w, such as "7d" or "12h"; not {horizon!r}.'
        )
    return _Step(
        lab, missing, horizon, cluster, estimator, level, reward_range, consent, seed
    ).taken()


class _Step:
    """One step on one lab."""

    def __init__(
        self,
        lab: OperableLab,
        missing: Missing | None,
        horizon: str | None,
        cluster: str | None,
        estimator: Estimator,
        level: float,
        reward_range: tuple[float, float] | None,
        consent: bool,
        seed: int,
    ) -> None:
        self._lab, self._consent, self._seed = lab, consent, seed
        self._asked: dict[str, Any] = {
            "missing": missing,
            "horizon": horizon,
            "cluster": cluster,
            "level": level,
            "reward_range": reward_range,
        }
        self._estimator = estimator
        self._slates: Slates = lab.slates()
        judged = self._slates.feedback.select(pl.col("decision").drop_nulls().n_unique())
        self._judged = int(judged.collect().item())
        self._evidence = pl.DataFrame(schema=_EVIDENCE)

    def taken(self) -> Adapted:
        self._check_cluster()
        few = self._judged < _MIN_JUDGED
        refused: list[InputError] = []
        # what each version earned is compared by bets that hold at every look, however few the recalls are
        for step in (self._fallen,) if few else (self._back, self._fallen, self._forward):
            try:
                done = step()
            except InputError as error:
                refused.append(error)
                continue
            if done is not None and (done.action != "kept" or not refused):
                return done
        if few:
            return self._kept(
                f"{self._judged} recalls were judged, and {_MIN_JUDGED} is the minimum from which anything but a clear "
                "fall can be concluded"
            )
        return self._kept(f"the log does not tell: {refused[0]}")

    def _check_cluster(self) -> None:
        cluster, columns = self._asked["cluster"], self._slates.decisions.collect_schema().names()
        if cluster not in (None, "day", "decision", *columns):
            raise UnknownName("cluster", cluster, sorted({"day", "decision", *columns}))

    def _kept(self, reason: str, gain: tuple[float, float, float] | None = None) -> Adapted:
        hash = self._lab.policies[_SLOT].hash
        return Adapted(
            _SLOT, "kept", reason, hash, hash, self._judged, gain, evidence=self._evidence
        )

    def _back(self) -> Adapted | None:
        """The slot rolled back to the earlier version that would have earned more, if there is one."""
        from memlab.science.evaluation import (
            evaluate,  # a twentieth of what opening a lab takes: loaded where it is asked for
        )

        policies = self._lab.policies
        earlier = {
            f"{one.slot} version {one.number}": one
            for slot in _SLOTS
            for one in self._earlier(slot)
        }
        period = under(self._slates, policies.pack.hash)
        if not earlier or not int(period.feedback.select(pl.len()).collect().item()):
            return None
        packs = {
            name: policies.pack.with_policy(one.slot, one.policy) for name, one in earlier.items()
        }
        found = evaluate(period, packs, estimator=self._estimator, **self._asked)
        rows = [row for row in found.rows if row.policy in earlier]
        refused = [
            (one.policy, None, None, None, None, None, found.recalls, "refused", one.reason)
            for one in found.refusals
        ]
        self._record([*(_line(row, found.recalls) for row in rows), *refused])
        # rows stand best first; what is better is so with its whole interval and after Holm's adjustment
        best = next(
            (
                row
                for row in rows
                if row.verdict == "better" and row.difference and row.difference.low > 0
            ),
            None,
        )
        if best is None or best.difference is None:
            return None
        gap, version = best.difference, earlier[best.policy]
        reason = (
            f"{best.policy} would have earned {gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}] more a recall than "
            f"the live one, on the same {found.recalls} recalls"
        )
        return self._done(
            version.slot,
            "rolled back",
            reason,
            version.hash,
            (gap.value, gap.low, gap.high),
            lambda: policies.rollback(
                version.slot, to=version.number, reason=f"adapt-policy: {reason}"
            ),
        )

    def _fallen(self) -> Adapted | None:
        """The earlier version that earned more while it was live, if the live one fell below it."""
        policies = self._lab.policies
        with policies.reading() as versions:
            fall, compared, refused = find_fall(self._slates, versions, self._asked)
        if compared is None:
            return None
        why = {one.pack_hash: refused.get(one.pack_hash, _no_fall(one)) for one in compared.earlier}
        self._record([_period_line(one, why[one.pack_hash]) for one in compared.earlier])
        if fall is None:
            return None
        reason = f"adapt-policy: {fall.reason}"
        return self._done(
            fall.slot or "pack",
            "rolled back",
            fall.reason,
            fall.after,
            fall.gap,
            lambda: policies.rollback(fall.slot, to=fall.to, reason=reason),
        )

    def _earlier(self, slot: str) -> list[Version]:
        """The versions that a slot had before, each policy once; none of a pinned one."""
        with self._lab.policies.reading() as versions:
            known = versions.versions(slot)
        if slot in self._lab.policies.pins:
            return []
        latest = {one.hash: one for one in known}
        return [one for hash, one in latest.items() if hash != known[-1].hash]

    def _forward(self) -> Adapted:
        """The live recall-score with other numbers, where they do better on recalls that were held out."""
        policies = self._lab.policies
        policy = policies[_SLOT]
        if _SLOT in policies.pins:
            return self._kept("the slot is pinned")
        tunable = _tunable(policy, _SPAN)
        if tunable is None:
            return self._kept("the policy has no number that could be another one")
        refused: InputError | None = None
        try:
            found = self._tuned(tunable)
            if not found.closed:
                return self._other_numbers(found, tunable, f"{_SLOT}, other numbers", found.verdict)
        except InputError as error:
            refused = error
        # what the log cannot tell of other memories, it may tell of the order of those that it showed
        wide = _tunable(policy, _WIDE_SPAN) or tunable
        order = self._by_order(wide)
        if order is not None and order.pays:
            said = f"{order.verdict} {_ORDER}"
            return self._other_numbers(
                order, wide, f"{_SLOT}, other numbers, by the order of what was shown", said
            )
        if refused is not None:
            raise refused
        return self._other_numbers(found, tunable, f"{_SLOT}, other numbers", found.verdict)

    def _other_numbers(self, found: Tuning, tunable: Policy, name: str, said: str) -> Adapted:
        """The numbers that a search found, installed or proposed if they pay."""
        policies = self._lab.policies
        gain = (found.gain.value, found.gain.low, found.gain.high)
        why = " ".join(str(gate) for gate in found.closed)
        recalls = int(self._slates.decisions.select(pl.len()).collect().item())
        verdict = "better" if found.pays else "withheld" if found.closed else "not separated"
        row = (name, found.held_out.value, *gain, found.gain.p, recalls, verdict, why)
        self._record(
            [tuple(None if isinstance(one, float) and math.isnan(one) else one for one in row)]
        )
        if not found.pays:
            return self._kept(said, gain)
        params = {name: float(f"{value:.6g}") for name, value in found.params.items()}

        def install() -> Version:
            version: Version = policies.install(
                _SLOT,
                tunable.source,
                helpers=tunable.helpers,
                params=params,
                reason=f"adapt-policy: {said}",
            )
            return version

        after = tunable.with_params(params).hash
        done = self._done(_SLOT, "installed", said, after, gain, install)
        return replace(done, params=tuple(sorted(params.items())))

    def _by_order(self, policy: Policy) -> Tuning | None:
        """The search by the order of what was shown, held to a stricter level; None where there is none to learn."""
        from memlab.science.evaluation import tune

        strict = {
            "level": 1 - (1 - self._asked["level"]) / _STRICTER,
            "cluster": self._asked["cluster"] or "day",
        }
        try:
            return tune(
                self._slates,
                policy,
                **(self._asked | strict),
                goal="order",
                folds=_FOLDS,
                budget=_WIDE_BUDGET,
                seed=self._seed,
            )
        except InputError:
            return None

    def _tuned(self, policy: Policy) -> Tuning:
        """The search by the clusters that were asked for, or by days where those of the log earn alike in turn."""
        from memlab.science.evaluation import tune

        asked = self._asked | {
            "estimator": self._estimator,
            "folds": _FOLDS,
            "budget": _BUDGET,
            "seed": self._seed,
        }
        found = tune(self._slates, policy, **asked)
        if self._asked["cluster"] is None and any(
            gate.name == "independence" for gate in found.closed
        ):
            found = tune(self._slates, policy, **(asked | {"cluster": "day"}))
        return found

    def _done(
        self,
        slot: str,
        action: Literal["installed", "rolled back"],
        reason: str,
        after: str,
        gain: tuple[float, float, float],
        act: Callable[[], Version | Pack],
    ) -> Adapted:
        """Carried out on consent, else proposed."""
        pack = self._lab.policies.pack
        before = pack.hash if slot == "pack" else pack.policies[slot].hash
        if self._consent:
            after = act().hash
            return Adapted(
                slot, action, reason, before, after, self._judged, gain, evidence=self._evidence
            )
        would = "roll back" if action == "rolled back" else "install"
        reason = f"on your consent, {would} [{after[:12]}]. {reason}"
        return Adapted(
            slot, "proposed", reason, before, after, self._judged, gain, evidence=self._evidence
        )

    def _record(self, rows: list[tuple[Any, ...]]) -> None:
        self._evidence = pl.concat(
            [self._evidence, pl.DataFrame(rows, schema=_EVIDENCE, orient="row")]
        )


def _line(row: PolicyValue, recalls: int) -> tuple[Any, ...]:
    """One policy's row of the evidence."""
    gap = row.difference
    numbers = (
        row.value.value if row.value else None,
        *((gap.value, gap.low, gap.high) if gap else (None, None, None)),
    )
    known = [None if one is None or math.isnan(one) else one for one in (*numbers, row.adjusted)]
    return (row.policy, *known, recalls, row.verdict, " ".join(str(gate) for gate in row.closed))


def _period_line(period: Period, why: str) -> tuple[Any, ...]:
    """The row of the evidence of an earlier version, by what it earned while it was live."""
    gap = period.difference or (None, None, None)
    verdict = "not separated" if why else "better"
    name = f"pack {period.pack_hash[:12]}, while it was live"
    return (name, period.earned, *gap, None, period.recalls, verdict, why)


def _no_fall(period: Period) -> str:
    """Why an earlier version is not called better by what it earned while it was live; "" if it is."""
    if period.fell:
        return ""
    if period.begins is None:
        evidence, needed = period.evidence or 0.0, period.needed or 0.0
        return f"The evidence that the live version earns less is {evidence:.3g}; {needed:.0f} is needed."
    return "The live version earns less, but the fall does not begin where the version changed, or a trend fits as well."


def of_fall(fall: Fall, before: str, judged: int) -> Adapted:
    """The proposal to revert a fall, which nobody asked for: it ends with the call that carries it out."""
    reason = f"on your consent, roll back [{fall.after[:12]}]. {fall.reason} To roll back: {fall.command}"
    return Adapted(fall.slot or "pack", "proposed", reason, before, fall.after, judged, fall.gap)


def _tunable(policy: Policy, span: tuple[float, float]) -> Policy | None:
    """The policy with bounded parameters: its own, or its first numbers as such."""
    if any(
        math.isfinite(param.low) and math.isfinite(param.high) for param in policy.params.values()
    ):
        return policy
    choices: dict[NumericLiteral, str | tuple[str, float | None, float | None]] = {}
    for literal in literals(policy):
        if (
            literal.replaceable
            and not literal.structural
            and literal.value
            and len(choices) < _MAX_PARAMETERS
        ):
            low, high = sorted(literal.value * times for times in span)
            choices[literal] = (f"w{len(choices) + 1}", low, high)
    return parametrize(policy, choices) if choices else None


# Whether the live policy has fallen, watched while judgements come in: constant work for each.


_DAY = 86_400_000_000
_REWARDS = {"success": 1.0, "fail": 0.0}
_PATIENCE = 1.5
"""A comparison that found no fall is made again when the live version has half as many blocks again: so the number of
comparisons grows as the logarithm of the log."""


def propose_revert(
    store: Store,
    *,
    missing: Missing = "censor",
    horizon: str | None = None,
    cluster: str | None = None,
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
) -> Adapted | None:
    """Return the proposal to bring an earlier policy back, or None where the live one has not fallen.

    The arguments are those of ``compare_periods``. Missing feedback is left out by default: nobody was asked what it
    means.
    """
    asked = {
        "missing": missing,
        "horizon": horizon,
        "cluster": cluster,
        "level": level,
        "reward_range": reward_range,
    }
    with store.reading():
        versions = store.versions
        if len(versions.pack_hashes) < 2:
            return None
        slates = store.slates()
        if not slates.decisions.select(pl.len()).collect().item():
            return None
        fall, _, _ = find_fall(slates, versions, asked)
        if fall is None:
            return None
        pack = versions.pack
        before = pack.hash if fall.slot is None else pack.policies[fall.slot].hash
        return of_fall(fall, before, fall.period.recalls + fall.live.recalls)


class FallWatch:
    """Watches the judgements of a lab for a fall of the live policy.

    It begins with the second call of a process in which more than one pack was live: what asks once and ends, such as
    the command line, does not pay for reading the judgements of the log. Rewards count as if they lay in 0..1; where
    they do not, ``propose_revert`` with their range compares them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = ThreadLock()
        self._earned: Any = None
        self._days: dict[int, int] = {}
        self._cursor = 0
        self._calls = 0
        self._again: dict[str, float] = {}
        self._live = ""
        self._told: set[str] = set()

    def after_feedback(self) -> Adapted | None:
        """Count what was judged since the last call; the proposal if that shows a fall for the first time.

        A proposal is made once for each time that a pack is live.
        """
        with self._lock:
            self._calls += 1
            with self._store.reading() as state:
                packs, live, head = (
                    self._store.versions.pack_hashes,
                    self._store.versions.live_hash,
                    state.seq,
                )
            if self._calls < 2 or len(packs) < 2:
                return None
            if live != self._live:
                self._live = live
                self._told.clear()
            self._count(head)
            blocks = self._earned.blocks(live)
            if not self._earned.may_have_fallen(packs, live) or blocks < self._again.get(live, 0):
                return None
            self._again[live] = _PATIENCE * blocks
            try:
                found = propose_revert(self._store)
            except MemlabError:
                # the judgement is stored: a log that cannot be compared is told of by adapt-policy
                return None
            if found is None or found.after in self._told:
                return None
            self._told.add(found.after)
            return found

    def _count(self, head: int) -> None:
        if self._earned is None:
            # loaded only where more than one pack was live
            from memlab.science.evaluation import Earnings

            self._earned = Earnings()
        for event in self._store.journal.events(
            self._cursor, upto=head, kinds=("recall", "feedback")
        ):
            if event.kind == "recall":
                self._days[event.seq] = event.at // _DAY
                continue
            body = event.body
            reward = body["reward"] if body["reward"] is not None else _REWARDS.get(body["outcome"])
            day = self._days.get(body["decision"])
            if (
                body.get("pack") is not None
                and not body.get("probe")
                and reward is not None
                and day is not None
            ):
                self._earned.add(body["pack"], day, min(max(reward, 0.0), 1.0), body["decision"])
        self._cursor = head

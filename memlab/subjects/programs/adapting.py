"""Adaptation of policies to feedback: one step of ``(adapt-policy)``.

The step first tries to roll back. Each earlier version of a slot is evaluated on the recalls that the active pack
decided, and compared with the logged results. A version is restored if its estimated reward is higher with the whole
interval, adjusted for the number of comparisons, and if no gate is closed. Both versions are compared on the same
queries, so a period of harder queries favours neither. A log without exploration may not support this comparison. Then
the rewards of each version while it was active are compared (``compare_periods``). The best earlier version is restored
if rewards fell when the active version was installed. This comparison is confounded with time, and the reason says so.

Otherwise the step tries new numbers. The numbers of the active recall-score become parameters, and the log is searched
for better values. They are installed only if they perform better on recalls outside the search, with the whole interval
above zero. Otherwise nothing is changed, and the reason is returned. Without consent, the step is only proposed, with
its evidence.
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
from memlab.subjects.programs.falls import Fall, find_fall, select_recalls

if TYPE_CHECKING:
    from memlab.science.evaluation import Period, PolicyValue, Tuning


class OperableLab(Protocol):
    """The methods of ``memlab.subjects.lab.Lab`` that operations use."""

    def __len__(self) -> int: ...

    @property
    def policies(self) -> Any:
        """The accessor for policies."""

    def slates(self) -> Any:
        """Return the log of all recalls."""

    def remember(self, text: str, **fields: Any) -> Any:
        """Store a text as a memory."""

    def recall(self, query: str, *, limit: int | None) -> Any:
        """Return the top-ranked memories for a query."""

    @property
    def facts(self) -> Any:
        """The accessor for facts."""

    @property
    def graph(self) -> Any:
        """The accessor for the graph of memories."""

    @property
    def upkeep(self) -> Any:
        """The accessor for upkeep."""

    def feedback(self, hit: Any, outcome: str, *, source: str) -> Any:
        """Record feedback on a retrieved memory."""


Missing = Literal["zero", "censor", "inverse", "bounds"]
MISSING: tuple[Missing, ...] = get_args(Missing)
"""The treatments of missing feedback, which ``memlab.evaluate`` describes."""

Estimator = Literal["snips", "ht"]
# The estimators, in the order of the documentation of ``memlab.evaluate``.
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)

_SLOTS = ("recall-score", "seed-score", "half-life", "spread")
"""The slots that decide the scores of candidates, and so the results among the logged candidates."""

# The slot whose numbers are tuned.
_SLOT = "recall-score"
_MIN_JUDGED = 20
"""The minimum number of judged recalls for a search, which allows five folds of four clusters."""

# Each parameter multiplies the time of the search. The first eight numbers of a policy are usually its main weights.
_MAX_PARAMETERS = 8
_SPAN = 1 / 4, 4.0
"""The bounds of the search for a number, as multiples of its value. Exploration items support only moderate changes."""

_WIDE_SPAN = 1 / 64, 16.0
"""The bounds of the search by the order of results. Activation reaches 47 and importance at most 1, so activation
dominates even with a quarter of its weight. In 3 of the first 6 labs of experiments/adaptation.py, a better weight of
importance is found within the narrow bounds. With these bounds and the larger budget, it is found in 5."""

# Five folds are usual in cross-validation. The budgets are numbers of evaluated policies, which take a few seconds.
_FOLDS, _BUDGET, _WIDE_BUDGET = 5, 60, 200

_STRICTER = 5
"""The divisor of the error probability of the search by order, which follows a first search on the same log."""

# The sentence after the verdict of a search by order, whose value is not a reward.
_ORDER = (
    "The value is the share of pairs in the right order: of two shown memories of a recall with different rewards, how "
    "often the better one is first. It says nothing about memories that were not shown."
)

# The columns of ``Adapted.evidence``.
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
    """The result of one step of adaptation.

    Attributes
    ----------
    slot
        The slot, or "pack" if a whole pack is restored.
    action
        "installed", "rolled back", "proposed", or "kept" if nothing was changed.
    reason
        The reason in a sentence.
    before, after
        The hash of the slot's policy before and after the step. For a proposal, ``after`` is the hash of the proposed
        policy.
    judged
        The number of judged recalls.
    gain
        The decisive difference with the bounds of its interval, or None if nothing was compared.
    params
        The new values of the parameters.
    evidence
        One row for each policy that was compared with the active one. The columns are ``policy``, ``value``,
        ``difference`` with ``low`` and ``high``, ``p`` (adjusted by Bonferroni), ``recalls``, ``verdict``, and ``why``, the
        reason why a comparison has no result. A policy named "..., while it was live" was compared by its rewards at
        that time.

    Examples
    --------
    >>> memlab.open().upkeep.operations.adapt_policy().action
    'kept'
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
        """A frame with one row, which contains the action and its evidence.

        The columns are ``slot``, ``action``, ``before``, ``after``, ``judged``, ``gain``, ``low``,
        ``high`` and ``reason``.
        """
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
        """Return the row of ``frame``, ``params`` and ``evidence`` as JSON values.

        Returns
        -------
        dict
            The values by name.
        """
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
    """Replace a policy that performs worse, install a better policy, or explain why not.

    Every change is logged and can be rolled back.

    Parameters
    ----------
    lab
        The lab.
    missing
        The treatment of missing feedback, as in ``memlab.evaluate``: "zero", "censor", "inverse" or "bounds". If the
        log requires a treatment and none is specified, nothing is changed.
    horizon
        The time within which feedback counts, such as "7d". Younger recalls are left out.
    cluster
        The unit of independent observations: "day", "session", "decision" or a column of the decisions. The default is
        the cluster of the log, or days if rewards of recalls that are close in time are similar.
    estimator
        "snips" or "ht", as in ``memlab.evaluate``.
    level
        The confidence level of each way of comparing, in 0.5..0.999.
    reward_range
        The minimum and maximum reward, by default 0 and 1.
    consent
        Whether to carry out the step. Otherwise it is proposed.
    seed
        The seed of the search for other numbers.

    Returns
    -------
    Adapted
        The change or the proposal, with the evidence.

    Raises
    ------
    InputError
        If ``horizon`` is no span of time.
    UnknownName
        If ``cluster`` is no column of the log.
    """
    if horizon is not None and not is_span(horizon):
        raise InputError(
            f'horizon must be a number and a unit (m, h, d or w), such as "7d" or "12h", not {horizon!r}.'
        )
    options = {
        "missing": missing,
        "horizon": horizon,
        "cluster": cluster,
        "level": level,
        "reward_range": reward_range,
    }
    return _Step(lab, options, estimator, consent, seed).run()


class _Step:
    """One step of adaptation. All its comparisons use the same ``options``."""

    def __init__(
        self,
        lab: OperableLab,
        options: dict[str, Any],
        estimator: Estimator,
        consent: bool,
        seed: int,
    ) -> None:
        self._lab, self._options, self._estimator = lab, options, estimator
        self._consent, self._seed = consent, seed
        self._slates: Slates = lab.slates()
        judged = self._slates.feedback.select(pl.col("decision").drop_nulls().n_unique())
        self._judged = int(judged.collect().item())
        self._evidence = pl.DataFrame(schema=_EVIDENCE)

    def run(self) -> Adapted:
        """Return the first change among three attempts: rollback, revert and new numbers."""
        self._check_cluster()
        few = self._judged < _MIN_JUDGED
        refused: list[InputError] = []
        # The test for a fall is anytime-valid, so it also runs with few recalls.
        for step in (
            (self._revert_fall,) if few else (self._roll_back, self._revert_fall, self._search)
        ):
            try:
                done = step()
            except InputError as error:
                refused.append(error)
                continue
            if done is not None and (done.action != "kept" or not refused):
                return done
        if few:
            return self._keep(
                f"{self._judged} recalls were judged, and {_MIN_JUDGED} are the minimum for any conclusion but a clear "
                "fall"
            )
        return self._keep(f"the log cannot be evaluated: {refused[0]}")

    def _check_cluster(self) -> None:
        """Raise UnknownName if ``cluster`` is neither None, "day" or "decision" nor a column of the log."""
        cluster, columns = self._options["cluster"], self._slates.decisions.collect_schema().names()
        if cluster not in (None, "day", "decision", *columns):
            raise UnknownName("cluster", cluster, sorted({"day", "decision", *columns}))

    def _keep(self, reason: str, gain: tuple[float, float, float] | None = None) -> Adapted:
        """Return the result of a step that changes nothing, with the reason."""
        hash = self._lab.policies[_SLOT].hash
        return Adapted(
            _SLOT, "kept", reason, hash, hash, self._judged, gain, evidence=self._evidence
        )

    def _roll_back(self) -> Adapted | None:
        """Restore, or without consent propose, an earlier version with a higher estimated reward; None without one."""
        # The import is here, because it takes a twentieth of the time of opening a lab.
        from memlab.science.evaluation import evaluate

        policies = self._lab.policies
        earlier = {
            f"{version.slot} version {version.number}": version
            for slot in _SLOTS
            for version in self._earlier_versions(slot)
        }
        period = select_recalls(self._slates, policies.pack.hash)
        if not earlier or not int(period.feedback.select(pl.len()).collect().item()):
            return None
        packs = {
            name: policies.pack.with_policy(version.slot, version.policy)
            for name, version in earlier.items()
        }
        result = evaluate(period, packs, estimator=self._estimator, **self._options)
        rows = [row for row in result.rows if row.policy in earlier]
        refused = [
            (row.policy, None, None, None, None, None, result.recalls, "refused", row.reason)
            for row in result.refusals
        ]
        self._record([*(_line(row, result.recalls) for row in rows), *refused])
        # The rows are ordered by value, best first. "better" refers to the adjusted interval.
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
            f"{best.policy} would have earned {gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}] more per recall than "
            f"the active one, on the same {result.recalls} recalls"
        )
        return self._apply(
            version.slot,
            "rolled back",
            reason,
            version.hash,
            (gap.value, gap.low, gap.high),
            lambda: policies.rollback(
                version.slot, to=version.number, reason=f"adapt-policy: {reason}"
            ),
        )

    def _revert_fall(self) -> Adapted | None:
        """Restore, or without consent propose, an earlier version if rewards fell when the active one was installed.

        The result is None if no fall was found.
        """
        policies = self._lab.policies
        with policies.reading() as versions:
            fall, compared, refused = find_fall(self._slates, versions, self._options)
        if compared is None:
            return None
        why = {
            period.pack_hash: refused.get(period.pack_hash, _no_fall(period))
            for period in compared.earlier
        }
        self._record([_period_line(period, why[period.pack_hash]) for period in compared.earlier])
        if fall is None:
            return None
        reason = f"adapt-policy: {fall.reason}"
        return self._apply(
            fall.slot or "pack",
            "rolled back",
            fall.reason,
            fall.after,
            fall.gap,
            lambda: policies.rollback(fall.slot, to=fall.to, reason=reason),
        )

    def _earlier_versions(self, slot: str) -> list[Version]:
        """Return the distinct earlier policies of a slot, or no policies if the slot is pinned."""
        with self._lab.policies.reading() as versions:
            history = versions.versions(slot)
        if slot in self._lab.policies.pins:
            return []
        latest = {version.hash: version for version in history}
        return [version for hash, version in latest.items() if hash != history[-1].hash]

    def _search(self) -> Adapted:
        """Search for better numbers in ``recall-score``, and test them on held-out recalls."""
        policies = self._lab.policies
        policy = policies[_SLOT]
        if _SLOT in policies.pins:
            return self._keep("the slot is pinned")
        tunable = _tunable(policy, _SPAN)
        if tunable is None:
            return self._keep("the policy has no number to change")
        refused: InputError | None = None
        try:
            tuning = self._tune(tunable)
            if not tuning.closed:
                return self._try_numbers(tuning, tunable, f"{_SLOT}, other numbers", tuning.verdict)
        except InputError as error:
            refused = error
        # Without exploration, the log says little about memories that were not shown. It can still order shown memories.
        wide = _tunable(policy, _WIDE_SPAN) or tunable
        order = self._tune_by_order(wide)
        if order is not None and order.pays:
            reason = f"{order.verdict} {_ORDER}"
            return self._try_numbers(
                order, wide, f"{_SLOT}, other numbers, by the order of what was shown", reason
            )
        if refused is not None:
            raise refused
        return self._try_numbers(tuning, tunable, f"{_SLOT}, other numbers", tuning.verdict)

    def _try_numbers(self, tuning: Tuning, tunable: Policy, name: str, reason: str) -> Adapted:
        """Install or propose tuned numbers that perform better, and return the result."""
        policies = self._lab.policies
        gain = (tuning.gain.value, tuning.gain.low, tuning.gain.high)
        why = " ".join(str(gate) for gate in tuning.closed)
        recalls = int(self._slates.decisions.select(pl.len()).collect().item())
        verdict = "better" if tuning.pays else "withheld" if tuning.closed else "not separated"
        row = (name, tuning.held_out.value, *gain, tuning.gain.p, recalls, verdict, why)
        self._record([tuple(map(_without_nan, row))])
        if not tuning.pays:
            return self._keep(reason, gain)
        params = {name: float(f"{value:.6g}") for name, value in tuning.params.items()}

        def install() -> Version:
            version: Version = policies.install(
                _SLOT,
                tunable.source,
                helpers=tunable.helpers,
                params=params,
                reason=f"adapt-policy: {reason}",
            )
            return version

        after = tunable.with_params(params).hash
        done = self._apply(_SLOT, "installed", reason, after, gain, install)
        return replace(done, params=tuple(sorted(params.items())))

    def _tune_by_order(self, policy: Policy) -> Tuning | None:
        """Tune a policy on the order of recalled memories; return None without usable pairs."""
        from memlab.science.evaluation import tune

        strict = {
            "level": 1 - (1 - self._options["level"]) / _STRICTER,
            "cluster": self._options["cluster"] or "day",
        }
        try:
            return tune(
                self._slates,
                policy,
                **(self._options | strict),
                metric="order",
                folds=_FOLDS,
                budget=_WIDE_BUDGET,
                seed=self._seed,
            )
        except InputError:
            return None

    def _tune(self, policy: Policy) -> Tuning:
        """Tune a policy on the log; if clusters are dependent, use days as clusters."""
        from memlab.science.evaluation import tune

        options = self._options | {
            "metric": "value",
            "estimator": self._estimator,
            "folds": _FOLDS,
            "budget": _BUDGET,
            "seed": self._seed,
        }
        tuning = tune(self._slates, policy, **options)
        if self._options["cluster"] is None and any(
            gate.name == "independence" for gate in tuning.closed
        ):
            tuning = tune(self._slates, policy, **(options | {"cluster": "day"}))
        return tuning

    def _apply(
        self,
        slot: str,
        action: Literal["installed", "rolled back"],
        reason: str,
        after: str,
        gain: tuple[float, float, float],
        act: Callable[[], Version | Pack],
    ) -> Adapted:
        """Apply a change if the user consented, or else return the change as a proposal."""
        pack = self._lab.policies.pack
        before = pack.hash if slot == "pack" else pack.policies[slot].hash
        outcome: Literal["installed", "rolled back", "proposed"] = action
        if self._consent:
            after = act().hash
        else:
            outcome = "proposed"
            would = "roll back" if action == "rolled back" else "install"
            reason = f"on your consent, {would} [{after[:12]}]. {reason}"
        return Adapted(
            slot, outcome, reason, before, after, self._judged, gain, evidence=self._evidence
        )

    def _record(self, rows: list[tuple[Any, ...]]) -> None:
        """Add rows to the evidence table."""
        self._evidence = pl.concat(
            [self._evidence, pl.DataFrame(rows, schema=_EVIDENCE, orient="row")]
        )


def _line(row: PolicyValue, recalls: int) -> tuple[Any, ...]:
    """Return the row of evidence about one evaluated policy."""
    gap = row.difference
    numbers = (
        row.value.value if row.value else None,
        *((gap.value, gap.low, gap.high) if gap else (None, None, None)),
    )
    values = map(_without_nan, (*numbers, row.adjusted))
    return (row.policy, *values, recalls, row.verdict, " ".join(str(gate) for gate in row.closed))


def _without_nan(value: Any) -> Any:
    """Return a value, or None if the value is NaN, which JSON cannot contain."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _period_line(period: Period, why: str) -> tuple[Any, ...]:
    """Return the row of the evidence table about one earlier pack's active period."""
    gap = period.difference or (None, None, None)
    verdict = "not separated" if why else "better"
    name = f"pack {period.pack_hash[:12]}, while it was live"
    return (name, period.earned, *gap, None, period.recalls, verdict, why)


def _no_fall(period: Period) -> str:
    """Return the reason not to report a fall of rewards, or "" for a fall."""
    if period.fell:
        return ""
    if period.begins is None:
        evidence, needed = period.evidence or 0.0, period.needed or 0.0
        return f"The evidence that the active version earns less is {evidence:.3g}; {needed:.0f} is needed."
    return (
        "The active version earns less, but the fall does not start at the change of the version, "
        "or a trend fits as well."
    )


def of_fall(fall: Fall, before: str, judged: int) -> Adapted:
    """Return a proposal to roll back after a fall of rewards, with the call to run."""
    reason = f"on your consent, roll back [{fall.after[:12]}]. {fall.reason} To roll back: {fall.command}"
    return Adapted(fall.slot or "pack", "proposed", reason, before, fall.after, judged, fall.gap)


def _tunable(policy: Policy, span: tuple[float, float]) -> Policy | None:
    """Return a policy with bounded parameters to tune, or None without tunable numbers.

    If no parameter has bounds, numbers of the source become parameters, bounded by ``span`` times their values.
    """
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


# The watch for falls takes constant time for each judgement.

# The number of microseconds in a day, and the rewards of outcomes.
_DAY = 86_400_000_000
_REWARDS = {"success": 1.0, "fail": 0.0}
_PATIENCE = 1.5
"""The factor by which the active version's log must grow before the next comparison. So there are few comparisons."""


def propose_revert(
    store: Store,
    *,
    missing: Missing = "censor",
    horizon: str | None = None,
    cluster: str | None = None,
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
) -> Adapted | None:
    """Return the proposal to restore an earlier policy, or None if there is no fall.

    The arguments are those of ``compare_periods``. By default, shown memories without feedback are left out, because
    the user has not chosen a treatment.
    """
    options = {
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
        fall, _, _ = find_fall(slates, versions, options)
        if fall is None:
            return None
        pack = versions.pack
        before = pack.hash if fall.slot is None else pack.policies[fall.slot].hash
        return of_fall(fall, before, fall.period.recalls + fall.live.recalls)


class FallWatch:
    """The watch that detects, from the judgements of a lab, a fall of the active policy.

    The watch starts with the second judgement in a process, and only if several packs have been active. So a short
    process, such as a command, does not read all judgements of the log. Rewards are assumed to be in 0..1. For other
    rewards, call ``propose_revert`` with their range.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # Judgements may arrive in several threads. The lock ensures that each event is counted once.
        self._lock = ThreadLock()
        self._earned: Any = None
        self._days: dict[int, int] = {}
        self._cursor = 0
        self._calls = 0
        self._next_blocks: dict[str, float] = {}
        self._live = ""
        self._proposed: set[str] = set()

    def after_feedback(self) -> Adapted | None:
        """Count new feedback, and return a proposal when rewards first show a fall.

        Each proposal is made at most once while a pack is active.
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
                self._proposed.clear()
            self._count(head)
            blocks = self._earned.blocks(live)
            if not self._earned.may_have_fallen(packs, live) or blocks < self._next_blocks.get(
                live, 0
            ):
                return None
            self._next_blocks[live] = _PATIENCE * blocks
            try:
                proposal = propose_revert(self._store)
            except MemlabError:
                # The judgement is already stored, so no error is raised. adapt-policy reports why a log cannot be compared.
                return None
            if proposal is None or proposal.after in self._proposed:
                return None
            self._proposed.add(proposal.after)
            return proposal

    def _count(self, head: int) -> None:
        """Add rewards from feedback since the last call to the totals of each pack."""
        if self._earned is None:
            # The import runs only if more than one pack has been active.
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

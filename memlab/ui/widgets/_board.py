"""Evaluation board: compare policies on a log, read the evidence, and plan how to collect more."""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import polars as pl
import traitlets

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import clip
from memlab.kernel.policies import (
    ChallengeDesign,
    ExtraItems,
    Pack,
    PolicyLike,
    list_policies,
    pack_names,
    read_policy,
)
from memlab.kernel.slates import Slates
from memlab.science.evaluation import (
    Disagreement,
    Evaluation,
    Plan,
    Verdicts,
    evaluate,
    plan,
    verdict,
)
from memlab.subjects.lab import Lab
from memlab.ui.widgets._widget import MOST_TEXT, WorkingWidget, synced

_AT_ONCE = 500
"""Logs with more recalls are evaluated only on request, because that takes more than a few seconds."""
_DISAGREEMENTS = 6
"""Recalls in the list of disagreements: as many as fit one screen."""
_EXTRA = (1, 2, 3, 4, 5)
"""The counts of extra items that the slider of the planner offers."""

Part = Literal["evaluation", "differences", "plan", "challenge"]


class EvaluationBoard(WorkingWidget, bundle="board"):
    """An evaluation of policies on a log, with gates, disagreements and a planner.

    A browser starts the evaluation in a thread; ``evaluate`` runs it at once.

    Parameters
    ----------
    slates
        A lab, or the slates of a log.
    policies
        Names of packs, packs, or (for a log without a lab) names of its score columns. The default
        is the active pack and its challengers, or else the pack ``memlab``.
    missing, horizon, cluster
        As in ``memlab.evaluate``; None for its defaults.

    Attributes
    ----------
    pair
        The names of the two policies whose disagreements are shown.
    evaluation, plan, verdicts
        The latest results; None before the first.

    Examples
    --------
    >>> board = memlab.widgets.EvaluationBoard(lab, ["companion"], missing="zero")             # doctest: +SKIP
    >>> board.evaluation.frame                                                                 # doctest: +SKIP
    """

    policies = synced([str])
    missing = synced("")
    horizon = synced("")
    cluster = synced("")
    pair = synced([str], maxlen=2)
    evaluation = traitlets.Instance(Evaluation, allow_none=True)
    plan = traitlets.Instance(Plan, allow_none=True)
    verdicts = traitlets.Instance(Verdicts, allow_none=True)

    _about = synced({})
    _evaluation = synced({})
    _differences = synced({})
    _plan = synced({})
    _challenge = synced({})

    @checked
    def __init__(
        self,
        slates: Lab | Slates,
        policies: PolicyLike | None = None,
        *,
        missing: Literal["censor", "inverse", "bounds", "zero"] | None = None,
        horizon: str | None = None,
        cluster: str | None = None,
    ) -> None:
        self._log = slates if isinstance(slates, Slates) else None
        self._number = 0
        """The count of finished evaluations, a part of the key of each comparison."""
        lab = cast("Lab | None", slates.lab) if isinstance(slates, Slates) else slates
        requested = [] if policies is None else list_policies(policies)
        names = self._log.policies if lab is None and self._log is not None else pack_names()
        chosen: dict[str, Any] = {}
        default: list[str | Pack] = [*names[:3]]
        if lab is not None:
            running = [challenge.pack for challenge in lab.policies.challenges]
            default = [lab.policies.pack, *running] if running else [lab.policies.pack, "memlab"]
        for name, policy in requested or list_policies(default):
            chosen.setdefault(name or name_of(policy), policy)
        self._named: dict[str, Any] = {**dict.fromkeys((*chosen, *names)), **chosen}
        super().__init__(
            lab,
            policies=list(chosen),
            missing=missing or "",
            horizon=horizon or "",
            cluster=cluster or "",
        )
        self._look()

    @property
    def where(self) -> str:
        """The name of the lab, or "a log" if there is no lab."""
        return "a log" if self.lab is None else super().where

    def evaluate(self) -> Evaluation:
        """Evaluate the current settings now.

        Returns
        -------
        Evaluation
            The result of ``memlab.evaluate``, also in ``evaluation``.

        Raises
        ------
        MemlabError
            If ``memlab.evaluate`` refuses the settings.
        """
        self.answer_begin("evaluation")
        self.finish()
        assert self.evaluation is not None
        return self.evaluation

    def refresh(self) -> None:
        """Count the recalls again, keeping the computed results."""
        self._look()

    def fill(self) -> None:
        """Compute the evaluation, the plan and any running challenge."""
        self.evaluate()
        self.answer_begin("plan")
        if self._about["challengers"]:
            self.answer_begin("challenge")
        self.finish()

    def page(self) -> str:
        """Return the leaderboard as an HTML table."""
        return super().page() if self.evaluation is None else self.evaluation._repr_html_()

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_begin(self, part: Part) -> None:
        """Start computing one part of the board."""
        settings = self._settings()
        key = (tuple(self.policies), *settings.values(), self._head())
        specs = {name: self._spec(name) for name in self.policies}
        if part in ("evaluation", "plan") and not specs:
            raise InputError("Choose a policy to evaluate.")
        if part == "evaluation":
            self.work(
                "evaluate",
                key,
                lambda: evaluate(self._slates(), specs, **settings),
                self._evaluated,
            )
        elif part == "plan":
            wanted = {name: value for name, value in settings.items() if name != "cluster"}
            self.work(
                "plan",
                key,
                lambda: plan(self._slates(), specs, extra=_EXTRA, **wanted),
                self._planned,
            )
        elif part == "challenge":
            self.work(
                "read the challenge", key, lambda: verdict(self._slates(), **settings), self._judged
            )
        else:
            self._differ()

    @checked
    def answer_challenge(
        self, policy: str, design: ChallengeDesign, extra: ExtraItems, rate: float, reason: str
    ) -> None:
        """Compare the policy with the active pack until lab.policies.end_challenge."""
        if self.lab is None:
            raise InputError(
                "A challenge needs a lab, and this log was opened without one. Open the lab that the log came from."
            )
        self.lab.challenge(self._spec(policy), design=design, extra=extra, rate=rate, reason=reason)
        self._look()

    # -- finding out --------------------------------------------------------------------------------------------

    def _spec(self, name: str) -> Any:
        """Return the policy with a name; return the name itself for a pack or column."""
        policy = self._named.get(name)
        return name if policy is None else policy

    def _slates(self) -> Slates:
        return self.lab.slates() if self._log is None else self._log

    def _head(self) -> int:
        return 0 if self.lab is None else self.lab.io.store.journal.head

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) or None for name in ("missing", "horizon", "cluster")}

    def _look(self) -> None:
        """Count the recalls and feedback available for an evaluation."""
        log = self._slates()
        counted, at = (
            log.decisions.select(pl.len()).collect().item(),
            "at" in log.decisions.collect_schema(),
        )
        days = (
            log.decisions.select(pl.col("at").dt.date().n_unique()).collect().item()
            if at and counted
            else 0
        )
        self._about = {
            "recalls": counted,
            "judged": log.feedback.select(pl.len()).collect().item(),
            "daily": counted / days if days else None,
            "known": list(self._named),
            "challengers": []
            if self.lab is None
            else [challenge.name for challenge in self.lab.policies.challenges],
            "challenged": "challenge" in log.decisions.collect_schema(),
            "lab": self.lab is not None,
            "atOnce": counted <= _AT_ONCE,
            "head": self._head(),
        }

    def _evaluated(self, evaluation: Evaluation) -> None:
        report = evaluation.to_dict()
        rows = evaluation_rows(report.pop("policies"), evaluation)
        del report["observed"]  # The outcomes of all queries would be too large for a message.
        facts = evaluation.observed
        self._number += 1
        with self.hold_sync():
            self.evaluation, self.fault = evaluation, ""
            self._evaluation = plain(
                {
                    **report,
                    "facts": facts.sentence if facts else "",
                    "rows": rows,
                    "baseline": evaluation.baseline,
                    "key": self._key(),
                }
            )
            names = [row.policy for row in evaluation.rows]
            if not (len(self.pair) == 2 and set(self.pair) <= set(names)):
                self.pair = list(evaluation.pair or ())
            self._differ()

    def _differ(self) -> None:
        if self.evaluation is None or len(self.pair) != 2:
            self._differences = {}
            return
        (a, b), evaluation = self.pair, self.evaluation
        self.work(
            "compare",
            (self._number, a, b),
            lambda: evaluation.disagreements(a, b, _DISAGREEMENTS),
            self._differed,
        )

    def _differed(self, disagreements: Any) -> None:
        recalls = [
            {
                "decision": str(disagreement.decision),
                "query": disagreement.query,
                "shared": disagreement.shared,
                "heads": [top_of(disagreement, 0), top_of(disagreement, 1)],
            }
            for disagreement in disagreements
        ]
        self._differences = plain({"a": disagreements.a, "b": disagreements.b, "recalls": recalls})

    def _planned(self, plan: Plan) -> None:
        self.plan, rows = plan, plan.frame.to_dicts()
        about = {
            "baseline": plan.baseline,
            "recalls": plan.recalls,
            "notes": list(plan.notes),
            "best": plan.best,
        }
        self._plan = plain({**about, "designs": rows, "key": self._key()})

    def _judged(self, verdicts: Verdicts) -> None:
        self.verdicts = verdicts
        report = verdicts.to_dict()
        for row, challenge in zip(report["verdicts"], verdicts, strict=True):
            row["days"] = by_day(challenge.track)
        report["facts"] = verdicts.observed.sentence
        del report["observed"]  # The outcomes of all queries would be too large for a message.
        self._challenge = plain({**report, "key": self._key()})

    def _key(self) -> list[Any]:
        """Return the settings that identify a result, so that outdated results can be marked."""
        return [list(self.policies), self.missing, self.horizon, self.cluster]


# -- results as plain values ------------------------------------------------------------------------------------------

_TOP = 5
"""Results of each policy in the list of disagreements."""


def evaluation_rows(policies: list[dict[str, Any]], evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return a row for each evaluated policy, with all gates of the policy."""
    rows = []
    # Refused policies come last and have no gates.
    for row, result in zip(policies, evaluation.rows, strict=False):
        gates = [
            {
                "name": g.name,
                "shown": g.shown,
                "asked": g.threshold,
                "state": g.state,
                "finding": g.finding,
                "advice": g.advice,
                "more": g.more,
            }
            for g in (result.measured.gates if result.measured is not None else result.closed)
        ]
        rows.append({**row, "gates": gates})
    return rows


def name_of(policy: PolicyLike) -> str:
    """Return the name of a pack, file or column, or the text of another policy."""
    if isinstance(policy, pl.Expr):
        return clip(str(policy))
    if isinstance(policy, str) and "(" not in policy and not policy.endswith(".hy"):
        return policy
    read = read_policy(policy)
    return read.name if isinstance(read, Pack) else read.name or clip(read.text)


def top_of(disagreement: Disagreement, side: int) -> list[dict[str, Any]]:
    """Return one policy's top five memories, with their ranks under the other policy."""
    own = sorted(
        (
            (rank, item)
            for item in disagreement.items
            if (rank := item.ranks[side]) is not None and rank <= _TOP
        ),
        key=lambda ranked: ranked[0],
    )
    return [
        {
            "memory": str(item.memory),
            "text": item.text and item.text[:MOST_TEXT],
            "rank": rank,
            "other": item.ranks[1 - side],
        }
        | {"shown": item.shown, "reward": item.reward}
        for rank, item in own
    ]


def by_day(track: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the last row of each day, or every row of a log without times."""
    if "at" not in track.columns:
        return track.with_columns(day=pl.col("recalls").cast(pl.String)).to_dicts()
    days = track.group_by(day=pl.col("at").dt.date().cast(pl.String), maintain_order=True).last()
    return days.drop("at").sort("day").to_dicts()


def plain(value: Any) -> Any:
    """Convert a value to JSON: null for infinite numbers, and texts for other types."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)

"""Evaluation board: which policy is better on a log, what that rests on, and what would tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, cast

import polars as pl
import traitlets

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.policies import ChallengeDesign, Pack, load_pack, pack_names
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
from memlab.ui.widgets._widget import WorkingWidget, synced

__all__ = ["EvaluationBoard", "by_day", "evaluation_rows", "name_of", "plain", "top_of"]

_AT_ONCE = 500
"""Recalls up to which the board evaluates when it is first shown; of more it waits to be asked."""
_APART = 6
"""Recalls that are shown of those on which two policies differ."""
_EXTRA = (1, 2, 3, 4, 5)

Part = Literal["evaluation", "differences", "plan", "challenge"]


class EvaluationBoard(WorkingWidget, bundle="board"):
    """What each policy would have been worth on a log: values with intervals, gates, disagreements, a planner.

    ``policies`` are names of packs (of a log without a lab: of its columns of scores), the active pack and two others
    unless given; ``missing``, ``horizon`` and ``cluster`` are those of ``memlab.evaluate``, empty for what it takes
    unless given. ``pair`` names the two of which the disagreements are shown. What is set here is evaluated when a
    browser shows it, in a thread; ``evaluate`` does it at once. ``evaluation``, ``plan`` and ``verdicts`` are what
    was found last, None before.

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
        policies: str | Pack | Sequence[str | Pack] | None = None,
        *,
        missing: Literal["censor", "inverse", "bounds", "zero"] | None = None,
        horizon: str | None = None,
        cluster: str | None = None,
    ) -> None:
        self._log = slates if isinstance(slates, Slates) else None
        self._number = 0
        """Of evaluations that were handed over."""
        lab = cast("Lab | None", slates.lab) if isinstance(slates, Slates) else slates
        given = [policies] if isinstance(policies, str | Pack) else policies
        known = self._log.policies if lab is None and self._log is not None else pack_names()
        chosen: dict[str, str | Pack] = {}
        for policy in given or (*(() if lab is None else (lab.policies.pack, "memlab")), *known):
            chosen.setdefault(name_of(policy), policy)
            if not given and len(chosen) == 3:
                break
        self._named: dict[str, str | Pack | None] = {**dict.fromkeys(known), **chosen}
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
        """The lab's name, or what stands for it."""
        return "a log" if self.lab is None else super().where

    def evaluate(self) -> Evaluation:
        """Evaluate what is set, at once; MemlabError where ``memlab.evaluate`` refuses."""
        self.answer_begin("evaluation")
        self.finish()
        assert self.evaluation is not None
        return self.evaluation

    def refresh(self) -> None:
        """Count again; what was evaluated stays until somebody asks."""
        self._look()

    def fill(self) -> None:
        """Evaluate, plan, and look at the challenge if there is one."""
        self.evaluate()
        self.answer_begin("plan")
        if self._about["challengers"]:
            self.answer_begin("challenge")
        self.finish()

    def page(self) -> str:
        """The leaderboard as a table."""
        return super().page() if self.evaluation is None else self.evaluation._repr_html_()

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_begin(self, part: Part) -> None:
        """Find out one part of what is set; ``progress`` says how far that is."""
        settings = self._settings()
        key = (tuple(self.policies), *settings.values(), self._head())
        specs = [self._named.get(name) or name for name in self.policies]
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
        self, policy: str, design: ChallengeDesign, extra: int, rate: float, reason: str
    ) -> None:
        """Let a pack stand against the live one from the next recall on."""
        if self.lab is None:
            raise InputError("A log cannot be challenged: open the lab that it came from.")
        self.lab.challenge(
            self._named.get(policy) or policy, design=design, extra=extra, rate=rate, reason=reason
        )
        self._look()

    # -- finding out --------------------------------------------------------------------------------------------

    def _slates(self) -> Slates:
        return self.lab.slates() if self._log is None else self._log

    def _head(self) -> int:
        return 0 if self.lab is None else self.lab.io.store.journal.head

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) or None for name in ("missing", "horizon", "cluster")}

    def _look(self) -> None:
        """What there is to evaluate."""
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
            else [one.name for one in self.lab.policies.challenges],
            "challenged": "challenge" in log.decisions.collect_schema(),
            "lab": self.lab is not None,
            "atOnce": counted <= _AT_ONCE,
            "head": self._head(),
        }

    def _evaluated(self, found: Evaluation) -> None:
        said = found.to_dict()
        rows = evaluation_rows(said.pop("policies"), found)
        self._number += 1
        with self.hold_sync():
            self.evaluation, self.fault = found, ""
            self._evaluation = plain(
                {**said, "rows": rows, "baseline": found.baseline, "key": self._key()}
            )
            names = [row.policy for row in found.rows]
            if not (len(self.pair) == 2 and set(self.pair) <= set(names)):
                self.pair = list(found.pair or ())
            self._differ()

    def _differ(self) -> None:
        if self.evaluation is None or len(self.pair) != 2:
            self._differences = {}
            return
        (a, b), found = self.pair, self.evaluation
        self.work(
            "compare",
            (self._number, a, b),
            lambda: found.disagreements(a, b, _APART),
            self._differed,
        )

    def _differed(self, found: Any) -> None:
        recalls = [
            {
                "decision": str(one.decision),
                "query": one.query,
                "shared": one.shared,
                "heads": [top_of(one, 0), top_of(one, 1)],
            }
            for one in found
        ]
        self._differences = plain({"a": found.a, "b": found.b, "recalls": recalls})

    def _planned(self, found: Plan) -> None:
        self.plan, rows = found, found.frame.to_dicts()
        about = {
            "baseline": found.baseline,
            "recalls": found.recalls,
            "notes": list(found.notes),
            "best": found.best,
        }
        self._plan = plain({**about, "designs": rows, "key": self._key()})

    def _judged(self, found: Verdicts) -> None:
        self.verdicts = found
        said = found.to_dict()
        for row, one in zip(said["verdicts"], found, strict=True):
            row["days"] = by_day(one.track)
        self._challenge = plain({**said, "key": self._key()})

    def _key(self) -> list[Any]:
        """What a result was found by: the page says where it is of other settings."""
        return [list(self.policies), self.missing, self.horizon, self.cluster]


# -- results as plain values ------------------------------------------------------------------------------------------

_TOP = 5


def evaluation_rows(policies: list[dict[str, Any]], found: Evaluation) -> list[dict[str, Any]]:
    """The ``policies`` of an evaluation that have a row, each with all of its gates."""
    rows = []
    # what was refused comes last, and has no gates
    for row, one in zip(policies, found.rows, strict=False):
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
            for g in (one.measured.gates if one.measured is not None else one.closed)
        ]
        rows.append({**row, "gates": gates})
    return rows


def name_of(policy: str | Pack) -> str:
    """What a policy is called: a pack that is given as a text has its name within."""
    return (
        load_pack(policy).name
        if isinstance(policy, Pack) or policy.lstrip().startswith("(pack")
        else policy
    )


def top_of(one: Disagreement, side: int) -> list[dict[str, Any]]:
    """The top five under one of two policies, each with its rank under the other."""
    own = sorted(
        (
            (rank, item)
            for item in one.items
            if (rank := item.ranks[side]) is not None and rank <= _TOP
        ),
        key=lambda found: found[0],
    )
    return [
        {"memory": str(item.memory), "text": item.text, "rank": rank, "other": item.ranks[1 - side]}
        | {"shown": item.shown, "reward": item.reward}
        for rank, item in own
    ]


def by_day(track: pl.DataFrame) -> list[dict[str, Any]]:
    """A sequence as it stood at the end of each day; of a log without times, after each recall."""
    if "at" not in track.columns:
        return track.with_columns(day=pl.col("recalls").cast(pl.String)).to_dicts()
    days = track.group_by(day=pl.col("at").dt.date().cast(pl.String), maintain_order=True).last()
    return days.drop("at").sort("day").to_dicts()


def plain(value: Any) -> Any:
    """A value for JSON: what is no finite number is null, what is no plain value is said."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)

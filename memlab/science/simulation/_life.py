"""Simulate a world in a lab, with a complete log and the ground truth."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Annotated, Literal

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.arrays import Floats, Values
from memlab.kernel.base.clock import DAY, ManualClock, Micros
from memlab.kernel.base.printable import printable
from memlab.kernel.base.progress import bar
from memlab.kernel.embedding import EmbedderSpec
from memlab.kernel.policies import FEATURES, Pack, as_pack, as_packs, load_pack
from memlab.kernel.recall import Hit, Recaller
from memlab.kernel.slates import Slates
from memlab.kernel.verbs.recalling.past import Past
from memlab.science.simulation._events import (
    MessageEvent,
    QuestionEvent,
    Script,
    generator,
    utilities,
)
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab


@dataclass(frozen=True)
class Life:
    """A finished simulated run: its lab, its log and its ground truth.

    It is made by ``live``. Close it, or use it in a ``with`` statement.

    Parameters
    ----------
    world
        The script of the run.
    lab
        The lab, still open.
    slates
        The log of the run.
    questions
        The question of each logged recall, by the id of the recall.

    Examples
    --------
    >>> from memlab.science.simulation import World
    >>> world = World("tiny", days=3, projects=2, messages_per_day=6, questions_per_day=3)
    >>> with live(world) as life:
    ...     values = life.earned(of="utility")
    >>> values.columns
    ['number', 'project', 'value']
    """

    world: Script
    lab: Lab
    slates: Slates
    questions: dict[int, QuestionEvent]
    _utilities: Floats

    # Cached, because it joins all candidates.
    @cached_property
    def worth(self) -> pl.DataFrame:
        """The true ``utility`` and expected ``reward`` of every logged candidate."""
        pools = self.slates.candidates.select("decision", "memory_id").collect()
        utility = self._utility(pools["decision"].to_numpy(), pools["memory_id"].to_numpy())
        return pools.with_columns(utility=utility, reward=self.world.user.reward(utility))

    @checked
    def truth(
        self,
        policy: str | Path | Pack | pl.Expr,
        *,
        of: Literal["reward", "utility"] = "reward",
        how: Literal["auto", "rescore", "recall"] = "auto",
    ) -> float:
        """Return the true value of a policy on the logged recalls.

        The value is the mean over recalls of the summed true rewards, or utilities, of the policy's
        top ``limit`` memories. A pack that shows fewer memories has a lower value.

        Parameters
        ----------
        policy
            A pack (name, path, text or object), or a Polars expression over the logged
            candidates.
        of
            "reward" (the expected reward, as if users always gave feedback) or "utility".
        how
            "rescore" ranks the logged pool again; "recall" repeats each recall on the earlier
            state. "auto" re-scores if the log has all features that the pack's recall-score reads.

        Returns
        -------
        float
            The mean value per recall.

        Raises
        ------
        InputError
            If ``how`` is "recall" for an expression.

        Examples
        --------
        >>> from memlab.science.simulation import World
        >>> world = World("tiny", days=3, projects=2, messages_per_day=6, questions_per_day=3)
        >>> import polars as pl
        >>> with live(world) as life:
        ...     best = life.truth("memlab", of="utility", how="rescore")
        ...     worst = life.truth(pl.lit(-1.0), of="utility")
        >>> best > worst
        True
        """
        if isinstance(policy, pl.Expr):
            if how == "recall":
                raise InputError(
                    'how="recall" repeats recalls, which needs a pack. An expression can '
                    "only re-score the logged pool."
                )
            results = self._rescore(policy)
        else:
            pack = load_pack(policy)
            rescore = how == "rescore" or (how == "auto" and self._can_rescore(pack))
            results = self._rescore(pack) if rescore else self._repeat_recalls(pack)
        utility = self._utility(results["decision"].to_numpy(), results["memory_id"].to_numpy())
        values = utility if of == "utility" else self.world.user.reward(utility)
        return float(values.sum() / len(self.questions))

    @checked
    def earned(self, *, of: Literal["reward", "utility"] = "reward") -> pl.DataFrame:
        """Return the true value of the results of each question.

        Probes do not count, because the pack did not choose them.

        Parameters
        ----------
        of
            "reward" or "utility", as for ``truth``.

        Returns
        -------
        DataFrame
            A row for each question, with ``number``, ``project`` and ``value``.
        """
        results = (
            self.slates.exposures.filter(~pl.col("probe")).select("decision", "memory_id").collect()
        )
        utility = self._utility(results["decision"].to_numpy(), results["memory_id"].to_numpy())
        values = results.with_columns(
            value=utility if of == "utility" else self.world.user.reward(utility)
        )
        sums = dict(values.group_by("decision").agg(pl.col("value").sum()).iter_rows())
        rows = [
            (question.number, question.project, sums.get(decision, 0.0))
            for decision, question in self.questions.items()
        ]
        return pl.DataFrame(
            rows,
            schema={"number": pl.Int64, "project": pl.String, "value": pl.Float64},
            orient="row",
        )

    def logged(self) -> pl.DataFrame:
        """Return each pack's mean observed reward during its active time.

        Packs were live at different times and for different questions, so these figures are
        confounded: they do not show which pack is better.

        Returns
        -------
        DataFrame
            A row for each pack, with ``pack``, ``decisions`` and ``value``: the mean reward of a
            result times the number of results per recall.
        """
        questions = self.slates.decisions.select("decision", "pack", "limit").sort("decision")
        exposed = questions.join(
            self.slates.exposures, on="decision", how="inner", maintain_order="left"
        )
        results = exposed.filter(~pl.col("probe"))
        rewards = self.slates.feedback.select("decision", "memory_id", "reward")
        return (
            results.join(rewards, on=["decision", "memory_id"], how="left", maintain_order="left")
            .group_by("pack", maintain_order=True)
            .agg(
                decisions=pl.col("decision").n_unique(),
                value=pl.col("reward").mean() * pl.len() / pl.col("decision").n_unique(),
            )
            .collect()
        )

    def close(self) -> None:
        """Close the lab of the run."""
        self.lab.close()

    def __enter__(self) -> Life:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return printable(
            f"<Life of {self.world.name}: {len(self.lab):,} memories, {len(self.questions):,} recalls>"
        )

    # -- internals --------------------------------------------------------------------------------------------

    def _utility(self, decisions: Values, memories: Values) -> Floats:
        """Return the true utility of each memory for the question of its recall."""
        numbers = np.array(list(self.questions), dtype=np.int64)
        return np.asarray(self._utilities[np.searchsorted(numbers, decisions), memories - 1])

    # Cached, because each policy re-scores the same candidates.
    @cached_property
    def _frame(self) -> pl.DataFrame:
        """The logged candidates of a simulated run, with each recall's limit."""
        limits = self.slates.decisions.select("decision", "limit")
        return self.slates.candidates.join(limits, on="decision", how="inner").collect()

    @cached_property
    def _logging_packs(self) -> tuple[Pack, ...]:
        """The packs under which the simulated run logs recalls, as `Pack` objects."""
        return tuple(load_pack(pack) for _, pack in self.world.packs)

    def _can_rescore(self, pack: Pack) -> bool:
        """Return whether logged features suffice to re-score the log under another pack.

        The log must have the features of the pack's recall-score, computed as the pack would
        compute them.
        """
        # A feature depends on settings and slots, so these must be the same in every pack that logged.
        read = pack.policies["recall-score"].inputs
        needed = {name for feature in read for name in FEATURES[feature].depends}
        on_demand = {feature for feature in read if FEATURES[feature].on_demand}
        live = {
            (row[0], row[1])
            for row in self.slates.decisions.select("pack", "pack_hash").collect().iter_rows()
        }
        logging = [
            other
            for other in (*self._logging_packs, self.lab.policies.pack)
            if (other.name, other.hash) in live
        ]
        if len({other.hash for other in logging}) < len(live):
            return False
        if any(not on_demand <= set(other.policies["recall-score"].inputs) for other in logging):
            return False
        return all(
            _find_decider(pack, name) == _find_decider(other, name)
            for other in logging
            for name in needed
        )

    def _rescore(self, policy: Pack | pl.Expr) -> pl.DataFrame:
        """Rank the logged candidates under a policy, and return the top-k of each recall."""
        if isinstance(policy, pl.Expr):
            score = policy.cast(pl.Float64)
            scored = self._frame.select("decision", "memory_id", "limit", score.alias("_score"))
        else:
            values = policy.policies["recall-score"].columns(self._frame, by="decision")
            scored = self._frame.select("decision", "memory_id", "limit").with_columns(
                values.alias("_score")
            )
        finite = scored.filter(pl.col("_score").is_not_nan() & (pl.col("_score") > -np.inf))
        best = finite.sort("decision", "_score", "memory_id", descending=[False, True, False])
        return best.filter(pl.int_range(pl.len()).over("decision") < pl.col("limit"))

    def _repeat_recalls(self, pack: Pack) -> pl.DataFrame:
        """Repeat each recall under a pack, on the lab's state before the recall.

        Returns the memories that each recall shows.
        """
        decisions = self.slates.decisions.select("decision").sort("decision").collect()["decision"]
        past = Past(self.lab.io.store.journal, Recaller(self.lab.io.embedder))
        results: list[tuple[int, int]] = []
        for decision in decisions:
            results += [(decision, memory) for memory in past.recall(decision, pack).shown]
        return pl.DataFrame(
            results, schema={"decision": pl.Int64, "memory_id": pl.Int64}, orient="row"
        )


def _find_decider(pack: Pack, name: str) -> object:
    """Return the hash of a pack's policy of this name, or otherwise the pack's setting, or None."""
    return pack.policies[name].hash if name in pack.policies else pack.settings.get(name)


@checked
def live(
    world: Script,
    *,
    pack: str | Path | Pack | None = None,
    challengers: Sequence[str | Path | Pack] = (),
    path: str | Path | None = None,
    embedder: EmbedderSpec = None,
    every_days: Annotated[float, Within(0, 1_000_000)] = 0.0,
    progress: bool = False,
) -> Life:
    """Simulate a world in a lab, with messages, recalls and feedback at their times.

    Messages, questions and the user's reactions depend on the world alone. Feedback that is due
    after the last event is missing, so the latest recalls of the log lack some feedback. If the
    pack merged messages into one memory, the memory has the maximum of their utilities.

    Parameters
    ----------
    world
        A ``World``, a ``Transcript`` or another script.
    pack
        The pack that logs all the time, in any form, or a policy that replaces the policy of its slot in
        the default pack. By default the packs of the world log, each from its day.
    challengers
        The packs or policies that challenge the live pack from the first day on.
    path
        A folder for the lab; in memory by default.
    embedder
        The embedder of the lab.
    every_days
        The interval of upkeep (``lab.upkeep.maintain``) in simulated days; 0 for no upkeep.
    progress
        Whether to show a progress bar.

    Returns
    -------
    Life
        The run, with its lab open.

    Raises
    ------
    InputError
        If the lab at ``path`` has memories, or the script has no messages or no questions.

    Examples
    --------
    >>> from memlab.science.simulation import World
    >>> world = World("tiny", days=3, projects=2, messages_per_day=6, questions_per_day=3)
    >>> with live(world) as life:
    ...     life.slates.decisions.collect().height == len(life.questions)
    True
    """
    events = world.events()
    messages = [event for event in events if isinstance(event, MessageEvent)]
    if not messages or not any(isinstance(event, QuestionEvent) for event in events):
        raise InputError(
            f"The world {world.name} has no messages or no questions, so there is nothing to simulate. Pass a script "
            "with both."
        )
    clock = ManualClock(events[0].at)
    lab = open_lab(path, embedder=embedder, clock=clock, seed=world.seed)
    try:
        if len(lab):
            raise InputError(
                f"The lab {path} already has {len(lab):,} memories. Pass a path without a lab."
            )
        packs = (
            [(0, as_pack(pack))]
            if pack is not None
            else [(day, load_pack(spec)) for day, spec in world.packs]
        )
        rivals = as_packs(challengers)
        questions, utilities_by_question = _run_events(
            lab, clock, world, packs, rivals, round(every_days * DAY), progress
        )
        return Life(world, lab, lab.slates(), questions, utilities_by_question)
    except BaseException:
        lab.close()
        raise


def _run_events(
    lab: Lab,
    clock: ManualClock,
    world: Script,
    packs: Sequence[tuple[int, Pack]],
    challengers: Sequence[Pack],
    every: Micros,
    progress: bool,
) -> tuple[dict[int, QuestionEvent], Floats]:
    """Process the events of a script in temporal order.

    ``packs`` become active on their days, and ``every`` is the time between upkeeps (0: none). Returns
    the question of each logged recall, and the utility of every memory for each of these questions.
    """
    # Feedback and upkeep that are due come before each event, in the order of simulated time.
    events = world.events()
    index = {
        event.ref: index
        for index, event in enumerate(event for event in events if isinstance(event, MessageEvent))
    }
    first_day = events[0].at // DAY
    upcoming = sorted(packs, key=lambda item: item[0], reverse=True)
    stored = _Messages(lab)
    feedback = _PendingFeedback(lab, clock)
    upkeep = events[0].at + every
    questions: dict[int, QuestionEvent] = {}
    rows: list[Floats] = []
    with bar(progress, len(events), unit="event", desc="simulating") as step:
        for event in events:
            while upcoming and event.at // DAY - first_day >= upcoming[-1][0]:
                clock.set(event.at)
                lab.policies.use(
                    upcoming.pop()[1], reason=f"live from day {event.at // DAY - first_day}"
                )
                if not lab.policies.challenges:
                    for pack in challengers:
                        lab.challenge(pack)
            while every and upkeep <= event.at:
                feedback.give(upkeep)
                clock.set(upkeep)
                lab.upkeep.maintain(progress=False)
                upkeep += every
            feedback.give(event.at)
            clock.set(event.at)
            if isinstance(event, MessageEvent):
                stored.waiting.append(event)
            else:
                stored.remember()
                hits = lab.recall(event.text, project=event.project, explore=True)
                utility = utilities(event, index, len(index))
                reactions = world.user.react(
                    utility, generator(world.seed, f"feedback {event.number}")
                )
                for hit in hits:
                    if hit.id not in stored.messages:
                        continue  # A summary by the pack has no words of the user's, so no utility.
                    row = max(stored.messages[hit.id], key=lambda message: utility[message])
                    if reactions.answered[row]:
                        feedback.add(
                            event.at + int(reactions.delay[row]),
                            hit,
                            success=bool(reactions.success[row]),
                        )
                if hits.decision is not None:
                    questions[hits.decision] = event
                    rows.append(utility)
            step(1)
        stored.remember()
    return questions, stored.worth(list(questions.values()), rows)


class _Messages:
    """The messages so far, and the memory of each: a pack may merge several into one."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._count = 0
        self.waiting: list[MessageEvent] = []
        self.messages: dict[int, list[int]] = {}

    def remember(self) -> None:
        """Remember all pending messages together, and finish background linking."""
        if not self.waiting:
            return
        for memory in self._lab.remember(
            [message.row() for message in self.waiting], chain=True
        ).standing:
            self.messages.setdefault(memory, []).append(self._count)
            self._count += 1
        self._lab.graph.link_waiting()
        self.waiting = []

    def worth(self, questions: Sequence[QuestionEvent], utilities: Sequence[Floats]) -> Floats:
        """Return the utility of each memory for each question, f64[questions, memories].

        A memory has the maximum utility of its messages.
        """
        table = np.full((len(questions), len(self._lab)), -np.inf)
        standing = np.empty(self._count, dtype=np.int64)
        for memory, messages in self.messages.items():
            standing[messages] = memory - 1
        for row, utility in enumerate(utilities):
            np.maximum.at(table[row], standing, utility)
        others = np.array([[question.otherwise] for question in questions])
        return np.asarray(np.where(np.isinf(table), others, table))


class _PendingFeedback:
    """Feedback that the simulated user gives at a later time."""

    def __init__(self, lab: Lab, clock: ManualClock) -> None:
        self._lab, self._clock = lab, clock
        self._heap: list[tuple[Micros, int, Hit, bool]] = []
        self._count = 0

    def add(self, at: Micros, hit: Hit, *, success: bool) -> None:
        """Schedule feedback on a hit at a time."""
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, hit, success))

    def give(self, until: Micros) -> None:
        """Record all feedback that is due up to a time, in temporal order."""
        while self._heap and self._heap[0][0] <= until:
            at, _, hit, success = heapq.heappop(self._heap)
            self._clock.set(at)
            self._lab.feedback(hit, "success" if success else "fail", source="simulated user")

"""A life: a world lived in a lab through its public verbs, with everything logged and the truth kept beside it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import Within, checked
from memlab.kernel.base.clock import DAY, ManualClock, Micros
from memlab.kernel.base.printable import printable
from memlab.kernel.base.progress import bar
from memlab.kernel.embedding import EmbedderSpec
from memlab.kernel.policies import FEATURES, Pack, load_pack
from memlab.kernel.recall import Hit, Recaller
from memlab.kernel.slates import Slates
from memlab.kernel.verbs.recalling.asking import Past
from memlab.science.simulation._events import (
    MessageEvent,
    QuestionEvent,
    Script,
    generator,
    utilities,
)
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab

__all__ = ["Life", "live"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Life:
    """A world that was lived: its lab (still open), its slates, and what every candidate was truly worth.

    ``questions`` has the question of each logged decision. Close it, or use it in a ``with``.
    """

    world: Script
    lab: Lab
    slates: Slates
    questions: dict[int, QuestionEvent]
    _utilities: Floats

    @cached_property
    def worth(self) -> pl.DataFrame:
        """``decision``, ``memory_id``, ``utility`` and ``reward`` (expected of feedback) of every logged candidate."""
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
        """The true value on logged recalls of a pack, or of an expression over the logged candidates.

        It is the mean over the logged decisions of what the ``limit`` memories that the policy puts first are worth
        together: their expected rewards, each as if feedback came for certain, or their utilities. "rescore" orders
        the logged pool again; "recall" asks again on the state before each decision; "auto" rescores where all features
        that the pack's recall-score reads are those that were logged. Packs that showed fewer are worth less.

        >>> life.truth("memlab"), life.truth(pl.col("similarity"))       # doctest: +SKIP
        """
        if isinstance(policy, pl.Expr):
            if how == "recall":
                raise InputError("An expression can only rescore; to recall again, give a pack.")
            tops = self._rescored(policy)
        else:
            pack = load_pack(policy)
            rescore = how == "rescore" or (how == "auto" and self._rescorable(pack))
            tops = self._rescored(pack) if rescore else self._recalled(pack)
        utility = self._utility(tops["decision"].to_numpy(), tops["memory_id"].to_numpy())
        values = utility if of == "utility" else self.world.user.reward(utility)
        return float(values.sum() / len(self.questions))

    @checked
    def earned(self, *, of: Literal["reward", "utility"] = "reward") -> pl.DataFrame:
        """What the head that was shown was worth, question by question: ``number``, ``project``, ``value``.

        In the unit of ``truth``. Probes do not count: they are not what the pack chose.
        """
        head = (
            self.slates.exposures.filter(~pl.col("probe")).select("decision", "memory_id").collect()
        )
        utility = self._utility(head["decision"].to_numpy(), head["memory_id"].to_numpy())
        worth = head.with_columns(
            value=utility if of == "utility" else self.world.user.reward(utility)
        )
        sums = dict(worth.group_by("decision").agg(pl.col("value").sum()).iter_rows())
        rows = [
            (one.number, one.project, sums.get(decision, 0.0))
            for decision, one in self.questions.items()
        ]
        return pl.DataFrame(
            rows,
            schema={"number": pl.Int64, "project": pl.String, "value": pl.Float64},
            orient="row",
        )

    def logged(self) -> pl.DataFrame:
        """The naive report: ``pack``, ``decisions``, and ``value``, the mean reward of the head times its size.

        It compares packs by what each earned while it was live, whatever it was asked then.
        """
        questions = self.slates.decisions.select("decision", "pack", "limit").sort("decision")
        shown = questions.join(
            self.slates.exposures, on="decision", how="inner", maintain_order="left"
        )
        head = shown.filter(~pl.col("probe"))
        rewards = self.slates.feedback.select("decision", "memory_id", reward=_success())
        return (
            head.join(rewards, on=["decision", "memory_id"], how="left", maintain_order="left")
            .group_by("pack", maintain_order=True)
            .agg(
                decisions=pl.col("decision").n_unique(),
                value=pl.col("reward").mean() * pl.len() / pl.col("decision").n_unique(),
            )
            .collect()
        )

    def close(self) -> None:
        """Close the lab."""
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

    # -- within -----------------------------------------------------------------------------------------------

    def _utility(self, decisions: NDArray[Any], memories: NDArray[Any]) -> Floats:
        known = np.array(list(self.questions), dtype=np.int64)
        return np.asarray(self._utilities[np.searchsorted(known, decisions), memories - 1])

    @cached_property
    def _frame(self) -> pl.DataFrame:
        limits = self.slates.decisions.select("decision", "limit")
        return self.slates.candidates.join(limits, on="decision", how="inner").collect()

    @cached_property
    def _logging(self) -> tuple[Pack, ...]:
        return tuple(load_pack(pack) for _, pack in self.world.packs)

    def _rescorable(self, pack: Pack) -> bool:
        """Whether the features of its recall-score are in the log, and what decides them is as it was."""
        read = pack.policies["recall-score"].inputs
        needed = {name for feature in read for name in FEATURES[feature].depends}
        on_demand = {feature for feature in read if FEATURES[feature].on_demand}
        live = {
            (row[0], row[1])
            for row in self.slates.decisions.select("pack", "pack_hash").collect().iter_rows()
        }
        logging = [
            other
            for other in (*self._logging, self.lab.policies.pack)
            if (other.name, other.hash) in live
        ]
        if len({other.hash for other in logging}) < len(live):
            return False
        if any(not on_demand <= set(other.policies["recall-score"].inputs) for other in logging):
            return False
        return all(
            _decides(pack, name) == _decides(other, name) for other in logging for name in needed
        )

    def _rescored(self, policy: Pack | pl.Expr) -> pl.DataFrame:
        if isinstance(policy, pl.Expr):
            score = policy.cast(pl.Float64)
            scored = self._frame.select("decision", "memory_id", "limit", score.alias("_score"))
        else:
            values = policy.policies["recall-score"].columns(self._frame, by="decision")
            scored = self._frame.select("decision", "memory_id", "limit").with_columns(
                values.alias("_score")
            )
        fit = scored.filter(pl.col("_score").is_not_nan() & (pl.col("_score") > -np.inf))
        best = fit.sort("decision", "_score", "memory_id", descending=[False, True, False])
        return best.filter(pl.int_range(pl.len()).over("decision") < pl.col("limit"))

    def _recalled(self, pack: Pack) -> pl.DataFrame:
        """The head of a fresh recall on the state before each decision."""
        decisions = self.slates.decisions.select("decision").sort("decision").collect()["decision"]
        past = Past(self.lab.io.store.journal, Recaller(self.lab.io.embedder))
        found: list[tuple[int, int]] = []
        for decision in decisions:
            found += [(decision, memory) for memory in past.recall(decision, pack).shown]
        return pl.DataFrame(
            found, schema={"decision": pl.Int64, "memory_id": pl.Int64}, orient="row"
        )


def _decides(pack: Pack, name: str) -> object:
    """The setting or the policy of this name; the embedder is one throughout a life."""
    return pack.policies[name].hash if name in pack.policies else pack.settings.get(name)


def _success() -> pl.Expr:
    return pl.coalesce("reward", (pl.col("outcome") == "success").cast(pl.Float64))


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
    """Live a world: remember what is said, recall what is asked, give feedback when it is due, all by the clock.

    The world's own packs log unless ``pack`` does for the whole time; ``challengers`` are compared with them from the
    first day (``lab.challenge``). What is said and asked, and how the user would
    react to each memory, depends on the world alone. Feedback that would come after the last event has not come: at
    the end of a log some windows are open. ``path`` is a directory for the lab; without one it is in memory. Upkeep
    (``lab.upkeep.maintain``) runs every ``every_days``, 0 for never. A memory into which the pack merged what was said
    is worth the most that any of it is worth.

    Raises InputError if the lab at ``path`` already holds memories.

    >>> from memlab.science.simulation import WORLDS, live
    >>> with live(WORLDS["differs"]) as life:                            # doctest: +SKIP
    ...     life.slates.decisions.collect()
    """
    events = world.events()
    messages = [event for event in events if isinstance(event, MessageEvent)]
    if not messages or not any(isinstance(event, QuestionEvent) for event in events):
        raise InputError(
            f"In the world {world.name} nothing is said or nothing is asked: there is no life to live."
        )
    clock = ManualClock(events[0].at)
    lab = open_lab(path, embedder=embedder, clock=clock, seed=world.seed)
    try:
        if len(lab):
            raise InputError(
                f"The lab {path} already holds {len(lab):,} memories. A life begins in a new lab."
            )
        packs = (
            [(0, load_pack(pack))]
            if pack is not None
            else [(day, load_pack(one)) for day, one in world.packs]
        )
        rivals = [load_pack(one) for one in challengers]
        questions, worth = _lived(
            lab, clock, world, packs, rivals, round(every_days * DAY), progress
        )
        return Life(world, lab, lab.slates(), questions, worth)
    except BaseException:
        lab.close()
        raise


def _lived(
    lab: Lab,
    clock: ManualClock,
    world: Script,
    packs: Sequence[tuple[int, Pack]],
    challengers: Sequence[Pack],
    every: Micros,
    progress: bool,
) -> tuple[dict[int, QuestionEvent], Floats]:
    """Live through the events; the question of each decision, and the utility of every memory for it."""
    events = world.events()
    place = {
        event.ref: index
        for index, event in enumerate(event for event in events if isinstance(event, MessageEvent))
    }
    begin = events[0].at // DAY
    ahead = sorted(packs, key=lambda item: item[0], reverse=True)
    held = _Held(lab)
    due = _Due(lab, clock)
    upkeep = events[0].at + every
    questions: dict[int, QuestionEvent] = {}
    worth: list[Floats] = []
    with bar(progress, len(events), unit="event", desc="living") as step:
        for event in events:
            while ahead and event.at // DAY - begin >= ahead[-1][0]:
                clock.set(event.at)
                lab.policies.use(ahead.pop()[1], reason=f"live from day {event.at // DAY - begin}")
                if not lab.policies.challenges:
                    for one in challengers:
                        lab.challenge(one)
            while every and upkeep <= event.at:
                due.give(upkeep)
                clock.set(upkeep)
                lab.upkeep.maintain(progress=False)
                upkeep += every
            due.give(event.at)
            clock.set(event.at)
            if isinstance(event, MessageEvent):
                held.waiting.append(event)
            else:
                held.remember()
                hits = lab.recall(event.text, project=event.project)
                utility = utilities(event, place, len(place))
                reactions = world.user.react(
                    utility, generator(world.seed, f"feedback {event.number}")
                )
                for hit in hits:
                    if hit.id not in held.messages:
                        continue  # what the pack made of several has no words of the user's
                    row = max(held.messages[hit.id], key=lambda message: utility[message])
                    if reactions.answered[row]:
                        due.add(
                            event.at + int(reactions.delay[row]),
                            hit,
                            success=bool(reactions.success[row]),
                        )
                if hits.decision is not None:
                    questions[hits.decision] = event
                    worth.append(utility)
            step(1)
        held.remember()
    return questions, held.worth(list(questions.values()), worth)


class _Held:
    """What was said, and which memory stands for each message: a pack may merge one into another."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._said = 0
        self.waiting: list[MessageEvent] = []
        self.messages: dict[int, list[int]] = {}

    def remember(self) -> None:
        """All that waits, at once; what a pack links in the background is linked by the next question."""
        if not self.waiting:
            return
        for memory in self._lab.remember([one.row() for one in self.waiting], chain=True).standing:
            self.messages.setdefault(memory, []).append(self._said)
            self._said += 1
        self._lab.graph.link_waiting()
        self.waiting = []

    def worth(self, questions: Sequence[QuestionEvent], utilities: Sequence[Floats]) -> Floats:
        """f64[questions, memories]: the utility of each memory, from those of the messages."""
        found = np.full((len(questions), len(self._lab)), -np.inf)
        standing = np.empty(self._said, dtype=np.int64)
        for memory, messages in self.messages.items():
            standing[messages] = memory - 1
        for row, utility in enumerate(utilities):
            np.maximum.at(found[row], standing, utility)
        rest = np.array([[question.otherwise] for question in questions])
        return np.asarray(np.where(np.isinf(found), rest, found))


class _Due:
    """Feedback on its way."""

    def __init__(self, lab: Lab, clock: ManualClock) -> None:
        self._lab, self._clock = lab, clock
        self._heap: list[tuple[Micros, int, Hit, bool]] = []
        self._count = 0

    def add(self, at: Micros, hit: Hit, *, success: bool) -> None:
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, hit, success))

    def give(self, until: Micros) -> None:
        """All that is due by then, in order."""
        while self._heap and self._heap[0][0] <= until:
            at, _, hit, success = heapq.heappop(self._heap)
            self._clock.set(at)
            self._lab.feedback(hit, "success" if success else "fail", source="simulated user")

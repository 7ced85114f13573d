"""``memlab.trial``: simulate the same run under each pack, and compare rewards.

A log shows how other packs would have done on its recalls, one step at a time. If memories change
by use, those that a pack shows influence its later recalls, so its value may rise or fall over
time. A trial measures this. It simulates the same messages and questions, at the same times, in a
separate lab for each pack.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import Count, Seed, Taken, Within, checked
from memlab.kernel.base.arrays import Floats
from memlab.kernel.base.clock import DAY
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.base.printable import count_of
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.embedding import EmbedderSpec
from memlab.kernel.policies import Pack, PolicyLike, as_packs
from memlab.science.batch import Workers, run_tasks
from memlab.science.evaluation import Estimate, Evaluation, cluster_interval
from memlab.science.simulation._events import (
    MessageEvent,
    QuestionEvent,
    Script,
    Transcript,
    from_conversations,
)
from memlab.science.simulation._life import Life, live
from memlab.science.simulation._world import World

_SEEDS = 5
"""The default number of simulated runs of a world.

Intervals over 5 seeds have 4 degrees of freedom, and the runs take minutes.
"""
_LEVEL = 0.05
"""The p-value below which packs are distinguished."""
# The scripts that a trial accepts, as a phrase for messages.
_WORLD = "a World, a Transcript, a list of its events, or the conversations that memlab.ingest.read_locomo returns"


@dataclass(frozen=True)
class _PackResult:
    """The result of one pack: its value, and its difference to the first pack."""

    pack: str
    hash: str
    value: float
    interval: Estimate | None
    difference: Estimate | None
    gap: float
    one_step: float | None


@dataclass(frozen=True, repr=False)
class Trial(Report):
    """The rewards per recall of packs in simulated runs; made by ``memlab.trial``.

    Packs are sorted by reward, best first.

    Parameters
    ----------
    world
        The name of the world or transcript.
    script_hash
        The SHA-256 digest of all events.
    seeds
        The seeds of the runs.
    days
        The number of days after which runs end; None if runs end with their last event.
    every_days
        The interval of upkeep in simulated days.
    of
        The quantity that is compared: "reward" or "utility".
    baseline
        The pack that the others are compared with.
    clusters
        The number and unit of the clusters of the intervals, such as "5 seeds".
    questions
        The number of questions in all runs together.
    lives
        A row for each pack and seed, with ``pack``, ``seed``, ``questions``, ``memories`` (their
        number at the end), ``used`` (the number of memories that a recall showed) and ``value``.

    Examples
    --------
    >>> from memlab.science.simulation import World
    >>> world = World("tiny", days=3, projects=2, messages_per_day=6, questions_per_day=3)
    >>> import memlab
    >>> result = memlab.trial(["memlab", "companion"], world, seeds=1, of="utility")
    >>> result.lives["pack"].to_list()
    ['memlab', 'companion']
    """

    world: str
    script_hash: str
    seeds: tuple[int, ...]
    days: int | None
    every_days: float
    of: str
    baseline: str
    clusters: str
    questions: int
    lives: pl.DataFrame = field(repr=False)
    _rows: tuple[_PackResult, ...] = field(repr=False)
    _more: str = field(default="", repr=False)
    """How to get more clusters, if there are few; "" otherwise."""

    def __len__(self) -> int:
        """Return the number of packs."""
        return len(self._rows)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row for each pack, best first.

        ``value`` has the bounds ``low`` and ``high``. ``difference`` is paired with ``baseline``
        and has the bounds ``difference_low`` and ``difference_high``; ``p`` is its p-value. Both
        are Bonferroni-adjusted. ``one_step`` is the value on a logged run, and ``one_step_difference``
        its difference to the baseline. ``verdict`` and ``hash`` follow.
        """
        others = max(1, len(self._rows) - 1)
        base = next(row for row in self._rows if row.pack == self.baseline)
        rows = []
        for row in self._rows:
            # All intervals of differences hold together, and each excludes 0 if and only if p is below the level.
            gap = row.difference and row.difference.at_level(1 - _LEVEL / others)
            p = None if gap is None or np.isnan(gap.p) else min(1.0, gap.p * others)
            ahead = None
            if row is not base and row.one_step is not None and base.one_step is not None:
                ahead = row.one_step - base.one_step
            rows.append(
                {
                    "pack": row.pack,
                    "value": row.value,
                    "low": _interval_end(row.interval, "low"),
                    "high": _interval_end(row.interval, "high"),
                    "difference": None if row is base else row.gap,
                    "difference_low": _interval_end(gap, "low"),
                    "difference_high": _interval_end(gap, "high"),
                    "p": p,
                    "one_step": row.one_step,
                    "one_step_difference": ahead,
                    "verdict": "baseline" if row is base else _name_verdict(row.gap, p),
                    "hash": row.hash,
                }
            )
        numbers = (
            "low",
            "high",
            "difference",
            "difference_low",
            "difference_high",
            "p",
            "one_step",
        )
        overrides = dict.fromkeys((*numbers, "one_step_difference"), pl.Float64)
        return pl.DataFrame(rows, schema_overrides=overrides, infer_schema_length=None)

    @property
    def sentence(self) -> str:
        """The finding in one sentence."""
        best = self._rows[0].pack
        better = self.frame.filter(pl.col("verdict") == "better")["pack"].to_list()
        worse = self.frame.filter(pl.col("verdict") == "worse")["pack"].to_list()
        if better:
            return (
                f"{best} has the highest reward; better than {self.baseline}: {', '.join(better)}."
            )
        if worse and len(worse) == len(self._rows) - 1:
            return f"{self.baseline} has the highest reward."
        few = f" {self.clusters} are too few to distinguish packs: {self._more}." * bool(self._more)
        return f"No pack is significantly better than {self.baseline}.{few}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """The sample, the method, and the packs whose values differ from one-step values."""
        unit = "expected reward" if self.of == "reward" else "utility"
        runs = "run" if len(self.seeds) == 1 else "runs"
        remarks = [
            f"{unit} of the results per recall; {self.questions:,} questions in {len(self.seeds)} simulated {runs} per "
            f"pack; 95% intervals over {self.clusters}; differences are paired by question; script {self.script_hash[:12]}"
        ]
        remarks += [
            f"{row['pack']} has {row['value']:.2f} in simulated runs, and a one-step estimate of {row['one_step']:.2f}."
            for row in self.frame.drop_nulls(["one_step", "low"]).iter_rows(named=True)
            if not row["low"] <= row["one_step"] <= row["high"]
        ]
        return tuple(remarks)

    def _display(self) -> object:
        stepped = any(row.one_step is not None for row in self._rows)
        columns: Columns = (
            ("pack", "{pack}"),
            ("simulated", "{value:.3f}"),
            ("interval", "[{low:.3f}, {high:.3f}]"),
            (f"vs. {self.baseline}", "{difference:+.3f}"),
            ("interval", "[{difference_low:+.3f}, {difference_high:+.3f}]"),
            ("p", "{p:.3f}"),
            *([("one step", "{one_step:.3f}")] if stepped else []),
            ("verdict", "{verdict}"),
        )
        headings, rows = format_rows(self.frame.iter_rows(named=True), columns)
        return self.sentence, Table("", headings, rows, self.remarks, left=(0, len(headings) - 1))

    def to_dict(self) -> dict[str, Any]:
        """Return the finding, the tables and the settings as JSON values.

        Returns
        -------
        dict
            The keys are ``headline``, ``packs``, ``lives``, ``notes`` and the settings.
        """
        return {
            "headline": self.sentence,
            "packs": self.frame.to_dicts(),
            "lives": self.lives.to_dicts(),
            "world": self.world,
            "script_hash": self.script_hash,
            "seeds": list(self.seeds),
            "days": self.days,
            "every_days": self.every_days,
            "of": self.of,
            "baseline": self.baseline,
            "clusters": self.clusters,
            "notes": list(self.remarks),
        }


def _read_script(world: Any) -> Script:
    """Convert the argument ``world`` of a trial to a script."""
    # Conversations are recognised by their attributes, because this package does not import the readers of files.
    if hasattr(world, "events") and hasattr(world, "seed"):
        script: Script = world
        return script
    if isinstance(world, Sequence) and world and not isinstance(world, str | bytes):
        if all(isinstance(item, MessageEvent | QuestionEvent) for item in world):
            return Transcript("events", tuple(sorted(world, key=lambda event: event.at)))
        if all(hasattr(item, "conversation") and hasattr(item, "questions") for item in world):
            turns = {item.conversation.name: item.conversation.rows() for item in world}
            questions = {
                item.conversation.name: [
                    {"text": question.text, "evidence": question.evidence}
                    for question in item.questions
                ]
                for item in world
            }
            return from_conversations(turns, questions)
    raise InputError(f"A trial simulates {_WORLD}, not {type(world).__name__}. Pass one of these.")


@checked
def trial(
    packs: PolicyLike,
    world: Annotated[Any, Taken(_WORLD, _read_script)],
    *,
    seeds: Annotated[int, Within(1, 10_000)] | Sequence[Seed] | None = None,
    days: Count | None = None,
    every_days: Annotated[float, Within(0, 1_000_000)] = 1.0,
    of: Literal["reward", "utility"] = "reward",
    beside: Life | Evaluation | None = None,
    embedder: EmbedderSpec = None,
    progress: bool = False,
    executor: Workers = None,
) -> Trial:
    """Run the same simulation under each pack, and compare rewards between packs.

    Parameters
    ----------
    packs
        At least two packs, each in any form, or policies that replace the policy of their slot in the
        default pack. The others are compared with the first.
    world
        A ``World`` or ``Transcript`` of ``memlab.simulation``, a list of its events, or labelled
        conversations.
    seeds
        The seeds of the runs, or their number, counted from the world's own seed. Each seed of a
        world is another run (5 by default). Each seed of a transcript is another user (by default
        only the transcript's own).
    days
        The number of days after which runs end. By default runs end with their last event.
    every_days
        The interval of upkeep in simulated days; 0 for no upkeep.
    of
        The quantity to compare: "reward" (the expected reward of the results) or "utility".
    beside
        A logged run, to add the one-step value of each pack. A ``Life`` has the exact value, an
        ``Evaluation`` an estimate. The one-step value counts as many results per recall as the log
        has, a simulated run as many as the pack's own ``limit``.
    embedder
        The embedder of the labs.
    progress
        Whether to show a progress bar.
    executor
        A number of processes, or an object with ``submit``, such as a ``dask.distributed.Client``.
        Each run of a pack is a task. Default: this thread.

    Returns
    -------
    Trial
        The rewards of the packs, with intervals and paired differences.

    Raises
    ------
    InputError
        If there are fewer than two packs, or the world has no questions.
    UnknownName, PolicyError
        If a pack does not exist or is invalid.
    WorkerLost
        If the executor does not return the result of a run.

    Notes
    -----
    Differences are paired by question. Intervals are over the seeds of a world. With one seed, or
    with a transcript, they are over projects; the projects of a transcript are its conversations.
    The labs are in memory and are closed at the end. ``live(world, pack=...)`` and
    ``memlab.compare`` show how a lab develops.

    Examples
    --------
    >>> from memlab.science.simulation import World
    >>> world = World("tiny", days=3, projects=2, messages_per_day=6, questions_per_day=3)
    >>> import memlab
    >>> result = memlab.trial(["memlab", "companion"], world, seeds=1)
    >>> result.baseline, result.frame.height
    ('memlab', 2)
    """
    chosen = _name_packs(as_packs(packs))
    script: Script = world
    scripts = [_limit_days(_set_seed(script, seed), days) for seed in _list_seeds(script, seeds)]
    # Runs are grouped by seed, so that all packs are simulated on one seed before the next.
    tasks = [(run, name, pack) for run in scripts for name, pack in chosen.items()]
    with bar(progress, len(tasks), unit="run", desc="simulating") as step:
        measured = run_tasks(partial(_simulate, embedder, every_days, of), tasks, executor, step)
    values: dict[str, list[Floats]] = {name: [] for name in chosen}
    for (_, name, _), (values_of_run, _) in zip(tasks, measured, strict=True):
        values[name].append(values_of_run)
    keys = [
        (run.seed, event.project or "")
        for run in scripts
        for event in run.events()
        if isinstance(event, QuestionEvent)
    ]
    whole = {name: np.concatenate(values_of_run) for name, values_of_run in values.items()}
    by_project = not isinstance(script, World) or len(scripts) == 1
    clusters = [project if by_project else seed for seed, project in keys]
    unit = "seed" if not by_project else "project" if isinstance(script, World) else "conversation"
    baseline = next(iter(chosen))
    rows = []
    for name, pack in chosen.items():
        interval, value = _estimate_mean(whole[name], clusters)
        difference_estimate, difference = _estimate_mean(whole[name] - whole[baseline], clusters)
        one_step = _find_one_step(beside, name, pack, of)
        rows.append(
            _PackResult(
                name,
                pack.hash,
                value,
                interval,
                None if name == baseline else difference_estimate,
                difference,
                one_step,
            )
        )
    rows.sort(key=lambda row: -row.value)
    columns = {"pack": pl.String, "seed": pl.Int64, "questions": pl.Int64, "memories": pl.Int64}
    return Trial(
        world=script.name,
        script_hash=hashlib.sha256(
            "\n".join(repr(run.events()) for run in scripts).encode()
        ).hexdigest(),
        seeds=tuple(run.seed for run in scripts),
        days=days,
        every_days=float(every_days),
        of=of,
        baseline=baseline,
        clusters=count_of(len(set(clusters)), unit),
        questions=len(keys),
        lives=pl.DataFrame(
            [row for _, row in measured],
            schema=columns | {"used": pl.Int64, "value": pl.Float64},
            orient="row",
        ),
        _rows=tuple(rows),
        _more=""
        if len(set(clusters)) >= _SEEDS
        else "add conversations"
        if not isinstance(script, World)
        else f"simulate more runs, such as seeds={_SEEDS}",
    )


def _simulate(
    embedder: EmbedderSpec,
    every_days: float,
    of: Literal["reward", "utility"],
    task: tuple[Script, str, Pack],
    step: Step,
) -> tuple[Floats, tuple[object, ...]]:
    """Simulate a script under a pack; return the reward or utility of each question, and a row of ``Trial.lives``."""
    run, name, pack = task
    with live(run, pack=pack, embedder=embedder, every_days=every_days) as life:
        earned = dict(life.earned(of=of).select("number", "value").iter_rows())
        values = np.array(
            [
                earned.get(event.number, 0.0)
                for event in run.events()
                if isinstance(event, QuestionEvent)
            ]
        )
        used = int((life.lab.memories["access"] > 0).sum())
        row = name, run.seed, len(values), len(life.lab), used, float(values.mean())
    step(1)
    return values, row


def _name_packs(packs: Sequence[Pack]) -> dict[str, Pack]:
    """Return packs by name; append the start of the hash to duplicate names."""
    if len({pack.hash for pack in packs}) < max(2, len(packs)):
        raise InputError(
            "A trial compares at least two packs, and all of them must differ. Pass different packs."
        )
    names = [pack.name for pack in packs]
    return {
        pack.name if names.count(pack.name) == 1 else f"{pack.name} [{pack.hash[:8]}]": pack
        for pack in packs
    }


def _list_seeds(script: Script, seeds: int | Sequence[int] | None) -> list[int]:
    """Return the seeds of the runs: a list as it is, or as many consecutive ones as ``seeds`` says.

    None means the default number of runs.
    """
    if seeds is None:
        seeds = _SEEDS if isinstance(script, World) else 1
    listed = (
        [script.seed + number for number in range(seeds)] if isinstance(seeds, int) else list(seeds)
    )
    if not listed or len(set(listed)) < len(listed):
        raise InputError(
            "seeds must be a number of runs, at least 1, or a list of different seeds."
        )
    return listed


def _set_seed(script: Script, seed: int) -> Script:
    """Return the script with another seed; raise InputError if its seed is fixed."""
    if seed == script.seed:
        return script
    if not isinstance(script, World | Transcript):
        raise InputError(
            f"The script {script.name} cannot change its seed. Set the seed of the script, and omit seeds."
        )
    return replace(script, seed=seed)


def _limit_days(script: Script, days: int | None) -> Script:
    """Return a world with ``days`` days, or another script cut after them; None changes nothing."""
    if days is None:
        return script
    if isinstance(script, World):
        return replace(script, days=days)
    events = script.events()
    first_events = tuple(event for event in events if event.at < events[0].at + days * DAY)
    return Transcript(script.name, first_events, 0, script.seed, script.user, tuple(script.packs))


def _estimate_mean(values: Floats, clusters: Sequence[str | int]) -> tuple[Estimate | None, float]:
    """Return the interval of the mean over clusters (None for a single cluster), and the mean."""
    interval = cluster_interval(values, clusters)
    return interval, float(values.mean()) if interval is None else interval.value


def _find_one_step(
    logged: Life | Evaluation | None, name: str, pack: Pack, of: Literal["reward", "utility"]
) -> float | None:
    """Return a pack's value on logged recalls, or None if it is unknown.

    The value is the true one for a simulated run, and an estimate for an evaluation.
    """
    if isinstance(logged, Life):
        return logged.truth(pack, of=of, how="recall")
    if logged is None:
        return None
    return next(
        (row.value.value for row in logged.rows if row.policy == name and row.value is not None),
        None,
    )


def _name_verdict(gap: float, p: float | None) -> str:
    """Return the verdict on a difference: "better", "worse" or, for a high p-value, "not separated".

    A p-value of None, for an untested difference, gives "no interval".
    """
    if p is None:
        return "no interval"
    if p >= _LEVEL:
        return "not separated"
    return "better" if gap > 0 else "worse"


def _interval_end(estimate: Estimate | None, name: Literal["low", "high"]) -> float | None:
    """Return a bound of an interval, or None without an interval or for an undefined bound."""
    value = None if estimate is None else getattr(estimate, name)
    return None if value is None or np.isnan(value) else float(value)

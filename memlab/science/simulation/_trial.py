"""``memlab.trial``: the same life under each pack, each with its own recalls and uses.

A log tells what other packs would have earned on the recalls that it holds: one step. A pack whose memory changes by
use lives on with what it showed, and may come to earn more or less. Only living tells: the same messages and questions,
at the same times, in a lab of its own for each pack.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import Count, Seed, Taken, Within, checked
from memlab.kernel.base.clock import DAY
from memlab.kernel.base.display import Columns, Report, Table, format_rows
from memlab.kernel.base.progress import bar
from memlab.kernel.embedding import EmbedderSpec
from memlab.kernel.policies import Pack, load_pack
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

__all__ = ["Trial", "trial"]

Floats = NDArray[np.float64]
_SEEDS = 5
_LEVEL = 0.05
_WORLD = "a World, a Transcript, a list of its events, or the conversations that memlab.ingest.read_locomo returns"


@dataclass(frozen=True)
class _Lived:
    """One pack: its value with its interval, and the difference to the first pack."""

    pack: str
    hash: str
    value: float
    interval: Estimate | None
    difference: Estimate | None
    gap: float
    one_step: float | None


@dataclass(frozen=True, repr=False)
class Trial(Report):
    """What packs earned a recall, each in lives of its own; best first.

    ``lives`` has a row for each pack and seed: ``pack``, ``seed``, ``questions``, ``memories`` (at the end),
    ``used`` (how many of them a recall has shown), ``value``. ``script_hash`` is that of what was said and asked in all
    of them; ``clusters`` says what the intervals are over.
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
    _rows: tuple[_Lived, ...] = field(repr=False)

    def __len__(self) -> int:
        """How many packs."""
        return len(self._rows)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row a pack, best first.

        ``pack``, ``value``, ``low``, ``high``, ``difference`` (to ``baseline``, paired), ``difference_low``,
        ``difference_high``, ``p`` (Bonferroni), ``one_step``, ``one_step_difference``, ``verdict``, ``hash``.
        """
        others = max(1, len(self._rows) - 1)
        base = next(row for row in self._rows if row.pack == self.baseline)
        rows = []
        for row in self._rows:
            gap = row.difference
            p = None if gap is None or np.isnan(gap.p) else min(1.0, gap.p * others)
            ahead = None
            if row is not base and row.one_step is not None and base.one_step is not None:
                ahead = row.one_step - base.one_step
            rows.append(
                {
                    "pack": row.pack,
                    "value": row.value,
                    "low": _end(row.interval, "low"),
                    "high": _end(row.interval, "high"),
                    "difference": None if row is base else row.gap,
                    "difference_low": _end(gap, "low"),
                    "difference_high": _end(gap, "high"),
                    "p": p,
                    "one_step": row.one_step,
                    "one_step_difference": ahead,
                    "verdict": "baseline" if row is base else _verdict(row.gap, p),
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
        """What living showed."""
        best = self._rows[0].pack
        better = self.frame.filter(pl.col("verdict") == "better")["pack"].to_list()
        worse = self.frame.filter(pl.col("verdict") == "worse")["pack"].to_list()
        if better:
            return f"{best} lives to earn most; better than {self.baseline}: {', '.join(better)}."
        if worse and len(worse) == len(self._rows) - 1:
            return f"{self.baseline} lives to earn most."
        return f"Nothing is shown to live better than {self.baseline}."

    @property
    def remarks(self) -> tuple[str, ...]:
        """How this was found, and where one step and a life part."""
        unit = "expected reward" if self.of == "reward" else "utility"
        said = [
            f"{unit} of the head, a recall; {self.questions:,} questions in {len(self.seeds)} "
            f"{'life' if len(self.seeds) == 1 else 'lives'} a pack; 95% intervals: clusters are {self.clusters}; "
            f"differences are paired question by question; script {self.script_hash[:12]}"
        ]
        said += [
            f"{row['pack']} lives to earn {row['value']:.2f} where one step promises {row['one_step']:.2f}."
            for row in self.frame.drop_nulls(["one_step", "low"]).iter_rows(named=True)
            if not row["low"] <= row["one_step"] <= row["high"]
        ]
        return tuple(said)

    def _display(self) -> object:
        stepped = any(row.one_step is not None for row in self._rows)
        columns: Columns = (
            ("pack", "{pack}"),
            ("lived", "{value:.3f}"),
            ("interval", "[{low:.3f}, {high:.3f}]"),
            (f"to {self.baseline}", "{difference:+.3f}"),
            ("interval", "[{difference_low:+.3f}, {difference_high:+.3f}]"),
            ("p", "{p:.3f}"),
            *([("one step", "{one_step:.3f}")] if stepped else []),
            ("verdict", "{verdict}"),
        )
        heads, rows = format_rows(self.frame.iter_rows(named=True), columns)
        return self.sentence, Table("", heads, rows, self.remarks, left=(0, len(heads) - 1))

    def to_dict(self) -> dict[str, Any]:
        """The finding, both tables and the settings, as JSON values."""
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


def _script(world: Any) -> Script:
    """What can be lived, from what was given."""
    if hasattr(world, "events") and hasattr(world, "seed"):
        script: Script = world
        return script
    if isinstance(world, Sequence) and world and not isinstance(world, str | bytes):
        if all(isinstance(one, MessageEvent | QuestionEvent) for one in world):
            return Transcript("events", tuple(sorted(world, key=lambda event: event.at)))
        if all(hasattr(one, "conversation") and hasattr(one, "questions") for one in world):
            turns = {one.conversation.name: one.conversation.rows() for one in world}
            questions = {
                one.conversation.name: [
                    {"text": asked.text, "evidence": asked.evidence} for asked in one.questions
                ]
                for one in world
            }
            return from_conversations(turns, questions)
    raise InputError(f"A trial lives {_WORLD}; not {type(world).__name__}.")


@checked
def trial(
    packs: Sequence[str | Path | Pack],
    world: Annotated[Any, Taken(_WORLD, _script)],
    *,
    seeds: Annotated[int, Within(1, 10_000)] | Sequence[Seed] | None = None,
    days: Count | None = None,
    every_days: Annotated[float, Within(0, 1_000_000)] = 1.0,
    of: Literal["reward", "utility"] = "reward",
    beside: Life | Evaluation | None = None,
    embedder: EmbedderSpec = None,
    progress: bool = False,
) -> Trial:
    """Live the same life under each pack, and compare what their recalls earned.

    ``packs`` are names, paths, texts or packs; the others are compared to the first. ``world`` is a ``World`` or a
    ``Transcript`` of ``memlab.simulation``, a list of its events, or labelled conversations. ``seeds`` are those of
    the lives, or how many of them there are, from the world's own on: of a world each is another life (five unless
    given), of a transcript another user (its own unless given). ``days`` cuts the lives short. Upkeep runs every
    ``every_days`` of simulated time, 0 for never.

    What a recall earned is the expected ``reward`` of its head, or the ``utility``, which the world knows. Differences
    are paired question by question; intervals are over seeds of a world; where there is one seed, or no world, over
    projects, which are the conversations of a transcript. ``beside`` is one life that was logged, whose slates tell the
    value by one step: a ``Life`` knows it exactly, an ``Evaluation`` has estimated it. A step shows as many as the log
    did, a life as many as the pack's own ``limit``. Each lab is in memory, and closed at the end;
    ``live(world, pack=...)`` and ``memlab.compare`` show how labs went over time.

    Raises InputError for fewer than two packs, or a world without questions; UnknownName, PolicyError.

    >>> from memlab.science.simulation import WORLDS
    >>> memlab.trial(["memlab", "workbench"], WORLDS["differs"], days=30)                          # doctest: +SKIP
    """
    chosen = _named([load_pack(pack) for pack in packs])
    script: Script = world
    scripts = [_cut(_seeded(script, seed), days) for seed in _seeds(script, seeds)]
    values: dict[str, list[Floats]] = {name: [] for name in chosen}
    keys: list[tuple[int, str]] = []
    lives: list[tuple[object, ...]] = []
    with bar(progress, len(scripts) * len(chosen), unit="life", desc="living") as step:
        for one in scripts:
            asked = [event for event in one.events() if isinstance(event, QuestionEvent)]
            keys += [(one.seed, event.project or "") for event in asked]
            for name, pack in chosen.items():
                with live(one, pack=pack, embedder=embedder, every_days=every_days) as life:
                    earned = dict(life.earned(of=of).select("number", "value").iter_rows())
                    found = np.array([earned.get(event.number, 0.0) for event in asked])
                    used = int((life.lab.memories["access"] > 0).sum())
                    lives.append(
                        (name, one.seed, len(asked), len(life.lab), used, float(found.mean()))
                    )
                values[name].append(found)
                step(1)
    whole = {name: np.concatenate(found) for name, found in values.items()}
    lone = not isinstance(script, World) or len(scripts) == 1
    clusters = [project if lone else seed for seed, project in keys]
    baseline = next(iter(chosen))
    rows = []
    for name, pack in chosen.items():
        interval, value = _mean(whole[name], clusters)
        gap, difference = _mean(whole[name] - whole[baseline], clusters)
        stepped = _one_step(beside, name, pack, of)
        rows.append(
            _Lived(
                name,
                pack.hash,
                value,
                interval,
                None if name == baseline else gap,
                difference,
                stepped,
            )
        )
    rows.sort(key=lambda row: -row.value)
    columns = {"pack": pl.String, "seed": pl.Int64, "questions": pl.Int64, "memories": pl.Int64}
    return Trial(
        world=script.name,
        script_hash=hashlib.sha256(
            "\n".join(repr(one.events()) for one in scripts).encode()
        ).hexdigest(),
        seeds=tuple(one.seed for one in scripts),
        days=days,
        every_days=float(every_days),
        of=of,
        baseline=baseline,
        clusters=f"{len(set(clusters)):,} {'projects' if lone else 'seeds'}",
        questions=len(keys),
        lives=pl.DataFrame(
            lives, schema=columns | {"used": pl.Int64, "value": pl.Float64}, orient="row"
        ),
        _rows=tuple(rows),
    )


def _named(packs: Sequence[Pack]) -> dict[str, Pack]:
    """Packs by name; of several of one name, with their hash."""
    if len({pack.hash for pack in packs}) < max(2, len(packs)):
        raise InputError("A trial compares at least two packs, each another.")
    names = [pack.name for pack in packs]
    return {
        pack.name if names.count(pack.name) == 1 else f"{pack.name} [{pack.hash[:8]}]": pack
        for pack in packs
    }


def _seeds(script: Script, seeds: int | Sequence[int] | None) -> list[int]:
    if seeds is None:
        seeds = _SEEDS if isinstance(script, World) else 1
    found = (
        [script.seed + number for number in range(seeds)] if isinstance(seeds, int) else list(seeds)
    )
    if not found or len(set(found)) < len(found):
        raise InputError("The seeds of a trial are at least one, each another.")
    return found


def _seeded(script: Script, seed: int) -> Script:
    if seed == script.seed:
        return script
    if not isinstance(script, World | Transcript):
        raise InputError(
            f"{script.name} is a script of its own: give it its seed, and no seeds here."
        )
    return replace(script, seed=seed)


def _cut(script: Script, days: int | None) -> Script:
    """The script's first days."""
    if days is None:
        return script
    if isinstance(script, World):
        return replace(script, days=days)
    events = script.events()
    kept = tuple(event for event in events if event.at < events[0].at + days * DAY)
    return Transcript(script.name, kept, 0, script.seed, script.user, tuple(script.packs))


def _mean(values: Floats, clusters: Sequence[object]) -> tuple[Estimate | None, float]:
    """The mean with its interval over clusters, none of a single one."""
    found = cluster_interval(values, clusters)
    return found, float(values.mean()) if found is None else found.value


def _one_step(
    beside: Life | Evaluation | None, name: str, pack: Pack, of: Literal["reward", "utility"]
) -> float | None:
    """The value on the recalls of one logged life; none where an evaluation withholds it."""
    if isinstance(beside, Life):
        return beside.truth(pack, of=of, how="recall")
    if beside is None:
        return None
    return next(
        (row.value.value for row in beside.rows if row.policy == name and row.value is not None),
        None,
    )


def _verdict(gap: float, p: float | None) -> str:
    if p is None:
        return "no interval"
    if p >= _LEVEL:
        return "not separated"
    return "better" if gap > 0 else "worse"


def _end(estimate: Estimate | None, name: Literal["low", "high"]) -> float | None:
    value = None if estimate is None else getattr(estimate, name)
    return None if value is None or np.isnan(value) else float(value)

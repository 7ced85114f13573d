"""Packs on labelled questions: what they find, how fast, and how sure one can be of it.

Every pack meets a lab of its own: a new one on disk, filled through the public API, so that nothing of one pack's run
can reach another's scores. All conversations live in that lab, each as its own project, and are asked about a day after
they ended, or when the question says. For a lab of one's own it is a copy.

Questions are asked twice. First without a log: a recall counts as an access, and a pack that prefers what was accessed
would otherwise answer the later questions by the earlier ones (measured on the demo's 36 questions: cascade's recall@5
is .60 without and .48 with). Then with the log, as an agent asks, and only then is the clock read.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Annotated, TypeAlias

import numpy as np
import polars as pl

from memlab.errors import NotALab
from memlab.kernel.base.arguments import AsGiven, Taken, Within, checked
from memlab.kernel.base.clock import ManualClock, When
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.embedding import EmbedderSpec
from memlab.kernel.journal import Journal, copy_journal
from memlab.kernel.policies import Pack, load_pack, pack_names
from memlab.kernel.recall import Hits
from memlab.science.bench._questions import (
    Asked,
    Held,
    Labelled,
    OwnQuestion,
    Plan,
    own_plan,
    own_questions,
    plan_of,
)
from memlab.science.bench._result import BenchResult, SystemResult
from memlab.science.evaluation import BASELINES, cluster_interval, judge, measure
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab

__all__ = ["bench_conversations", "bench_lab"]

_CUTS = (5, 10, 20)
_METRICS = (
    *(f"{kind}@{cut}" for kind in ("recall", "recall_any", "recall_all") for cut in _CUTS),
    "mrr@10",
    "ndcg@10",
)
_Packs: TypeAlias = "Iterable[str | Path | Pack] | None"
_Opened: TypeAlias = Callable[[Pack, Path], "tuple[Lab | _UnderPack, float | None]"]
"""A lab in a folder under a pack, and how many turns a second it took in, where it was filled."""


@checked
def bench_conversations(
    conversations: Annotated[
        Sequence[Labelled], Taken("what memlab.ingest.read_locomo(path) returns")
    ],
    *,
    packs: Iterable[str | Path | Pack] | None = None,
    baselines: bool = True,
    limit: Annotated[int, Within(max(_CUTS))] = 20,
    labels: Annotated[Mapping[str, Sequence[Labelled]], Taken("a name and conversations for each")]
    | None = None,
    dataset: str = "conversations",
    unit: str = "turn",
    sha256: str = "",
    embedder: EmbedderSpec = None,
    progress: bool = False,
) -> BenchResult:
    """Rank packs by what they recall from labelled conversations, such as ``memlab.ingest.read_locomo`` returns.

    ``packs`` are names, paths or texts; all that come with memlab unless given. ``baselines`` adds BM25 and cosine
    similarity. ``limit`` is how many memories a recall is asked for, at least 20. ``labels`` are other labels of the
    same questions by name, such as ``{"corrected": correct_evidence(conversations, path)}``, by which the same rankings
    are judged. ``unit`` is what one memory is, ``sha256`` the digest of the data; both are printed. Latencies are taken
    around ``lab.recall`` with its log; they and the ingest rate vary from run to run, everything else is the same each
    time.

    Raises ``DatasetError``, ``UnknownName``, ``PolicyError``, ``InputError``.

    >>> from memlab.science.bench import bench_conversations
    >>> from memlab.io.ingest import read_locomo
    >>> bench_conversations(read_locomo("locomo10.json"), packs=["memlab"]).frame      # doctest: +SKIP
    """
    chosen = _chosen(packs, baselines=baselines)
    plan = plan_of(conversations, labels or {})
    held = tuple(labelled.conversation for labelled in conversations)

    def filled(pack: Pack, folder: Path) -> tuple[Lab, float]:
        clock = ManualClock(max(one.end for one in held))
        lab = open_lab(folder / "lab", pack=pack, embedder=embedder, clock=clock)
        return lab, _filled(lab, held)

    systems = _ranked(plan, chosen, filled, limit, progress=progress)
    return BenchResult(
        dataset,
        len(conversations),
        plan.main,
        plan.unjudged,
        limit,
        tuple(systems),
        unit=unit,
        sha256=sha256,
        queries=tuple(question.id for question in plan.questions),
        evidence=_evidence(plan),
    )


@checked
def bench_lab(
    lab: str | Path | Lab,
    questions: Annotated[Sequence[OwnQuestion] | pl.DataFrame, AsGiven],
    *,
    packs: Iterable[str | Path | Pack] | None = None,
    baselines: bool = True,
    limit: Annotated[int, Within(max(_CUTS))] = 20,
    embedder: EmbedderSpec = None,
    progress: bool = False,
) -> BenchResult:
    """Rank packs by what they recall from a lab of one's own, for questions that say which memories they want.

    ``lab`` is a folder, of which each pack gets a copy, or a lab that is open, which is asked under each pack and
    neither logged nor changed. ``questions`` are what ``memlab.ingest.read_questions`` returns, or a frame with the
    columns ``question`` and ``wanted`` (ids, refs or texts; one or a list) and, if need be, ``project``, ``at`` and
    ``category``. Intervals are by project where questions name at least two, else by question.

    Raises ``DatasetError`` for a wanted memory that the lab does not have; ``NotALab``, ``UnknownName``,
    ``PolicyError``.

    >>> from memlab.science.bench import bench_lab
    >>> from memlab.io.ingest import read_questions
    >>> bench_lab("mine.memlab", read_questions("wanted.jsonl")).frame                 # doctest: +SKIP
    """
    asked = own_questions(questions)
    chosen = _chosen(packs, baselines=baselines)
    if isinstance(lab, Lab):
        opened, plan = lab, own_plan(lab.memories, asked)
        systems = _ranked(
            plan, chosen, lambda pack, _: (_UnderPack(opened, pack), None), limit, progress=progress
        )
        return _of_own("open lab", plan, systems, limit)
    path = Path(lab).expanduser()
    if not path.is_dir():
        raise NotALab(f"There is no lab at {path}.")
    with tempfile.TemporaryDirectory(prefix="memlab-bench-") as folder:
        with open_lab(path, read_only=True, embedder=embedder) as source:
            plan = own_plan(source.memories, asked)
            journal = source.io.store.journal
            assert isinstance(journal, Journal)  # a lab with a folder
            copy_journal(journal, copy := Path(folder) / "lab")

        def second(pack: Pack, place: Path) -> tuple[Lab, None]:
            shutil.copytree(copy, place / "lab")
            return open_lab(place / "lab", pack=pack, embedder=embedder), None

        systems = _ranked(plan, chosen, second, limit, progress=progress)
    return _of_own(path.name, plan, systems, limit)


class _UnderPack:
    """An open lab that is asked under another pack, without a log."""

    def __init__(self, lab: Lab, pack: Pack) -> None:
        self._lab, self._pack = lab, pack

    def __enter__(self) -> _UnderPack:
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the lab open: it is the caller's."""

    def recall(
        self, query: str, *, limit: int, project: str | None, at: When | None, log: bool
    ) -> Hits:
        return self._lab.recall(
            query, limit=limit, project=project, at=at, pack=self._pack, log=False
        )


def _of_own(name: str, plan: Plan, systems: Sequence[SystemResult], limit: int) -> BenchResult:
    return BenchResult(
        name,
        0,
        plan.main,
        plan.unjudged,
        limit,
        tuple(systems),
        unit="memory",
        queries=tuple(question.id for question in plan.questions),
        evidence=_evidence(plan),
    )


def _chosen(packs: _Packs, *, baselines: bool) -> list[Pack]:
    chosen = [load_pack(pack) for pack in (pack_names() if packs is None else packs)]
    if baselines:
        chosen += [
            load_pack(text)
            for name, text in BASELINES.items()
            if all(pack.name != name for pack in chosen)
        ]
    return chosen


def _ranked(
    plan: Plan, chosen: Sequence[Pack], opened: _Opened, limit: int, *, progress: bool
) -> list[SystemResult]:
    """Each pack under each set of labels, best first within a set."""
    systems: list[SystemResult] = []
    with bar(
        progress,
        2 * len(chosen) * len(plan.questions),
        unit="recall",
        desc="asking what is labelled",
    ) as step:
        for pack in chosen:
            systems += _measured(pack, plan, opened, limit, step)
    return sorted(
        systems, key=lambda system: (plan.sets.index(system.labels), -system.metrics["ndcg@10"])
    )


def _measured(
    pack: Pack, plan: Plan, opened: _Opened, limit: int, step: Step
) -> list[SystemResult]:
    with tempfile.TemporaryDirectory(prefix="memlab-bench-") as folder:
        lab, rate = opened(pack, Path(folder))
        with lab:
            rankings = [
                _refs(_recall(lab, question, limit, step, log=False), rate)
                for question in plan.questions
            ]
            seconds = [_timed(lab, question, limit, step) for question in plan.questions]
    return [_scored(pack, plan, at, rankings, seconds, rate) for at in range(len(plan.sets))]


def _filled(lab: Lab, conversations: Sequence[Held]) -> float:
    """Remember every conversation, a batch each; turns a second, durable. A process loads its model before that."""
    lab.io.embedder.encode([""])
    batches = [held.rows(project=held.name) for held in conversations]
    start = perf_counter()
    for batch in batches:
        lab.remember(batch, chain=True)
    return sum(len(batch) for batch in batches) / (perf_counter() - start)


def _recall(lab: Lab | _UnderPack, question: Asked, limit: int, step: Step, *, log: bool) -> Hits:
    hits = lab.recall(question.text, limit=limit, project=question.project, at=question.at, log=log)
    step(1)
    return hits


def _refs(hits: Hits, rate: float | None) -> list[str]:
    """Refs of what a bench remembered itself; of one's own lab, ids."""
    return [str(hit.id) if rate is None else hit.ref or "" for hit in hits]


def _timed(lab: Lab | _UnderPack, question: Asked, limit: int, step: Step) -> float:
    start = perf_counter()
    _recall(lab, question, limit, step, log=True)
    return perf_counter() - start


def _scored(
    pack: Pack,
    plan: Plan,
    at: int,
    rankings: Sequence[Sequence[str]],
    seconds: Sequence[float],
    rate: float | None,
) -> SystemResult:
    """What one set of labels says of the rankings; a question that it has no evidence for is not in it."""
    judged = judge(
        rankings, [question.evidence[at] for question in plan.questions], depth=max(_CUTS)
    )
    values = {name: measure(judged, name) for name in _METRICS}
    labelled = judged.gold > 0
    main = np.arange(len(plan.questions)) < plan.main
    category = [question.category for question in plan.questions]
    places = {
        one: np.array([labelled[row] and category[row] == one for row in range(len(category))])
        for one in sorted(set(category), key=str)
    }
    places = {one: rows for one, rows in places.items() if rows.any()}
    clusters = [question.cluster for question in plan.questions[: plan.main]]
    p50, p95 = np.percentile(np.array(seconds) * 1000, [50, 95])
    return SystemResult(
        pack.name,
        pack.hash,
        {name: float(found[main & labelled].mean()) for name, found in values.items()},
        {
            one: {name: float(found[rows].mean()) for name, found in values.items()}
            for one, rows in places.items()
        },
        {one: int(rows.sum()) for one, rows in places.items()},
        {name: cluster_interval(found[: plan.main], clusters) for name, found in values.items()},
        {"p50": round(float(p50), 3), "p95": round(float(p95), 3)},
        None if rate is None else round(rate, 1),
        plan.sets[at],
        int((main & labelled).sum()),
        tuple(tuple(ranking) for ranking in rankings),
    )


def _evidence(plan: Plan) -> dict[str, tuple[frozenset[str], ...]]:
    """By set of labels: the evidence of every question, answerable or not."""
    return {
        name: tuple(question.evidence[at] for question in plan.questions)
        for at, name in enumerate(plan.sets)
    }

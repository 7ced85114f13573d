"""Packs on labelled conversations: what they find, how fast, and how sure one can be of it.

Every pack meets a lab of its own: a new one on disk, filled through the public API, so that nothing of one pack's run
can reach another's scores. All conversations live in that lab, each as its own project, and are asked about a day after
they ended.

Questions are asked twice. First without a log: a recall counts as an access, and a pack that prefers what was accessed
would otherwise answer the later questions by the earlier ones (measured on the demo's 36 questions: cascade's recall@5
is .60 without and .48 with). Then with the log, as an agent asks, and only then is the clock read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Protocol

import numpy as np

from memlab.arguments import Taken, Within, checked
from memlab.bench._result import ADVERSARIAL, BenchResult, SystemResult
from memlab.clock import ManualClock
from memlab.embedding import EmbedderSpec
from memlab.errors import DatasetError
from memlab.evaluation import BASELINES, cluster_interval, judge, measure
from memlab.lab import Lab
from memlab.opening import open_lab
from memlab.policies import Pack, load_pack, pack_names
from memlab.progress import Step, bar
from memlab.recall import Hits

__all__ = ["bench_locomo"]

_CUTS = (5, 10, 20)
_QUESTION_DELAY = timedelta(days=1)


class LabelledQuestion(Protocol):
    """A question with its labels."""

    @property
    def text(self) -> str: ...
    @property
    def category(self) -> int: ...
    @property
    def evidence(self) -> Sequence[str]: ...


class Held(Protocol):
    """A conversation: its rows are all that a lab sees."""

    @property
    def name(self) -> str: ...
    @property
    def end(self) -> datetime: ...
    def rows(self, *, project: str | None = None) -> Sequence[Mapping[str, Any]]: ...


class Labelled(Protocol):
    """A conversation with what is asked about it, such as ``memlab.ingest.LabelledConversation``."""

    @property
    def conversation(self) -> Held: ...
    @property
    def questions(self) -> Sequence[LabelledQuestion]: ...


@checked
def bench_locomo(
    conversations: Annotated[Sequence[Labelled], Taken("what memlab.ingest.read_locomo(path) returns")],
    *,
    packs: Iterable[str | Path | Pack] | None = None,
    baselines: bool = True,
    limit: Annotated[int, Within(max(_CUTS))] = 20,
    dataset: str = "conversations",
    embedder: EmbedderSpec = None,
    progress: bool = False,
) -> BenchResult:
    """Rank packs by what they recall from labelled conversations, such as ``memlab.ingest.read_locomo`` returns.

    ``packs`` are names, paths or texts; all that come with memlab unless given. ``baselines`` adds BM25 and cosine
    similarity. ``limit`` is how many memories a recall is asked for, at least 20. Latencies are taken around
    ``lab.recall`` with its log; they and the ingest rate vary from run to run, everything else is the same each time.

    Raises ``DatasetError``, ``UnknownName``, ``PolicyError``, ``InputError``.

    >>> from memlab.bench import bench_locomo
    >>> from memlab.ingest import read_locomo
    >>> bench_locomo(read_locomo("locomo10.json"), packs=["memlab"]).frame            # doctest: +SKIP
    """
    chosen = [load_pack(pack) for pack in (pack_names() if packs is None else packs)]
    if baselines:
        chosen += [load_pack(text) for name, text in BASELINES.items() if all(pack.name != name for pack in chosen)]
    plan = _Plan.of(conversations)
    with bar(progress, 2 * len(chosen) * len(plan.questions), unit="recall", desc="asking what is labelled") as step:
        systems = [_measured(pack, plan, limit, embedder, step) for pack in chosen]
    systems.sort(key=lambda system: -system.metrics["ndcg@10"])
    return BenchResult(dataset, len(conversations), plan.main, plan.unjudged, limit, tuple(systems))


@dataclass(frozen=True)
class _Question:
    text: str
    project: str
    at: datetime
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True)
class _Plan:
    """What is remembered and asked, once for all packs: main questions first, category 5 after them."""

    conversations: tuple[Held, ...]
    questions: tuple[_Question, ...]
    main: int
    unjudged: int

    @classmethod
    def of(cls, source: Sequence[Labelled]) -> _Plan:
        questions = [
            _Question(
                question.text,
                labelled.conversation.name,
                labelled.conversation.end + _QUESTION_DELAY,
                question.category,
                frozenset(question.evidence),
            )
            for labelled in source
            for question in labelled.questions
        ]
        judged = [question for question in questions if question.evidence]
        main = [question for question in judged if question.category != ADVERSARIAL]
        if not main:
            raise DatasetError("No question of categories 1-4 has evidence: there is nothing to measure.")
        apart = [question for question in judged if question.category == ADVERSARIAL]
        held = tuple(labelled.conversation for labelled in source)
        return cls(held, (*main, *apart), len(main), len(questions) - len(judged))


def _measured(pack: Pack, plan: _Plan, limit: int, embedder: EmbedderSpec, step: Step) -> SystemResult:
    clock = ManualClock(max(held.end for held in plan.conversations))
    with (
        tempfile.TemporaryDirectory(prefix="memlab-bench-") as folder,
        open_lab(Path(folder) / "lab", pack=pack, embedder=embedder, clock=clock) as lab,
    ):
        rate = _filled(lab, plan)
        rankings = [_refs(_recall(lab, question, limit, step, log=False)) for question in plan.questions]
        seconds = [_timed(lab, question, limit, step) for question in plan.questions]
    return _scored(pack, plan, rankings, seconds, rate)


def _filled(lab: Lab, plan: _Plan) -> float:
    """Remember every conversation, a batch each; turns a second, durable. A process loads its model before that."""
    lab.embedder.encode([""])
    batches = [held.rows(project=held.name) for held in plan.conversations]
    start = perf_counter()
    for batch in batches:
        lab.remember_many(batch, chain=True)
    return sum(len(batch) for batch in batches) / (perf_counter() - start)


def _recall(lab: Lab, question: _Question, limit: int, step: Step, *, log: bool) -> Hits:
    hits = lab.recall(question.text, limit=limit, project=question.project, at=question.at, log=log)
    step(1)
    return hits


def _refs(hits: Hits) -> list[str]:
    return [hit.ref or "" for hit in hits]


def _timed(lab: Lab, question: _Question, limit: int, step: Step) -> float:
    start = perf_counter()
    _recall(lab, question, limit, step, log=True)
    return perf_counter() - start


def _scored(
    pack: Pack, plan: _Plan, rankings: Sequence[Sequence[str]], seconds: Sequence[float], rate: float
) -> SystemResult:
    judged = judge(rankings, [question.evidence for question in plan.questions], depth=max(_CUTS))
    names = [f"{kind}@{cut}" for kind in ("recall", "recall_any", "recall_all") for cut in _CUTS] + [
        "mrr@10",
        "ndcg@10",
    ]
    values = {name: measure(judged, name) for name in names}
    category = np.array([question.category for question in plan.questions])
    clusters = [question.project for question in plan.questions[: plan.main]]
    p50, p95 = np.percentile(np.array(seconds) * 1000, [50, 95])
    return SystemResult(
        pack.name,
        pack.hash,
        {name: float(found[: plan.main].mean()) for name, found in values.items()},
        {
            int(one): {name: float(found[category == one].mean()) for name, found in values.items()}
            for one in np.unique(category)
        },
        {int(one): int((category == one).sum()) for one in np.unique(category)},
        {name: cluster_interval(found[: plan.main], clusters) for name, found in values.items()},
        {"p50": round(float(p50), 3), "p95": round(float(p95), 3)},
        round(rate, 1),
    )

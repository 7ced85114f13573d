"""Rank packs on labelled questions: retrieval quality with intervals, and latency.

Each pack has its own lab, which is new, on disk and filled through the public API. So no pack can
influence the scores of another. All conversations are in that lab, each as a project. Questions are
asked one day after the end of their conversation, or at their own time. For an existing lab, each
pack has a copy.

Each question is asked twice, first without a log. A logged recall counts as an access, and a pack
that prefers accessed memories would answer later questions by earlier recalls. On the demo's 36
questions, cascade's recall@5 is .60 without a log and .48 with a log. The second pass is logged, as
for an agent, and its recalls are timed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from memlab.errors import InputError, NotALab
from memlab.kernel.base.arguments import AsGiven, Taken, Within, checked
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.embedding import EmbedderSpec, load_embedder
from memlab.kernel.journal import Journal, KeySource, copy_journal
from memlab.kernel.policies import Pack, PolicyLike, as_packs, load_pack, pack_names
from memlab.kernel.recall import Hits
from memlab.science.batch import Workers
from memlab.science.bench._questions import (
    Conversation,
    Labelled,
    OwnQuestion,
    Plan,
    PlannedQuestion,
    collect_questions,
    own_plan,
    own_questions,
)
from memlab.science.bench._result import BenchResult, SystemResult, summarise_rows
from memlab.science.cells import Inputs, Outcome, hash_inputs, package_versions, run_cells
from memlab.science.evaluation import BASELINES, cluster_interval, judge, measure
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab

# The metrics and the numbers of ranks that published results on these benchmarks use.
_CUTS = (5, 10, 20)
_METRICS = (
    *(f"{kind}@{cut}" for kind in ("recall", "recall_any", "recall_all") for cut in _CUTS),
    "mrr@10",
    "ndcg@10",
)
_OpenLab: TypeAlias = Callable[[Pack, Path], "tuple[Lab | _UnderPack, float | None]"]
"""A function that opens a lab for a pack in a folder.

It returns the lab, and the turns per second of filling it, or None if it was not filled. It is a
partial application of a function of this module, so that workers of an executor can unpickle it.
"""


class PackTask(NamedTuple):
    """A pack and the questions on which it is measured."""

    plan: Plan
    open: _OpenLab
    pack: Pack


@checked
def bench_conversations(
    conversations: Annotated[
        Sequence[Labelled], Taken("what memlab.ingest.read_locomo(path) returns")
    ],
    *,
    packs: PolicyLike | None = None,
    baselines: bool = True,
    limit: Annotated[int, Within(max(_CUTS))] = 20,
    labels: Annotated[Mapping[str, Sequence[Labelled]], Taken("a name and conversations for each")]
    | None = None,
    dataset: str = "conversations",
    unit: str = "turn",
    sha256: str = "",
    embedder: EmbedderSpec = None,
    progress: bool = False,
    executor: Workers = None,
    folder: str | Path | None = None,
) -> BenchResult:
    """Rank packs by retrieval quality on labelled conversations.

    Parameters
    ----------
    conversations
        Labelled conversations, such as the result of ``memlab.ingest.read_locomo``.
    packs
        Packs in any form, or policies that replace the policy of their slot in the default pack. Default:
        all packs of memlab.
    baselines
        Whether to add BM25 and cosine similarity.
    limit
        The maximum number of results of a recall, at least 20.
    labels
        Further labels of the same questions, by name. They are applied to the same rankings. An
        example is ``{"corrected": correct_evidence(conversations, path)}``.
    dataset
        The name of the data, for reports.
    unit
        What a memory contains, for reports.
    sha256
        The SHA-256 digest of the data, for reports.
    embedder
        The embedder of the labs.
    progress
        Whether to show a progress bar.
    executor
        A number of processes, or an object with ``submit``, such as a ``dask.distributed.Client``.
        Each pack is a task. Default: this thread.
    folder
        A folder that keeps the result of each pack, such as ``runs/locomo``. A pack with a stored result
        is not measured again; its latencies are those of the run that measured it.

    Returns
    -------
    BenchResult
        The metrics of each pack and set of labels.

    Raises
    ------
    DatasetError
        If no answerable question has evidence.
    UnknownName, PolicyError, InputError
        If a pack does not exist or is invalid, or sets of labels differ in their questions.
    WorkerLost
        If the executor does not return the result of a pack.

    Notes
    -----
    Latencies are measured on a logged ``lab.recall``. Latencies and the ingestion rate vary between
    runs, and grow if workers share a processor; all other figures are deterministic.

    Examples
    --------
    >>> from memlab.science.bench import bench_conversations
    >>> from memlab.io.ingest import read_locomo
    >>> bench_conversations(read_locomo("locomo10.json"), packs=["memlab"]).frame      # doctest: +SKIP
    """
    chosen = _load_packs(packs, baselines=baselines)
    plan = collect_questions(conversations, labels or {})
    sources = tuple(labelled.conversation for labelled in conversations)
    stored = None
    if folder is not None:
        about = {"name": dataset, "sha256": sha256}
        turns = [(source.name, source.end, source.rows()) for source in sources]
        stored = Path(folder), _shared_inputs(plan, turns, embedder), about
    systems = _measure_packs(
        plan, chosen, partial(open_filled, sources, embedder), limit, progress, executor, stored
    )
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
        evidence=_collect_evidence(plan),
    )


@checked
def bench_lab(
    lab: str | Path | Lab,
    questions: Annotated[Sequence[OwnQuestion] | pl.DataFrame, AsGiven],
    *,
    packs: PolicyLike | None = None,
    baselines: bool = True,
    limit: Annotated[int, Within(max(_CUTS))] = 20,
    embedder: EmbedderSpec = None,
    progress: bool = False,
    key: KeySource | None = None,
    executor: Workers = None,
    folder: str | Path | None = None,
) -> BenchResult:
    """Rank packs by retrieval quality on a user's lab.

    Parameters
    ----------
    lab
        The folder of a lab; each pack gets its own copy. Or an open lab, whose recalls are then
        not logged, so that it does not change.
    questions
        ``lab.questions``, the result of ``memlab.ingest.read_questions``, or a frame. The frame needs the columns
        ``question`` and ``wanted`` (an id, ref or text, or a list of them). ``project``, ``at`` and
        ``category`` are optional.
    packs
        Packs in any form, or policies that replace the policy of their slot in the lab's pack. Default:
        all packs of memlab.
    baselines
        Whether to add BM25 and cosine similarity.
    limit
        The maximum number of results of a recall, at least 20.
    embedder
        The embedder of the labs.
    progress
        Whether to show a progress bar.
    key
        The key of an encrypted lab that is not open, as for ``memlab.open``.
    executor
        A number of processes, or an object with ``submit``. Each pack is a task. An open lab stays in this
        process, so the executor must use threads; other workers read the folder of a lab from this
        machine. Default: this thread.
    folder
        A folder that keeps the result of each pack, as for ``memlab.bench_conversations``. It needs the
        folder of a lab.

    Returns
    -------
    BenchResult
        The metrics of each pack. Intervals are over projects if the questions name at least two
        projects, otherwise over questions.

    Raises
    ------
    DatasetError
        If a wanted memory is not in the lab.
    NotALab
        If there is no lab at the path.
    WrongKey
        If the lab is encrypted and the key is missing or wrong.
    UnknownName, PolicyError
        If a pack does not exist or is invalid.
    WorkerLost
        If the executor does not return the result of a pack.

    Examples
    --------
    >>> import memlab
    >>> import polars as pl
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> questions = pl.DataFrame({"question": ["When do we deploy?"], "wanted": ["1"]})
    >>> result = bench_lab(lab, questions, packs=["memlab"], baselines=False)
    >>> result.systems[0].metrics["recall@5"]
    1.0
    """
    wanted = own_questions(questions)
    if isinstance(lab, Lab):
        opened_lab, plan = lab, own_plan(lab.memories, wanted)
        chosen = _load_packs(packs, lambda: opened_lab.policies.pack, baselines=baselines)
        if folder is not None:
            raise InputError(
                "Results of an open lab cannot be stored in a folder, because its recalls "
                "may change it. Pass the path of the lab."
            )
        systems = _measure_packs(
            plan, chosen, partial(open_again, opened_lab), limit, progress, executor
        )
        return _own_result("open lab", plan, systems, limit)
    path = Path(lab).expanduser()
    if not path.is_dir():
        raise NotALab(f"There is no lab at {path}. Pass the path of a lab.")
    with tempfile.TemporaryDirectory(prefix="memlab-bench-") as temporary:
        with open_lab(path, read_only=True, embedder=embedder, key=key) as source:
            plan = own_plan(source.memories, wanted)
            chosen = _load_packs(packs, lambda: source.policies.pack, baselines=baselines)
            journal = source.io.store.journal
            assert isinstance(journal, Journal)  # a lab with a folder
            stored = None
            if folder is not None:
                state = digest_lab(source)
                stored = (
                    Path(folder),
                    _shared_inputs(plan, state, embedder),
                    {"name": path.name, "sha256": state},
                )
            copy_journal(journal, copy := Path(temporary) / "lab")
        systems = _measure_packs(
            plan,
            chosen,
            partial(_open_copy, copy, embedder, key),
            limit,
            progress,
            executor,
            stored,
        )
    return _own_result(path.name, plan, systems, limit)


class _UnderPack:
    """An open lab whose recalls use another pack and are not logged."""

    def __init__(self, lab: Lab, pack: Pack, *, owned: bool = False) -> None:
        self._lab, self._pack, self._owned = lab, pack, owned

    def __enter__(self) -> _UnderPack:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the lab, unless it belongs to the caller."""
        if self._owned:
            self._lab.close()

    def recall(self, query: str, *, log: bool, **options: Any) -> Hits:
        """Recall under the pack. ``log`` is ignored, because a user's lab must not change."""
        return self._lab.recall(query, pack=self._pack, log=False, **options)


def open_filled(
    sources: Sequence[Conversation], embedder: EmbedderSpec, pack: Pack, folder: Path
) -> tuple[Lab, float]:
    """Open a new lab for a pack, and store the conversations there."""
    clock = ManualClock(max(source.end for source in sources))
    lab = open_lab(folder / "lab", pack=pack, embedder=embedder, clock=clock)
    return lab, _fill_lab(lab, sources)


def open_again(lab: Lab, pack: Pack, folder: Path) -> tuple[_UnderPack, None]:
    """Wrap the user's open lab, so that its recalls use a pack."""
    return _UnderPack(lab, pack), None


def open_folder(
    path: Path, embedder: EmbedderSpec, pack: Pack, folder: Path
) -> tuple[_UnderPack, None]:
    """Open the lab in a folder without a copy, so that its recalls use a pack."""
    return _UnderPack(open_lab(path, read_only=True, embedder=embedder), pack, owned=True), None


def _open_copy(
    copy: Path, embedder: EmbedderSpec, key: KeySource | None, pack: Pack, folder: Path
) -> tuple[Lab, None]:
    """Copy a lab to ``folder`` and open the copy under a pack; return the copy and None.

    None takes the place of the time of filling, which a copy does not have.
    """
    shutil.copytree(copy, folder / "lab")
    return open_lab(folder / "lab", pack=pack, embedder=embedder, key=key), None


def _own_result(name: str, plan: Plan, systems: Sequence[SystemResult], limit: int) -> BenchResult:
    """Build the result of a benchmark on a user's lab."""
    return BenchResult(
        name,
        0,
        plan.main,
        plan.unjudged,
        limit,
        tuple(systems),
        unit="memory",
        queries=tuple(question.id for question in plan.questions),
        evidence=_collect_evidence(plan),
    )


def _load_packs(
    packs: PolicyLike, active: Callable[[], Pack] | None = None, *, baselines: bool
) -> list[Pack]:
    """Load the packs (None: all shipped ones) and, with ``baselines``, each baseline whose name no pack has."""
    chosen = as_packs(pack_names() if packs is None else packs, active)
    if baselines:
        chosen += [
            load_pack(text)
            for name, text in BASELINES.items()
            if all(pack.name != name for pack in chosen)
        ]
    return chosen


def digest_lab(lab: Lab) -> str:
    """Return the SHA-256 of a lab's events and texts up to its last event."""
    journal = lab.io.store.journal
    return hash_inputs((journal.chain(journal.head) or b"").hex())


def describe_pack(pack: Pack) -> dict[str, Any]:
    """Return the description of a pack in a cell. Only the hash affects the result."""
    parents = [] if pack.lineage is None else list(pack.lineage.parents)
    return {"name": pack.name, "hash": pack.hash, "text": pack.sources[0], "parents": parents}


def _shared_inputs(plan: Plan, data: object, embedder: EmbedderSpec) -> dict[str, Any]:
    """Return what all packs of a benchmark share: hash of the data, embedder's fingerprint, package versions."""
    return {
        "measure": "bench",
        "data": hash_inputs(
            [
                data,
                [
                    (*question[:-1], [*map(sorted, question[-1])])
                    for question in map(astuple, plan.questions)
                ],
            ]
        ),
        "embedder": load_embedder(embedder).fingerprint,
        "versions": package_versions(),
    }


def _measure_packs(
    plan: Plan,
    chosen: Sequence[Pack],
    open_pack_lab: _OpenLab,
    limit: int,
    progress: bool,
    executor: Workers,
    stored: tuple[Path, dict[str, Any], dict[str, Any]] | None = None,
) -> list[SystemResult]:
    """Return the results of each pack under each label set, sorted by label set, then by nDCG@10.

    ``stored`` is a folder of cells, the inputs that all packs share, and the description of the data.
    """
    folder, shared, data = stored or (None, {}, {})
    recalls = 2 * len(plan.questions)
    tasks = [
        (
            Inputs(
                {**shared, "pack": pack.hash, "limit": limit},
                {"pack": describe_pack(pack), "data": data},
            ),
            PackTask(plan, open_pack_lab, pack),
        )
        for pack in chosen
    ]
    with bar(
        progress, recalls * len(chosen), unit="recall", desc="asking labelled questions"
    ) as step:
        work = partial(rank_questions, limit, _METRICS, timed=True)
        cells = run_cells(folder, work, tasks, executor, step, recalls)
    measured = [
        _score_rankings(pack, plan, at, cell.rows["ranking"].to_list(), cell.results)
        for pack, cell in zip(chosen, cells, strict=True)
        for at in range(len(plan.sets))
    ]
    return sorted(
        measured, key=lambda system: (plan.sets.index(system.labels), -system.metrics["ndcg@10"])
    )


def rank_questions(
    limit: int, metrics: Sequence[str], task: PackTask, step: Step, *, timed: bool
) -> Outcome:
    """Recall each question under a pack, unlogged for ranks, and again logged if ``timed``.

    There is a row for each question, with its ranking. Metrics are those of the first set of labels, and null for
    questions that the overall figures leave out.
    """
    plan, open_pack_lab, pack = task
    with tempfile.TemporaryDirectory(prefix="memlab-bench-") as folder:
        lab, rate = open_pack_lab(pack, Path(folder))
        with lab:
            rankings = [
                _name_hits(_recall_questions(lab, question, limit, step, log=False), rate)
                for question in plan.questions
            ]
            seconds = (
                [_time_recall(lab, question, limit, step) for question in plan.questions]
                if timed
                else []
            )
    # Rankings are kept, so that another set of labels can judge them without a recall.
    judged = judge(rankings, [question.evidence[0] for question in plan.questions], depth=limit)
    main = pl.Series(np.arange(len(plan.questions)) < plan.main)
    rows = pl.DataFrame(
        {
            "cluster": [question.cluster for question in plan.questions],
            "question": [question.id for question in plan.questions],
            "category": [str(question.category) for question in plan.questions],
            "ranking": rankings,
            **{name: measure(judged, name) for name in metrics},
        },
        schema_overrides={"ranking": pl.List(pl.String)},
    ).with_columns(pl.when(main).then(pl.col(name).fill_nan(None)) for name in metrics)
    results = summarise_rows(rows, metrics)
    if timed:
        p50, p95 = np.percentile(np.array(seconds) * 1000, [50, 95])
        results["latency_ms"] = {"p50": round(float(p50), 3), "p95": round(float(p95), 3)}
        results["ingest_per_s"] = None if rate is None else round(rate, 1)
    return Outcome(results, rows)


def _fill_lab(lab: Lab, conversations: Sequence[Conversation]) -> float:
    """Store each conversation in one batch, and return the number of turns per second.

    The turns are durable when the function returns. The embedder is loaded before the time is measured.
    """
    lab.io.embedder.encode([""])
    batches = [conversation.rows(project=conversation.name) for conversation in conversations]
    start = perf_counter()
    for batch in batches:
        lab.remember(batch, chain=True)
    return sum(len(batch) for batch in batches) / (perf_counter() - start)


def _recall_questions(
    lab: Lab | _UnderPack, question: PlannedQuestion, limit: int, step: Step, *, log: bool
) -> Hits:
    """Return the hits of one question, and advance the progress bar by one."""
    hits = lab.recall(
        question.text,
        limit=limit,
        project=question.project,
        at=question.at,
        log=log,
        explore=False,
    )
    step(1)
    return hits


def _name_hits(hits: Hits, rate: float | None) -> list[str]:
    """Return the refs of hits or, if ``rate`` is None (a user's lab), their ids as texts."""
    return [str(hit.id) if rate is None else hit.ref or "" for hit in hits]


def _time_recall(lab: Lab | _UnderPack, question: PlannedQuestion, limit: int, step: Step) -> float:
    """Return the duration of a logged recall in seconds."""
    start = perf_counter()
    _recall_questions(lab, question, limit, step, log=True)
    return perf_counter() - start


def _score_rankings(
    pack: Pack,
    plan: Plan,
    label_set: int,
    rankings: Sequence[Sequence[str]],
    results: Mapping[str, Any],
) -> SystemResult:
    """Return a pack's metrics, computed from its rankings under one label set.

    ``results`` has the times. Questions without evidence do not count.
    """
    judged = judge(
        rankings, [question.evidence[label_set] for question in plan.questions], depth=max(_CUTS)
    )
    # Unanswerable questions count in their own categories, but not in the overall figures.
    values = {name: measure(judged, name) for name in _METRICS}
    labelled = judged.gold > 0
    main = np.arange(len(plan.questions)) < plan.main
    category = [question.category for question in plan.questions]
    rows_by_category = {
        category_name: np.array(
            [labelled[row] and category[row] == category_name for row in range(len(category))]
        )
        for category_name in sorted(set(category), key=str)
    }
    rows_by_category = {
        category_name: rows for category_name, rows in rows_by_category.items() if rows.any()
    }
    clusters = [question.cluster for question in plan.questions[: plan.main]]
    return SystemResult(
        pack.name,
        pack.hash,
        {name: float(scores[main & labelled].mean()) for name, scores in values.items()},
        {
            category_name: {name: float(scores[rows].mean()) for name, scores in values.items()}
            for category_name, rows in rows_by_category.items()
        },
        {category_name: int(rows.sum()) for category_name, rows in rows_by_category.items()},
        {name: cluster_interval(scores[: plan.main], clusters) for name, scores in values.items()},
        results["latency_ms"],
        results["ingest_per_s"],
        plan.sets[label_set],
        int((main & labelled).sum()),
        tuple(tuple(ranking) for ranking in rankings),
    )


def _collect_evidence(plan: Plan) -> dict[str, tuple[frozenset[str], ...]]:
    """Return the evidence of every question for each label set, keyed by the set's name."""
    return {
        name: tuple(question.evidence[index] for question in plan.questions)
        for index, name in enumerate(plan.sets)
    }

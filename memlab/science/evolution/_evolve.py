"""``memlab.evolve``: search policies on one part of the data, select on another, report on a third."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import numpy as np
import polars as pl

from memlab.errors import InputError, PolicyError
from memlab.kernel.base.arguments import AsGiven, Seed, Within, checked
from memlab.kernel.base.progress import bar
from memlab.kernel.language import Policy
from memlab.kernel.language.graph import reachable
from memlab.kernel.policies import FEATURES, Lineage, Pack, PolicyLike
from memlab.science.batch import Workers
from memlab.science.evaluation import Estimate, Gate
from memlab.science.evaluation.parts import (
    Horizon,
    LabelsRecalls,
    Log,
    Missing,
    Sample,
    Tests,
    compare,
    measure,
    select_features,
)
from memlab.science.evolution._archive import Program, by_value
from memlab.science.evolution._correction import fit_correction
from memlab.science.evolution._data import SLOT, Data, read_data
from memlab.science.evolution._matrix import FeedbackGoal, LabelGoal, Matrix
from memlab.science.evolution._propose import (
    ParentEvidence,
    Proposer,
    Refusal,
    call_proposer,
    model_proposer,
)
from memlab.science.evolution._result import CHANGES, FRONT, PROVEN, Evolved
from memlab.science.evolution._search import (
    ROUND,
    Search,
    State,
    digest_inputs,
    load_state,
    open_search,
    run_round,
    save_state,
    score_program,
)
from memlab.subjects.lens.packing import text_of
from memlab.subjects.models import LanguageModel

_FINALISTS = 4
"""The maximum number of policies that reach the report part. Each widens the intervals of all."""
_ROOM = 40
"""The maximum number of operations by which a program may exceed the start."""
_WORST = 5
"""The number of worst decisions that a proposer is told about, and of best programs of which one is its parent."""
_PATIENCE = 3
"""The number of equal refusals in a row after which a proposer is not asked again: it hangs, or its budget is spent."""
_REMEMBERED = 5
"""The number of last refusals that a proposer is told about."""
# The units of a budget, and a number with its unit.
_UNITS = {"s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|sec|min|m|h)\s*\Z")


@checked
def evolve(
    data: Annotated[Any, AsGiven],
    start: PolicyLike | None = None,
    *,
    labels: pl.DataFrame | LabelsRecalls | None = None,
    slots: Sequence[str] = (SLOT,),
    propose: Annotated[Any, AsGiven] = None,
    metric: str | None = None,
    anchors: Sequence[int | str] | None = None,
    budget: int | str = "10 min",
    seed: Seed = 0,
    horizon: Horizon = None,
    missing: Missing | None = None,
    cluster: str | None = None,
    level: Annotated[float, Within(0, 1)] = 0.95,
    timeout: Annotated[float, Within(0, 3600, above=True)] = 60.0,
    executor: Workers = None,
    folder: str | Path | None = None,
    progress: bool | Callable[[pl.DataFrame], object] = False,
) -> Evolved:
    """Search for a better recall-score policy, and report whether the data prove one.

    Clusters are split into three parts that never mix. Programs are bred and their constants tuned on
    the search part. A correction of the start is a weighted sum of all features that is added to it. It
    is fitted to the search and the selection part, and kept if such sums are better than the start on
    clusters that were left out of their fit. The selection part chooses at most four policies, first the
    correction unless another is better by two standard errors. The report part measures these once.

    Parameters
    ----------
    data
        A lab: its accepted questions, which are recalled under the start, or else its log. Or the
        tables of a log (``lab.slates()``). Or labelled conversations, such as the result of
        ``memlab.ingest.read_locomo``.
    start
        The policy or pack to start from, such as "similarity" for similarity alone. Default: the
        active pack of the lab.
    labels
        Labels of a log as for ``memlab.evaluate``. Default: feedback.
    slots
        The slots to search. A log has what ``recall-score`` reads, so this is the only one.
    propose
        A function ``propose(parent, evidence)`` that returns the text of a policy, or a
        ``LanguageModel``, which is asked for one. It is called once a round of 500 programs, besides
        random mutation and crossover. ``parent`` is a compiled policy, and ``evidence`` has the
        decisions that it does worst in words.
    metric
        With labels, such as "recall@10"; default "ndcg@10". With feedback "value": the mean reward,
        with the minimum for unsupported items.
    anchors
        Ids of decisions, or of questions of the lab, that must not get worse than under the start.
        Their clusters belong to the search part.
    budget
        A number of programs, or a time such as "90 s", "10 min" or "1 h". A time ends the search
        after whole rounds.
    seed
        The seed of the parts and of the search.
    horizon, missing, cluster
        The treatment of feedback, and the unit whose recalls depend on each other, as for
        ``memlab.evaluate``. With fewer than 6 clusters, decisions are split instead, and ``notes``
        says so.
    level
        The confidence level of all intervals of the report part together.
    timeout
        The seconds after which the answer of a proposer is no longer waited for.
    executor
        A number of processes, or an object with ``submit``. Default: this thread. The result is the
        same.
    folder
        A folder for the state of the search. A search that was interrupted continues from its last
        round with the same result.
    progress
        Whether to show a progress bar. Or a function that is called after each round with the frame
        of the archive, best first.

    Returns
    -------
    Evolved
        The front, the best pack or None, and their intervals.

    Raises
    ------
    InputError
        If the data are too few or lack what the start reads, an argument is invalid, or the folder
        belongs to another search.
    PolicyError
        If the start is invalid.
    WorkerLost
        If the executor does not return the result of a task.
    KeyboardInterrupt
        With ``folder``, which is left so that the search can continue. Without it, an interrupt ends
        the search, and the result is that of the rounds so far.

    Notes
    -----
    No proposal is executed as Python; each is compiled like any policy. A policy is better if the
    lower bound of its gain on the report part is above 0. The bound is corrected by Bonferroni for the
    policies that were measured there. With feedback, no gate may be closed. A winner is never
    active by itself: ``lab.challenge(found.best)`` compares it with the active pack.

    The proposer runs in a thread of this process. One that hangs is left behind after ``timeout``. A
    proposer is not asked again after three refusals in a row for the same reason.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> texts = [f"{name} likes {what}" for name in ("Ana", "Ben") for what in ("tea", "rain", "Rome")]
    >>> _ = lab.remember(texts)
    >>> for number, text in enumerate(texts, 1):
    ...     _ = lab.questions.add(f"Who says that {text}?", wants=number)
    >>> found = memlab.evolve(lab, "similarity", budget=20)
    >>> found.front["operator"].to_list()[0]
    'start'
    """
    # All arguments are checked before the data are read, which may take a minute.
    if tuple(slots) != (SLOT,):
        raise InputError(
            f"memlab.evolve searches {SLOT} only, not {', '.join(slots) or 'an empty list'}: a log has the features of its "
            "candidates, and not what other slots read."
        )
    programs, seconds = _read_budget(budget)
    proposer = model_proposer(propose) if isinstance(propose, LanguageModel) else propose
    if proposer is not None and not callable(proposer):
        raise InputError(
            f"propose must be a function or a LanguageModel, not {type(propose).__name__}."
        )
    read = read_data(
        data,
        start,
        labels,
        metric,
        anchors or (),
        seed,
        horizon=horizon,
        missing=missing,
        cluster=cluster,
        estimator="snips",
        level=level,
        reward_range=None,
    )
    search, state = open_search(read, seed, len(reachable(read.start.root)) + _ROOM)
    inputs, path = "", None if folder is None else Path(folder)
    if path is not None:
        inputs = digest_inputs(read, seed=seed, budget=budget, level=level)
        load_state(path, inputs, read, state)
    ended = "budget"
    show = progress if callable(progress) else None
    with bar(
        progress is True,
        programs or int(seconds),
        unit="program" if programs else "s",
        desc="evolving",
    ) as step:
        step(state.tried if programs else state.seconds)
        try:
            clock = monotonic()
            read = _correct(read, search, state)
            while state.tried < programs if programs else state.seconds < seconds:
                size = min(ROUND, programs - state.tried) if programs else ROUND
                last = state.refusals[-_PATIENCE:]
                if proposer is not None and (len(last) < _PATIENCE or len(set(last)) > 1):
                    _ask(proposer, read, search, state, timeout)
                run_round(search, state, size, executor)
                state.seconds += (spent := monotonic() - clock)
                if path is not None:
                    save_state(path, inputs, state)
                step(size if programs else spent)
                if show is not None:
                    show(_archive_frame(state))
                clock = monotonic()
        except KeyboardInterrupt:
            if path is not None:
                raise
            ended = "interrupt"
    return _judge(read, search, state, ended, seed, level)


def _read_budget(budget: int | str) -> tuple[int, float]:
    """Return a budget as a number of programs (0 if none) and a number of seconds."""
    if isinstance(budget, str):
        match = _DURATION.match(budget)
        if match and 0 < (seconds := float(match[1]) * _UNITS[match[2]]) < math.inf:
            return 0, seconds
    elif budget > 0:
        return budget, 0.0
    raise InputError(
        f'budget must be a number of programs above 0 or a time such as "10 min", not {budget!r:.40}.'
    )


def _ask(propose: Proposer, data: Data, search: Search, state: State, timeout: float) -> None:
    """Ask the proposer once, for at most ``timeout`` seconds; archive its policy, or record why it was refused."""
    programs = state.archive.programs
    rng = np.random.default_rng((search.seed, state.rounds, ROUND))
    parent = programs[int(rng.integers(min(len(programs), _WORST)))]
    inputs = data.signature.inputs
    features = {
        name: FEATURES[name].formula if name in FEATURES else f"a column of the log ({item.type})"
        for name, item in inputs.items()
    }
    evidence = ParentEvidence(
        parent.value,
        data.metric,
        features,
        tuple(state.refusals[-_REMEMBERED:]),
        lambda: _describe(data, search, parent),
    )
    state.proposals += 1
    try:
        policy = call_proposer(propose, parent.policy, evidence, data.compile, timeout)
        if reason := _add_policy(search, state, policy, parent.policy.hash, "propose"):
            raise Refusal(reason)
    except Refusal as refusal:
        state.refusals.append(str(refusal))


def _add_policy(search: Search, state: State, policy: Policy, parent: str, operator: str) -> str:
    """Add a policy to the archive and return "", or return the reason why the policy is refused."""
    program = score_program(search.part, policy, (parent,), operator)
    if not (program.outcome[search.anchors] >= search.floor).all():
        return "The proposal does worse than the start on an anchor."
    if not math.isfinite(program.value):
        return "The proposal has no finite score."
    state.add(program)
    return ""


def _correct(data: Data, search: Search, state: State) -> Data:
    """Fit a correction of the start, also for a search that continues; return the data, perhaps with a note."""
    try:
        fitted = fit_correction(data, search.seed)
    except PolicyError as error:
        note = f"No fitted sum of features was added to the start: {error}"
        return replace(data, notes=(*data.notes, note))
    if fitted is not None:
        policy, left_out = fitted
        program = score_program(search.part, policy, left_out.parents, left_out.operator)
        if (program.outcome[search.anchors] >= search.floor).all():
            state.correction = program, left_out
            row = program.parents, program.operator, program.value
            state.lineage.setdefault(policy.hash, row)
    return data


def _describe(
    data: Data, search: Search, parent: Program
) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """Describe a parent: its failures by stage, its worst decisions and its closed gates."""
    # A proposer reads this in its own thread, perhaps after its time limit, while the search uses the cached scores.
    shared, policy = search.part, parent.policy
    part = shared._replace(matrix=Matrix(shared.matrix.columns, shared.log.recall))
    data = replace(data, parts={**data.parts, "search": part})
    log, goal, scores = part.log, part.goal, part.matrix.scores(policy)
    if isinstance(goal, LabelGoal):
        rank, rows = goal.ranks(scores), goal.rows
        cut = np.full(len(log), goal.cut)
        counts = {
            "shown": int(((rank > 0) & (rank <= goal.cut)).sum()),
            "ranked out": int(((rank == 0) | (rank > goal.cut)).sum()),
            "not in the candidate pool": int(np.nansum(goal.count)) - len(rows),
        }
        gates: tuple[str, ...] = ()
    else:
        top = goal.top_k(scores)
        ranks = np.zeros(len(log.recall), dtype=np.int64)
        ranks[top.rows] = top.ranks if top.ranks is not None else 1
        useful = log.answered & (np.nan_to_num(log.reward) >= 0.5)
        rows = np.flatnonzero(useful)
        rank, cut = ranks[rows], log.limit
        counts = {"shown": int((rank > 0).sum()), "ranked out": int((rank == 0).sum())}
        gates = tuple(map(str, _measure_gates(data, "search", scores)[1]))
    lost = [i for i in range(len(rows)) if not 0 < rank[i] <= cut[log.recall[rows[i]]]]
    order = sorted(lost, key=lambda i: (parent.outcome[log.recall[rows[i]]], rank[i]))[:_WORST]
    return (
        counts,
        tuple(_describe_loss(data, search, policy, scores, int(rows[i])) for i in order),
        gates,
    )


def _describe_loss(
    data: Data, search: Search, policy: Policy, scores: np.ndarray[Any, Any], row: int
) -> str:
    """Describe a wanted memory that is not shown, and why the first memory outranks it."""
    # Features of the first and of the wanted memory are read from the log, and compared term by term.
    log = search.part.log
    recall = int(log.recall[row])
    rows = np.flatnonzero(log.recall == recall)
    first = int(rows[np.argmax(np.where(np.isfinite(scores[rows]), scores[rows], -np.inf))])
    names = {name.replace("_", "-"): name for name in data.prepared.schema.names()}
    read = dict.fromkeys(
        feature
        for name in policy.inputs
        for feature in (policy.derived[name].sets if name in policy.derived else (name,))
    )
    frame = log.pool([names[name] for name in read])[rows]
    both = [int(np.flatnonzero(rows == item)[0]) for item in (first, row)]
    aggregates = (
        policy.aggregates(frame, by="decision").to_dicts() if frame.width > 2 else [{}] * len(rows)
    )
    values = [{name: frame[names[name]][at] for name in read} for at in both]
    first_terms = aggregates[both[0]] if aggregates else {}
    last_terms = aggregates[both[1]] if aggregates else {}
    why = policy.why(
        *values, aggregates=(first_terms, last_terms), names=("the first", "the wanted")
    )
    texts = [_read_text(data.lab, log.ids["memory_id"][item]) for item in (first, row)]
    query = log.decisions["query"][recall] if "query" in log.decisions.columns else None
    rank = int((scores[rows] > scores[row]).sum()) + 1
    terms = "; ".join(f"{term.text} {term.difference:+.3g}" for term in why.terms[:3])
    return (
        f"Query {str(query)[:120]!r}: wanted {texts[1]} at rank {rank} of {len(rows)}; first {texts[0]}, above it by: "
        f"{terms or 'no additive term'}."
    )


def _read_text(lab: Any, memory: Any) -> str:
    """Return the first 80 characters of a memory's text in quotes, or its number without a lab."""
    return f"#{memory}" if lab is None else repr(str(lab[memory].text)[:80])


def _measure_gates(
    data: Data, name: str, scores: np.ndarray[Any, Any], level: float | None = None
) -> tuple[Any, list[Gate], list[Gate]]:
    """Compare a policy with the start on feedback; return the comparison, and its closed and untested gates.

    ``name`` is the part of the data, and ``scores`` are the policy's scores there.
    """
    log, matrix, goal = data.parts[name]
    assert isinstance(goal, FeedbackGoal)
    evidence = goal.evidence
    if level is not None:
        evidence.level = level
    top, base = goal.top_k(scores), goal.top_k(matrix.scores(data.start), "start")
    same = np.array_equal(top.rows, base.rows)
    features = select_features(log, data.prepared.features, data.prepared.schema)
    compared = compare(evidence, top, None if same else base)
    gates = measure(evidence, compared, Tests(log, data.prepared.settings, features)).gates
    return (
        compared,
        [gate for gate in gates if gate.closed],
        [gate for gate in gates if gate.untested],
    )


def _archive_frame(state: State) -> pl.DataFrame:
    """Return a row for each program of the archive, best first."""
    rows = [
        {
            "hash": program.policy.hash,
            "value": program.value,
            "size": program.size,
            "operator": program.operator,
            "parents": list(program.parents),
            "policy": text_of(program.policy),
        }
        for program in state.programs
    ]
    return pl.DataFrame(rows, schema_overrides={"parents": pl.List(pl.String)})


def _select(data: Data, state: State) -> list[Program]:
    """Return at most four policies: the preferred one, the best on the selection part, and smaller ones.

    All beat the start; if none does, only the best policy is returned. The preferred policy is the
    correction, unless the best is better by two standard errors: what is bred overfits more. The
    correction beats the start on clusters left out; its value here is that of fits that did not read them.
    """
    part = data.parts["selection"]
    start = score_program(part, data.start, (), "start")
    scored = [
        score_program(part, program.policy, program.parents, program.operator)
        for program in state.archive.programs
        if program.policy.hash != data.start.hash
        and (program.outcome != state.archive.start.outcome).any()
    ]
    scored.sort(key=by_value)
    front: list[Program] = []
    for program in scored:
        if program.value > start.value and (not front or program.size < front[-1].size):
            front.append(program)
    for preferred in state.correction[1:]:
        best = front[0] if front else preferred
        differences = np.nan_to_num(best.clusters - preferred.clusters)
        error = differences.std() / np.sqrt(len(differences))
        if best.value - preferred.value <= 2 * error:
            front.insert(0, preferred)
    # Without any, the best of the rest still bounds what was missed.
    return front[:_FINALISTS] or scored[:1]


def _judge(
    data: Data, search: Search, state: State, ended: str, seed: int, level: float
) -> Evolved:
    """Return the result of a search: the selected policies, measured once on the report part."""
    chosen = _select(data, state)
    joint = 1 - (1 - level) / max(1, len(chosen))
    log, matrix, goal = data.parts["report"]
    base = goal.totals(matrix.scores(data.start))
    labelled = isinstance(goal, LabelGoal)  # metrics of labels are shares
    rows: list[dict[str, Any]] = []
    winner: tuple[Program, Estimate, Any] | None = None
    gains: list[Estimate] = []
    names = _name_units(log, labelled)
    changes: list[tuple[str, str, float, float]] = []
    for program in [state.archive.start, *chosen]:
        scores = matrix.scores(program.policy)
        totals = goal.totals(scores)
        closed: list[Gate] = []
        untested: list[Gate] = []
        zero = Estimate(0.0, 0.0, 0.0, 0.0, 1.0)
        if isinstance(goal, FeedbackGoal):
            compared, closed, untested = _measure_gates(data, "report", scores, joint)
            value, gain = compared.value, compared.difference or zero
            per = log.sum_by_cluster(totals), log.sum_by_cluster(base)
        else:
            sample = Sample(log.sum_by_cluster(np.column_stack([totals, base])), level=joint)
            value = sample.estimate(lambda sums: sums[..., 1] / sums[..., 0])
            gain = sample.estimate(lambda sums: (sums[..., 1] - sums[..., 3]) / sums[..., 0])
            gain = replace(gain, low=max(gain.low, -1.0), high=min(gain.high, 1.0))
            per = totals, base
        with np.errstate(divide="ignore", invalid="ignore"):
            after, before = goal.statistic(per[0]), goal.statistic(per[1])
            change = np.nan_to_num(after - before)
        changes += [
            (program.policy.hash, names[i], float(before[i]), float(after[i]))
            for i in np.flatnonzero(np.abs(change) > 1e-9)
        ]
        if log.clusters == len(log):
            # One decision has one of a few values, such as 0 or 1, so the interval may have no width after two equal
            # changes. Under a true gain of 0, n changes have the same sign with probability 2^-n.
            changed = int((np.abs(totals - base) > 1e-9).any(axis=1).sum())
            if 0.5**changed > (1 - joint) / 2:
                gain = replace(gain, low=min(gain.low, 0.0), high=max(gain.high, 0.0))
        is_start = program is state.archive.start
        rows.append(
            {
                "size": program.size,
                "value": value.value,
                "low": max(value.low, 0.0) if labelled else value.low,
                "high": min(value.high, 1.0) if labelled else value.high,
                "gain": gain.value,
                "gain_low": gain.low,
                "gain_high": gain.high,
                "hash": program.policy.hash,
                "parents": list(program.parents),
                "operator": program.operator,
                "policy": text_of(program.policy),
                "gained": int((change > 1e-9).sum()),
                "lost": int((change < -1e-9).sum()),
                "closed": [] if is_start else [gate.name for gate in closed],
            }
        )
        if is_start:
            continue
        gains.append(gain)
        if winner is None and not closed and gain.low > PROVEN:
            winner = program, gain, tuple(untested)
    best: Pack | Policy | None = None
    if winner is not None:
        best = data.build_pack(winner[0].policy)
        if isinstance(best, Pack) and data.base is not None:
            lineage = Lineage((data.base.hash,), "evolve", search.part.log.digest())
            best = replace(best, lineage=lineage)
    front = pl.DataFrame(rows, schema=FRONT)
    return Evolved(
        best=best,
        front=front,
        frame=_archive_frame(state),
        lineage=pl.DataFrame(
            [
                {"hash": key, "parents": list(parents), "operator": operator, "value": value}
                for key, (parents, operator, value) in state.lineage.items()
            ],
            schema={
                "hash": pl.String,
                "parents": pl.List(pl.String),
                "operator": pl.String,
                "value": pl.Float64,
            },
        ),
        gain=winner[1] if winner else gains[0] if gains else None,
        metric=data.metric,
        start=rows[0]["value"],
        tried=state.tried,
        reported=len(chosen),
        clusters={name: part.log.clusters for name, part in data.parts.items()},
        clustered=data.prepared.log.clustered,
        proposals=state.proposals,
        refusals=tuple(state.refusals),
        ended=ended,
        seed=seed,
        level=level,
        notes=data.notes,
        untested=() if winner is None else winner[2],
        policies=tuple(program.policy for program in [state.archive.start, *chosen]),
        changes=pl.DataFrame(changes, schema=CHANGES, orient="row"),
    )


def _name_units(log: Log, labelled: bool) -> list[str]:
    """Return the query of each recall (``labelled``) or, with feedback, a name of each cluster."""
    first = np.arange(len(log)) if labelled else np.unique(log.cluster, return_index=True)[1]
    rows = log.decisions[first]
    column = "query" if labelled else log.clustered
    unit = "decision" if labelled else f"{log.clustered} of decision"
    texts = rows[column].cast(pl.String) if column in rows.columns else [None] * rows.height
    return [
        f"{unit} {decision}" if text is None else text
        for decision, text in zip(rows["decision"], texts, strict=True)
    ]

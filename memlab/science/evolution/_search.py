"""Rounds of variation, selection into the archive, and tuning of constants.

A round is a fixed number of programs in four tasks. Each task starts from the same archive with its own
generator, so its result depends on the seed, the round and its number, not on the executor. The state
after a round is written to the folder, so a search continues from its last round.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from memlab.errors import InputError, PolicyError
from memlab.kernel.base.arrays import Floats, Ints
from memlab.kernel.base.disk import replacing, writing
from memlab.kernel.language import Policy, policy_parts
from memlab.kernel.language.graph import reachable
from memlab.kernel.language.writer import number
from memlab.science.batch import run_tasks
from memlab.science.breeding import draft_crossover, draft_mutation
from memlab.science.evaluation.parts import search_point
from memlab.science.evolution._archive import Archive, Program, by_value
from memlab.science.evolution._data import Data, Part
from memlab.science.evolution._matrix import LabelGoal
from memlab.subjects.lens import literals
from memlab.subjects.lens.edit import Draft

_TASKS = 4
"""The number of tasks of a round: enough for the cores of a laptop, and few enough that each sees a full archive."""
ROUND = 500
"""The number of programs of a round: seconds of work, so that little is lost by an interruption."""
_CROSSOVER, _TWO_EDITS = 0.25, 0.3
"""The shares of crossovers, and of mutations with two edits. A search over one LoCoMo conversation chose them."""
_TOURNAMENT = 3
"""The number of programs in a tournament. Half of the parents win one; the others are drawn evenly from the archive."""
_TUNED, _FACTOR = 8, 3.0
"""The maximum number of constants tuned at once, and their maximum factor. The minimum is 0, which drops a term."""
_DIGITS = 12
"""The digits by which values are compared, as in ``memlab.tune``. Later digits depend on the processor."""


@dataclass
class State:
    """The state of a search: the archive, the lineage, and counts of the rounds so far.

    ``correction`` is the start plus a fitted sum, on the search part and, by fits that did not read the
    clusters, on the selection part. It is no parent, because children of a long policy are slow to score.
    """

    archive: Archive
    rounds: int = 0
    tried: int = 0
    seconds: float = 0.0
    tuned: list[str] = field(default_factory=list)
    lineage: dict[str, tuple[tuple[str, ...], str, float]] = field(default_factory=dict)
    proposals: int = 0
    refusals: list[str] = field(default_factory=list)
    correction: tuple[Program, ...] = ()

    @property
    def programs(self) -> list[Program]:
        """The programs of the archive, and the correction, best first."""
        return sorted((*self.archive.programs, *self.correction[:1]), key=by_value)

    def add(self, program: Program) -> bool:
        """Add a program to the archive, and record its parents if the archive accepts it."""
        entered = self.archive.add(program)
        if entered:
            row = program.parents, program.operator, program.value
            self.lineage.setdefault(program.policy.hash, row)
        return entered


class Search(NamedTuple):
    """The inputs that all tasks of a search share: the search part, the anchors and the limits."""

    part: Part
    start: Policy
    anchors: Ints
    floor: Floats
    max_nodes: int
    seed: int


def score_program(part: Part, policy: Any, parents: tuple[str, ...], operator: str) -> Program:
    """Score a policy or a draft on a part of the data, and return it as a program."""
    scores = part.matrix.scores(policy)
    program = summarise(part, policy, part.goal.totals(scores), parents, operator)
    # A policy without a finite score shows nothing, and evaluate refuses it.
    return program if np.isfinite(scores).any() else program._replace(value=-math.inf)


def summarise(
    part: Part, policy: Any, totals: Floats, parents: tuple[str, ...], operator: str
) -> Program:
    """Return a policy or a draft as a program with given totals of each recall of a part."""
    sums = part.log.sum_by_cluster(totals)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(part.goal.statistic(sums.sum(axis=0)))
        clusters, outcome = part.goal.statistic(sums), part.goal.statistic(totals)
    value = float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else -math.inf
    size = policy.size if isinstance(policy, Draft) else len(reachable(policy.root))
    return Program(policy, value, clusters, np.nan_to_num(outcome), parents, operator, size)


def open_search(data: Data, seed: int, max_nodes: int) -> tuple[Search, State]:
    """Return a search, and an initial state that contains only the start."""
    part = data.parts["search"]
    start = score_program(part, data.start, (), "start")
    if not math.isfinite(start.value):
        raise InputError(
            "The start cannot be scored on the search part of the data: the log has no "
            "rewards with known propensities for its items. Call memlab.evaluate for the reasons."
        )
    search = Search(part, data.start, data.anchors, start.outcome[data.anchors], max_nodes, seed)
    state = State(Archive(start))
    state.lineage[data.start.hash] = (), "start", start.value
    return search, state


def run_round(search: Search, state: State, programs: int, executor: Any) -> None:
    """Run a round, and merge the programs found by its tasks into the state, in task order."""
    sizes = [programs // _TASKS + (task < programs % _TASKS) for task in range(_TASKS)]
    tuned = next(
        (item for item in state.archive.programs if item.policy.hash not in state.tuned), None
    )
    work = partial(_run_task, search, state.archive, state.rounds, tuned)
    results = run_tasks(work, list(enumerate(sizes)), executor)
    for programs_of_task in results:
        for program in programs_of_task:
            state.add(program)
    if tuned is not None:
        state.tuned.append(tuned.policy.hash)
    state.rounds += 1
    state.tried += programs


def _run_task(
    search: Search,
    archive: Archive,
    round: int,
    tuned: Program | None,
    task: tuple[int, int],
    _: Callable[[float], object],
) -> list[Program]:
    """Return the programs of a task that enter a copy of the archive, in order.

    ``task`` has the task's number and its number of drafts. The first task also tunes ``tuned``.
    """
    index, left = task
    rng = np.random.default_rng((search.seed, round, index))
    local = Archive(archive.start)
    local.niches = dict(archive.niches)
    entered: list[Program] = []

    def keep(policy: Draft, parents: tuple[str, ...], operator: str) -> Program:
        """Score a draft, and add its policy to the archive unless it is worse on an anchor."""
        program = score_program(search.part, policy, parents, operator)
        if (program.outcome[search.anchors] >= search.floor).all() and local.accepts(program):
            # The text of a draft may exceed a limit of the language.
            with suppress(PolicyError):
                entered.append(program._replace(policy=policy.policy))
                local.add(entered[-1])
        return program

    # The first task tunes the best program that was not tuned yet.
    if index == 0 and tuned is not None:
        left -= _tune(tuned, left, rng, keep)
    parents = local.programs
    for count in range(left):
        if count % 20 == 19:
            parents = local.programs
        parent = _choose(parents, rng)
        if rng.random() < _CROSSOVER and len(parents) > 1:
            other = _choose(parents, rng)
            draft, edits = draft_crossover(parent.policy, other.policy, rng, search.max_nodes)[:2]
            origin: tuple[str, ...] = parent.policy.hash, other.policy.hash
        else:
            several = 2 if rng.random() < _TWO_EDITS else 1
            drafted = draft_mutation(parent.policy, rng, several, max_nodes=search.max_nodes)
            draft, edits = drafted[:2]
            origin = (parent.policy.hash,)
        if draft is not None:
            keep(draft, origin, edits[0].partition(":")[0])
    return entered


def _choose(programs: list[Program], rng: np.random.Generator) -> Program:
    """Choose a parent from programs sorted best first: half of the times by a tournament, else at random."""
    drawn = rng.integers(len(programs), size=_TOURNAMENT)
    return programs[int(drawn.min() if rng.random() < 0.5 else drawn[0])]


def _tune(
    program: Program,
    budget: int,
    rng: np.random.Generator,
    keep: Callable[[Draft, tuple[str, ...], str], Program],
) -> int:
    """Tune constants of a program by scaling them, pass each trial to ``keep``, and return the number of trials."""
    # Constants are multiplied, so that their sign stays; mutations change signs.
    policy = program.policy
    numbers = [item for item in literals(policy) if not item.structural]
    params = [item for item in policy.params.values() if item.value]
    chosen: list[Any] = [*numbers, *params]
    if not chosen or budget < 20:
        return 0
    chosen = [chosen[i] for i in sorted(rng.permutation(len(chosen))[:_TUNED])]
    spent = 0

    def loss(factors: Floats) -> float:
        """Multiply the constants of the program, and return the negated value as loss."""
        nonlocal spent
        if spent >= budget:
            return math.inf
        spent += 1
        changes, values = {}, {}
        for item, factor in zip(chosen, factors, strict=True):
            value = float(f"{item.value * factor:.4g}")
            if item in params:
                values[item.name] = float(np.clip(value, item.low, item.high))
            else:
                changes[item.span] = number(value)
        try:
            tuned = Draft(policy, changes, values=values)
        except PolicyError:
            return math.inf
        scored = keep(tuned, (policy.hash,), "tune")
        return -scored.value if math.isfinite(scored.value) else math.inf

    search_point(loss, [(0.0, _FACTOR)] * len(chosen), [1.0] * len(chosen), budget, rng)
    return spent


# The folder of a search has one file, which is replaced after each round.

_FILE = "search.json"
"""The file of a search, which is replaced as a whole so that an interruption leaves the last round."""


def digest_inputs(data: Data, **inputs: Any) -> str:
    """Return a hash of all inputs that affect a search."""
    texts = [
        data.prepared.log.digest(),
        data.start.hash,
        data.metric,
        repr(sorted(data.signature.inputs)),
        repr(data.anchors.tolist()),
    ]
    for part in data.parts.values():
        texts.append(part.log.digest())
        texts += [_digest_part(part)]
        texts += [
            repr(
                np.asarray(
                    part.goal.statistic(part.goal.totals(part.matrix.scores(data.start)))
                ).tolist()
            )
        ]
    return hashlib.sha256(
        json.dumps([texts, inputs], sort_keys=True, default=str).encode()
    ).hexdigest()


def _digest_part(part: Part) -> str:
    """Return a hash of the features and the wanted memories of a part, which its log's digest does not cover."""
    digest = hashlib.sha256()
    for name, (values, _) in sorted(part.matrix.columns.items()):
        digest.update(name.encode())
        digest.update(
            repr(values.tolist()).encode() if values.dtype == object else values.tobytes()
        )
    if isinstance(part.goal, LabelGoal):
        digest.update(part.goal.rows.tobytes() + part.goal.count.tobytes())
    return digest.hexdigest()


def save_state(folder: Path, inputs: str, state: State) -> None:
    """Write the state of a search to its folder."""
    programs = {program.policy.hash: program for _, program in state.archive.niches.values()}
    body = {
        "inputs": inputs,
        "rounds": state.rounds,
        "tried": state.tried,
        "seconds": state.seconds,
        "tuned": state.tuned,
        "proposals": state.proposals,
        "refusals": state.refusals,
        "lineage": {key: [list(row[0]), *row[1:]] for key, row in state.lineage.items()},
        "programs": {
            key: [*policy_parts(item.policy), item.parents, item.operator]
            for key, item in programs.items()
        },
        "niches": [
            [key, program.policy.hash] for key, (_, program) in state.archive.niches.items()
        ],
    }
    with writing(f"The search in {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / _FILE) as file:
            file.write(json.dumps(body).encode())


def load_state(folder: Path, inputs: str, data: Data, state: State) -> bool:
    """Load the state of an earlier search, and return whether one exists; raise InputError for other inputs."""
    path = folder / _FILE
    if not path.exists():
        return False
    try:
        body: Mapping[str, Any] = json.loads(path.read_bytes())
        stored = body["inputs"]
        if stored == inputs:
            _restore(body, data, state)
    except (OSError, ValueError, LookupError, TypeError, PolicyError):
        raise InputError(f"{path} is not the state of a search. Name another folder.") from None
    if stored != inputs:
        raise InputError(
            f"{folder} has a search with other data, start, seed, metric or budget. Its report part has been or will be "
            "read for that search, so it cannot be continued with others. Name another folder."
        )
    return True


def _restore(body: Mapping[str, Any], data: Data, state: State) -> None:
    """Restore the state of a search from the decoded content of its file."""
    programs = {}
    for key, (text, helpers, params, parents, operator) in body["programs"].items():
        policy = data.compile(text, helpers, params)
        programs[key] = score_program(data.parts["search"], policy, tuple(parents), operator)
    archive = state.archive
    archive.niches = {}
    for niche, key in body["niches"]:
        program = programs[key]
        ranks = dict(archive.niches_of(program, program.size))
        archive.niches[tuple(niche)] = (ranks[tuple(niche)], program.value, -program.size), program
    for name in ("rounds", "tried", "seconds", "tuned", "proposals", "refusals"):
        setattr(state, name, body[name])
    state.lineage = {key: (tuple(row[0]), row[1], row[2]) for key, row in body["lineage"].items()}

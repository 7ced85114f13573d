"""Measure after how many recalls a challenge names the better pack.

    python experiments/challenges.py locomo-dev5.json                    # 500 runs a pair
    python experiments/challenges.py locomo-dev5.json --half held-out --user terse --runs 200 --recalls 600
    python experiments/challenges.py locomo-dev5.json --runs 50 --design ab --extra 1 --recalls 4000

The default pack is active. Labs with the conversations give the results of it and of each challenger for every
question. A run draws questions, shows results by the engine's own design, and simulates a user who judges each item. The
user *graded* calls an item a success with probability .9 if it is evidence, .45 next to evidence, .12 in its session, and
.02 elsewhere. The user *terse* judges 7 of 10 items, as a success if they are evidence, and errs in 1 of 20; missing
feedback is censored. ``--half`` takes the conversations on which the designs were chosen or the others, see
``held_out.py``.

``memlab.verdict`` gives the anytime-valid interval after each recall, gates aside. The table gives the share of runs whose
interval has left zero on the right side by so many recalls. It also counts the runs in which the interval ever left zero
on the wrong side. The column *at the end* is the share of runs with a verdict after the last recall, after all gates. The
column *released* is the share with a verdict after any of about ten numbers of recalls. Below a challenger are the gates
that closed at the end.

*tie*: both packs show the same results, and all items are equally good. ``recall@10`` is that of the active pack, and
``as shown`` is that of the first ten results under the challenge.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from held_out import LOCOMO_HELD_OUT
from numpy.typing import NDArray
from results import Results, plot_lines

import memlab
from memlab.io.ingest import conversation, read_locomo
from memlab.kernel.policies import Challenge
from memlab.kernel.recall import draw_challenge

_START = datetime(2026, 1, 1, tzinfo=UTC)
_COMPANION = memlab.load_pack("companion")
PACKS = {
    "words": "(pack words :inherits memlab) (defpolicy recall-score [lexical] lexical)",
    "near": "(pack near :inherits memlab) (defpolicy recall-score [similarity] similarity)",
    "both": "(pack both :inherits memlab) (defpolicy recall-score [lexical closeness] (+ (min-max lexical) closeness))",
    "companion": "companion",
    "associative": "associative",
    "near and recent": "(pack recent :inherits memlab) (defpolicy recall-score [similarity recency] "
    "(+ similarity (* 0.1 recency)))",
}
LOOKS = (100, 150, 200, 260, 300, 450, 600, 1000, 2000, 4000)
_SAMPLERS = {"extra": "challenge", "lot": "lot", "draft": "draft", "ab": "ab"}


@dataclass(frozen=True)
class Asked:
    """One question: results of each pack, success probabilities and evidence."""

    live: tuple[int, ...]
    heads: dict[str, tuple[int, ...]]
    worth: dict[int, float]
    evidence: frozenset[int]


def recall_all(path: Path, half: str, user: str) -> list[Asked]:
    """Return the results of every pack for every question of the conversations of a half."""
    questions = []
    for benchmark in read_locomo(path):
        if half != "all" and (benchmark.conversation.name in LOCOMO_HELD_OUT) != (
            half == "held-out"
        ):
            continue
        with memlab.open(pack="memlab") as lab:
            conversation(lab, benchmark.conversation, project="p")
            rows = lab.memories.select("ref", "id", "session")
            ids, sessions = (
                dict(zip(rows["ref"], rows["id"], strict=True)),
                dict(zip(rows["id"], rows["session"], strict=True)),
            )
            for source in PACKS.values():
                lab.challenge(source)
            for question in benchmark.questions:
                if question.category == 5 or not question.evidence:
                    continue
                slate = lab.recall(
                    question.text, project="p", limit=10, at=benchmark.conversation.end
                ).slate
                assert slate.challenge is not None
                gold = {ids[ref] for ref in question.evidence}
                worth = {}
                heads = dict(
                    zip(
                        PACKS,
                        (tuple(member["ids"]) for member in slate.challenge["heads"].values()),
                        strict=True,
                    )
                )
                for item in {
                    item for head in (*heads.values(), slate.challenge["live"]) for item in head
                }:
                    if user == "terse":
                        worth[item] = 0.95 if item in gold else 0.05
                        continue
                    near = sessions[item] in {sessions[member] for member in gold}
                    worth[item] = reward_probability(item, gold, near)
                questions.append(
                    Asked(tuple(slate.challenge["live"]), heads, worth, frozenset(gold))
                )
    return questions


def reward_probability(item: int, gold: set[int], is_near: bool) -> float:
    """Return how often the hidden user rewards an item; ``is_near`` in a session with evidence."""
    is_adjacent = bool({item - 1, item + 1} & gold)
    return 0.9 if item in gold else 0.45 if is_adjacent else 0.12 if is_near else 0.02


class Opponent:
    """One challenger under a design, drawn on every recall."""

    def __init__(self, name: str, design: str, extra: Any = "auto") -> None:
        self.name, self.design, self.extra = name, design, extra
        self._challenge = Challenge(_COMPANION, design, extra, 1.0, 1, 0, "")  # type: ignore[arg-type]

    def show(
        self,
        items: Sequence[int],
        live: Sequence[int],
        own: Sequence[int],
        dice: np.random.Generator,
    ) -> tuple[list[int], NDArray[np.float64], str]:
        """Draw as the engine does.

        Returns the shown items, the probability of each of ``items``, and the challenge as a slate records it.
        """
        at = {item: index for index, item in enumerate(items)}
        heads = [np.array([at[item] for item in head], dtype=np.int64) for head in (live, own)]
        draw = draw_challenge(heads[0], heads[1:], len(items), [self._challenge], dice)
        logged: dict[str, Any] = {"design": self.design, "draws": draw.draws, "live": list(live)}
        logged |= {"heads": {self.name: {"hash": "h", "ids": list(own)}}}
        if self.design == "ab":
            logged |= {"whose": ("", self.name)[draw.arm], "shares": {"": 0.5, self.name: 0.5}}
        else:
            groups = [[items[index] for index in group] for group in draw.groups or ()]
            logged |= {"groups": groups, "extra": 0 if self.extra == "auto" else self.extra}
        results = [items[index] for index in draw.results.tolist()]
        return results, draw.propensity, json.dumps(logged)


def simulate_slates(
    questions: Sequence[Asked],
    name: str,
    count: int,
    seed: int,
    tie: bool,
    answers: float,
    opponent: Opponent,
) -> memlab.Slates:
    """Simulate a log of ``count`` questions under a challenge."""
    dice = np.random.default_rng((5, seed))
    decisions, candidates, exposures, feedback = [], [], [], []
    for number, index in enumerate(dice.integers(len(questions), size=count).tolist()):
        question = questions[index]
        items = sorted({*question.live, *question.heads[name]})
        results, chances, logged = opponent.show(items, question.live, question.heads[name], dice)
        chance = dict(zip(items, chances.tolist(), strict=True))
        when = _START + timedelta(minutes=number)
        decisions.append(
            (number, when, len(question.live), _SAMPLERS[opponent.design], "memlab", "a", logged)
        )
        order = {
            item: rank
            for rank, item in enumerate(
                (*question.live, *(i for i in items if i not in question.live)), 1
            )
        }
        candidates += [(number, item, chance[item], order[item]) for item in items]
        for position, item in enumerate(results, 1):
            exposures.append((number, item, position, chance[item]))
            reward = float(dice.random() < (0.1 if tie else question.worth[item]))
            if answers == 1 or dice.random() < answers:
                feedback.append((number, item, reward, when))
    names = ["decision", "at", "limit", "sampler", "pack", "pack_hash", "challenge"]
    return memlab.Slates(
        pl.DataFrame(decisions, schema=names, orient="row").lazy(),
        pl.DataFrame(
            candidates, schema=["decision", "memory_id", "propensity", "rank"], orient="row"
        ).lazy(),
        pl.DataFrame(
            exposures, schema=["decision", "memory_id", "position", "propensity"], orient="row"
        ).lazy(),
        pl.DataFrame(
            feedback, schema=["decision", "memory_id", "reward", "at"], orient="row"
        ).lazy(),
    )


def measure_recall(name: str, opponent: Opponent, rounds: int = 5) -> tuple[float, float]:
    """Return recall@10 of the active pack and of the first ten results under a challenge."""
    dice = np.random.default_rng(11)
    alone, shared = [], []
    for question in _ASKED * rounds:
        first = set(
            opponent.show(
                sorted({*question.live, *question.heads[name]}),
                question.live,
                question.heads[name],
                dice,
            )[0][:10]
        )
        alone.append(len(question.evidence & set(question.live[:10])) / len(question.evidence))
        shared.append(len(question.evidence & first) / len(question.evidence))
    return float(np.mean(alone)), float(np.mean(shared))


_ASKED: list[Asked] = []


def store_questions(questions: list[Asked]) -> None:
    """Store the questions in a worker process."""
    _ASKED[:] = questions


@dataclass(frozen=True)
class Study:
    """One cell: a challenger, its true difference, a design, a user, and the length of a run."""

    name: str
    truth: float
    tie: bool
    design: str
    extra: Any
    user: str
    recalls: int


def is_released(log: memlab.Slates, name: str, missing: Any, recalls: Sequence[int]) -> bool:
    """Return whether ``memlab.verdict`` names a pack after any of these numbers of recalls, gates included."""
    for count in recalls:
        tables = (log.decisions, log.candidates, log.exposures, log.feedback)
        part = memlab.Slates(*(table.filter(pl.col("decision") < count) for table in tables))
        if memlab.verdict(part, name, missing=missing)[name].better is not None:
            return True
    return False


def simulate_run(task: tuple[Study, int]) -> tuple[int | None, bool, str, str, bool]:
    """Simulate one run.

    Returns the recall from which on an interval left zero, and whether one was ever wrong. Then follow the final
    verdict, the gates that withheld it, and whether a verdict was given at any interim analysis.
    """
    study, seed = task
    answers, missing = (0.7, "censor") if study.user == "terse" else (1.0, "zero")
    opponent = Opponent(study.name, study.design, study.extra)
    log = simulate_slates(_ASKED, study.name, study.recalls, seed, study.tie, answers, opponent)
    verdict = memlab.verdict(log, study.name, missing=missing)[study.name]  # type: ignore[arg-type]
    low, high = verdict.track["low"].to_numpy(), verdict.track["high"].to_numpy()
    signs = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    wrong = signs != 0 if study.tie else signs == (-1 if study.truth > 0 else 1)
    first = np.flatnonzero((signs != 0) & ~wrong)
    start = int(first[0]) + 1 if len(first) else None
    why = ", ".join(gate.name for gate in verdict.closed)
    # Ten interim analyses suffice for a lower bound of the share.
    looks = np.flatnonzero(signs) + 1
    looks = looks[:: max(1, len(looks) // 10)].tolist()
    released = verdict.better is not None or is_released(log, study.name, missing, looks)
    return start, bool(wrong.any()), verdict.better or "", why, released


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--design", default="extra", choices=tuple(_SAMPLERS))
    parser.add_argument("--extra", default="auto", help="number of extra items, or auto")
    parser.add_argument("--half", default="all", choices=("all", "development", "held-out"))
    parser.add_argument("--user", default="graded", choices=("graded", "terse"))
    parser.add_argument("--recalls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first run")
    parser.add_argument("--only", default="", help="challengers, separated by semicolons")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    results = Results("challenges", arguments, data=[arguments.path])
    rows: list[dict[str, object]] = []
    began = time.monotonic()
    _ASKED[:] = recall_all(arguments.path, arguments.half, arguments.user)
    looks = [look for look in LOOKS if look <= arguments.recalls]
    extra = int(arguments.extra) if arguments.extra.isdecimal() else arguments.extra
    heads = "".join(f"{f'<={look}':>8}" for look in looks)
    print(
        f"{len(_ASKED)} questions; design {arguments.design}; share of {arguments.runs} runs with the right verdict"
    )
    print(
        f"{'challenger':<16}{'truth':>8}{'differ':>8}{heads}{'median':>8}{'ever wrong':>12}{'at the end':>11}"
        f"{'released':>9}{'recall@10':>11}{'as shown':>10}"
    )
    # spawn: Polars' threads do not survive a fork
    with get_context("spawn").Pool(arguments.processes, store_questions, (list(_ASKED),)) as pool:
        for name in (*PACKS, "words, a tie"):
            if arguments.only and name not in arguments.only.split(";"):
                continue
            tie, pack = name.endswith("a tie"), name.partition(",")[0]
            gaps = [
                sum(entry.worth[i] for i in entry.heads[pack])
                - sum(entry.worth[i] for i in entry.live)
                for entry in _ASKED
            ]
            truth = 0.0 if tie else float(np.mean(gaps))
            differ = np.mean([len(set(entry.heads[pack]) - set(entry.live)) for entry in _ASKED])
            study = Study(
                pack, truth, tie, arguments.design, extra, arguments.user, arguments.recalls
            )
            tasks = [(study, arguments.seed + run) for run in range(arguments.runs)]
            outcomes = pool.map(simulate_run, tasks, chunksize=4)
            ends = np.array([arguments.recalls + 1 if end is None else end for end, *_ in outcomes])
            shares = [float(np.mean(ends <= look)) for look in looks]
            wrong = sum(outcome[1] for outcome in outcomes)
            at_end = np.mean([outcome[2] != "" for outcome in outcomes])
            released = np.mean([outcome[4] for outcome in outcomes])
            withheld = Counter(outcome[3] for outcome in outcomes if outcome[3])
            rows += [
                {
                    "challenger": name,
                    "true difference": truth,
                    "recalls": look,
                    "right verdicts": share,
                    "ever wrong": wrong / len(outcomes),
                }
                for look, share in zip(looks, shares, strict=True)
            ]
            middle = float(np.median(ends))
            median = f"{middle:.0f}" if middle <= arguments.recalls else "-"
            line = f"{name:<16}{truth:>+8.3f}{differ:>8.2f}" + "".join(f"{x:>8.2f}" for x in shares)
            alone, under = measure_recall(pack, Opponent(pack, arguments.design, extra))
            print(
                f"{line}{median:>8}{wrong:>8}/{len(outcomes)}{at_end:>11.2f}{released:>9.2f}{alone:>11.4f}{under:>10.4f}",
                flush=True,
            )
            gates = "; ".join(f"{gate} {number}" for gate, number in withheld.most_common())
            print(f"  closed gates at the end: {gates or 'none'}", flush=True)
    results.save(
        rows,
        plot_lines(
            rows,
            x="recalls",
            y="right verdicts",
            group="challenger",
            log="x",
            title="Share of runs with the right verdict by then",
        ),
    )
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    sys.exit(main())

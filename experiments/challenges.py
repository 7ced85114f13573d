"""Measure after how many recalls a challenge names the better pack.

    python experiments/challenges.py locomo-dev5.json                    # 500 runs a pair
    python experiments/challenges.py locomo-dev5.json --runs 50
    python experiments/challenges.py locomo-dev5.json --runs 50 --design ab --recalls 4000

The default pack is active. Labs with the conversations give the results of it and of each challenger for every
question. A run draws questions, shows results by the engine's own design, and simulates a user who judges each item. An
item is a success with probability .9 if it is evidence, .45 next to evidence, .12 in its session, and .02 elsewhere.

``memlab.verdict`` gives a fixed-sample test at each planned sample size and the anytime-valid test after each recall.
*tie*: both packs show the same results, and all items are equally good. ``recall@10`` is that of the active pack;
``as shown`` is that of the first ten results under the challenge.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from results import Results, plot_lines

import memlab
from memlab.io.ingest import conversation, read_locomo
from memlab.kernel.policies import Challenge
from memlab.kernel.recall import draw_challenge

_START = datetime(2026, 1, 1, tzinfo=UTC)
PACKS = {
    "words": "(pack words :inherits memlab) (defpolicy recall-score [lexical] lexical)",
    "near": "(pack near :inherits memlab) (defpolicy recall-score [similarity] similarity)",
    "both": "(pack both :inherits memlab) (defpolicy recall-score [lexical closeness] (+ (min-max lexical) closeness))",
    "companion": "companion",
    "associative": "associative",
}
LOOKS = (100, 260, 450, 550, 1000, 2000, 4000)
_SAMPLERS = {"extra": "challenge", "lot": "lot", "ab": "ab"}


@dataclass(frozen=True)
class Asked:
    """One question: results of each pack, success probabilities and evidence."""

    live: tuple[int, ...]
    heads: dict[str, tuple[int, ...]]
    worth: dict[int, float]
    evidence: frozenset[int]


def recall_all(path: Path) -> list[Asked]:
    """Return the results of every pack for every question of a file."""
    questions = []
    for benchmark in read_locomo(path):
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

    def __init__(self, name: str, design: str) -> None:
        self.name, self.design = name, design
        self._challenge = Challenge(memlab.load_pack("companion"), design, 1, 1.0, 1, 0, "")  # type: ignore[arg-type]

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
        results, _, propensity, draws, assigned = draw_challenge(
            heads[0], heads[1:], len(items), [self._challenge], dice
        )
        logged = {"design": self.design, "draws": draws, "live": list(live)}
        logged |= {"heads": {self.name: {"hash": "h", "ids": list(own)}}}
        if self.design == "ab":
            logged |= {"whose": ("", self.name)[assigned], "shares": {"": 0.5, self.name: 0.5}}
        return [items[index] for index in results.tolist()], propensity, json.dumps(logged)


def simulate_slates(
    questions: Sequence[Asked], name: str, count: int, seed: int, tie: bool, design: str
) -> memlab.Slates:
    """Simulate a log of ``count`` questions under a challenge."""
    dice = np.random.default_rng((5, seed))
    opponent = Opponent(name, design)
    decisions, candidates, exposures, feedback = [], [], [], []
    for number, index in enumerate(dice.integers(len(questions), size=count).tolist()):
        question = questions[index]
        items = sorted({*question.live, *question.heads[name]})
        results, chances, logged = opponent.show(items, question.live, question.heads[name], dice)
        chance = dict(zip(items, chances.tolist(), strict=True))
        when = _START + timedelta(minutes=number)
        decisions.append(
            (number, when, len(question.live), _SAMPLERS[design], "memlab", "a", logged)
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


def measure_recall(name: str, design: str, rounds: int = 5) -> tuple[float, float]:
    """Return recall@10 of the active pack and of the first ten results under a challenge."""
    dice, opponent = np.random.default_rng(11), Opponent(name, design)
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


def simulate_run(
    task: tuple[str, int, bool, str, int, float],
) -> tuple[dict[int, int], dict[int, int], bool]:
    """Simulate one run.

    Returns the sign by each interim analysis, the sign of each fixed-sample test, and whether any sign was wrong.
    """
    name, seed, tie, design, recalls, truth = task
    log = simulate_slates(_ASKED, name, recalls, seed, tie, design)
    verdict = memlab.verdict(log, name)[name]
    low, high = verdict.track["low"].to_numpy(), verdict.track["high"].to_numpy()
    signs = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    every = {
        look: int(signs[:look][np.flatnonzero(signs[:look])[0]]) if signs[:look].any() else 0
        for look in LOOKS
    }
    once = {}
    for look in planned_sizes(design):
        part = memlab.verdict(log.filter(pl.col("decision") < look), name)[name].planned
        once[look] = 1 if part.low > 0 else -1 if part.high < 0 else 0
    wrong = bool((signs == (-1 if truth > 0 else 1)).any()) if not tie else bool(signs.any())
    return every, once, wrong


def planned_sizes(design: str) -> tuple[int, int]:
    """Return the planned sample sizes; A/B tests need more recalls."""
    return (1000, 2000) if design == "ab" else (260, 450)


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--design", default="extra", choices=("extra", "lot", "ab"))
    parser.add_argument("--recalls", type=int, default=1000)
    parser.add_argument("--only", default="", help="comma-separated challengers")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    results = Results("challenges", arguments, data=[arguments.path])
    rows: list[dict[str, object]] = []
    began = time.monotonic()
    _ASKED[:] = recall_all(arguments.path)
    looks = [look for look in LOOKS if look <= arguments.recalls]
    twice = [look for look in planned_sizes(arguments.design) if look <= arguments.recalls]
    heads = "".join(f"{f'<={look}':>8}" for look in looks)
    print(
        f"{len(_ASKED)} questions; design {arguments.design}; share of {arguments.runs} runs with the right verdict"
    )
    recall_header = f"{'recall@10':>11}{'as shown':>10}"
    heads = "".join(f"{f'once {look}':>11}" for look in twice) + heads
    print(f"{'challenger':<16}{'truth':>8}{'differ':>8}{heads}{'ever wrong':>12}{recall_header}")
    # spawn: Polars' threads do not survive a fork
    with get_context("spawn").Pool(arguments.processes, store_questions, (list(_ASKED),)) as pool:
        for name in (*PACKS, "words, a tie"):
            if arguments.only and name not in arguments.only.split(","):
                continue
            tie, pack = name.endswith("a tie"), name.partition(",")[0]
            gaps = [
                sum(entry.worth[i] for i in entry.heads[pack])
                - sum(entry.worth[i] for i in entry.live)
                for entry in _ASKED
            ]
            truth = 0.0 if tie else float(np.mean(gaps))
            differ = np.mean([len(set(entry.heads[pack]) - set(entry.live)) for entry in _ASKED])
            tasks = [
                (pack, seed, tie, arguments.design, arguments.recalls, truth)
                for seed in range(arguments.runs)
            ]
            outcomes = pool.map(simulate_run, tasks, chunksize=4)
            sign = 1 if truth > 0 else -1
            once = "".join(
                f"{np.mean([entry[1][look] == sign for entry in outcomes]):>11.2f}"
                for look in twice
            )
            every = "".join(
                f"{np.mean([entry[0][look] == sign for entry in outcomes]):>8.2f}" for look in looks
            )
            wrong = sum(entry[2] for entry in outcomes)
            rows += [
                {
                    "challenger": name,
                    "true difference": truth,
                    "recalls": look,
                    "right verdicts": float(
                        np.mean([entry[0][look] == sign for entry in outcomes])
                    ),
                    "ever wrong": wrong / len(outcomes),
                }
                for look in looks
            ]
            line = f"{name:<16}{truth:>+8.3f}{differ:>8.2f}{once}{every}{wrong:>8}/{len(outcomes)}"
            print(
                line + "{:>11.4f}{:>10.4f}".format(*measure_recall(pack, arguments.design)),
                flush=True,
            )
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

"""Use a lab until it dies: the workload of ``durability.py`` for the verbs that people call.

    python -m tests.campaigns.durability --workload tests.campaigns.lab_durability

Remembers (one and many, chained), recalls, gives feedback, swaps policies, writes snapshots and reopens. Whatever a verb
acknowledged must exist afterwards: the event with its texts, vectors and sources. So must the slate of every recall that
the death of a process may not lose.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import memlab

# imported here and not at first use: a child's life is measured from the end of its imports
import memlab.subjects.lab
from memlab.errors import MemlabError
from memlab.kernel.journal import Journal
from tests.campaigns.durability import Verdict

memlab.load_pack("memlab")
WORDS = ["goat", "sea", "bakery", "tabs", "deploy", "review", "swim", "village", "six", "branch"]
POLICIES = [
    "(fn [similarity] similarity)",
    "(fn [lexical recency] (+ lexical recency))",
    "(fn [length] (- length))",
]


def _embed(texts: Sequence[str]) -> np.ndarray:
    return np.array(
        [[len(text), text.count("a"), text.count("e"), 1] for text in texts], dtype=float
    )


def _open(path: Path, synchronous: str) -> memlab.Lab:
    lab = memlab.open(path, embedder=_embed)
    if synchronous != "FULL":
        # The control of the experiment: the same lab on a journal that does not sync.
        lab.io.store.journal.close()
        lab.io.store.journal = Journal.open(path, _synchronous=synchronous)  # type: ignore[arg-type]
    return lab


def write(
    path: Path, acknowledge: Callable[[int, bool], None], *, seed: int, synchronous: str
) -> None:
    """Use the lab until the process is killed."""
    dice = random.Random(seed)

    def text() -> str:
        return " ".join(dice.choices(WORDS, k=dice.randint(1, 6)))

    lab = _open(path, synchronous)
    for turn in itertools.count():
        what = dice.choice(["one", "many", "recall", "feedback", "install", "reopen", "snapshot"])
        if what == "one":
            lab.remember(text(), session="s", chain=True)
        elif what == "many":
            lab.remember(
                [{"text": text(), "session": str(turn)} for _ in range(dice.randint(2, 40))],
                chain=True,
            )
        elif what == "recall":
            decision = lab.recall(text()).decision
            assert decision is not None
            acknowledge(decision, False)
            continue
        elif what == "feedback":
            if not len(lab):
                continue  # nothing is written, so there is nothing to acknowledge
            lab.feedback(dice.randint(1, len(lab)), dice.choice(["success", "fail"]))
        elif what == "install":
            lab.policies.install("recall-score", dice.choice(POLICIES))
        elif what == "snapshot":
            lab.io.snapshot()
            continue
        elif what == "reopen":
            lab.close()
            lab = _open(path, synchronous)
            continue
        acknowledge(lab.io.store.journal.head, True)


def check(path: Path, acknowledged: Sequence[tuple[int, bool]], *, power_cut: bool) -> Verdict:
    """Open the lab as its owner would; look for every acknowledged event and every slate."""
    promised = [number for number, durable in acknowledged if durable or not power_cut]
    try:
        with warnings.catch_warnings():
            if power_cut:
                # recalls that were acknowledged and never synced are told, as they should be
                warnings.simplefilter("ignore", memlab.DamageWarning)
            lab = memlab.open(path, embedder=_embed)
        with lab:
            kinds = {event.seq: event.kind for event in lab.io.store.journal.events()}
            slates = {seq for seq, _ in lab.io.store.journal.slates()}
            lost = [
                number
                for number in promised
                if number not in kinds or (kinds[number] == "recall" and number not in slates)
            ]
            broken = []
            count = len(lab)
            if lab.memories["text"].null_count() or len(lab.io.store.state.vectors) != count:
                broken.append("a memory without its text or vector")
            if sorted(lab.io.store.journal.texts(range(1, count + 1))) != sorted(
                lab.memories["text"]
            ):
                broken.append("texts that are not those of the journal")
            if count:
                lab.recall("goat by the sea")
    except MemlabError as error:
        return Verdict(tuple(promised), (str(error),))
    return Verdict(tuple(lost), tuple(broken))

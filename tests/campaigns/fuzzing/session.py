"""One process' work: texts are drawn or mutated, read and checked under the canaries' ears, run and compared."""

from __future__ import annotations

import collections
import contextlib
import gc
import random
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memlab.errors import InputError, PolicyError
from memlab.kernel.language import Policy, compile_policy, read_pack
from memlab.kernel.policies import SLOTS as OFFERED
from memlab.kernel.policies import load_pack, pack_names
from memlab.kernel.policies._packs import pack_source
from tests.campaigns.fuzzing.canaries import Canaries
from tests.campaigns.fuzzing.edges import Edges
from tests.campaigns.fuzzing.mutations import MUTATIONS
from tests.campaigns.fuzzing.tally import Finding, Tally
from tests.language.agreement import disagreement, over_slate
from tests.language.corpus import attacks
from tests.language.grammar import Grammar
from tests.language.vocabulary import SLOTS, records

__all__ = ["SLOW", "Session", "disagreements", "read_and_check"]

SLOW = 0.050
"""Seconds of processor time that a text may take."""
COMPARED, TRACED = 0.05, 0.02
"""Shares of the inputs whose back ends are compared, and whose edges are followed."""
SIGNATURES = SLOTS | {f"slot {name}": slot.signature for name, slot in OFFERED.items()}
"""What a text may be given to: the grammar's slots and those that packs fill."""


def read_and_check(text: str, slot: str, *, whole: bool = False) -> Policy | None:
    """Return a policy for a slot, or a pack; with ``whole``, check all policies of the pack."""
    if slot != "pack":
        return compile_policy(text, SIGNATURES[slot])
    if whole and text.lstrip().startswith(("(", ";")):
        load_pack(text)
    else:
        read_pack(text)
    return None


def disagreements(policy: Policy, rows: list[dict[str, Any]]) -> str | None:
    """Return how two ways of running a policy disagree, or None."""
    return disagreement(policy, rows)


class Session:
    """One process' work: draws inputs, tries them, remembers what reached new code."""

    def __init__(self, seed: str, folder: Path) -> None:
        self.dice = random.Random(seed)
        self.grammar = Grammar(self.dice)
        self.canaries = Canaries(folder)
        self.edges = Edges()
        shipped = [pack_source(name) for name in pack_names()]
        self.packs = [(text, "pack") for text in shipped]
        slots = [slot for slot in SLOTS if slot != "list"]
        self.hostile = [(text, slots[i % len(slots)]) for i, text in enumerate(attacks())]
        live = [
            (slot, policy)
            for name in pack_names()
            for slot, policy in load_pack(name).policies.items()
        ]
        self.policies = [
            ("\n".join([*policy.helpers, policy.source]), f"slot {slot}") for slot, policy in live
        ]
        self.drawn: collections.deque[tuple[str, str]] = collections.deque(maxlen=400)
        self.reached: list[tuple[str, str]] = []
        self.rows = {
            name: records(self.dice, 300, s.inputs.values()) for name, s in SIGNATURES.items()
        }
        for _ in range(50):  # lazy imports and caches, before anyone listens
            program = self.grammar.policy()
            self.drawn.append((program.source, program.slot))
            with contextlib.suppress(Exception):
                disagreements(
                    compile_policy(program.source, program.signature), self.rows[program.slot][:3]
                )
        gc.collect()
        gc.freeze()

    def draw(self) -> tuple[str, str, str]:
        """Return a kind of input, its text, and the slot that it is meant for."""
        dice = self.dice
        lot = dice.random()
        if lot < 0.42:
            program = self.grammar.policy()
            self.drawn.append((program.source, program.slot))
            return "drawn", program.source, program.slot
        kind, pool = "mutated", list(self.drawn)
        if lot < 0.50 and self.reached:
            kind, pool = "reached", self.reached
        elif lot < 0.55:
            kind, pool = "shipped", self.policies
        elif lot < 0.61:
            kind, pool = "pack", self.packs
        elif lot < 0.71:
            kind, pool = "attack", self.hostile
        text, slot = dice.choice(pool)
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            other = dice.choice(dice.choice((pool, pool, self.hostile, self.reached or pool)))[0]
            text = dice.choice(MUTATIONS)(text, other, dice)
        if kind == "pack":
            return kind, text[:250_000], slot
        if dice.random() < 0.05:
            slot = dice.choice(list(SIGNATURES))
        return kind, text[:30_000], slot

    def run(
        self, count: int, before: Callable[[str, str], None] = lambda text, slot: None
    ) -> Tally:
        """Try ``count`` inputs, and call ``before`` with each one first."""
        tally = Tally()
        for _ in range(count):
            kind, text, slot = self.draw()
            before(text, slot)
            self.attempt(tally, kind, text, slot)
        tally.edges = len(self.edges.seen)
        if self.canaries.file.exists():
            self.canaries.file.unlink()
            tally.findings.append(Finding("execution", "the canary's file was written", text, slot))
        return tally

    def attempt(self, tally: Tally, kind: str, text: str, slot: str) -> None:
        tally.inputs += 1
        tally.kinds[kind] += 1
        if self.dice.random() < TRACED:
            if self.edges.follow(lambda: self.judge(Tally(), text, slot)) and len(text) < 20_000:
                self.reached.append((text, slot))
                tally.kept += 1
                if len(self.reached) > 3000:
                    del self.reached[: len(self.reached) // 2]
            return self.judge(tally, text + " ", slot, kind)
        return self.judge(tally, text, slot, kind)

    def judge(self, tally: Tally, text: str, slot: str, kind: str = "") -> None:
        """Read, check, run and compare one text."""
        policy, message, outcome = None, "", "valid"
        whole = slot == "pack" and self.dice.random() < 0.25
        started = time.thread_time()
        try:
            with self.canaries.near():
                policy = read_and_check(text, slot, whole=whole)
                if policy is not None:
                    _ = policy.hash, policy.meaning_hash
        except (PolicyError, InputError) as error:
            message, outcome = str(error), type(error).__name__
            source = getattr(error, "source", None) or text
            line = getattr(error, "line", None)
            if line is not None and not 1 <= line <= source.count("\n") + 1:
                tally.findings.append(
                    Finding("crash", f"line {line} is not in the text: {message}", text, slot)
                )
        except Exception as error:  # noqa: BLE001 - any other exception is what is being looked for
            tally.findings.append(self.crash(error, text, slot))
            outcome = "crash"
        seconds = time.thread_time() - started
        if len(message) > 2000:
            tally.findings.append(
                Finding("crash", f"a message of {len(message)} characters", text, slot)
            )
        if self.canaries.song:
            tally.findings.append(
                Finding("execution", "; ".join(self.canaries.song[:5]), text, slot)
            )
            self.canaries.song.clear()
        if outcome == "valid":
            tally.valid += 1
            tally.valid_kinds[kind] += 1
        else:
            tally.errors[outcome] += 1
        tally.time("valid" if outcome == "valid" else "refused", seconds, text, slot)
        if seconds >= SLOW:
            tally.slow.append((seconds, text, slot))
        if policy is not None:
            self.compare(tally, policy, text, slot)

    def compare(self, tally: Tally, policy: Policy, text: str, slot: str) -> None:
        sampled = self.dice.random() < COMPARED
        size = self.dice.choice((1, 2, 6, 6, 6, 6, 200)) if sampled else 0
        rows = self.rows[slot]
        at = self.dice.randrange(len(rows) - size)
        started = time.thread_time()
        try:
            if sampled:
                tally.compared += 1
                result = disagreements(policy, rows[at : at + size])
                if result:
                    tally.findings.append(Finding("disagreement", result, text, slot))
            elif not over_slate(policy.root):
                policy.row(rows[at])
        except (PolicyError, InputError) as error:
            if not (slot.endswith(("list", "explore")) and isinstance(error, PolicyError)):
                tally.findings.append(self.crash(error, text, slot))
        except Exception as error:  # noqa: BLE001 - a checked policy raises nothing
            tally.findings.append(self.crash(error, text, slot))
        if size < 10:
            tally.time("run", time.thread_time() - started, text, slot)

    @staticmethod
    def crash(error: BaseException, text: str, slot: str) -> Finding:
        frames = traceback.extract_tb(error.__traceback__)
        inner = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "memlab" in f.filename][
            -2:
        ]
        return Finding(
            "crash",
            f"{type(error).__name__}: {str(error)[:300]} at {' > '.join(inner)}",
            text,
            slot,
        )

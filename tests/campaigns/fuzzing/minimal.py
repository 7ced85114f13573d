"""Findings made minimal, and slow texts timed alone."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable

from memlab.errors import InputError, PolicyError
from memlab.kernel.language.policy import _compile as compiled
from tests.campaigns.fuzzing.mutations import tokens_of
from tests.campaigns.fuzzing.session import Session, disagreements, read_and_check
from tests.campaigns.fuzzing.tally import Finding, kind_of

__all__ = ["minimal", "shrunk", "timed_alone", "trouble"]


def shrunk(text: str, bad: Callable[[str], bool], *, seconds: float = 5.0) -> str:
    """Return a part of a text that is still bad, by leaving out runs of tokens as long as it stays bad."""
    end = time.monotonic() + seconds
    tokens = tokens_of(text) if len(text) <= 40_000 else list(text)
    width = max(1, len(tokens) // 2)
    while width and time.monotonic() < end:
        at = 0
        while at < len(tokens) and time.monotonic() < end:
            fewer = tokens[:at] + tokens[at + width :]
            if bad("".join(fewer)):
                tokens = fewer
            else:
                at += width
        width //= 2
    return "".join(tokens)


def minimal(session: Session, finding: Finding) -> Finding:
    """Return the finding with the shortest text that leads to the same kind."""
    wanted = kind_of(finding).split(" at ")[-1] if finding.what == "crash" else finding.what

    def bad(text: str) -> bool:
        return any(
            wanted in kind_of(candidate) for candidate in trouble(session, text, finding.slot)
        )

    if not bad(finding.text):
        return finding
    text = shrunk(finding.text, bad)
    again = [
        candidate
        for candidate in trouble(session, text, finding.slot)
        if wanted in kind_of(candidate)
    ]
    return again[0] if again else finding


def trouble(session: Session, text: str, slot: str) -> list[Finding]:
    """Return the findings for one text on all rows."""
    results: list[Finding] = []
    try:
        with session.canaries.near():
            policy = read_and_check(text, slot, whole=True)
        if policy is not None:
            results += [
                Finding("disagreement", d, text, slot)
                for d in [disagreements(policy, session.rows[slot][:200])]
                if d
            ]
    except (PolicyError, InputError):
        pass
    except Exception as error:  # noqa: BLE001 - any other exception is what is being looked for
        results.append(session.crash(error, text, slot))
    if session.canaries.song:
        results.append(Finding("execution", "; ".join(session.canaries.song[:5]), text, slot))
        session.canaries.song.clear()
    return results


def timed_alone(text: str, slot: str) -> float:
    """Return the minimum processor time, in seconds of five runs, to read and check a text."""
    best = math.inf
    for _ in range(5):
        compiled.cache_clear()
        started = time.thread_time()
        with contextlib.suppress(PolicyError, InputError):
            read_and_check(text, slot, whole=True)
        best = min(best, time.thread_time() - started)
    return best

"""Call every public callable with junk in place of one argument, and classify the outcome.

``raw`` is an error from outside of ``memlab.MemlabError``; KeyboardInterrupt, SystemExit and MemoryError do not count.
Neither does Python's own TypeError about a missing argument. ``nonsense`` is junk that was accepted and must not be;
``changed`` is a lab that a refused call has changed.
"""

from __future__ import annotations

import collections
import contextlib
import inspect
import io
import os
import random
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import memlab
from memlab.kernel.schema import FIELDS
from tests.campaigns.fuzzing.callables import parameters, public_callables
from tests.campaigns.fuzzing.examples import EXAMPLES, Desk
from tests.campaigns.fuzzing.junk import JUNK

__all__ = ["Case", "Report", "cases", "fuzz", "sampled"]


class Case(NamedTuple):
    """Junk for one parameter of one callable."""

    call: str
    parameter: str
    junk: str

    def __str__(self) -> str:
        return f"{self.call}({self.parameter}={self.junk})"


@dataclass
class Report:
    """What came of all cases. ``raw``: where it was raised, and by which cases."""

    calls: int = 0
    refused: int = 0
    accepted: int = 0
    raw: dict[str, list[Case]] = field(default_factory=lambda: collections.defaultdict(list))
    nonsense: list[Case] = field(default_factory=list)
    changed: list[Case] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{'calls':<12}{self.calls:>9,}",
            f"{'refused':<12}{self.refused:>9,}",
            f"{'accepted':<12}{self.accepted:>9,}",
            f"{'raw':<12}{sum(map(len, self.raw.values())):>9,}   at {len(self.raw)} places",
            f"{'nonsense':<12}{len(self.nonsense):>9,}   accepted",
            f"{'changed':<12}{len(self.changed):>9,}   by a refused call",
        ]
        for where, errors in sorted(self.raw.items(), key=lambda item: -len(item[1])):
            lines += [f"{len(errors):>5} {where}", *(f"        {case}" for case in errors[:3])]
        lines += [f"accepted: {case}" for case in self.nonsense] + [
            f"changed: {case}" for case in self.changed
        ]
        return "\n".join(lines)


def cases() -> list[Case]:
    """Return all cases in a fixed order."""
    return [
        Case(name, parameter, junk)
        for name, function in public_callables().items()
        for parameter in _parameters(function)
        for junk in JUNK
    ]


def fuzz(chosen: list[Case], before_case: Callable[[Case], None] = lambda _: None) -> Report:
    """Try these cases, each on a lab as it was left by a refused call, or on a new one."""
    report, annotated = Report(), public_callables()
    os.environ["HF_HUB_OFFLINE"] = "1"  # a text may be the name of a model: nothing is downloaded
    home = Path.cwd()
    desk = Desk()
    try:
        for case in chosen:
            before_case(case)
            os.chdir(desk.folder)
            if not _tried(case, desk, annotated[case.call], report):
                os.chdir(home)
                desk.close()
                desk = Desk()
    finally:
        os.chdir(home)
        desk.close()
    return report


def _parameters(function: Callable[..., Any]) -> Iterator[str]:
    for name, parameter in parameters(function).items():
        yield from (
            (*FIELDS, "at", "unknown") if parameter.kind is parameter.VAR_KEYWORD else (name,)
        )


def _tried(case: Case, desk: Desk, function: Callable[..., Any], report: Report) -> bool:
    """Try a case; return whether the lab is unchanged, so that it serves the next case."""
    call, arguments = EXAMPLES[case.call](desk)
    rest = [
        name for name, value in parameters(function).items() if value.kind is value.VAR_POSITIONAL
    ]
    before = _state(desk)
    junk = JUNK[case.junk]()
    report.calls += 1
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            if case.parameter in rest:
                answer = call(*arguments.values(), junk)
            else:
                answer = call(**{**arguments, case.parameter: junk})
            _end(answer)
    except memlab.MemlabError as error:
        report.refused += 1
        with contextlib.suppress(MemoryError):
            str(error)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # noqa: BLE001 - Polars panics with a BaseException: this is what is looked for
        report.raw[_position_of(error)].append(case)
        return False
    else:
        report.accepted += 1
        if _is_nonsense(case, function):
            report.nonsense.append(case)
        return False
    if _state(desk) == before:
        return True
    report.changed.append(case)
    return False


def _state(desk: Desk) -> tuple[Any, ...]:
    lab = desk.lab
    return lab.log.height, lab.memories.hash_rows().sum(), lab.edges.height, lab.policies.pack.hash


def _end(result: Any) -> None:
    """Close results that run in the background, and compute lazy ones."""
    for verb in ("stop", "close"):
        end = getattr(result, verb, None)
        if callable(end) and not isinstance(result, memlab.Slates):
            end()
            return
    if isinstance(result, memlab.Slates):
        result.collect()
    if isinstance(getattr(result, "lab", None), memlab.Lab) and not isinstance(
        result, memlab.Slates
    ):
        result.lab.close()


def _position_of(error: BaseException) -> str:
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "/memlab/" in frame.filename
    ]
    last = frames[-1] if frames else None
    where = f"{last.filename.rpartition('/memlab/')[2]}:{last.lineno} {last.name}" if last else "?"
    try:
        message = " ".join(str(error).split())[:80]
    except Exception:  # noqa: BLE001 - an error may be as spiteful as what raised it
        message = ""
    return f"{type(error).__name__} in {where}: {message}"


# -- what must not be accepted ----------------------------------------------------------------------------------------

_NUMBERS = {"0", "1", "7", "-1", "np.int64"}
_FLOATS = {
    *_NUMBERS,
    "1.0",
    "1.5",
    "-0.0",
    "1e308",
    "2**63",
    "-10**30",
    "10**30",
    "np.float32",
    "a Fraction",
}
_TEXTS = {name for name, make in JUNK.items() if name != "a file" and isinstance(make(), str)}
_KINDS = {
    "bool": {"True", "False", "np.bool"},
    "int": _NUMBERS,
    "Count": _NUMBERS - {"0", "-1"},
    "Seed": (_NUMBERS | {"2**63"}) - {"-1"},
    "Share": {"0", "1", "1.0", "-0.0", "np.float32", "a Fraction"},
    "Seconds": _FLOATS - {"-1", "-10**30", "10**30", "2**63", "1e308"},
    "float": _FLOATS,
    "str": _TEXTS - {"a lone surrogate"},
    "When": {"0", "1", "7", "-1", "np.int64", "a date", "the first time", "a date as text"},
    "pl.Expr": {
        name
        for name in JUNK
        if "expression" in name or "column" in name or name == "a number for true"
    },
}
"""Types that are accepted where an annotation is too general; stated here without the rules of the library."""

_NEVER = {
    "object()",
    "spite",
    "a Decimal",
    "1j",
    "an exception",
    "{'x': spite}",
    "[spite]",
    "10**400",
}
_ANYTHING = {
    ("Slates", "lab"),
    ("Slates.from_frames", "lab"),
    ("Policy.row", "aggregates"),  # values under names that nobody asks for
    ("Agent.touch", "files"),  # the arguments of a tool's call: any names and values
    ("LabModules.touch", "files"),
    ("Widget.answer", "message"),  # its fields are checked: the reply has an error
    ("Verdict", "accepted"),
    ("Verdict", "rejected"),
    ("Verdict", "relations"),
}


def _is_nonsense(case: Case, function: Callable[..., Any]) -> bool:
    if (case.call, case.parameter) in _ANYTHING:
        return False
    parameter = inspect.signature(function).parameters.get(case.parameter)
    if parameter is None:
        return case.junk in _NEVER
    text = str(parameter.annotation)
    kinds = [kind.strip() for kind in text.split("|")]
    if parameter.kind is not parameter.VAR_POSITIONAL and all(
        kind in _KINDS or kind == "None" for kind in kinds
    ):
        allowed = set().union(*(_KINDS[kind] for kind in kinds if kind != "None"))
        return case.junk not in (allowed | {"None"} if "None" in kinds else allowed)
    return case.junk in _NEVER


def sampled(count: int, seed: int) -> list[Case]:
    """Draw ``count`` cases evenly over callables, so that those with few parameters are tried as often as others."""
    by_call: dict[str, list[Case]] = collections.defaultdict(list)
    for case in cases():
        by_call[case.call].append(case)
    dice = random.Random(seed)
    for value in by_call.values():
        dice.shuffle(value)
    drawn: list[Case] = []
    while len(drawn) < count and any(by_call.values()):
        drawn += [cases_of_call.pop() for cases_of_call in by_call.values() if cases_of_call]
    return drawn[:count]

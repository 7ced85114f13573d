"""Hostile and honest texts against the policy language: one command, seeded, a table at the end.

    python experiments/fuzz_language.py --inputs 1000000 --processes 2 --seed 1 --out findings

A share of the inputs are random valid programs (``tests/language/grammar.py``); the others are mutations of those, of
the packs that ship and of the corpus of attacks, and what reached a new edge of the language's code is mutated again.
Each text is read and checked under an audit hook, with canaries in reach; what is valid is run on a row, and a sample
on columns and arrays over special values. A finding is written to ``--out`` in a minimal form. The status is 1 if any
text

* raised anything but a ``PolicyError`` or an ``InputError``, or stopped the process,
* made Python open, import, compile or execute something, or touched a canary,
* gave a row and a column that differ in a bit, or an array beyond 1e-12 of both NumPy's and C's rounding,
* took 50 ms of processor time or more to read and check, and again when timed alone.
"""

from __future__ import annotations

import argparse
import builtins
import collections
import contextlib
import ctypes
import gc
import hashlib
import math
import multiprocessing as mp
import random
import re
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from memlab.errors import InputError, PolicyError
from memlab.language import Policy, compile_policy, read_pack
from memlab.language import __file__ as _language
from memlab.language._policy import _compile as compiled
from memlab.policies import SLOTS as OFFERED
from memlab.policies import load_pack, pack_names, pack_source
from memlab.policies._packs import _FOLDER as PACKS
from memlab.progress import bar
from tests.language.agreement import disagreement, lifted_disagreement, over_slate
from tests.language.corpus import attacks
from tests.language.grammar import SLOTS, Grammar, records

SLOW = 0.050
"""Seconds of processor time that a text may take."""
HANG = 60.0
"""Seconds after which a process that has not finished one text is stopped."""
COMPARED, TRACED = 0.05, 0.02
"""Shares of the inputs whose back ends are compared, and whose edges are followed."""
CHUNK = 500
SIGNATURES = SLOTS | {f"slot {name}": slot.signature for name, slot in OFFERED.items()}
"""What a text may be given to: the grammar's slots and those that packs fill."""
MAX_TEXT = 1 << 21

_TOKEN = re.compile(r"""[()\[\]{}'`~]|#_|"(?:[^"\\]|\\.)*"|[^\s()\[\]{}'"`~]+|\s+|.""", re.DOTALL)
_TROUBLE_TEXT = (
    "( ) [ ] { } ' ` ~ ~@ # #_ #* #** #^ #[[ ]] #[f[ \" \\ ; : . .. a.b fn lambda λ let let* if cond case else when"
    " update quote param :low :high :weight defn defpolicy pack setting in has tags x y s null nan inf -inf NaN 0x1f"
    " 1e309 1_000 1,000 1j 0b1 -0.0 +1 9007199254740993 1e-400 eval exec import require py pys __import__ __builtins__"
    " memlab-canary (memlab-canary) #memlab-canary defmacro defreader do-mac eval-when-compile hy.eval setv while range"
    " filter map reduce nth first length choice flip é ＋ ｘ \u202e \u200b \u0000 \ufeff ½ １ 𝒙 \r \n \t"
)
_TROUBLE = _TROUBLE_TEXT.split(" ")


# Mutations: each takes a text, another text and the dice, and gives a text.


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text[:40_000])


def _span(tokens: list[str], dice: random.Random) -> tuple[int, int] | None:
    """A balanced stretch of tokens, from an opening bracket to the one that closes it."""
    opening = [i for i, token in enumerate(tokens) if token in "(["]
    if not opening:
        return None
    start = depth = dice.choice(opening)
    depth = 0
    for stop in range(start, len(tokens)):
        depth += (tokens[stop] in ("(", "[")) - (tokens[stop] in (")", "]"))
        if depth == 0:
            return start, stop + 1
    return None


def splice(text: str, other: str, dice: random.Random) -> str:
    """A form of one text in the place of a form of another."""
    ours, theirs = _tokens(text), _tokens(other)
    here, there = _span(ours, dice), _span(theirs, dice)
    if here is None or there is None:
        return text + other
    return "".join(ours[: here[0]] + theirs[there[0] : there[1]] + ours[here[1] :])


def edit(text: str, other: str, dice: random.Random) -> str:
    """One to four tokens deleted, doubled, swapped or replaced."""
    tokens = _tokens(text) or [""]
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        i, j = dice.randrange(len(tokens)), dice.randrange(len(tokens))
        change = dice.randrange(5)
        if change == 0 and len(tokens) > 1:
            del tokens[i]
        elif change == 1:
            tokens.insert(i, tokens[i])
        elif change == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif change == 3:
            tokens[i] = dice.choice(_TROUBLE)
        else:
            tokens[i] = tokens[j]
    return "".join(tokens)


def nest(text: str, other: str, dice: random.Random) -> str:
    """A form inside many others, or many copies of it side by side."""
    tokens = _tokens(text)
    span = _span(tokens, dice) or (0, len(tokens))
    inner = "".join(tokens[span[0] : span[1]])
    count = dice.choice((2, 10, 90, 101, 300, 3000))
    front, back = dice.choice(
        (
            ("(", ")"),
            ("[", "]"),
            ("(- ", ")"),
            ("(if p ", " 1)"),
            ("(let [a 1] ", ")"),
            ("'", ""),
            ("#_", ""),
            ("(+ 1 ", ")"),
        )
    )
    made = inner * count if dice.random() < 0.2 else front * count + inner + back * count
    return "".join([*tokens[: span[0]], made[:60_000], *tokens[span[1] :]])


def corrupt(text: str, other: str, dice: random.Random) -> str:
    """Characters removed, inserted or replaced, anywhere in Unicode."""
    characters = list(text)
    for _ in range(dice.choice((1, 1, 2, 8))):
        i = dice.randrange(len(characters) + 1)
        strange = chr(dice.choice((dice.randrange(128), dice.randrange(0x3000), dice.randrange(0x110000))))
        characters[i : i + dice.choice((0, 0, 1, 1, 3))] = [strange] * dice.choice((0, 1, 1, 1, 40))
    return "".join(characters)


def numbers(text: str, other: str, dice: random.Random) -> str:
    """A number made long, large or odd."""
    found = list(re.finditer(r"(?<![\w.])-?\d[\w.]*", text))
    if not found:
        return edit(text, other, dice)
    at = dice.choice(found)
    odd = dice.choice(
        ("9" * dice.choice((17, 400, 5000)), "1e" + "9" * dice.choice((3, 40)), "0." + "1" * 3000, "0x" + "f" * 500,
         "1e308", "-1e-323", "1/2", "1_0", "٣", "1e", "+-1", "00", "-01", "1.2.3", "0" * 4000 + "1")
    )  # fmt: skip
    return text[: at.start()] + odd + text[at.end() :]


def cut(text: str, other: str, dice: random.Random) -> str:
    """The front of one text, or the front of one and the back of another."""
    at = dice.randrange(len(text) + 1)
    return text[:at] + (other[dice.randrange(len(other) + 1) :] if dice.random() < 0.5 else "")


def soup(text: str, other: str, dice: random.Random) -> str:
    """Tokens in any order."""
    pool = _tokens(text) + _TROUBLE
    return dice.choice((" ", "")).join(dice.choice(pool) for _ in range(dice.randint(1, 60)))


MUTATIONS = (splice, splice, splice, edit, edit, edit, nest, corrupt, numbers, cut, soup)


# Canaries: what would sing if a text were executed.


class Canaries:
    """An audit hook, a built-in function and a file: ``song`` names what was touched while ``listening``."""

    WATCHED = (
        "open", "exec", "compile", "import", "os.", "subprocess.", "socket.", "shutil.", "pickle.", "marshal.",
        "ctypes.", "code.__new__", "urllib.", "http.", "sqlite3.", "builtins.input", "builtins.breakpoint", "cpython.",
        "glob.", "tempfile.",
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        self.listening = False
        self.song: list[str] = []
        self.file = folder / "canary"
        setattr(builtins, "memlab_canary", lambda *a, **k: self.song.append("the canary in builtins"))  # noqa: B010
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.listening or not event.startswith(self.WATCHED):
            return
        if event == "open" and str(arguments[0]).startswith(str(PACKS)):
            return  # what a pack inherits comes with memlab
        if event in ("os.scandir", "os.listdir") and str(arguments[0]) == str(PACKS):
            return
        self.song.append(f"{event} {str(arguments)[:200]}")

    @contextlib.contextmanager
    def near(self) -> Iterator[None]:
        self.listening = True
        try:
            yield
        finally:
            self.listening = False


# Coverage: which edges between lines of the language's code a text reaches.


class Edges:
    """Pairs of lines that ran one after the other in the language's code, over all texts that were followed."""

    def __init__(self) -> None:
        self.seen: set[tuple[CodeType, int, int]] = set()
        self._folder = str(Path(_language).parent)
        self._new = 0

    def _call(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if not code.co_filename.startswith(self._folder):
            return None
        last, seen = 0, self.seen

        def line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            nonlocal last
            edge = (code, last, frame.f_lineno)
            last = frame.f_lineno
            if edge not in seen:
                seen.add(edge)
                self._new += 1
            return line

        return line

    def follow(self, call: Callable[[], None]) -> int:
        """Runs ``call`` and says how many edges were new."""
        self._new = 0
        sys.settrace(self._call)
        try:
            call()
        finally:
            sys.settrace(None)
        return self._new


@dataclass
class Finding:
    """Something that must not be: ``what`` it is, in a word; ``detail``; the text and the slot that it was given to."""

    what: str
    detail: str
    text: str
    slot: str


@dataclass
class Tally:
    """What happened to a number of inputs. Tallies add up."""

    inputs: int = 0
    valid: int = 0
    compared: int = 0
    edges: int = 0
    kept: int = 0
    errors: collections.Counter[str] = field(default_factory=collections.Counter)
    kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    valid_kinds: collections.Counter[str] = field(default_factory=collections.Counter)
    slowest: dict[str, tuple[float, str, str]] = field(default_factory=dict)
    slow: list[tuple[float, str, str]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.inputs, self.valid = self.inputs + other.inputs, self.valid + other.valid
        self.compared, self.kept = self.compared + other.compared, self.kept + other.kept
        self.edges = max(self.edges, other.edges)
        self.errors.update(other.errors)
        self.kinds.update(other.kinds)
        self.valid_kinds.update(other.valid_kinds)
        for kind, found in other.slowest.items():
            self.time(kind, *found)
        self.slow = sorted([*self.slow, *other.slow], reverse=True)[:200]
        self.findings += other.findings

    def time(self, kind: str, seconds: float, text: str, slot: str) -> None:
        if seconds > self.slowest.get(kind, (0.0,))[0]:
            self.slowest[kind] = (seconds, text, slot)


def read_and_check(text: str, slot: str, *, whole: bool = False) -> Policy | None:
    """What is under test: a policy for a slot, or a pack; ``whole`` also checks all policies that it holds."""
    if slot != "pack":
        return compile_policy(text, SIGNATURES[slot])
    if whole and text.lstrip().startswith(("(", ";")):
        load_pack(text)
    else:
        read_pack(text)
    return None


def disagreements(policy: Policy, rows: list[dict[str, Any]]) -> str | None:
    """What two ways to run a policy disagree on, or None."""
    return disagreement(policy, rows) or lifted_disagreement(policy, rows)


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
        live = [(slot, policy) for name in pack_names() for slot, policy in load_pack(name).policies.items()]
        self.policies = [("\n".join([*policy.helpers, policy.source]), f"slot {slot}") for slot, policy in live]
        self.drawn: collections.deque[tuple[str, str]] = collections.deque(maxlen=400)
        self.reached: list[tuple[str, str]] = []
        self.rows = {name: records(self.dice, 300, s.inputs.values()) for name, s in SIGNATURES.items()}
        for _ in range(50):  # lazy imports and caches, before anyone listens
            program = self.grammar.policy()
            self.drawn.append((program.source, program.slot))
            with contextlib.suppress(Exception):
                disagreements(compile_policy(program.source, program.signature), self.rows[program.slot][:3])
        gc.collect()
        gc.freeze()

    def draw(self) -> tuple[str, str, str]:
        """A kind of input, its text, and the slot that it is meant for."""
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

    def run(self, count: int, before: Callable[[str, str], None] = lambda text, slot: None) -> Tally:
        """Tries ``count`` inputs; ``before`` hears of each one first."""
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
        """Reads, checks, runs and compares one text."""
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
                tally.findings.append(Finding("crash", f"line {line} is not in the text: {message}", text, slot))
        except Exception as error:  # noqa: BLE001 - any other exception is what is being looked for
            tally.findings.append(self.crash(error, text, slot))
            outcome = "crash"
        seconds = time.thread_time() - started
        if len(message) > 2000:
            tally.findings.append(Finding("crash", f"a message of {len(message)} characters", text, slot))
        if self.canaries.song:
            tally.findings.append(Finding("execution", "; ".join(self.canaries.song[:5]), text, slot))
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
                found = disagreements(policy, rows[at : at + size])
                if found:
                    tally.findings.append(Finding("disagreement", found, text, slot))
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
        inner = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "memlab" in f.filename][-2:]
        return Finding("crash", f"{type(error).__name__}: {str(error)[:300]} at {' > '.join(inner)}", text, slot)


# Findings: made minimal, written down, counted once.


def shrunk(text: str, bad: Callable[[str], bool], *, seconds: float = 5.0) -> str:
    """A part of a text that is still bad: stretches of tokens are left out while that lasts."""
    end = time.monotonic() + seconds
    tokens = _tokens(text) if len(text) <= 40_000 else list(text)
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


def kind_of(finding: Finding) -> str:
    """What makes two findings one: the place of a crash, the operation that disagrees."""
    return f"{finding.what} {re.sub(r'[0-9.e+-]{3,}|0x[0-9a-f]+', 'N', finding.detail)[:160]}"


def minimal(session: Session, finding: Finding) -> Finding:
    """The finding with the shortest text that leads to the same kind."""
    wanted = kind_of(finding).split(" at ")[-1] if finding.what == "crash" else finding.what

    def bad(text: str) -> bool:
        return any(wanted in kind_of(found) for found in trouble(session, text, finding.slot))

    if not bad(finding.text):
        return finding
    text = shrunk(finding.text, bad)
    again = [found for found in trouble(session, text, finding.slot) if wanted in kind_of(found)]
    return again[0] if again else finding


def trouble(session: Session, text: str, slot: str) -> list[Finding]:
    """What is wrong with one text, on all rows."""
    found: list[Finding] = []
    try:
        with session.canaries.near():
            policy = read_and_check(text, slot, whole=True)
        if policy is not None:
            found += [
                Finding("disagreement", d, text, slot) for d in [disagreements(policy, session.rows[slot][:200])] if d
            ]
    except (PolicyError, InputError):
        pass
    except Exception as error:  # noqa: BLE001 - any other exception is what is being looked for
        found.append(session.crash(error, text, slot))
    if session.canaries.song:
        found.append(Finding("execution", "; ".join(session.canaries.song[:5]), text, slot))
        session.canaries.song.clear()
    return found


def timed_alone(text: str, slot: str) -> float:
    """Seconds of processor time to read and check a text, the best of five."""
    best = math.inf
    for _ in range(5):
        compiled.cache_clear()
        started = time.thread_time()
        with contextlib.suppress(PolicyError, InputError):
            read_and_check(text, slot, whole=True)
        best = min(best, time.thread_time() - started)
    return best


# Processes.


def work(number: int, seed: int, chunks: list[int], reports: Any, current: Any) -> None:
    """One process: tries its chunks one after another and reports each."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(f"{seed}/{number}/{chunks[0] if chunks else 0}", Path(folder))

        def before(text: str, slot: str) -> None:
            data = f"{slot}\n{text}".encode("utf-8", "surrogatepass")[: MAX_TEXT - 4]
            current[: 4 + len(data)] = struct.pack(">I", len(data)) + data

        for chunk in chunks:
            reports.put((number, chunk, session.run(CHUNK, before)))
    reports.put((number, -1, None))


class Crew:
    """The processes, each replaced by a fresh one when it dies or hangs."""

    def __init__(self, inputs: int, processes: int, seed: int) -> None:
        self.context = mp.get_context("spawn")
        self.reports: Any = self.context.Queue()
        self.seed = seed
        count = -(-inputs // CHUNK)
        self.left = [[c for c in range(count) if c % processes == n] for n in range(processes)]
        self.current = [self.context.RawArray(ctypes.c_char, MAX_TEXT) for _ in range(processes)]
        self.heard = [time.monotonic()] * processes
        self.crew = [self.start(n) for n in range(processes)]

    def start(self, number: int) -> Any:
        self.heard[number] = time.monotonic() + 60
        arguments = (number, self.seed, list(self.left[number]), self.reports, self.current[number])
        process = self.context.Process(target=work, args=arguments, daemon=True)
        process.start()
        return process

    def text(self, number: int) -> tuple[str, str]:
        raw = self.current[number].raw
        (size,) = struct.unpack(">I", raw[:4])
        slot, _, text = raw[4 : 4 + size].decode("utf-8", "surrogatepass").partition("\n")
        return text, slot

    def run(self) -> Iterator[Tally]:
        """The tallies as they come."""
        import queue

        while any(self.left):
            try:
                number, chunk, tally = self.reports.get(timeout=1)
            except queue.Empty:
                pass
            else:
                if tally is not None:
                    self.heard[number] = time.monotonic()
                    self.left[number].remove(chunk)
                    yield tally
                continue
            for number, process in enumerate(self.crew):
                hung = time.monotonic() - self.heard[number] > HANG + CHUNK * SLOW
                if self.left[number] and (hung or not process.is_alive()):
                    text, slot = self.text(number)
                    what = "took too long" if hung else f"ended the process with status {process.exitcode}"
                    process.kill()
                    process.join()
                    self.left[number].pop(0)
                    yield Tally(inputs=CHUNK, findings=[Finding("crash", what, text, slot)])
                    self.crew[number] = self.start(number)
        for process in self.crew:
            process.join()


def table(tally: Tally, slow: list[tuple[float, str, str]], unique: dict[str, Finding], seconds: float) -> str:
    """What happened, for a reader."""
    counts = collections.Counter(f.what for f in tally.findings)
    each = collections.Counter(f.what for f in unique.values())
    lines = [
        f"{'inputs':<26}{tally.inputs:>12,}   {tally.inputs / seconds:,.0f} a second, {seconds:,.0f} s",
        f"{'valid':<26}{tally.valid:>12,}   {tally.valid / max(1, tally.inputs):.1%}",
    ]
    for kind, count in tally.kinds.most_common():
        lines.append(f"  {kind:<24}{count:>12,}   {tally.valid_kinds[kind] / count:.1%} of them valid")
    lines += [f"{name:<26}{count:>12,}" for name, count in tally.errors.most_common()]
    for kind, (worst, text, _) in sorted(tally.slowest.items()):
        shown = repr(text[:48] + ("..." if len(text) > 48 else ""))
        lines.append(f"slowest {kind:<18}{1000 * worst:>9.1f} ms   {len(text):,} characters: {shown}")
    lines += [
        f"{f'over {1000 * SLOW:.0f} ms':<26}{len(slow):>12,}   when timed alone; {len(tally.slow):,} in passing",
        f"{'programs compared':<26}{tally.compared:>12,}   row, columns and arrays",
        f"{'disagreements':<26}{counts['disagreement']:>12,}   {each['disagreement']} kinds",
        f"{'crashes':<26}{counts['crash']:>12,}   {each['crash']} kinds",
        f"{'executions':<26}{counts['execution']:>12,}   {each['execution']} kinds",
        f"{'edges reached':<26}{tally.edges:>12,}   {tally.kept:,} inputs kept for them",
    ]
    return "\n".join(lines)


def written(out: Path | None, finding: Finding) -> str:
    """Where a finding was written down, or its text."""
    if out is None:
        return f"{finding.what}: {finding.detail}\n  [{finding.slot}] {finding.text[:400]!r}"
    out.mkdir(parents=True, exist_ok=True)
    data = finding.text.encode("utf-8", "surrogatepass")
    path = out / f"{finding.what}-{hashlib.sha256(data).hexdigest()[:12]}.txt"
    path.write_bytes(data)
    path.with_suffix(".why").write_text(f"{finding.slot}\n{finding.detail}\n", encoding="utf-8", errors="replace")
    return f"{finding.what}: {finding.detail}\n  [{finding.slot}] {path}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a folder for findings, each in a minimal form")
    given = parser.parse_args()
    started = time.monotonic()
    total, unique = Tally(), {}
    with bar(sys.stderr.isatty(), given.inputs, unit="input") as step:
        for tally in Crew(given.inputs, given.processes, given.seed).run():
            total.add(tally)
            step(tally.inputs)
            for finding in tally.findings:
                unique.setdefault(kind_of(finding), finding)
    seconds = time.monotonic() - started
    with tempfile.TemporaryDirectory() as folder:
        session = Session("minimal", Path(folder))
        slow = [(alone, text, slot) for _, text, slot in total.slow if (alone := timed_alone(text, slot)) >= SLOW]
        for kind, (_, text, slot) in list(total.slowest.items()):
            if kind != "run":
                total.slowest[kind] = (timed_alone(text, slot), text, slot)
        print(table(total, slow, unique, seconds))
        found = [minimal(session, finding) for finding in list(unique.values())[:40]]
    found += [Finding("slow", f"{1000 * alone:.0f} ms alone", text, slot) for alone, text, slot in slow[:10]]
    for finding in found:
        print(written(given.out, finding))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())

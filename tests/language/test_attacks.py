"""Every text of the corpus of attacks gives an error of the tree or a harmless policy; none runs, none hangs.

How long each takes is measured by ``tests/campaigns/fuzz_language.py``, alone on a quiet machine; here a hang fails.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from memlab.errors import InputError, PolicyError
from memlab.kernel.language import Policy, compile_policy, read_pack
from tests.language.agreement import over_slate
from tests.language.corpus import FAMILIES, attacks
from tests.language.vocabulary import SLOTS

A_HANG = 5.0
"""Seconds of processor time: the slowest text takes a tenth, and what explodes takes minutes."""
ROW = {
    "x": 2.0,
    "y": 3.0,
    "z": 0.5,
    "p": True,
    "q": False,
    "s": "a",
    "new/branch": "b",
    "kind": "fact",
    "tags": ["a"],
}
LISTS = {"x": [0.5, 2.0, 1.0], "y": [9.0, 1.0, 3.0], "p": [True, False, True]}


def name_of_error(error: Exception) -> str:
    """Return the name of an error, and check that its message has a readable length."""
    assert 0 < len(str(error)) < 2_000
    return type(error).__name__


def outcome_of(text: str, slot: str) -> str:
    """Return the name of the error that a text raises, or the type of the result."""
    try:
        policy = compile_policy(text, SLOTS[slot])
        if slot == "list" and over_slate(policy.root):
            policy.arrays(LISTS)
        elif not over_slate(policy.root):
            policy.row({name: ROW.get(name) for name in SLOTS[slot].inputs})
    except (PolicyError, InputError) as error:
        return name_of_error(error)
    assert isinstance(policy, Policy)
    return "policy"


def pack_outcome(text: str) -> str:
    try:
        read_pack(text)
    except PolicyError as error:
        return name_of_error(error)
    return "pack"


@pytest.mark.long
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES)
def test_attacks_end_in_an_error_or_in_a_harmless_policy(family: str, every: int) -> None:
    texts = attacks(family)
    assert len(texts) == len(set(texts)) >= 30
    for text in texts[::every]:
        started = time.thread_time()
        slot = "list" if family == "lists" else "num"
        outcome_of(text, slot)
        pack_outcome(text)
        if len(text) < 5_000:
            outcome_of(f"(fn [x y s] (if (< x 1) {text} 2))", "num")
            outcome_of(f"(lambda (acts accs) (first {text}))", "list")
            pack_outcome(f"(pack a) (setting limit {text})")
            pack_outcome(f"(pack a) (defn f [n] {text}) (defpolicy recall-score [] {text})")
        assert time.thread_time() - started < A_HANG, text[:200]


@pytest.mark.parametrize("family", ["calls", "evaluation", "reader-macros"])
def test_nothing_that_reaches_for_code_becomes_a_policy(family: str) -> None:
    """Only a feature, a literal, a comment, a quoted word or a form left out may stand in their place."""
    harmless = {text for text in attacks(family) if outcome_of(text, "num") == "policy"}
    assert len(harmless) < 0.05 * len(attacks(family))
    for text in harmless:
        assert not any(
            name in text for name in ("eval ", "import", "exec", "open", "os.", "getattr", "canary")
        ), text


@pytest.mark.long
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_no_attack_makes_python_do_anything(every: int) -> None:
    """Under an audit hook, in a fresh process: nothing is opened, imported, compiled or executed."""
    code = """
import sys
from memlab.errors import InputError, PolicyError
from memlab.kernel.language import compile_policy, read_pack
from tests.language.corpus import attacks
from tests.language.vocabulary import SLOTS

def attempt(text):
    for slot in ("num", "list", None):
        try:
            (read_pack(text) if slot is None else compile_policy(text, SLOTS[slot])).hash
        except (PolicyError, InputError) as error:
            str(error)

texts = attacks()[:: int(sys.argv[1])]
attempt("(fn [x] (square (slate-max x)))")
attempt("(lambda (accs) (first (range (length accs))))")
seen = []
sys.addaudithook(lambda event, arguments: seen.append((event, str(arguments)[:80])))
for text in texts:
    attempt(text)
loud = ("open", "exec", "compile", "import", "os.", "subprocess.", "socket.", "pickle.", "marshal.", "ctypes.")
print([item for item in seen if item[0].startswith(loud)])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(every)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"

"""A few thousand inputs of the fuzzer, seeded; a million of them is ``tests/campaigns/fuzz_language.py``."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from pathlib import Path

import pytest

from memlab.errors import PolicyError
from memlab.kernel.language import compile_policy
from memlab.kernel.language.forms import FORMS, LIST_FORMS
from memlab.kernel.language.reader import ALIASES
from memlab.kernel.language.texts import library
from tests.campaigns.fuzzing.minimal import minimal, shrunk
from tests.campaigns.fuzzing.mutations import MUTATIONS, tokens_of
from tests.campaigns.fuzzing.session import Session
from tests.campaigns.fuzzing.tally import Finding
from tests.language.agreement import bits, disagreement
from tests.language.grammar import NOT_DRAWN, Grammar
from tests.language.vocabulary import SLOTS, records


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session("tests", tmp_path_factory.mktemp("canary"))


@pytest.mark.long
@pytest.mark.parametrize("count", [600, pytest.param(3000, marks=pytest.mark.slow)])
def test_thousands_of_inputs_find_nothing(session: Session, count: int) -> None:
    tally = session.run(count)
    assert [f"{f.what}: {f.detail}\n{f.text}" for f in tally.findings] == []
    assert tally.inputs == tally.valid + sum(tally.errors.values()) == count
    assert tally.valid > 0.3 * tally.inputs
    tally.errors.pop("InputError", None)  # half of a surrogate pair in the text of a pack
    assert set(tally.errors) == {
        "PolicySyntaxError",
        "PolicyTypeError",
        "PolicyNameError",
        "PolicyLimitError",
    }
    assert set(tally.kinds) == {"drawn", "mutated", "attack", "reached", "shipped", "pack"}
    assert tally.compared > 4
    assert tally.kept > 4
    assert tally.edges > 800


@pytest.mark.long
def test_drawn_programs_are_valid_and_their_back_ends_agree() -> None:
    dice = random.Random(5)
    grammar = Grammar(dice)
    rows = records(dice, 40)
    valid = 0
    for _ in range(200):
        program = grammar.policy()
        try:
            policy = compile_policy(program.source, program.signature)
        except PolicyError:
            continue
        valid += 1
        if valid % 5 == 0:
            at = dice.randrange(30)
            assert disagreement(policy, rows[at : at + 6]) is None, program.source
    assert valid > 180


@pytest.mark.long
def test_every_form_is_drawn() -> None:
    """A form, an alias, a helper or a function over lists that the language gains must be known to the grammar."""
    grammar = Grammar(random.Random(1))
    for _ in range(4000):
        grammar.policy()
    assert set(FORMS) - NOT_DRAWN - {"quote"} <= set(grammar.heads)
    assert set(ALIASES) - {"λ", "lambda"} <= set(grammar.heads)
    assert set(library()) <= set(grammar.heads)
    assert set(LIST_FORMS) <= set(grammar.heads)


@pytest.mark.long
def test_the_same_seed_draws_the_same_inputs(tmp_path: Path) -> None:
    first, second = ([Session("same", tmp_path).draw() for _ in range(1)] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.__name__)
def test_a_mutation_is_a_function_of_the_dice(mutation) -> None:
    text, other = "(fn [x] (+ x 1.5 (abs y)))", "(lambda (a) (if p 'b #[[c]]))"
    made = [mutation(text, other, random.Random(seed)) for seed in range(40)]
    assert made == [mutation(text, other, random.Random(seed)) for seed in range(40)]
    assert len(set(made)) > 5
    assert mutation("", "", random.Random(1)) is not None


def test_tokens_are_the_whole_text() -> None:
    for text in ('(fn [x] #_ (+ x 1) \'a "b c" #[[d]] ; e\n x)', '"\\', "\ud800(", "a\u202eb\0"):
        assert "".join(tokens_of(text)) == text


@pytest.mark.long
def test_planted_faults_are_found(tmp_path: Path) -> None:
    """The instruments work: each thing that a text must not do is heard, and nothing outside is."""
    code = """
import sys, builtins
from pathlib import Path
from tests.campaigns.fuzzing.canaries import Canaries
canaries = Canaries(Path(sys.argv[1]))
open(canaries.file, "w").close()
assert not canaries.song
with canaries.near():
    open(canaries.file).close()
    eval("1 + 1")
    exec("pass")
    import colorsys
    builtins.memlab_canary()
print(sorted({line.split()[0] for line in canaries.song}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert {"compile", "exec", "import", "open", "the"} <= set(ast.literal_eval(done.stdout))


@pytest.mark.long
def test_a_finding_is_made_minimal(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shrunk("(a (b c) (d (e needle)) f)", lambda text: "needle" in text) == "needle"

    def fragile(text: str, slot: str, *, whole: bool = False) -> None:
        if "boom" in text:
            raise ZeroDivisionError("boom")

    monkeypatch.setattr("tests.campaigns.fuzzing.minimal.read_and_check", fragile)
    finding = Session.crash(ZeroDivisionError("boom"), "(fn [x] (+ x (boom y)))", "num")
    assert minimal(session, finding).text == "boom"


def test_an_agreement_is_by_bits() -> None:
    assert bits(0.0) != bits(-0.0)
    assert bits(float("nan")) == bits(-float("nan"))
    assert bits(1.0) != bits(True)


def test_a_disagreement_is_seen() -> None:
    """The judge can fail: a policy whose arrays are another policy's is found out."""
    rows = records(random.Random(4), 6)
    policy = compile_policy("(fn [x y] (+ x y))", SLOTS["num"])
    other = compile_policy("(fn [x y] (- x y))", SLOTS["num"])
    assert disagreement(policy, rows) is None
    vars(policy)["_arrays"] = other._arrays
    assert "its array" in (disagreement(policy, rows) or "")
    vars(policy)["_columns"] = other._columns
    assert "its column" in (disagreement(policy, rows) or "")
    del vars(policy)["_arrays"], vars(policy)["_columns"]


def test_a_finding_says_what_and_where() -> None:
    finding = Session.crash(ZeroDivisionError("division by zero"), "(/ 1 0)", "num")
    assert finding == Finding("crash", "ZeroDivisionError: division by zero at ", "(/ 1 0)", "num")

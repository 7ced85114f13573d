"""The trusted road: a pack file as a module of Hy equals the safe road, to the bit, and nobody takes it by accident."""

from __future__ import annotations

import importlib
import itertools
import math
import random
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import hy
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import memlab
from memlab.errors import InputError, PolicyError, PolicyNameError, PolicySyntaxError, PolicyTypeError
from memlab.language import Input, Policy, Signature, compile_policy, read_pack
from memlab.language._definition import definition
from memlab.language._reader import Text, read_forms
from memlab.language.lists._program import ListProgram
from memlab.language.trusted._total import slate_aggregates
from memlab.language.trusted._trusted import load_trusted
from tests.language.agreement import bits, frame_of, over_slate
from tests.language.grammar import Grammar, Program
from tests.language.vocabulary import INPUTS, SLOTS, records

PACKS = sorted((Path(memlab.__file__).parent / "policies" / "packs").glob("*.hy"))
QUICK = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
NUMBERS: list[float | None] = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, 4.0, -2.0, 1 / 3, 1e-310, 5e-324, 1e308, -1e308, 1e16, math.pi,
    math.inf, -math.inf, math.nan, None,
]  # fmt: skip


@pytest.fixture
def trusted(tmp_path: Path) -> Callable[..., ModuleType]:
    """Loads trusted source from a file."""

    def load(source: str, name: str = "mine") -> ModuleType:
        path = tmp_path / f"{name}.hy"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        return load_trusted(path)

    return load


# Every pack that ships.


@cache
def shipped(path: Path) -> tuple[ModuleType, dict[str, Policy]]:
    policies = memlab.load_pack(path).policies
    own = read_pack(path.read_text(encoding="utf-8")).policies
    return load_trusted(path), {slot: policies[slot] for slot in own}


def function_of(module: ModuleType, slot: str) -> Any:
    return getattr(module, slot.replace("-", "_"))


@pytest.mark.parametrize("path", PACKS, ids=lambda p: p.stem)
def test_a_shipped_pack_is_a_module(path: Path) -> None:
    module, policies = shipped(path)
    source = read_pack(path.read_text(encoding="utf-8"))
    assert tuple(module.__pack__) == (source.name, source.doc, source.inherits)
    assert module.__settings__ == {name: setting.value for name, setting in source.settings.items()}
    for slot, policy in policies.items():
        function = function_of(module, slot)
        assert function.__name__ == slot.replace("-", "_")
        assert (function.__doc__ or "") == policy.doc
        assert function.inputs == source.policies[slot].inputs
        assert {p.name: p.default for p in policy.params.values()}.items() <= module.__params__.items()


@pytest.mark.parametrize("path", PACKS, ids=lambda p: p.stem)
@QUICK
@given(seed=st.integers(0, 2**32))
def test_a_shipped_pack_equals_the_safe_road(path: Path, seed: int) -> None:
    module, policies = shipped(path)
    for slot, policy in policies.items():
        rows = records(random.Random(seed), 3, policy.signature.inputs.values())
        check(function_of(module, slot), policy, rows)


def check(function: Any, policy: Policy, rows: list[dict[str, Any]]) -> None:
    """A trusted function equals its policy on every row of a slate."""
    lists = policy.signature.lists
    if any(name in lists for name in function.inputs):
        check_lists(function, policy, rows)
        return
    frame = frame_of(rows, policy.signature.inputs.values())
    slate = policy.aggregates(frame).rows(named=True) if over_slate(policy.root) else [None] * len(rows)
    expected = [policy.row(row, aggregates=found) for row, found in zip(rows, slate, strict=True)]
    found: list[dict[str, float | None]] = [{}] * len(rows)
    if function.aggregates:
        columns = {n: [row[n] for row in rows] for n in function.inputs}
        found = slate_aggregates(function, columns, order=range(len(rows)))
    values = [called(function, row, more) for row, more in zip(rows, found, strict=True)]
    assert [bits(v) for v in values] == [bits(e) for e in expected], policy.source


def called(function: Any, row: dict[str, Any], aggregates: dict[str, float | None]) -> Any:
    old = {n: row[n] for n in SLOTS["record"].fields if n in function.__kwdefaults__} if function.__kwdefaults__ else {}
    more = {"aggregates": aggregates} if function.aggregates else {}
    return function(*[row[name] for name in function.inputs], **old, **more)


def check_lists(function: Any, policy: Policy, rows: list[dict[str, Any]]) -> None:
    """A policy over lists returns the index of the one item whose weight is 1."""
    signature, given = policy.signature, {}
    for name in function.inputs:
        feature = signature.lists.get(name)
        given[name] = [row[feature] for row in rows] if feature else rows[0].get(name, float(len(rows)))
    picked = function(*given.values())
    text = Text(policy.source)
    *helpers, form = read_forms(text)
    assert not helpers
    program = ListProgram(function.inputs, definition(form, text).body, text, signature, {}, {})
    columns = {n: [given[n][0] if n in signature.counts else row[n] for row in rows] for n in program.inputs}
    constant = {n: [column[0]] * len(rows) for n, column in columns.items() if n not in signature.lists.values()}
    weights = program.weights({**columns, **constant}, len(rows)).tolist()
    assert weights == [1.0 if type(picked) is int and picked == i else 0.0 for i in range(len(rows))], policy.source


# Random programs.


def subject(program: Program, folder: Path) -> Any:
    """The function of a random program, whose text becomes a pack."""
    source = re.sub(r"(?m)^\((fn|lambda|λ) ", r"(defpolicy subject (\1 ", program.source)
    source += ")" if source != program.source else ""
    path = folder / "random.hy"
    path.write_text(f"(pack random)\n{source}\n", encoding="utf-8")
    name = re.findall(r"(?m)^\(defpolicy (\S+)", source)[0]
    return function_of(load_trusted(path), name)


def check_random(seed: int, folder: Path) -> None:
    dice = random.Random(seed)
    program = Grammar(dice).policy(dice.choice(("num", "num", "bool", "str", "word", "record")))
    policy = compile_policy(program.source, program.signature)
    check(subject(program, folder), policy, records(dice, 4, INPUTS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("random")


@QUICK
@example(5420)  # a choice between nulls where an update is due
@given(st.integers(0, 2**32))
def test_random_programs_equal_the_safe_road(folder: Path, seed: int) -> None:
    check_random(seed, folder)


@pytest.mark.slow
@LONG
@given(st.integers(0, 2**32))
def test_many_random_programs_equal_the_safe_road(folder: Path, seed: int) -> None:
    check_random(seed, folder)


LISTED = (
    "(first (filter (lambda (i) (< (nth accs i) 5)) (range 0 (length acts))))",
    "(if (empty? (filter (fn [i] (nth flags i)) (range tail-n))) -1 (- (length accs) 1))",
    "(argmax acts)",
    "(argmin (lambda (i) (nth accs i)) (range 0 (length accs)))",
    "(nth (sort (fn [i] (- (nth acts i))) (range tail_n)) 1)",
    "(reduce max -1 (filter (lambda (i) (> (if-null (nth acts i) 0) 0)) (range tail-n)))",
    "(- (sum (map (lambda (a b) (if (> a b) 1 0)) acts accs)) 1)",
    "(cond (any? flags) 0 (all? (map not flags)) 1 else (car (cdr (take (reverse (range (len acts))) 2))))",
    "(let* ((f (lambda (i) (* 2 i)))) (f (first (append [1 0] (list 3) (cons 2 [])))))",
    "(if (in 1 (range tail-n)) (length (filter null? acts)) null)",
)


@pytest.mark.parametrize("body", LISTED)
def test_policies_over_lists_pick_the_same_item(body: str, trusted: Callable[..., ModuleType]) -> None:
    function = trusted(f"(pack lists) (defpolicy explore (lambda (acts accs flags tail_n) {body}))").explore
    source = f"(fn [acts accs flags tail-n] {body})"
    signature = SLOTS["list"]
    dice = random.Random(body)
    for _ in range(50):
        rows = records(dice, dice.randint(1, 5), INPUTS)
        text = Text(source)
        parts = definition(read_forms(text)[0], text)
        program = ListProgram(("acts", "accs", "flags", "tail-n"), parts.body, text, signature, {}, {})
        columns = {name: [row[name] for row in rows] for name in ("x", "y", "p")}
        picked = function(columns["x"], columns["y"], columns["p"], len(rows))
        assert picked is None or type(picked) is int or not picked.is_integer()
        expected = program.weights(columns, len(rows)).tolist()
        assert [float(type(picked) is int and i == picked) for i in range(len(rows))] == expected


# Every primitive on every special value.

UNARY = (
    "-", "/", "abs", "exp", "log", "log1p", "sqrt", "tanh", "sign", "floor", "ceil", "+", "*", "min", "null?", "days",
    "hours", "minutes", "weeks",
)  # fmt: skip
BINARY = ("+", "-", "*", "/", "pow", "min", "max", "=", "!=", "<", "<=", ">", ">=", "if-null")
TERNARY = ("clamp", "+", "-", "*", "min", "max", "<", "<=", "=")
TESTS = ("=", "!=", "<", "<=", ">", ">=", "null?")


def literal(value: float | None) -> str:
    if value is None:
        return "null"
    special = {"inf": "(/ 1.0 0)", "-inf": "(/ -1.0 0)", "nan": "(/ 0.0 0)"}
    return repr(value) if math.isfinite(value) else special[str(value)]


def agree(trusted: Callable[..., ModuleType], bodies: dict[str, str], values: tuple[list[Any], ...]) -> None:
    """Bodies over x, y and z, each with what its slot returns, on every combination of values."""
    names = "xyz"[: len(values)]
    arguments = " ".join(names)
    text = "\n".join(f"(defpolicy f-{i} [{arguments}] {body})" for i, body in enumerate(bodies))
    module = trusted(f"(pack special)\n{text}")
    for i, (body, returns) in enumerate(bodies.items()):
        signature = Signature("test", [Input(n) for n in "xyz"], returns)  # type: ignore[arg-type]
        policy, function = compile_policy(f"(fn [{arguments}] {body})", signature), getattr(module, f"f_{i}")
        for row in itertools.product(*values):
            expected = policy.row(dict(zip(names, row, strict=True)))
            assert bits(function(*row)) == bits(expected), (body, row, function(*row), expected)


def returns(op: str) -> str:
    return "bool" if op in TESTS else "num"


def test_unary_primitives(trusted: Callable[..., ModuleType]) -> None:
    agree(trusted, {f"({op} x)": returns(op) for op in UNARY}, (NUMBERS,))


def test_binary_primitives(trusted: Callable[..., ModuleType]) -> None:
    agree(trusted, {f"({op} x y)": returns(op) for op in BINARY}, (NUMBERS, NUMBERS))


@pytest.mark.parametrize("op", BINARY)
def test_binary_primitives_of_a_literal(op: str, trusted: Callable[..., ModuleType]) -> None:
    sides = [(f"({op} x {literal(v)})", f"({op} {literal(v)} x)") for v in NUMBERS]
    agree(trusted, {body: returns(op) for pair in sides for body in pair}, (NUMBERS,))


def test_constant_powers(trusted: Callable[..., ModuleType]) -> None:
    bodies = {f"(pow x {n})": "num" for n in [*range(-12, 13), 0.25, -0.5, 1.5, 100]}
    agree(trusted, bodies, ([*NUMBERS, 1.7, -0.3, 12.34],))


def test_ternary_primitives(trusted: Callable[..., ModuleType]) -> None:
    few: list[float | None] = [0.0, -0.0, 1.0, -2.0, 1 / 3, math.inf, math.nan, None]
    agree(trusted, {f"({op} x y z)": returns(op) for op in TERNARY}, (few, few, few))
    literals = ["0", "-0.0", "2", "null", "(/ 0.0 0)"]
    bodies = {f"({op} x {a} y)": returns(op) for op in TERNARY for a in literals}
    agree(trusted, bodies, (few, few))


CONSTANTS = ("true", "false", "null", "(< 1 2)", "(and (> x 0) false)", "(= x x)", "(null? x)", "(> x 0)")


def test_constants_flow_through_choices(trusted: Callable[..., ModuleType]) -> None:
    """A choice that comes to a constant is one: what is added to it or divided by it then rounds as for a literal."""
    bodies: dict[str, str] = {}
    for test in CONSTANTS:
        for then, otherwise in itertools.product(("0", "3", "y", "null"), repeat=2):
            bodies[f"(+ y (if {test} {then} {otherwise}))"] = "num"
            bodies[f"(/ y (if-null (if {test} {then} {otherwise}) 3))"] = "num"
    bodies["(+ y (case x 1 0 2 0 else 0))"] = "num"
    bodies["(+ y (cond (> x 0) 0 (< x 0) 0 else 0))"] = "num"
    agree(trusted, bodies, ([0.0, 1.0, -1.0, math.nan, None], [0.0, -0.0, 7.0, 1 / 3, None]))


def test_strings_and_booleans(trusted: Callable[..., ModuleType]) -> None:
    bodies = (
        '(= s "a")', "(!= s 'a)", '(in s ["a" "über"])', '(one-of s "a")', "(not-in s '(a b))", "(null? s)",
        "(and p q)", "(or p q)", "(= p q)", "(not p)", "(if p q (not q))", '(and p (= s "b") q)', "(or p null)",
        '(= "a" s "a")', "(= s s)", "#t", '(case s "a" p ["b" "über"] q else (not p))',
    )  # fmt: skip
    text = "\n".join(f"(defpolicy f-{i} [p q s] {body})" for i, body in enumerate(bodies))
    module = trusted(f"(pack words)\n{text}")
    signature = Signature("test", [Input("p", "bool"), Input("q", "bool"), Input("s", "str")], "bool")
    for i, body in enumerate(bodies):
        policy = compile_policy(f"(fn [p q s] {body})", signature)
        for p, q, s in itertools.product((True, False, None), (True, False, None), ("a", "b", "", "über", None)):
            assert getattr(module, f"f_{i}")(p, q, s) is policy.row({"p": p, "q": q, "s": s}), (body, p, q, s)


# A module of Hy.

PACK = """
    (require memlab.dialect *)
    (pack tiny "A small pack." :inherits associative)
    (setting damping (param :damping 0.7 :low 0 :high 1))
    (setting spread-mode "cascade")
    (defn ratio [a b] "a of both." (/ a (+ a b 1)))
    (defpolicy recall-score [similarity age_days success fail]
      "Near, fresh and useful."
      (* (param :weight 2 :low 0 :high 10) (+ similarity (half-life-decay age-days 30) (ratio success fail))))
    (defpolicy resolve [new/confidence old/confidence]
      (if (>= new/confidence old/confidence) "keep-new" "keep-old"))
"""


def test_hy_imports_a_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny_pack.hy").write_text(textwrap.dedent(PACK), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for _ in range(2):  # from source, then from the bytecode that Hy left
        module = importlib.import_module("tiny_pack")
        del sys.modules["tiny_pack"]
        assert module.__pack__ == ("tiny", "A small pack.", "associative")
        assert module.__settings__ == {"damping": 0.7, "spread-mode": "cascade"}
        assert module.__params__ == {"weight": 2.0}
        assert module.recall_score.__doc__ == "Near, fresh and useful."
        assert module.recall_score(0.5, 30, 1, 0) == 3.0
        assert module.recall_score(similarity=0.5, age_days=30, success=1, fail=0) == 3.0
        assert module.ratio.__doc__ == "a of both."
        assert module.ratio(1, 0) == 0.5
        assert module.resolve(new_confidence=1, old_confidence=0.5) == "keep-new"


def test_hy_runs_a_pack(tmp_path: Path) -> None:
    path = tmp_path / "tiny_pack.hy"
    path.write_text(textwrap.dedent(PACK) + "(print (recall-score 0.5 30 1 0))", encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "hy", str(path)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("3.0\n", "")


def test_the_safe_road_reads_the_same_file() -> None:
    source = read_pack(textwrap.dedent(PACK))
    assert source.settings["damping"].value == 0.7
    assert list(source.policies) == ["recall-score", "resolve"]


def test_parameters_are_changed_in_the_module(trusted: Callable[..., ModuleType]) -> None:
    module = trusted(PACK)
    module.__params__["weight"] = 4
    assert module.recall_score(0.5, 30, 1, 0) == 6.0
    for wrong in (11, -1, math.nan, "4", None):
        module.__params__["weight"] = wrong
        with pytest.raises(InputError, match="weight lies between 0 and 10"):
            module.recall_score(0.5, 30, 1, 0)


def test_a_changed_parameter_rounds_as_on_the_safe_road(trusted: Callable[..., ModuleType]) -> None:
    body = "(pow (/ (+ x (param :zero 1)) (param :by 2)) (param :to 1.5))"
    module = trusted(f"(pack p) (defpolicy f [x] {body})")
    policy = compile_policy(f"(fn [x] {body})", Signature("f", [Input("x")]))
    for zero, by, to in itertools.product((0, 1, -0.0), (3, 7, 0.1), (0.5, 3, 5, 2.5)):
        module.__params__.update(zero=zero, by=by, to=to)
        chosen = policy.with_params({"zero": zero, "by": by, "to": to})
        for x in NUMBERS:
            assert bits(module.f(x)) == bits(chosen.row({"x": x}))


def test_bodies_may_use_whatever_the_module_holds(trusted: Callable[..., ModuleType]) -> None:
    module = trusted(
        """
        (pack powerful)
        (import math [hypot] statistics)
        (setv table {"fact" 2 "goal" 3} scale 10)
        (defn factorial [n] (if (<= n 1) 1 (* n (factorial (- n 1)))))
        (defpolicy longest [x y] (* scale (hypot x (+ y 1))))
        (defpolicy looked-up [kind] (let [k kind] (/ (get table k) 2)))
        (defpolicy lower [kind] (= (.lower kind) "fact"))
        (defpolicy middle [a b c] (statistics.median [a b c]))
        (defpolicy bits [n] (.bit-length (int n)))
        (defpolicy guarded [n] (if (> n 0) (factorial n) (hypot "not" "called")))
        (defpolicy short [p] (and p (hypot "not" "called")))
        (defpolicy third [] (get ["a" "b" "c"] 2))
        (defpolicy padded [kind] (.rjust kind 6 "-"))
        """
    )
    assert module.longest(3, 3) == 50.0
    assert module.looked_up("goal") == 1.5
    assert module.lower("FACT") is True
    assert module.middle(3, 1, 2) == 2.0
    assert module.bits(8.0) == 4.0
    assert module.guarded(5) == 120.0
    assert module.short(False) is False
    assert module.third() == "c"
    assert module.padded("goal") == "--goal"
    assert module.factorial(5) == 120.0


def test_aggregates_come_by_their_expressions(trusted: Callable[..., ModuleType]) -> None:
    module = trusted(
        """
        (pack slate)
        (defn scaled [v] (min-max v))
        (defpolicy score [x y] (let [z (* 2 x)] (+ (scaled z) (slate-max (* 0.5 y)) (slate-rank (min-max x)))))
        """
    )
    assert list(module.score.aggregates) == [
        "(min-max (* 2 x))",
        "(slate-max (* 0.5 y))",
        "(min-max x)",
        "(slate-rank (min-max x))",
    ]
    columns = {"x": [3.0, 1.0, 2.0], "y": [0.0, 4.0, None]}
    found = slate_aggregates(module.score, columns)
    assert found[0] == {
        "(min-max (* 2 x))": 1.0,
        "(slate-max (* 0.5 y))": 2.0,
        "(min-max x)": 1.0,
        "(slate-rank (min-max x))": 1.0,
    }
    assert [module.score(3.0, 0.0, aggregates=found[0]), module.score(1.0, 4.0, aggregates=found[1])] == [4.0, 5.0]
    with pytest.raises(InputError, match=r"pass aggregates, with \(min-max \(\* 2 x\)\), from slate_aggregates"):
        module.score(1.0, 2.0)
    with pytest.raises(InputError, match='no column "y"'):
        slate_aggregates(module.score, {"x": [1.0]})
    assert module.scaled(5, aggregates={"(min-max v)": 0.25}) == 0.25


def test_a_helper_over_the_slate_may_use_the_modules_names(trusted: Callable[..., ModuleType]) -> None:
    module = trusted(
        """
        (pack slate)
        (import math [hypot])
        (setv top 10)
        (defn far [v] (* top (slate-max (hypot v (get [0 4] 1)))))
        (defpolicy score [x] (far (* 3 x)))
        """
    )
    found = slate_aggregates(module.score, {"x": [0.0, 1.0]})
    assert [module.score(x, aggregates=a) for x, a in zip((0.0, 1.0), found, strict=True)] == [50.0, 50.0]


def test_records_are_dictionaries(trusted: Callable[..., ModuleType]) -> None:
    module = trusted(
        """
        (pack record)
        (defpolicy reinforce [outcome stability]
          (case outcome "success" (update :stability (* 2 stability) :difficulty stability)
                        "fail" (update :stability 1)
                        else (update)))
        (defpolicy nothing [outcome] (when (= outcome "success") (update)))
        """
    )
    assert module.reinforce("success", 3) == {"stability": 6.0, "difficulty": 3.0}
    assert module.reinforce("fail", 3, difficulty=5) == {"stability": 1.0, "difficulty": 5.0}
    assert module.reinforce(None, 3, difficulty=None) == {"stability": 3.0, "difficulty": None}
    with pytest.raises(InputError, match="difficulty keeps its old value here: pass difficulty="):
        module.reinforce("fail", 3)
    assert module.nothing("success") == module.nothing("fail") == {}


def test_sets_are_collections_of_strings(trusted: Callable[..., ModuleType]) -> None:
    module = trusted(
        """
        (pack sets)
        (defpolicy styled [tags] (and (has tags "style") (has-all tags ["a" "style"]) (has-any tags '(b a))))
        (defpolicy shared [tags query-tags] (+ (overlap tags query-tags) (jaccard tags query-tags) (size tags)))
        """
    )
    assert module.styled({"a", "style"}) is module.styled(["a", "style"]) is True
    assert module.styled(None) is None
    assert module.shared(["a", "b"], {"b", "c"}) == 1 + 1 / 3 + 2
    with pytest.raises(InputError, match="is a set of strings"):
        module.styled("style")


def test_the_dialects_words_outside_of_policies(trusted: Callable[..., ModuleType]) -> None:
    """``lambda`` and ``let*`` are the dialect's; ``fn``, ``let`` and, without a pack, ``defn`` stay Hy's."""
    module = trusted(
        """
        (setv total (lambda (a b) (/ a b)))
        (setv nested (let* ((a 1) (b (+ a 1))) (/ b 0)))
        (defn many [#* items] (setv n (len items)) (, n))
        (defmacro , [#* items] `(tuple [~@items]))
        (defn pair [a b] (, a b))
        (setv plain (fn [a b] (// a b)))
        """
    )
    assert module.total(1, 0) == math.inf
    assert module.total(None, 2) is None
    assert module.nested == math.inf
    assert module.plain(7, 2) == 3
    assert module.pair(1, 2) == (1, 2)


# Errors.


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("(defpolicy f [x]\n  (clamp x 1))", PolicyTypeError, r"line 2, column 3: clamp takes 3 arguments"),
        ("(defpolicy f [x] (cond (> x 1) 2))", PolicyTypeError, "cond has no else"),
        ("(defpolicy f [x] x x)", PolicyTypeError, "one expression"),
        ("(defpolicy f [a/b a-b] 1)", PolicyTypeError, "one name in Python: a_b"),
        ("(defpolicy f [x] (+ 1 (update :x 1)))", PolicyTypeError, "last thing of a policy"),
        ("(defpolicy f [acts] (choice acts))", PolicyNameError, "use the safe road"),
        ("(defpolicy f [x] (let [+ 2] x))", PolicyTypeError, "cannot be bound"),
        ("(pack p) (defn g [x] x) (defpolicy g [x] x)", PolicyTypeError, "one thing of a name"),
        ("(pack p) (defn if [x] x)", PolicyNameError, "cannot be redefined"),
        ("(defpolicy f [x] (param :a 1)) (defpolicy g [x] (param :a 2))", PolicyNameError, "declared twice"),
        ("(let* ((x 1)) (min-max x))", PolicyTypeError, "sees no slate"),
        ("(defpolicy f [xs] (map (fn [x] (min-max x)) xs))", PolicyTypeError, "not over a list"),
        ("(setting seeds)", PolicySyntaxError, "A setting is a name and a value"),
        ("(defpolicy f [x] (+ x 1)", PolicySyntaxError, "mine.hy"),
    ],
)
def test_errors_say_what_and_where(
    source: str, kind: type[PolicyError], message: str, trusted: Callable[..., ModuleType]
) -> None:
    with pytest.raises(kind, match=message):
        trusted(source)


def test_values_of_the_wrong_type_are_refused(trusted: Callable[..., ModuleType]) -> None:
    module = trusted(
        '(pack t) (defpolicy f [x] (+ x 1)) (defpolicy g [x] (if x 1 2)) (defpolicy h [x] (= x "a"))'
        "(defpolicy i [x] (first x)) (defpolicy j [x] (in x [1 2]))"
    )
    for function, value, message in (
        (module.f, "1", r"\+ takes a number, and '1' is not"),
        (module.g, 1, "A test is true or false, and 1 is not"),
        (module.h, 1, "= compares values of one type"),
        (module.i, "abc", "first takes a list"),
        (module.j, "a", "of another type"),
    ):
        with pytest.raises(PolicyTypeError, match=message):
            function(value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Cannot read the pack"):
        load_trusted(tmp_path / "none.hy")
    (tmp_path / "latin.hy").write_bytes(b'(pack a "\xe9")')
    with pytest.raises(InputError, match="is not UTF-8"):
        load_trusted(tmp_path / "latin.hy")


# Nobody takes this road by accident.

HOSTILE = (
    '(eval-when-compile (.touch (hy.I.pathlib.Path "{}")))',
    '(eval-and-compile (.touch (hy.I.pathlib.Path "{}")))',
    '(import pathlib) (.touch (pathlib.Path "{}"))',
    '(require hyrule *) (.touch (hy.I.pathlib.Path "{}"))',
    '(defmacro boom [] (.touch (hy.I.pathlib.Path "{}")) 1) (boom)',
    '(defreader x (.touch (hy.I.pathlib.Path "{}")) 1) #x',
    '(do-mac (.touch (hy.I.pathlib.Path "{}")))',
    '(setv x (open "{}" "w"))',
    '(defpolicy recall-score [similarity] (.touch (hy.I.pathlib.Path "{}")))',
    '(defpolicy recall-score [similarity] (open "{}" "w"))',
    '(defn helper [x] (do-mac (.touch (hy.I.pathlib.Path "{}"))))',
)


@pytest.mark.parametrize("line", ["", "(require memlab.dialect *)\n"])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_the_safe_road_executes_nothing(hostile: str, line: str, tmp_path: Path, lab: memlab.Lab) -> None:
    mark = tmp_path / "mark"
    path = tmp_path / "hostile.hy"
    source = f'{line}(pack hostile "Nice.")\n{hostile.format(mark)}\n'
    path.write_text(source, encoding="utf-8")
    for use in (lambda: lab.use(str(path)), lambda: memlab.load_pack(path), lambda: memlab.load_pack(source)):
        with pytest.raises(PolicyError):
            use()
    assert not mark.exists()


def test_the_trusted_road_executes_the_file(trusted: Callable[..., ModuleType], tmp_path: Path) -> None:
    trusted(f'(pack mine) (.touch (hy.I.pathlib.Path "{tmp_path / "mark"}"))')
    assert (tmp_path / "mark").exists()


def test_neither_memlab_nor_a_lab_loads_the_compiler() -> None:
    """Reading a policy loads Hy's reader; the macros are loaded by whoever asks for them."""
    program = (
        "import sys, memlab; assert 'hy' not in sys.modules; memlab.load_pack('memlab')\n"
        "late = {'memlab.dialect', 'memlab.language.trusted._trusted', 'memlab.language.trusted._expand'}\n"
        "assert not late & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_dialect_offers_its_functions_to_python() -> None:
    assert hy
    dialect = importlib.import_module("memlab.dialect")
    assert dialect.load_trusted is load_trusted
    assert dialect.slate_aggregates is slate_aggregates

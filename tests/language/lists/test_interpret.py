"""List policies that need a loop: the interpreter gives each item the probability with which the program picks it.

What can also be lifted to columns must mean the same; chance is held against a reference that walks every path.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from types import FrameType

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memlab.errors import InputError, PolicyError, PolicyLimitError, PolicyNameError, PolicyTypeError, UnknownName
from memlab.language import Input, Policy, Signature, compile_policy
from memlab.language._check import _AGGREGATES
from memlab.language._definition import definition
from memlab.language._derived import SET_TESTS
from memlab.language._forms import FORMS
from memlab.language._library import helper, library, named
from memlab.language._reader import Text, read_forms
from memlab.language.lists._interpret import ListProgram
from memlab.language.lists._interpret_forms import FUEL, FUNCTIONS, MAX_FRAMES, MAX_ITEMS, MAX_OUTCOMES, Machine
from tests.language.lists.test_originals import EXPLORE, LISTS, TAIL

INPUTS = (
    *TAIL.inputs.values(),
    Input("kind", "str"),
    Input("pinned", "bool"),
    Input("tags", "set"),
    Input("query-words"),
)
SLOT = Signature("explore", INPUTS, lists={**LISTS, "kinds": "kind", "pins": "pinned"}, counts=("tail_n",))
ARGUMENTS = "limit tail_n acts accs kinds pins"


def program(source: str, signature: Signature = SLOT, params: dict[str, float] | None = None) -> ListProgram:
    """A list policy from its text, helpers in front."""
    text = Text(source, "explore")
    forms = read_forms(text)
    own = named(helper(form, text) for form in forms if form.head == "defn")
    parts = definition(forms[-1], text)
    names = tuple(a.text for a in parts.arguments)
    return ListProgram(names, parts.body, text, signature, {**library(), **own}, params or {})


def policy_of(body: str) -> ListProgram:
    """The policy with this body, which may read all that the slot gives."""
    return program(f"(lambda ({ARGUMENTS}) {body})")


SLATE: dict[str, list] = {
    "limit": [10.0] * 4,
    "activation": [0.5, 0.25, 0.75, 0.0],
    "access": [2.0, 7.0, 1.0, 9.0],
    "kind": ["fact", "event", None, "fact"],
    "pinned": [False, None, True, False],
}


def weights(body: str) -> list[float]:
    return policy_of(body).weights(SLATE, 4).tolist()


def value(expression: str) -> object:
    """What an expression gives, found by asking which numbers, or null, it equals."""
    answers = {
        "null": f"(if (null? {expression}) 0 -1)",
        "nan": f"(let [v {expression}] (if (null? v) -1 (if (and (= v v) (not (<= v 1e308)) (= v (/ 0 0))) 0 -1)))",
    }
    for name, test in answers.items():
        if weights(test) == [1, 0, 0, 0]:
            return name
    for number in [*range(-9, 100), 0.5, 0.25, 0.75]:
        if weights(f"(if (= {expression} {number}) 0 -1)") == [1, 0, 0, 0]:
            return number
    raise AssertionError(expression)


def items(expression: str) -> list[object]:
    """A list, item by item."""
    return [value(f"(nth {expression} {i})") for i in range(int(value(f"(length {expression})")))]


# What a result means.


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("0", [1, 0, 0, 0]),
        ("3", [0, 0, 0, 1]),
        ("4", [0, 0, 0, 0]),
        ("-1", [0, 0, 0, 0]),
        ("0.5", [0, 0, 0, 0]),
        ("null", [0, 0, 0, 0]),
        ("(/ 0 0)", [0, 0, 0, 0]),
        ("(/ 1 0)", [0, 0, 0, 0]),
        ("(- 0.0)", [1, 0, 0, 0]),
        ("(argmax accs)", [0, 0, 0, 1]),
        ("(if (> tail_n 2) (argmax acts) -1)", [0, 0, 1, 0]),
        ("(if (> tail_n 4) (argmax acts) -1)", [0, 0, 0, 0]),
        ("(first (sort (lambda (i) (- (nth accs i))) (range tail_n)))", [0, 0, 0, 1]),
        ("(nth (filter (lambda (i) (> (nth accs i) 1)) (range (length accs))) 1)", [0, 1, 0, 0]),
        ("(choice (range tail_n))", [0.25, 0.25, 0.25, 0.25]),
        ("(choice (filter (lambda (i) (< (nth accs i) 5)) (range tail_n)))", [0.5, 0, 0.5, 0]),
        ("(if (flip 0.75) 0 -1)", [0.75, 0, 0, 0]),
        ("(if (flip 0.75) (choice (range 2)) (argmax accs))", [0.375, 0.375, 0, 0.25]),
        ("(choice (filter (lambda (i) false) (range tail_n)))", [0, 0, 0, 0]),
    ],
)
def test_the_result_is_the_index_of_an_item_and_outside_the_slate_nothing(body: str, expected: list[float]) -> None:
    assert weights(body) == expected


def test_an_empty_slate_gives_no_weights() -> None:
    assert policy_of("(argmax accs)").weights({"access": []}, 0).shape == (0,)


def test_a_place_may_depend_on_the_item_and_an_inner_function_see_the_outer_one_s_names() -> None:
    assert weights("(first (filter (lambda (i) (< (nth accs (+ i 1)) 5)) (range tail_n)))") == [0, 1, 0, 0]
    below = "(length (filter (lambda (j) (< (nth accs j) (nth accs i))) (range tail_n)))"
    assert weights(f"(first (filter (lambda (i) (= {below} 2)) (range tail_n)))") == [0, 1, 0, 0]


# What is read.


def test_inputs_are_the_features_that_are_read_and_a_length_reads_none() -> None:
    assert program(EXPLORE, TAIL).inputs == ("access",)
    assert program("(lambda (tail_n acts accs) (let [a accs] (- tail_n (length a))))").inputs == ()
    assert policy_of("(if (empty? acts) limit tail_n)").inputs == ("limit",)
    assert program("(lambda (accs recs limit) (+ limit (first (map (lambda (a) a) accs))))").inputs == (
        "access",
        "limit",
    )
    assert program("(lambda (acts) (- (length acts) 1))").weights({}, 3).tolist() == [0, 0, 1]


def test_columns_may_be_spelled_either_way_and_hold_any_kind_of_number() -> None:
    policy = program("(lambda (query_words accs) (if (> query_words 3) (argmin accs) -1))")
    assert policy.inputs == ("access", "query-words")
    for name in ("query-words", "query_words"):
        assert policy.weights({name: [4, 4], "access": np.array([3, 2])}, 2).tolist() == [0, 1]


def test_other_arguments_are_one_value_of_the_whole_slate() -> None:
    policy = program("(lambda (limit accs) (if (null? limit) (argmax accs) limit))")
    assert policy.weights({"limit": [None, None], "access": [1.0, 2.0]}, 2).tolist() == [0, 1]
    assert policy.weights({"limit": [math.nan, math.nan], "access": [1.0, 2.0]}, 2).tolist() == [0, 0]
    for differing in ([1.0, 0.0], [None, 0.0], [0.0, math.nan], [math.nan, 0.0]):
        with pytest.raises(InputError, match="limit stands for one value of the whole slate, and its rows differ"):
            policy.weights({"limit": differing, "access": [1.0, 2.0]}, 2)


def test_columns_that_do_not_fit_are_named() -> None:
    policy = policy_of("(argmax accs)")
    with pytest.raises(UnknownName, match=r'no column "access"\. Did you mean acces\?'):
        policy.weights({"acces": [1.0]}, 1)
    with pytest.raises(InputError, match="access has 1 rows, and the slate has 2"):
        policy.weights({"access": [1.0]}, 2)
    with pytest.raises(InputError, match="access is a num, and 'a' is not"):
        policy.weights({"access": ["a"]}, 1)


# The functions over lists.


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("accs", [2, 7, 1, 9]),
        ("[1 2 3]", [1, 2, 3]),
        ("(list 1 (+ 1 1))", [1, 2]),
        ("'(1 2)", [1, 2]),
        ("'()", []),
        ("(range 3)", [0, 1, 2]),
        ("(range 2 5)", [2, 3, 4]),
        ("(range 5 2)", []),
        ("(range -2 1)", [-2, -1, 0]),
        ("(range (- (length accs) 2) (nth accs 0))", []),
        ("(rest accs)", [7, 1, 9]),
        ("(cdr '())", []),
        ("(take accs 2)", [2, 7]),
        ("(take accs 0)", []),
        ("(take accs 1.9)", [2]),
        ("(take accs 99)", [2, 7, 1, 9]),
        ("(reverse accs)", [9, 1, 7, 2]),
        ("(append accs [3] '() [4])", [2, 7, 1, 9, 3, 4]),
        ("(cons 5 [1])", [5, 1]),
        ("(map (lambda (a) (* a 2)) accs)", [4, 14, 2, 18]),
        ("(map - accs)", [-2, -7, -1, -9]),
        ("(map + accs [1 2 3])", [3, 9, 4]),
        ("(map square accs)", [4, 49, 1, 81]),
        ("(filter (lambda (a) (> a 1)) accs)", [2, 7, 9]),
        ("(filter (lambda (a) (> a 1)) [2 null 0])", [2]),
        ("(filter null? [2 null (/ 0 0)])", ["null"]),
        ("(sort accs)", [1, 2, 7, 9]),
        ("(sort [3 null (/ 0 0) 1])", [1, 3, "nan", "null"]),
        ("(sort (lambda (i) (nth accs i)) (range tail_n))", [2, 0, 1, 3]),
        ("(sort (lambda (i) 0) [3 1 2])", [3, 1, 2]),
        ("(sort (lambda (i) (nth kinds i)) (range tail_n))", [1, 0, 3, 2]),
        ("(map length [[1 2] []])", [2, 0]),
    ],
)
def test_lists(expression: str, expected: list[object]) -> None:
    assert items(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("(length accs)", 4),
        ("(first accs)", 2),
        ("(first '())", "null"),
        ("(car (cdr accs))", 7),
        ("(nth accs 3)", 9),
        ("(nth accs 4)", "null"),
        ("(nth accs -1)", "null"),
        ("(nth accs 0.5)", "null"),
        ("(nth accs null)", "null"),
        ("(nth accs (/ 0 0))", "null"),
        ("(reduce + accs)", 19),
        ("(reduce - 30 accs)", 11),
        ("(reduce + '())", "null"),
        ("(reduce + 3 '())", 3),
        ("(reduce max accs)", 9),
        ("(reduce (lambda (longest xs) (max longest (length xs))) 0 [[1] [1 2 3] []])", 3),
        ("(sum accs)", 19),
        ("(sum [1 null (/ 0 0) 2])", 3),
        ("(sum square [1 2])", 5),
        ("(sum '())", 0),
        ("(argmax [1 3 3])", 1),
        ("(argmin [2 1 1])", 1),
        ("(argmax [null (/ 0 0) -5])", 2),
        ("(argmax '())", "null"),
        ("(argmin (lambda (a) (- a)) accs)", 3),
        ("(let [f (lambda (x) (* x 2)) g (lambda (h x) (h (h x)))] (g f 3))", 12),
        ("((lambda (x y) (+ x y)) 1 2)", 3),
        ("(let [add (lambda (n) (lambda (x) (+ x n)))] (+ ((add 1) 10) ((add 2) 20)))", 33),
        ("(let [fs [+ *]] ((nth fs 1) 3 4))", 12),
        ("(if-null (first '()) 7)", 7),
        ("(let [length 3] 1)", None),
        ("(case (first kinds) (fact 5) (event 6) (else 7))", 5),
        ("(case (nth kinds 2) 'fact 5 else 7)", 7),
        ("(case (nth accs 0) [1 2] 5 else 7)", 5),
        ("(cond (empty? accs) 1 (> limit 5) 2 else 3)", 2),
        ("(cond ((empty? accs) 1) (else 3))", 3),
        ("(when (> limit 50) 3)", "null"),
        ("(min 3 null 2)", 2),
        ("(clamp 50 0 9)", 9),
        ("(weeks 2)", 14),
        ("(+ 3)", 3),
        ("(* (param :scale 3 :low 1 :high 9) 2)", 6),
    ],
)
def test_values(expression: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(PolicyTypeError, match="length is a form of the dialect and cannot be bound"):
            weights(expression)
    else:
        assert value(expression) == expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("(any? (lambda (a) (> a 8)) accs)", True),
        ("(all? (lambda (a) (> a 8)) accs)", False),
        ("(any? pins)", True),
        ("(all? pins)", False),
        ("(null? (any? [false null]))", True),
        ("(null? (all? [true null]))", True),
        ("(any? '())", False),
        ("(all? '())", True),
        ("(empty? accs)", False),
        ("(empty? (filter (lambda (a) (> a 50)) accs))", True),
        ("(member? 7 accs)", True),
        ("(member? 8 accs)", False),
        ("(member? (/ 0 0) [1 (/ 0 0)])", True),
        ("(null? (member? null [1]))", True),
        ('(in (first kinds) ["fact" "goal"])', True),
        ("(not-in (first kinds) '(fact goal))", False),
        ('(one-of "a" "b" "a")', True),
        ("(null? (in (nth kinds 2) kinds))", True),
        ("(= (first kinds) 'fact)", True),
        ("(!= (first kinds) (nth kinds 1))", True),
        ("(= (first pins) false)", True),
        ("(< 1 2 3)", True),
        ("(< 1 3 2)", False),
        ("(<= 1 1 (/ 0 0))", True),
        ("(and (> 1 0) (null? null))", True),
        ("(null? (and true null))", True),
        ("(and null false)", False),
        ("(or null true)", True),
        ("(reduce and true [true true])", True),
    ],
)
def test_tests(test: str, expected: bool) -> None:
    assert weights(f"(if {test} 0 1)") == ([1, 0, 0, 0] if expected else [0, 1, 0, 0])


def test_a_sum_runs_in_order_and_is_not_compensated() -> None:
    assert weights("(if (= (sum [1e16 1 -1e16]) 0) 0 1)") == [1, 0, 0, 0]


def test_every_form_of_the_dialect_is_there() -> None:
    from memlab.language.lists._interpret import _OPERATORS, _SPECIAL

    elsewhere = {*_AGGREGATES, *SET_TESTS, "update", "lambda", "defn", "defpolicy", "pack", "setting"}
    assert set(FORMS) - elsewhere <= {*_OPERATORS, *_SPECIAL, *FUNCTIONS}


def test_parameters_have_the_values_given() -> None:
    source = "(lambda (accs) (nth [0 1 2] (param :place 1 :low 0 :high 2)))"
    assert program(source).weights({}, 3).tolist() == [0, 1, 0]
    tuned = program(source, params={"place": 2.0})
    assert tuned.weights({}, 3).tolist() == [0, 0, 1]
    assert tuned.params["place"].value == 2.0


def test_the_digest_hashes_what_the_weights_depend_on() -> None:
    one = program("(lambda (accs) (nth accs (param :n 1)))")
    assert one.digest == program("(lambda (accs)\n  (nth accs (param :n 1)))").digest
    others = [
        program("(lambda (accs) (nth accs (param :n 1)))", params={"n": 2.0}),
        program("(lambda (acts) (nth acts (param :n 1)))"),
        program("(lambda (accs) (nth accs (param :n 2)))"),
        program("(lambda (accs) (nth accs (param :n 1)))", Signature("explore", INPUTS, lists={"accs": "success"})),
    ]
    assert len({one.digest, *[other.digest for other in others]}) == 5
    helped = [program(f"(defn f [x] (+ x {n})) (lambda (accs) (f (argmax accs)))") for n in (1, 2)]
    assert helped[0].digest != helped[1].digest
    assert list(helped[0].used) == ["f"]


def test_helpers_see_their_arguments_alone_and_may_be_handed_over() -> None:
    twice = program("(defn twice [f x] (f (f x))) (lambda () (twice (lambda (n) (+ n 1)) 0))")
    assert twice.weights({}, 3).tolist() == [0, 0, 1]
    handed = program("(defn next [x] (+ x 1)) (lambda () (first (map next [1])))")
    assert handed.weights({}, 3).tolist() == [0, 0, 1]
    with pytest.raises(PolicyNameError, match='Nothing is called "accs" here'):
        program("(defn f [x] (nth accs x)) (lambda (accs) (f 0))")


# Chance: against a reference that replays the program once for each path.


def paths(run: Callable[[Callable[[list[Fraction]], int]], object]) -> Iterator[tuple[object, Fraction]]:
    """Every run of ``run`` with its probability; ``run`` calls its argument to draw from a list of probabilities."""
    pending: list[list[int]] = [[]]
    while pending:
        prefix = pending.pop()
        taken: list[int] = []
        weight = Fraction(1)

        def draw(chances: list[Fraction], prefix: list[int] = prefix, taken: list[int] = taken) -> int:
            nonlocal weight
            place = len(taken)
            if place < len(prefix):
                taken.append(prefix[place])
            else:
                pending.extend([*taken, other] for other in range(1, len(chances)))
                taken.append(0)
            weight *= chances[taken[-1]]
            return taken[-1]

        result = run(draw)
        yield result, weight


Tree = tuple  # an operator and its parts


def draws(depth: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[Tree]:
    """Programs with chance, as trees: numbers alone."""
    leaf = st.one_of(
        st.integers(0, 3).map(lambda n: ("number", n)),
        *([st.sampled_from(names).map(lambda n: ("name", n))] if names else []),
    )
    if depth == 0:
        return leaf
    below = draws(depth - 1, names)
    name = f"v{depth}"
    inner = draws(depth - 1, (*names, name))
    return st.one_of(
        leaf,
        st.lists(below, min_size=1, max_size=3).map(lambda v: ("choice", *v)),
        st.tuples(st.sampled_from([0, 1, 2, 4]), below, below).map(lambda v: ("flip", *v)),
        st.tuples(below, below).map(lambda v: ("+", *v)),
        st.tuples(below, inner).map(lambda v: ("let", name, *v)),
        st.tuples(below, inner).map(lambda v: ("map", name, *v)),
        st.tuples(below, inner).map(lambda v: ("filter", name, *v)),
        st.tuples(below, inner).map(lambda v: ("reduce", name, *v)),
        st.tuples(below, inner).map(lambda v: ("call-twice", name, *v)),
        st.tuples(below, below, below).map(lambda v: ("if-less", *v)),
        st.tuples(below, below).map(lambda v: ("argmax", *v)),
    )


def written(tree: Tree) -> str:
    """The tree as a program."""
    head, *parts = tree
    if head in ("number", "name"):
        return str(parts[0])
    if head in ("let", "map", "filter", "reduce", "call-twice"):
        name, first, second = parts[0], written(parts[1]), written(parts[2])
        return {
            "let": f"(let [{name} {first}] (+ {name} {second}))",
            "map": f"(reduce + (map (lambda ({name}) {second}) [{first} 1]))",
            "filter": f"(length (filter (lambda ({name}) (< {second} 2)) [{first} 1 2]))",
            "reduce": f"(reduce (lambda ({name} item) (+ {second} item)) {first} [1 2])",
            "call-twice": f"(let [f (lambda ({name}) {second})] (+ (f {first}) (f 1)))",
        }[head]
    first, *rest = [written(p) if isinstance(p, tuple) else str(p) for p in parts]
    if head == "choice":
        return f"(choice [{' '.join([first, *rest])}])"
    return {
        "flip": "(if (flip (/ {0} 4)) {1} {2})",
        "+": "(+ {0} {1})",
        "if-less": "(if (< {0} 2) {1} {2})",
        "argmax": "(argmax [{0} {1}])",
    }[head].format(first, *rest)


def reference(tree: Tree, names: dict[str, int], draw: Callable[[list[Fraction]], int]) -> int:
    """One run of the tree."""
    head, *parts = tree

    def run(part: Tree, **more: int) -> int:
        return reference(part, {**names, **more}, draw)

    if head == "number":
        return parts[0]
    if head == "name":
        return names[parts[0]]
    if head == "choice":
        values = [run(p) for p in parts]
        return values[draw([Fraction(1, len(values))] * len(values))]
    if head == "flip":
        p = Fraction(parts[0], 4)
        return run(parts[1 + draw([p, 1 - p])])
    if head == "+":
        return run(parts[0]) + run(parts[1])
    if head == "if-less":
        return run(parts[1]) if run(parts[0]) < 2 else run(parts[2])
    if head == "argmax":
        first, second = run(parts[0]), run(parts[1])
        return int(second > first)
    name, given, body = parts
    start = run(given)
    if head == "let":
        return start + run(body, **{name: start})
    if head == "map":
        return sum(run(body, **{name: x}) for x in (start, 1))
    if head == "filter":
        return sum(run(body, **{name: x}) < 2 for x in (start, 1, 2))
    if head == "reduce":
        for item in (1, 2):
            start = run(body, **{name: start}) + item
        return start
    return run(body, **{name: start}) + run(body, **{name: 1})


@settings(max_examples=150, deadline=None)
@given(draws(3))
def test_chance_is_the_sum_over_all_paths(tree: Tree) -> None:
    expected: dict[int, Fraction] = {}
    for count, (result, weight) in enumerate(paths(lambda draw: reference(tree, {}, draw))):
        if count > 3_000:
            return
        expected[int(str(result))] = expected.get(int(str(result)), Fraction(0)) + weight
    try:
        found = policy_of(written(tree)).weights({}, 64)
    except PolicyLimitError:
        return
    assert found == pytest.approx([float(expected.get(i, 0)) for i in range(64)], abs=1e-12)
    assert found.sum() <= 1 + 1e-12


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(let [x (choice [0 1])] (+ x x))", {0: 0.5, 2: 0.5}),
        ("(+ (choice [0 1]) (choice [0 1]))", {0: 0.25, 1: 0.5, 2: 0.25}),
        ("(choice (choice [[0 1] [2]]))", {0: 0.25, 1: 0.25, 2: 0.5}),
        ("(choice [1 1 2])", {1: 2 / 3, 2: 1 / 3}),
        ("((choice [(lambda (x) x) (lambda (x) (+ x 1))]) 0)", {0: 0.5, 1: 0.5}),
        ("(let [f (choice [(lambda () 0) (lambda () 1)])] (+ (f) (f)))", {0: 0.5, 2: 0.5}),
        ("(let [f (lambda () (choice [0 1]))] (+ (f) (f)))", {0: 0.25, 1: 0.5, 2: 0.25}),
        ("(if (and (flip 0.5) (flip 0.5)) 0 1)", {0: 0.25, 1: 0.75}),
        ("(if (or (flip 0.5) (flip 0.5)) 0 1)", {0: 0.75, 1: 0.25}),
        ("(cond (flip 0.5) 0 (flip 0.5) 1 else 2)", {0: 0.5, 1: 0.25, 2: 0.25}),
        ("(case (choice ['a 'b 'c]) (a 0) ((b c) 1) (else 2))", {0: 1 / 3, 1: 2 / 3}),
        ("(if-null (choice [null 1]) 0)", {0: 0.5, 1: 0.5}),
        ("(first (sort (lambda (i) (choice [0 1])) [0 1]))", {0: 0.75, 1: 0.25}),
        ("(if (any? flip [0.5 0.5]) 0 1)", {0: 0.75, 1: 0.25}),
        ("(flip-index)", {0: 0.25, 1: 0.75}),
        ("(if (flip 1) 0 1)", {0: 1.0}),
        ("(if (flip 0) 0 1)", {1: 1.0}),
        ("(if (flip null) 0 1)", {1: 1.0}),
        ("(nth [(lambda (x) x) 1] 1)", {1: 1.0}),
        ("(if (= (/ 1 (choice [0 (- 0)])) (/ 1 0)) 0 1)", {0: 0.5, 1: 0.5}),
    ],
)
def test_distributions_in_closed_form(body: str, expected: dict[int, float]) -> None:
    source = f"(defn flip-index [] (if (flip 0.25) 0 1)) (lambda () {body})"
    assert program(source).weights({}, 3) == pytest.approx([expected.get(i, 0.0) for i in range(3)], abs=1e-15)


def test_many_coin_flips_merge_into_a_binomial() -> None:
    n, p = 20, 0.3
    flips = program(f"(lambda () (reduce (lambda (heads i) (if (flip {p}) (+ heads 1) heads)) 0 (range {n})))")
    expected = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    assert flips.weights({}, n + 1) == pytest.approx(expected, rel=1e-12)


def test_a_choice_among_weights_is_a_walk_along_them() -> None:
    """A draw in proportion to weights, which the dialect does not have, written with flips."""
    source = """
    (lambda (acts)
      (nth (reduce (lambda (state i)
                     (let [found (nth state 0) left (nth state 1)]
                       (if (>= found 0) state
                           (if (flip (/ (nth acts i) left)) [i 0] [-1 (- left (nth acts i))]))))
                   [-1 (sum acts)] (range (length acts))) 0))"""
    acts = [1.0, 4.0, 3.0, 2.0]
    assert program(source).weights({"activation": acts}, 4) == pytest.approx([a / 10 for a in acts], abs=1e-12)


# Agreement with what is lifted to columns.

VALUES = ("access", "activation")
tame = st.one_of(st.none(), st.integers(-3, 12).map(float), st.sampled_from([0.5, 0.1, 0.3]))
wild = st.one_of(tame, st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e-310]), st.floats())


def slates(numbers: st.SearchStrategy[float | None]) -> st.SearchStrategy[list[dict]]:
    item = {
        **dict.fromkeys(VALUES, numbers),
        "kind": st.sampled_from(["a", "b", "", None]),
        "pinned": st.sampled_from([True, False, None]),
    }
    slate = st.lists(st.fixed_dictionaries(item), min_size=1, max_size=7)
    return st.tuples(slate, numbers).map(lambda v: [{**row, "limit": v[1]} for row in v[0]])


literals = st.sampled_from(["0", "1", "2", "3", "-1", "0.5", "0.1", "7"])


@cache
def liftable(depth: int, places: bool) -> st.SearchStrategy[str]:
    """Bodies over lists that give numbers. ``_lift`` takes most of them. ``places`` adds those that read values at
    computed places of a list, which it takes seldom.
    """
    numbers = st.one_of(literals, st.sampled_from(["limit", "tail_n", "(length acts)"]))
    if depth == 0:
        return numbers
    below, tests = liftable(depth - 1, places), truths(depth - 1, places)
    positions = listed(depth - 1, places)
    own = [
        numbers,
        positions.map(lambda xs: f"(first {xs})"),
        positions.map(lambda xs: f"(length {xs})"),
        values(depth - 1, places).map(lambda xs: f"(length {xs})"),
        arithmetic(below),
        st.tuples(tests, below, below).map(lambda v: "(if {} {} {})".format(*v)),
        st.tuples(below, below).map(lambda v: "(if-null {} {})".format(*v)),
        st.tuples(below, below, below).map(lambda v: "(let ((x {}) (y {})) (+ x (* y {})))".format(*v)),
        st.tuples(positions, below).map(lambda v: "(let* ((xs {})) (if (empty? xs) {} (first xs)))".format(*v)),
        st.tuples(below, literals).map(lambda v: "(capped {} {})".format(*v)),
    ]
    if places:
        own += [
            st.tuples(values(depth - 1, places)).map(lambda v: f"(first {v[0]})"),
            st.tuples(st.sampled_from(["accs", "acts"]), below).map(lambda v: "(nth {} {})".format(*v)),
        ]
    return st.one_of(*own)


def arithmetic(x: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "/", "min", "max"]), x, x).map(lambda v: "({} {} {})".format(*v)),
        st.tuples(st.sampled_from(["-", "abs", "floor", "sign", "hours", "sqrt"]), x).map(
            lambda v: "({} {})".format(*v)
        ),
        st.tuples(x, st.sampled_from(["0.5", "2", "3"])).map(lambda v: "(pow {} {})".format(*v)),
        st.tuples(x, x, x).map(lambda v: "(clamp {} {} {})".format(*v)),
    )


@cache
def truths(depth: int, places: bool) -> st.SearchStrategy[str]:
    below = liftable(depth, places)
    return st.one_of(
        comparisons(below),
        listed(depth, places).map(lambda xs: f"(empty? {xs})"),
        below.map(lambda x: f"(null? {x})"),
    )


def comparisons(x: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), x, x).map(lambda v: "({} {} {})".format(*v))


@cache
def listed(depth: int, places: bool) -> st.SearchStrategy[str]:
    """Lists of positions."""
    whole = st.sampled_from(
        ["(range 0 (length acts))", "(range tail_n)", "(range 1 (length kinds))", "(range 2 tail_n)", "'()"]
    )
    if depth == 0:
        return whole
    here = st.one_of(
        st.sampled_from(["(nth accs i)", "(nth acts i)", "i"]),
        liftable(depth - 1, places),
    )
    test = st.one_of(
        comparisons(st.one_of(here, arithmetic(here))),
        st.sampled_from(["(nth pins i)", "(not (nth pins i))", "(null? (nth pins i))", '(= (nth kinds i) "a")']),
        st.just('(in (nth kinds i) ["b" ""])'),
        st.tuples(literals, literals).map(lambda v: '(< (case (nth kinds i) "a" {} else {}) 2)'.format(*v)),
        st.tuples(comparisons(here), comparisons(here)).map(lambda v: "(and {} (or (nth pins i) {}))".format(*v)),
    )
    return st.one_of(
        whole,
        st.tuples(test, listed(depth - 1, places)).map(lambda v: "(filter (lambda (i) {}) {})".format(*v)),
    )


@cache
def values(depth: int, places: bool) -> st.SearchStrategy[str]:
    """Lists of values."""
    whole = st.sampled_from(["accs", "acts"])
    if depth == 0:
        return whole
    item = st.one_of(st.just("a"), literals, liftable(depth - 1, places))
    gentle = st.sampled_from(["(+ a 1)", "(* a 2)", "(abs a)", "(max a 3)", "(if (> a 2) a 1)", "(+ a (length acts))"])
    made = gentle if places else arithmetic(st.one_of(st.just("a"), literals))
    below = values(depth - 1, places)
    return st.one_of(
        whole,
        st.tuples(comparisons(item), below).map(lambda v: "(filter (lambda (a) {}) {})".format(*v)),
        st.tuples(made, below).map(lambda v: "(map (lambda (a) {}) {})".format(*v)),
        listed(depth - 1, places).map(lambda xs: f"(map (lambda (i) (nth accs i)) {xs})"),
    )


def lifted(policy: Policy, table: list[dict]) -> list[float]:
    """The weights of the policy that is lifted to columns, run on arrays."""
    columns = {}
    blank = {"limit": 0.0, "access": 0.0, "activation": 0.0, "kind": "", "pinned": False}
    for name, empty in blank.items():
        given_values = [row[name] for row in table]
        dtype = {str: object}.get(type(empty), type(empty))
        columns[name] = (
            np.array([empty if v is None else v for v in given_values], dtype),
            np.array([v is None for v in given_values]),
        )
    found, nulls = policy.arrays(columns)
    assert nulls is None
    return found.tolist()


def check_agreement(body: str, table: list[dict]) -> bool:
    """Whether the policy is lifted at all; if it is, the two must agree."""
    source = f"(lambda ({ARGUMENTS}) {body})"
    policy = compile_policy(source, SLOT)
    if policy.root.op == "interpreted":
        return False
    columns = {name: [row[name] for row in table] for name in table[0]}
    assert program(source).weights(columns, len(table)).tolist() == lifted(policy, table)
    return True


@settings(max_examples=250, deadline=None)
@given(liftable(3, places=True), slates(wild))
def test_what_lifts_means_the_same(body: str, table: list[dict]) -> None:
    assume(check_agreement(body, table))


@settings(max_examples=250, deadline=None)
@given(liftable(3, places=False), slates(wild))
def test_what_lifts_means_the_same_on_nan_infinities_and_signed_zeros(body: str, table: list[dict]) -> None:
    assume(check_agreement(body, table))


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None)
@given(st.booleans().flatmap(lambda p: st.tuples(liftable(4, p), slates(wild))))
def test_much_that_lifts_means_the_same(case: tuple[str, list[dict]]) -> None:
    assume(check_agreement(*case))


@given(st.lists(st.one_of(st.none(), st.just(math.nan), st.integers(0, 12)), min_size=1, max_size=12))
def test_the_original_exploration_policy_is_the_same_lifted_and_interpreted(access: list[float | None]) -> None:
    column = (np.array([0.0 if a is None else a for a in access], float), np.array([a is None for a in access]))
    found = program(EXPLORE, TAIL).weights({"access": access}, len(access))
    assert found.tolist() == compile_policy(EXPLORE, TAIL).arrays({"access": column})[0].tolist()
    under = [i for i, a in enumerate(access) if a is not None and a < 5]
    assert np.flatnonzero(found).tolist() == (under[:1] if len(access) > 2 else [])


def test_constants_round_as_they_do_in_columns() -> None:
    # x / 49 runs as x * (1 / 49): 49 of them is not 1
    for body in ("(/ 49 49)", "(let [d 49] (/ limit d))", "(capped limit 49)"):
        table = [{"limit": 49.0, "access": 1.0, "activation": 49.0, "kind": "a", "pinned": True}]
        assert check_agreement(f"(if (= {body} 1) 0 -1)", table)


# Mistakes.


def error(body: str, kind: type[PolicyError]) -> PolicyError:
    with pytest.raises(kind) as caught:
        weights(body)
    return caught.value


def marked(found: PolicyError) -> str:
    """The text that the caret stands under."""
    assert found.source is not None
    assert found.line is not None
    assert found.column is not None
    return found.source.split("\n")[found.line - 1][found.column - 1 : found.end_column]


@pytest.mark.parametrize(
    ("body", "said", "under"),
    [
        ("(argmacks accs)", 'no function "argmacks". Did you mean argmax', "argmacks"),
        ("(argmax acs)", 'Nothing is called "acs" here. Did you mean acts or accs', "acs"),
        ("(argmax recs)", 'Nothing is called "recs" here', "recs"),
        ("(random)", "(choice list)", "random"),
        ("(while true 1)", "map, filter or reduce", "while"),
        ("(now)", "no clock", "now"),
        ("(__import__ accs)", "There is no function", "__import__"),
        ("(success 1)", "success is a feature, not a function", "success"),
        ("success", "success is a feature, but no argument of this policy", "success"),
    ],
)
def test_names_that_are_not_there(body: str, said: str, under: str) -> None:
    found = error(body, PolicyError)
    assert said in str(found)
    assert marked(found).replace("_", "-") == under.replace("_", "-")


@pytest.mark.parametrize(
    ("body", "said", "under"),
    [
        # found before anything runs, in branches that never run too
        ("(if true 1 (first))", "first takes 1 argument, and here are 0", "(first)"),
        ("(if true 1 (nth accs))", "nth takes 2 arguments, and here are 1", "(nth accs)"),
        ("(if true 1 (filter accs))", "filter takes 2 arguments", "(filter accs)"),
        ('(if true 1 (+ 1 "a"))', "+ takes a number, and this is a string", '"a"'),
        ("(if true 1 (and 1 true))", "and takes true or false, and this is a number", "1"),
        ("(if 3 1 2)", "if tests true or false, and this is a number", "3"),
        ("(slate-max 1)", "slate-max does not stand in a policy over lists", "slate-max"),
        ("(has tags 1)", "has does not stand in a policy over lists", "has"),
        ("(update :a 1)", "update does not stand in a policy over lists", "update"),
        ("(let [first 1] 1)", "first is a form of the dialect and cannot be bound", "first"),
        ("(let [f (lambda (n) (f n))] (f 1))", "f stands in its own value; the dialect has no recursion", "f"),
        ("(let [x x] x)", "x stands in its own value", "x"),
        ("(let [n 1] (n 2))", "n is a number here, not a function", "n"),
        ("(lambda x x)", "A function is written (lambda [names] body)", "(lambda x x)"),
        ("(lambda (x x) x)", "An argument stands here twice", "(x x)"),
        ("()", "An empty form has no value", "()"),
        ("(1 2)", "The first item of a form is a function", "1"),
        (":a", "stands where a value is expected", ":a"),
        ("(cond (> limit 1) 2)", "cond has no else", "(cond (> limit 1) 2)"),
        ("(case limit 1 2 'a 3 else 4)", "all strings or all numbers", "a"),
        ("(capped 1)", "(capped x cap) takes 2 arguments", "(capped 1)"),
        # found where they happen
        ("accs", "explore returns an index: a number, and this is a list", "accs"),
        ("(= 1 1)", "explore returns an index: a number, and this is true or false", "(= 1 1)"),
        ("(if limit 1 2)", "if tests true or false, and this is a number", "limit"),
        ("(+ 1 accs)", "+ takes a number, and this is a list", "accs"),
        ("(+ 1 (first kinds))", "+ takes a number, and this is a string", "(first kinds)"),
        ("(+ 0 (first kinds))", "+ takes a number, and this is a string", "(first kinds)"),
        ("(< limit (first kinds))", "< compares numbers, and this is a string", "(first kinds)"),
        ("(= limit (first kinds))", "two types: a number, and here a string", "(first kinds)"),
        ("(= accs accs)", "= compares numbers, strings and booleans, and this is a list", "accs"),
        ("(and true limit)", "and takes true or false, and this is a number", "limit"),
        ("(not limit)", "not takes true or false, and this is a number", "limit"),
        ("(first limit)", "first takes a list, and this is a number", "limit"),
        ("(first (first '()))", "first takes a list, and this is null", "(first '())"),
        ("(nth accs (first kinds))", "nth takes a number, and this is a string", "(first kinds)"),
        ("(range (/ limit 3))", "range runs between whole numbers, and this is 3.33333", "(/ limit 3)"),
        ("(range (/ limit 0))", "range runs between whole numbers, and this is inf", "(/ limit 0)"),
        ("(take accs (- limit))", "take takes how many, and this is -10", "(- limit)"),
        ("(map accs accs)", "map takes a function first, and this is a list", "accs"),
        ("(map (lambda (x y) x) accs)", "This function takes 2 arguments, and here map gives 1", "(lambda (x y) x)"),
        ("(map nth accs)", "This function takes 2 arguments, and here map gives 1", "nth"),
        ("(filter (lambda (a) a) accs)", "filter tests true or false, and this is a number", "(lambda (a) a)"),
        ("(sort [1 'a])", "sort orders numbers or strings, and here is a string", "[1 'a]"),
        ("(sort pins)", "sort orders numbers or strings, and here is true or false", "pins"),
        ("(argmax kinds)", "argmax takes a number, and this is a string", "kinds"),
        ("(member? 1 kinds)", "two types: a number, and here a string", "kinds"),
        ("(case (first pins) 1 2 else 3)", "case compares a number here, and this is true or false", "(first pins)"),
        ("(flip limit)", "flip takes a probability from 0 to 1, and this is 10", "limit"),
        ("(flip (/ 0 0))", "flip takes a probability from 0 to 1, and this is nan", "(/ 0 0)"),
        ("(let [f (choice [1 +])] (f 1 2))", "f is a number here, not a function", "f"),
        ("((first [limit]) 1)", "This is a number here, not a function", "(first [limit])"),
    ],
)
def test_forms_of_the_wrong_type_or_shape(body: str, said: str, under: str) -> None:
    found = error(body, PolicyTypeError)
    assert said in str(found)
    assert marked(found) == under
    assert str(found).startswith("policy explore, line 1")


def test_arguments_that_the_slot_does_not_give() -> None:
    with pytest.raises(PolicyNameError, match=r"accz is no input of explore\. Did you mean accs"):
        program("(lambda (accz) 1)")
    with pytest.raises(PolicyNameError, match="tags is a set: a list policy reads numbers, booleans and strings"):
        program("(lambda (tags) 1)")


def test_a_helper_that_calls_itself_is_refused() -> None:
    with pytest.raises(PolicyTypeError, match="f calls itself; the dialect has no recursion"):
        program("(defn f [n] (f n)) (lambda (accs) (f 1))")
    with pytest.raises(PolicyTypeError, match="calls itself"):
        program("(defn f [n] (map g n)) (defn g [n] (f n)) (lambda (accs) (f accs))")


# Hostile programs: fuel ends them. What they would cost without it is far beyond any patience.


def chain(name: str, first: str, step: str, count: int) -> str:
    """``count`` bindings, each made from the one before."""
    return f"({name}0 {first}) " + " ".join(f"({name}{i + 1} {step.format(f'{name}{i}')})" for i in range(count))


ITEMS_100 = [float(i % 7) for i in range(100)]
HUNDRED = {
    **dict.fromkeys(("access", "activation"), ITEMS_100),
    "limit": [10.0] * 100,
    "kind": ["fact"] * 100,
    "pinned": [True] * 100,
}
BIG = "(range 4000)"
STEPS, ITEMS, OUTCOMES, DEPTH = "more than 120,000 steps", "4,096 items", "4,096 possibilities", "no recursion"
HOSTILE = {
    "a function of itself": ("(let ((w (lambda (x) (x x)))) (w w))", DEPTH),
    "a function of itself, unnamed": ("((lambda (x) (x x)) (lambda (x) (x x)))", DEPTH),
    "recursion through a list": ("(let ((w (lambda (x) (map (lambda (i) (x x)) accs)))) (length (w w)))", DEPTH),
    "recursion twice": ("(let ((w (lambda (x) (+ (x x) (x x))))) (w w))", DEPTH),
    "recursion through reduce": ("(let ((w (lambda (f x) (reduce (lambda (a i) (f f x)) 0 accs)))) (w w 1))", DEPTH),
    "recursion under chance": ("(let ((w (lambda (x) (if (flip 0.5) (x x) 0)))) (w w))", DEPTH),
    "loops in loops": (
        "(length (map (lambda (a) (map (lambda (b) (map (lambda (c) (map (lambda (d) 1) accs)) accs)) accs)) accs))",
        STEPS,
    ),
    "doubling lists": (f"(let* ({chain('a', 'accs', '(append {0} {0})', 30)}) (length a30))", ITEMS),
    "doubling calls": (
        f"(let* ({chain('f', '(lambda (x) (+ x 1))', '(lambda (x) ({0} ({0} x)))', 30)}) (f30 1))",
        STEPS,
    ),
    "a tower of functions": (
        f"(let [f (reduce (lambda (f i) (lambda (y) (f (+ y 1)))) (lambda (y) y) {BIG})] (f 0))",
        DEPTH,
    ),
    "a long range": ("(length (range 1e15))", ITEMS),
    "a longer range": ("(length (range -1e300 1e300))", ITEMS),
    "a flip for each item": ("(length (map (lambda (a) (flip 0.5)) accs))", OUTCOMES),
    "a flip in each of many names": (f"(let* ({chain('a', '(flip 0.5)', '(flip 0.5)', 300)}) 1)", STEPS),
    "a flip in each of some names": (f"(let* ({chain('a', '(flip 0.5)', '(flip 0.5)', 30)}) 1)", STEPS),
    "choices of many": ("(+ (choice accs) (* 100 (choice (range 100))) (* 10000 (choice (range 99))))", OUTCOMES),
    "a choice of orders": ("(first (sort (lambda (i) (choice accs)) (range tail_n)))", OUTCOMES),
    "random walks": (
        f"(choice (map (lambda (i) (reduce (lambda (a x) (if (flip 0.5) (+ a 1) (- a 1))) 0 {BIG})) {BIG}))",
        STEPS,
    ),
    "short random walks": (
        "(choice (map (lambda (i) (reduce (lambda (a x) (if (flip 0.5) (+ a 1) (- a 1))) 0 (range 300))) (range 10)))",
        STEPS,
    ),
    "a random subset": ("(length (reduce (lambda (a x) (if (flip 0.5) a (cons x a))) '() accs))", STEPS),
    "sorting": (f"(let [r {BIG}] (sum (lambda (a) (length (sort r))) r))", STEPS),
    "searching": (f"(let [r {BIG}] (length (filter (lambda (a) (member? -1 r)) r)))", STEPS),
    "transcendental": (f"(sum (lambda (a) (sum (lambda (b) (exp (log (pow a b)))) {BIG})) {BIG})", STEPS),
    "branches": (f"(sum (lambda (i) (cond (< i 0) 1 (= i 9) 2 else (sum {BIG}))) {BIG})", STEPS),
    "many names": (
        f"(let* ({chain('a', '(nth accs 0)', '(+ {0} limit)', 300)}) (length (map (lambda (i) a300) {BIG})))",
        STEPS,
    ),
}  # fmt: skip
A_HANG = 0.25
"""Seconds of one core. The worst of these takes 0.03; without fuel some would outlast the machine."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs_run_out_of_fuel(name: str) -> None:
    body, said = HOSTILE[name]
    policy = policy_of(body)
    took = math.inf
    for _ in range(3):
        started = time.process_time()
        with pytest.raises(PolicyLimitError) as caught:
            policy.weights(HUNDRED, 100)
        took = min(took, time.process_time() - started)
    assert said in caught.value.message
    assert "explore" in caught.value.message
    assert str(caught.value).startswith("policy explore, line 1, column")
    assert any(way in caught.value.message for way in ("Shorten the list first", "with map, filter or reduce"))
    assert took < A_HANG


@pytest.mark.parametrize(
    "body",
    [
        # lists that share their parts, 2^60 items if unfolded, where chance compares them
        f"(let* ({chain('a', '[1]', '[{0} {0}]', 60)}) (length (choice [a60 a59 a60])))",
        # deep lists are freed without recursion
        "(length (reduce (lambda (a i) [a]) '() (range 4000)))",
        f"(length (reduce (lambda (f i) [(lambda () f)]) '() {BIG}))",
        "(- " * 97 + "1" + ")" * 97,
        "(+ " + "limit " * 120 + ")",
        "(let [x limit] " * 90 + "x" + ")" * 90,
    ],
)
def test_harmless_programs_run(body: str) -> None:
    policy_of(body).weights(HUNDRED, 100)


def test_comparing_every_item_with_every_other_is_within_the_fuel_at_a_hundred() -> None:
    below = "(lambda (i) (length (filter (lambda (j) (< (nth accs j) (nth accs i))) (range tail_n))))"
    found = policy_of(f"(argmax {below} (range tail_n))").weights(HUNDRED, 100)
    assert np.flatnonzero(found).tolist() == [6]


def test_a_slate_of_more_than_the_most_items_is_refused() -> None:
    policy = program("(lambda (accs) (argmax accs))")
    assert policy.weights({"access": [0.0] * MAX_ITEMS}, MAX_ITEMS)[0] == 1.0
    with pytest.raises(PolicyLimitError, match=r"at most 4,096 items, and this slate has 4,097"):
        policy.weights({"access": [0.0] * (MAX_ITEMS + 1)}, MAX_ITEMS + 1)


def test_a_choice_of_the_largest_slate_is_possible() -> None:
    assert MAX_OUTCOMES >= MAX_ITEMS
    found = program("(lambda (accs) (choice (range (length accs))))").weights({}, MAX_ITEMS)
    assert found.tolist() == [1 / MAX_ITEMS] * MAX_ITEMS


def test_programs_too_deep_or_too_large_are_refused_when_they_are_checked() -> None:
    tower = "".join(f"(defn f{i} [n] {'(abs ' * 60}(f{i + 1} n){')' * 60}) " for i in range(8))
    tower += "(defn f8 [n] n) (lambda (limit) (f0 limit))"
    with pytest.raises(PolicyLimitError, match="nest deeper than"):
        program(tower)
    doubling = "(defn g0 [n] n) " + "".join(f"(defn g{i + 1} [n] (+ (g{i} n) (g{i} n))) " for i in range(20))
    with pytest.raises(PolicyLimitError, match="Inlining visits more than"):
        program(doubling + "(lambda (limit) (g20 limit))")
    with pytest.raises(PolicyLimitError, match="depend on one another"):
        policy_of("(+ " + "limit " * 900 + ")")


@pytest.mark.parametrize(
    "body",
    [
        "(let ((w (lambda (x) (x x)))) (w w))",
        "(let ((w (lambda (x) (first (sort (lambda (i) (x x)) (range 2)))))) (w w))",
        "(let ((w (lambda (x) (if (flip 0.5) (x x) 0)))) (w w))",
        "(let ((w (lambda (x) (let [y (choice [x x +])] (y y))))) (w w))",
    ],
)
def test_the_deepest_programs_leave_room_on_the_stack(body: str) -> None:
    """Python has 1,000 frames, and a notebook or a test stands on some 150."""
    deepest = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal deepest
        if event == "call":
            deepest = max(deepest, depth(frame))

    policy = policy_of(body)
    sys.setprofile(profile)
    try:
        with pytest.raises(PolicyLimitError):
            policy.weights(HUNDRED, 100)
    finally:
        sys.setprofile(None)
    assert deepest - depth(sys._getframe()) < MAX_FRAMES + 10


def depth(frame: FrameType | None) -> int:
    count = 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def test_fuel_is_counted_in_forms_and_items_alike_on_every_machine() -> None:
    # each item: one to make the list, then for its square 1 call, 2 names, 1 more to hold the function's own names
    policy = program("(lambda () (length (map (lambda (a) (* a a)) (range 1000))))")
    machine = Machine("explore", 1, 0)
    policy.code.run(machine, ())
    assert FUEL - machine.fuel == 1000 * (1 + 4 + 1)

"""Chance in list policies, against a reference that replays the program once for each path, and closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.errors import PolicyLimitError
from tests.language.lists.interpreted import policy_of, program


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


@examples(150)
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

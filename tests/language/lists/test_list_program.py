"""List policies that need a loop: what their result, their arguments, parameters and helpers mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memlab.errors import InputError, PolicyNameError, UnknownName
from memlab.kernel.language import Signature
from tests.language.lists.interpreted import INPUTS, policy_of, program, weights
from tests.language.lists.test_originals import EXPLORE, TAIL

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
    assert program(EXPLORE, TAIL).inputs == ("access", "tail-n")
    assert program("(lambda (tail_n acts accs) (let [a accs] (- 3 (length a))))").inputs == ()
    assert policy_of("(if (empty? acts) limit tail_n)").inputs == ("limit", "tail-n")
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
        with pytest.raises(InputError, match="limit is one value of the whole slate, and its rows differ"):
            policy.weights({"limit": differing, "access": [1.0, 2.0]}, 2)


def test_columns_that_do_not_fit_are_named() -> None:
    policy = policy_of("(argmax accs)")
    with pytest.raises(UnknownName, match=r'no column "access"\. Did you mean acces\?'):
        policy.weights({"acces": [1.0]}, 1)
    with pytest.raises(InputError, match="access has 1 rows, and the slate has 2"):
        policy.weights({"access": [1.0]}, 2)
    with pytest.raises(InputError, match="access is a num, and 'a' is not"):
        policy.weights({"access": ["a"]}, 1)


# Parameters and helpers.


def test_parameters_have_the_values_given() -> None:
    source = "(lambda (accs) (nth [0 1 2] (param :place 1 :low 0 :high 2)))"
    assert program(source).weights({}, 3).tolist() == [0, 1, 0]
    tuned = program(source, params={"place": 2.0})
    assert tuned.weights({}, 3).tolist() == [0, 0, 1]
    assert tuned.checker.params["place"].value == 2.0


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
    assert list(helped[0].checker.used) == ["f"]


def test_helpers_see_their_arguments_alone_and_may_be_handed_over() -> None:
    twice = program("(defn twice [f x] (f (f x))) (lambda () (twice (lambda (n) (+ n 1)) 0))")
    assert twice.weights({}, 3).tolist() == [0, 0, 1]
    handed = program("(defn next [x] (+ x 1)) (lambda () (first (map next [1])))")
    assert handed.weights({}, 3).tolist() == [0, 0, 1]
    with pytest.raises(PolicyNameError, match='Nothing is called "accs" here'):
        program("(defn f [x] (nth accs x)) (lambda (accs) (f 0))")

"""Mistakes in list policies: what is said, and what the caret stands under."""

from __future__ import annotations

import pytest

from memlab.errors import PolicyError, PolicyNameError, PolicyTypeError
from tests.language.lists.interpreted import program, weights


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
        ("(slate-max 1)", "slate-max is no form of a policy over lists", "slate-max"),
        ("(has tags 1)", "has is no form of a policy over lists", "has"),
        ("(update :a 1)", "update is no form of a policy over lists", "update"),
        ("(let [first 1] 1)", "first is a form of the dialect and cannot be bound", "first"),
        ("(let [f (lambda (n) (f n))] (f 1))", "f is used in its own value; the dialect has no recursion", "f"),
        ("(let [x x] x)", "x is used in its own value", "x"),
        ("(let [n 1] (n 2))", "n is a number here, not a function", "n"),
        ("(lambda x x)", "A function is written (lambda [names] body)", "(lambda x x)"),
        ("(lambda (x x) x)", "An argument is listed twice", "(x x)"),
        ("()", "An empty form has no value", "()"),
        ("(1 2)", "The first item of a form is a function", "1"),
        (":a", "a value is expected here", ":a"),
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
    with pytest.raises(PolicyNameError, match=r"Unknown input accz of explore\. Did you mean accs"):
        program("(lambda (accz) 1)")
    with pytest.raises(PolicyNameError, match="tags is a set: a list policy reads numbers, booleans and strings"):
        program("(lambda (tags) 1)")


def test_a_helper_that_calls_itself_is_refused() -> None:
    with pytest.raises(PolicyTypeError, match="f calls itself; the dialect has no recursion"):
        program("(defn f [n] (f n)) (lambda (accs) (f 1))")
    with pytest.raises(PolicyTypeError, match="calls itself"):
        program("(defn f [n] (map g n)) (defn g [n] (f n)) (lambda (accs) (f accs))")

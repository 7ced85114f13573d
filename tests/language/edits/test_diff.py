"""Two policies as trees: what changed, and nothing that is only spelling."""

from __future__ import annotations

import html
import re
import time

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from properties import examples

from memlab.language import Input, Policy, Signature, compile_policy, read_pack
from memlab.language.edits._diff import FormDiff, diff_packs, diff_policies
from memlab.language.edits._edit import replace, subtrees
from memlab.policies import load_pack
from tests.language.programs import ARGUMENTS, NUM, program

SLOT = Signature("recall-score", [Input("x"), Input("y"), Input("z"), Input("kind", "str")], aggregates=True)
QUICK = examples(60, quick=15, suppress_health_check=list(HealthCheck))


def policy(source: str, signature: Signature = SLOT, **options) -> Policy:
    return compile_policy(source if source.startswith("(fn") else f"(fn [x y z kind] {source})", signature, **options)


def diff(before: str, after: str) -> FormDiff:
    return diff_policies(policy(before), policy(after))


def told(before: str, after: str) -> list[tuple[str, str | None, str | None]]:
    return [(change.kind, change.before, change.after) for change in diff(before, after).changes]


def without(found: FormDiff, gone: str, kept: str) -> list[str]:
    """The merged sources, less the pieces of one kind."""
    return ["".join(p.text for p in block.pieces if p.kind != gone) for block in found._blocks]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(+ x 1)", "(+\n   x ; one more\n   1)"),
        ("(fn [x] x)", '(fn [x] "What it is for." x)'),
        ("(let [a (+ x 1)] (* a a))", "(let* ((b (+ x 1))) (* b b))"),
        ("(let [a 1 b 2] (- a b))", "(let [b 1 a 2] (- b a))"),
        ("(let [a 1 b 1] (- a b))", "(let [b 1 a 1] (- b a))"),
        ("(let [a 1] (let [a 2] a))", "(let [b 1] (let [a 2] a))"),
        ('(if (= kind "fact") 1 0)', "(if (= kind 'fact) 1 0)"),
        ("(cond (> x 1) 1 else 2)", "(cond ((> x 1) 1) (else 2))"),
        ('(case kind "a" 1 else 2)', '(case kind ("a" 1) (else 2))'),
        ("(pow x 2)", "(expt x 2)"),
        ("(+ x 1)", "(+ x 1.0)"),
    ],
)
def test_spelling_is_no_change(before: str, after: str) -> None:
    assert not diff(before, after)
    assert diff(before, after).changes == ()


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("(+ (* 0.4 x) y)", "(+ (* 0.5 x) y)", [("constant", "0.4", "0.5")]),
        ("(+ x y)", "(+ x y (* 2 z))", [("added", None, "(* 2 z)")]),
        ("(+ x y (* 2 z))", "(+ x y)", [("removed", "(* 2 z)", None)]),
        ("(+ (exp x) (tanh y) (log z))", "(+ (log z) (exp x) (tanh y))", [("moved", "(log z)", "(log z)")]),
        ("(max (exp x) y)", "(min (exp x) y)", [("changed", "max", "min")]),
        ("(+ (exp x) 1)", "(+ (log y) 1)", [("changed", "(exp x)", "(log y)")]),
        ("(* 2 x)", "(clamp (* 2 x) 0 1)", [("wrapped", "(* 2 x)", "(clamp (* 2 x) 0 1)")]),
        ("(clamp (* 2 x) 0 1)", "(* 2 x)", [("unwrapped", "(clamp (* 2 x) 0 1)", "(* 2 x)")]),
        ("(let [a (+ x 1)] (* a y))", "(let [b (+ x 2)] (* b y))", [("constant", "1", "2")]),
        ("(let [a x] (* a y))", "(let [a x b z] (* a b y))", [("added", None, "b z"), ("added", None, "b")]),
        (
            '(case kind "a" 1 "b" 2 else 3)',
            '(case kind "a" 1 "b" 5 "c" 7 else 3)',
            [("constant", "2", "5"), ("added", None, '"c" 7')],
        ),
    ],
)
def test_what_changed(before: str, after: str, changes: list[tuple[str, str | None, str | None]]) -> None:
    assert told(before, after) == changes


def test_a_change_inside_what_was_wrapped() -> None:
    assert told("(+ (* 0.4 x) y)", "(clamp (+ (* 0.5 x) y) 0 1)")[1:] == [("constant", "0.4", "0.5")]


def test_a_change_has_a_path_a_place_and_a_surrounding() -> None:
    (change,) = diff("(+ x\n (* 0.4 y))", "(+ x\n (* 0.5 y))").changes
    assert (change.place, change.path, change.within, change.line, change.column) == (
        "recall-score",
        (2, 1),
        "(* 0.5 y)",
        2,
        5,
    )


def test_arguments_parameters_and_helpers() -> None:
    old = policy("(fn [x] (* (param :w 1) x))")
    assert told("(fn [x] x)", "(fn [x y] x)") == [("argument", None, "y")]
    (change,) = diff_policies(old, old.with_params({"w": 2})).changes
    assert (change.kind, change.within, change.before, change.after) == ("parameter", "w", "1", "2")
    first, second = (read_pack(f"(pack p) (defn f [a] (* {n} a)) (defpolicy recall-score [x] (f x))") for n in (2, 3))
    left, right = (policy_of(pack) for pack in (first, second))
    (change,) = diff_policies(left, right).changes
    assert (change.place, change.kind, change.after) == ("recall-score, helper f", "constant", "3")


def policy_of(pack) -> Policy:
    return compile_policy(pack.policies["recall-score"], SLOT, helpers=pack.helpers)


def test_how_it_reads() -> None:
    found = diff("(fn [x y] (+ (* 0.4 x) y))", "(fn [x y] (+ (* 0.5 x) (tanh y)))")
    assert repr(found).splitlines()[1:] == [
        "  recall-score:1:17  ~ 0.4 -> 0.5   in (* 0.5 x)",
        "  recall-score:1:24  ~ y -> (tanh y)   in (+ (* 0.5 x) (tanh y))",
    ]
    assert "(fn [x y] (+ (* [-0.4-]{+0.5+} x) {+(tanh +}y{+)+}))" in found.text()
    assert "\x1b[" not in found.text()
    assert re.sub(r"\x1b\[[0-9;]*m", "", found.text(color=True)).endswith("(fn [x y] (+ (* 0.40.5 x) (tanh y)))")
    assert found.frame.select("kind", "before", "after").rows() == [
        ("constant", "0.4", "0.5"),
        ("wrapped", "y", "(tanh y)"),
    ]
    assert diff("x", "x").frame.height == 0


def test_html_is_escaped_and_marks_both_sides() -> None:
    page = diff('(if (= kind "<b>") x y)', '(if (= kind "<i>&") x y)')._repr_html_()
    assert "<b>&" not in page
    assert "&lt;i&gt;&amp;" in page
    assert "<del style" in page
    assert "<ins style" in page


def test_a_terminal_is_not_steered_by_a_source() -> None:
    found = diff('(if (= kind "a") x y)', '(if (= kind "\x1b[2J") x y)')
    assert "\x1b" not in found.text()
    assert "\x1b[2J" not in found.text(color=True)


def test_two_packs() -> None:
    old, new = load_pack("memlab"), load_pack("cascade")
    found = diff_packs(old, new)
    assert {"settings", "recall-score"} <= set(found.frame["place"])
    assert not diff_packs(old, old)
    assert {c.within for c in found.changes if c.kind == "setting"} == {
        name for name in old.settings if old.settings[name] != new.settings[name]
    }
    assert "spread" in found._repr_html_()


@QUICK
@given(program("num", 2, inexact=True), program("num", 2, inexact=True))
def test_the_marked_source_holds_the_newer_text(before: str, after: str) -> None:
    old, new = (policy(f"(fn [{ARGUMENTS}] {body})", NUM) for body in (before, after))
    found = diff_policies(old, new)
    assert without(found, "del", "ins") in ([], [new.source])
    # no change, exactly when the forms are the same
    assert bool(found) is (old.source_hash != new.source_hash) or old.meaning_hash == new.meaning_hash
    page = found._repr_html_()
    shown = re.sub(r"<[^>]+>", "", re.sub(r"<del.*?</del>", "", page, flags=re.DOTALL))
    if found:
        assert new.source in html.unescape(shown)


@QUICK
@given(program("num", 2, inexact=True))
def test_nothing_differs_from_itself(body: str) -> None:
    assert not diff_policies(policy(f"(fn [{ARGUMENTS}] {body})", NUM), policy(f"(fn [{ARGUMENTS}]   {body} )", NUM))


@QUICK
@given(program("num", 2, inexact=True), st.data())
def test_one_replaced_constant_is_one_change(body: str, data: st.DataObject) -> None:
    old = policy(f"(fn [{ARGUMENTS}] {body})", NUM)
    numbers = [t for t in subtrees(old) if re.match(r"[-+.0-9]", t.source)]
    if not numbers:
        return
    tree = data.draw(st.sampled_from(numbers))
    found = diff_policies(old, replace(old, tree, "12345.5"))
    assert [(c.kind, c.before, c.after) for c in found.changes] == [("constant", tree.source, "12345.5")]


def test_large_policies_take_bounded_time() -> None:
    def wide(k: int) -> str:
        return " ".join(f"(* {i * k % 97}.5 (- x {i % 13}))" for i in range(80))

    def deep(op: str) -> str:
        return f"({op} x " * 80 + "y" + ")" * 80

    start = time.process_time()
    for before, after in ((f"(+ {wide(1)})", f"(+ {wide(5)})"), (deep("+"), deep("min"))):
        assert diff(before, after)
    assert time.process_time() - start < 3

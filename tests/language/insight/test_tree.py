"""A computation as a tree: the value of each node, the chosen branches, and limits of the display."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from properties import examples

from memlab.kernel.language import Input, Policy, Signature, compile_policy
from memlab.subjects.lens.tree import Tree
from tests.displays import html_of
from tests.language.programs import ARGUMENTS, BOOL, INPUTS, NUM, STR, bits, program, rows

SLOT = Signature(
    "score", [Input("x"), Input("y"), Input("z"), Input("pinned", "bool"), Input("kind", "str")]
)
ROW = {"x": 2.0, "y": 3.0, "z": 5.0, "pinned": False, "kind": "fact"}
SLOTS = {"num": NUM, "bool": BOOL, "str": STR}
QUICK = examples(60, quick=8, suppress_health_check=list(HealthCheck))
anything = st.sampled_from(["num", "bool", "str"]).flatmap(
    lambda t: st.tuples(st.just(t), program(t, 3, inexact=True))
)


def policy(body: str) -> Policy:
    return compile_policy(f"(fn [x y z pinned kind] {body})", SLOT)


def tree(body: str, **row: object) -> Tree:
    return policy(body).explain({**ROW, **row}).tree


def test_a_tree_for_a_terminal() -> None:
    assert repr(
        tree('(+ (* 0.5 x) (cond pinned 1 (= kind "fact") (* y z) else (- y z)))')
    ) == "\n".join(
        [
            " value  source",
            '    16  (+ (* 0.5 x) (cond pinned 1 (= kind "fact") (* y z) else (- y z)))',
            "     1  ├ (* 0.5 x)",
            "     2  │ └ x",
            '    15  └ (cond pinned 1 (= kind "fact") (* y z) else (- y z))',
            " false    ├ test pinned",
            "     1    ├ then 1  (not taken)",
            '  true    ├ test (= kind "fact")',
            '"fact"    │ └ kind',
            "    15    ├ then (* y z)",
            "     3    │ ├ y",
            "     5    │ └ z",
            "    -2    └ else (- y z)  (not taken)",
        ]
    )


def test_a_frame_has_one_row_for_each_node() -> None:
    frame = tree("(if pinned x (if-null y z))").frame
    assert frame.select("depth", "role", "source", "value", "shown", "live").rows() == [
        (0, "", "(if pinned x (if-null y z))", 3.0, "3", True),
        (1, "test", "pinned", 0.0, "false", True),
        (1, "then", "x", 2.0, "2", False),
        (1, "else", "(if-null y z)", 3.0, "3", True),
        (2, "", "y", 3.0, "3", True),
        (2, "else", "z", 5.0, "5", False),
    ]


def test_strings_and_nulls_have_no_number() -> None:
    frame = tree('(if (= kind "fact") x y)', kind=None, y=None).frame
    assert dict(zip(frame["source"], frame["shown"], strict=True))["kind"] == "null"
    assert frame["value"].to_list()[0] is None


def test_a_shared_node_is_opened_once_and_where_it_lives() -> None:
    rows = [
        (n.text, n.live, n.elsewhere)
        for _, n in tree("(let [a (+ x y)] (if pinned (* a a) (* a 2)))").walk()
    ]
    assert rows.count(("x", True, False)) == 1
    assert ("(+ x y)", False, True) in rows
    assert ("(+ x y)", True, False) in rows


def test_a_chain_is_one_node_and_constants_say_themselves() -> None:
    root = tree("(+ x y z 1 (* 2 x))").root
    assert [child.text for child in root.children] == ["x", "y", "z", "(* 2 x)"]


def test_a_node_below_which_the_tree_ends() -> None:
    text = tree("(exp (- (sqrt (abs (floor x)))))").text(depth=2)
    assert text.splitlines()[-1].endswith("└ ... 3 below")
    assert len(tree("(exp (- (sqrt (abs (floor x)))))").text(lines=2).splitlines()) == 4


def test_branches_not_taken_open_on_demand() -> None:
    body = "(if pinned (+ x y) z)"
    assert "├ x" not in repr(tree(body))
    assert "├ x" in tree(body).text(dead=True)


@pytest.mark.long
@pytest.mark.parametrize(
    "step", ["(+ a{0} a{0})", "(* (exp a{0}) a{0})", "(if (< a{0} 1) (- a{0} 1) a{0})"]
)
def test_a_tree_that_doubles_at_every_level_stays_small(step: str) -> None:
    lets = " ".join(f"a{i + 1} {step.format(f'{i}')}" for i in range(40))
    root = tree(f"(let [a0 x {lets}] a40)", x=0.001)
    assert len(repr(root)) < 20_000
    assert len(html_of(root)) < 400_000
    assert root.frame.height < 1_000


class Page(HTMLParser):
    """Counts what is open, and collects tags and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style", "open", "dir"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_nested_escaped_and_has_no_scripts() -> None:
    page = Page(html_of(tree('(if (= kind "<script>alert(1)</script>") x (max y (* z z)))')))
    assert page.open == []
    assert page.tags == {"div", "details", "summary", "span"}
    assert "<script>alert(1)</script>" in page.text


@pytest.mark.long
def test_html_of_a_large_tree_is_cut() -> None:
    sums = [f"(+ {' '.join(f'(exp (* {60 * i + j + 2} x))' for j in range(60))})" for i in range(6)]
    page = Page(html_of(tree(f"(max {' '.join(sums)})")))
    assert page.open == []
    assert "… more, see .frame" in page.text


def test_html_takes_its_ink_from_the_page() -> None:
    """Light and dark: no colour of text or ground, only opacity and a grey that shows on both."""
    html = html_of(tree("(if pinned x (+ y z))"))
    assert not re.search(r"[^-]color:|background", html)


@pytest.mark.long
@QUICK
@given(anything, rows)
def test_the_root_has_the_value_of_the_row(case: tuple[str, str], table: list[dict]) -> None:
    type, body = case
    compiled = compile_policy(f"(fn [{ARGUMENTS}] {body})", SLOTS[type])
    root = compiled.explain(table[0]).tree.root
    assert bits(root.value) == bits(compiled.row(table[0]))
    assert root.live


@pytest.mark.long
@QUICK
@given(anything, rows)
def test_every_node_is_source_that_gives_its_value(
    case: tuple[str, str], table: list[dict]
) -> None:
    type, body = case
    compiled = compile_policy(f"(fn [{ARGUMENTS}] {body})", SLOTS[type])
    types = {"num": "num", "bool": "bool", "str": "str"}
    for _, node in compiled.explain(table[0]).tree.walk():
        if not node.complete or node.value is None:
            continue
        kind = {bool: "bool", float: "num", str: "str"}[node.value.__class__]
        again = compile_policy(
            f"(fn [{ARGUMENTS}] {node.text})", Signature("node", INPUTS, types[kind])
        )  # type: ignore[arg-type]
        assert bits(again.row(table[0])) == bits(node.value)


@pytest.mark.long
@QUICK
@given(anything, rows)
def test_exactly_one_branch_of_a_choice_is_live(case: tuple[str, str], table: list[dict]) -> None:
    type, body = case
    for _, node in (
        compile_policy(f"(fn [{ARGUMENTS}] {body})", SLOTS[type]).explain(table[0]).tree.walk()
    ):
        branches = [child for child in node.children if child.role in ("then", "else")]
        if node.live and any(child.role == "test" for child in node.children):
            (taken,) = [child for child in branches if child.live]
            assert bits(taken.value) == bits(node.value)

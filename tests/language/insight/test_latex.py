r"""A policy as mathematics. Grammar is checked on random programs; what matplotlib's mathtext knows is drawn by it."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.language import Input, Policy, Signature, compile_policy
from memlab.policies import load_pack
from tests.language.programs import ARGUMENTS, BOOL, NUM, STR, program

INPUTS = [
    *(Input(name) for name in ("x", "y", "age_days", "new/weight")),
    Input("pinned", "bool"),
    Input("kind", "str"),
    Input("tags", "set"),
    Input("query_tags", "set"),
]
SLOT = Signature("score", INPUTS, aggregates=True)
YES = Signature("eligible", INPUTS, "bool")
SLOTS = {"num": NUM, "bool": BOOL, "str": STR}


def latex(found: Policy) -> str:
    return found.latex()


QUICK = examples(80, quick=8, suppress_health_check=list(HealthCheck))
AGE = r"\mathrm{age\text{-}days}"


def policy(body: str, slot: Signature = SLOT) -> Policy:
    return compile_policy(f"(fn [x y age-days new/weight pinned kind tags query-tags] {body})", slot)


def right(body: str, slot: Signature = SLOT) -> str:
    """The right-hand side of a policy that needs no further equations."""
    return latex(policy(body, slot)).removeprefix(rf"\mathrm{{{slot.slot}}} = ")


def plain(text: str) -> str:
    """Without ``\\mathrm`` and spaces, for reading."""
    return re.sub(r"\\mathrm\{(\w+)\}", r"\1", text).replace(r"\left(", "(").replace(r"\right)", ")")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(/ age-days 30)", rf"\frac{{{AGE}}}{{30}}"),
        ("(+ (* 0.4 x) (- y) -3)", r"0.4 \, x - y - 3"),
        ("(- x (- y 2))", r"x - (y - 2)"),
        ("(- x (* y (+ x 1)))", r"x - y \cdot (x + 1)"),
        ("(* -2 (- x) y)", r"-2 \, (-x) \cdot y"),
        ("(* x x (+ y 1) (+ y 1))", r"x^{2} \cdot (y + 1)^{2}"),
        ("(pow (+ x 1) (- y))", "(x + 1)^{-y}"),
        ("(/ (+ x 1) y)", r"\frac{x + 1}{y}"),
        ("(half-life-decay x 7)", r"\exp(\frac{-\ln 2 \, x}{7})"),
        ("(exp (- x))", r"e^{-x}"),
        ("(sqrt (/ 1 (+ 1 (* 0.2345679012345679 x))))", r"\sqrt{\frac{1}{1 + \frac{19}{81} \, x}}"),
        ("(+ (log x) (log1p y))", r"\ln(x) + \ln(1 + y)"),
        ("(clamp (abs x) 0 1)", r"\operatorname{clamp}(\left|x\right|, 0, 1)"),
        ("(min x y (max x 3 y))", r"\min(x, y, \max(x, 3, y))"),
        ("(+ (floor x) (ceil y))", r"\left\lfloor x \right\rfloor + \left\lceil y \right\rceil"),
        ("(min-max (* 2 x))", r"\operatorname{minmax}_{S}(2 \, x)"),
        ("(/ (slate-rank x) (slate-max y))", r"\frac{\operatorname{rank}_{S}(x)}{\max_{S}(y)}"),
        ("(* 1e-9 x)", r"1 \times 10^{-9} \, x"),
        ("(+ x (/ 1 0))", r"x + \infty"),
        ("(+ x new/weight)", "x + \\mathrm{new/weight}"),
        ("(if-null x 0)", r"\operatorname{ifnull}(x, 0)"),
        ("(overlap tags query-tags)", r"\left|\mathrm{query\text{-}tags} \cap tags\right|"),
        ("(size tags)", r"\left|tags\right|"),
        ("(if pinned 1 x)", r"\begin{cases} 1 & \text{if } pinned \\ x & \text{otherwise} \end{cases}"),
        (
            '(cond pinned 1 (= kind "fact") x else y)',
            r"\begin{cases} 1 & \text{if } pinned \\ x & \text{if } kind = \text{“fact”} \\"
            r" y & \text{otherwise} \end{cases}",
        ),
        (
            '(case kind "a" 1 "b" 1 "c" 2 else 0)',
            r"\begin{cases} 1 & \text{if } kind \in \left\{\text{“a”}, \text{“b”}\right\} \\"
            r" 2 & \text{if } kind = \text{“c”} \\ 0 & \text{otherwise} \end{cases}",
        ),
    ],
)
def test_numbers(body: str, expected: str) -> None:
    assert plain(right(body)).replace(r"\mathrm{e}", "e") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(and pinned (or (> x 1) (not (<= y 2))))", r"pinned \wedge (x > 1 \vee y > 2)"),
        ('(and (!= kind "a") (not pinned))', r"kind \neq \text{“a”} \wedge \neg pinned"),
        ('(in kind ["a" "b"])', r"kind \in \left\{\text{“a”}, \text{“b”}\right\}"),
        ("(< -1 x)", "x > -1"),
        ("(null? x)", r"x = \text{null}"),
        ('(has tags "a")', r"\text{“a”} \in tags"),
        ('(has-any tags ["a"])', r"tags \cap \left\{\text{“a”}\right\} \neq \varnothing"),
        ('(has-all tags ["a"])', r"\left\{\text{“a”}\right\} \subseteq tags"),
    ],
)
def test_truths(body: str, expected: str) -> None:
    assert plain(right(body, YES)) == expected


def test_parameters_keep_their_names_and_give_their_values() -> None:
    half = policy("(* (param :x 0.5) (half-life-decay x (param :half 30)))").with_params({"half": 7})
    lines = plain(latex(half)).splitlines()
    assert lines[1] == r"score &= \theta_{x} \cdot \exp(\frac{-\ln 2 \, x}{\theta_{half}}) \\"
    assert lines[2:4] == [r"\text{where } \theta_{half} &= 7 \\", r"\theta_{x} &= 0.5"]


def test_parameters_of_helpers_too() -> None:
    source = "(defn fade [a] (exp (* (param :rate -1) a))) (fn [x] (fade x))"
    assert r"\theta_{\mathrm{rate}} &= -1" in latex(compile_policy(source, SLOT))


def test_what_is_shared_is_written_once() -> None:
    found = plain(latex(policy("(let [a (log (+ (* x (sqrt (+ x 1))) (* y (log (+ y 1)))))] (* (+ a 1) (- a 1)))")))
    assert found.splitlines()[1:3] == [
        r"score &= (u_{1} + 1) \cdot (u_{1} - 1) \\",
        r"\text{where } u_{1} &= \ln(x \cdot \sqrt{x + 1} + y \cdot \ln(y + 1))",
    ]


def test_what_is_short_is_repeated() -> None:
    assert plain(right("(let [a (/ x y)] (* (+ a 1) (- a 1)))")) == r"(\frac{x}{y} + 1) \cdot (\frac{x}{y} - 1)"


def test_a_choice_inside_is_written_below() -> None:
    lines = plain(latex(policy("(+ x (if pinned y 0))"))).splitlines()
    assert lines[1] == r"score &= x + u_{1} \\"
    assert lines[2].startswith(r"\text{where } u_{1} &= \begin{cases} y &")


def test_a_long_sum_breaks_before_its_signs() -> None:
    terms = " ".join(f"(* {n} (min-max age-days) (exp (- x)))" for n in range(2, 12))
    lines = latex(policy(f"(- {terms})")).splitlines()
    assert len(lines) > 4
    assert all(line.startswith(r"&\quad - ") for line in lines[2:-3])


def test_a_record_has_one_equation_for_each_field() -> None:
    slot = Signature("reinforce", [Input("stability"), Input("lapses")], "record", fields=("stability", "lapses"))
    record = compile_policy(
        "(fn [stability lapses] (update :stability (* 2 stability) :lapses (+ lapses (param :step 1))))", slot
    )
    assert plain(latex(record)).splitlines()[1:4] == [
        r"lapses' &= lapses + \theta_{step} \\",
        r"stability' &= 2 \, stability \\",
        r"\text{where } \theta_{step} &= 1",
    ]
    assert plain(latex(record.field("stability"))) == r"stability' = 2 \, stability"
    assert latex(compile_policy("(fn [] (update))", slot)) == r"\text{nothing changes}"


# Grammar.

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}&$%#^_]|[^\\{}&$%#^_]", re.S)
KNOWN = frozenset(
    re.findall(
        r"\w+",
        "mathrm text operatorname theta frac sqrt exp ln min max tanh left right begin end cdot times infty wedge vee "
        "neg neq leq geq in cap cup subseteq varnothing quad lfloor rfloor lceil rceil backslash sim",
    )
)


def check(text: str) -> None:
    """Groups, environments and delimiters nest; only known commands; no active character outside its place."""
    stack: list[str] = []
    tokens = _TOKEN.findall(text)
    assert "".join(tokens) == text
    pending = ""
    for place, token in enumerate(tokens):
        if token == "{":
            stack.append("{")
        elif token == "}":
            assert stack.pop() == "{"
        elif token in (r"\left", r"\right"):
            following = tokens[place + 1]
            assert following in ("(", ")", "|", r"\{", r"\}", r"\lfloor", r"\rfloor", r"\lceil", r"\rceil")
            if token == r"\left":
                stack.append("left")
            else:
                assert stack.pop() == "left"
        elif token in (r"\begin", r"\end"):
            name = re.match(r"\{(\w+)\}", "".join(tokens[place + 1 : place + 12]))
            assert name is not None
            assert name[1] in ("cases", "aligned")
            if token == r"\begin":
                stack.append(name[1])
            else:
                assert stack.pop() == name[1]
        elif token in ("$", "%", "#"):
            raise AssertionError(f"{token} is active")
        elif token == "&" or token == r"\\":
            assert stack[-1] in ("cases", "aligned")
        elif token.startswith("\\") and len(token) > 2:
            assert token[1:] in KNOWN
        elif len(token) == 1:
            assert unicodedata.category(token)[0] != "C" or token == "\n"
        pending = token
    assert pending != "\\"
    assert stack == []


def drawn(text: str) -> None:
    """Parsed by matplotlib's mathtext, which knows no environments."""
    from matplotlib.mathtext import MathTextParser

    MathTextParser("path").parse(f"${text}$")


@pytest.mark.parametrize(
    "body",
    [
        "(+ (* 0.4 (min-max x)) (/ age-days 30) (log x) (clamp y 0 1) (abs x) (tanh y) (floor x) (if-null y 0))",
        "(* (half-life-decay age-days 30) (sqrt x) (pow (+ x 1) y) (slate-rank y) (sigmoid x))",
        "(min x (max y 1e-9) (/ 1 0))",
        "(jaccard tags query-tags)",
    ],
)
def test_mathtext_draws_numbers(body: str) -> None:
    drawn(latex(policy(body)))


def test_mathtext_draws_truths() -> None:
    drawn(right('(and pinned (or (> x 1) (not (in kind ["a" "b{}"]))) (!= y 2) (<= y 3))', YES))
    drawn(right('(and (null? x) (has-any tags ["_^~$"]))', YES))


HOSTILE = [
    r"}\end{document}",
    r"\end{cases}\end{aligned}$$ \input{/etc/passwd}",
    "$x$ $$ \\( \\) \\[ \\]",
    r"\text{a} \\ \& \% # _ ^ ~ ` { } {{ }}",
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "a\nb\r\n\n\tc\x00\x1b[31m",
    "\u202ereversed\u2028\u2029\ufeff\u200b",
    "\\",
    "{",
    "%",
    "a" * 5_000,
]


@pytest.mark.parametrize("word", HOSTILE)
def test_a_string_cannot_leave_its_place(word: str) -> None:
    quoted = '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
    for body in (f"(if (= kind {quoted}) 1 0)", f"(case kind {quoted} x else 0)", f"(if (has tags {quoted}) 1 0)"):
        text = latex(policy(body))
        check(text)
        assert not re.search(r"<[A-Za-z/!?]", text)
        assert len(text) < 1_500


@pytest.mark.parametrize("name", ["a}b", "a$b", "a%b", "a&b", "a^b", "a<script>b", "a\\b", "a_b~c"])
def test_neither_can_a_name(name: str) -> None:
    text = latex(compile_policy("(fn [x] (* 2 x))", Signature("score", [Input("x")]), name=name))
    check(text)
    assert not re.search(r"<[A-Za-z/!?]", text)


@QUICK
@given(st.text(max_size=40))
def test_any_string_is_set_as_text(word: str) -> None:
    from memlab.language._latex import name_text, string_text

    check(string_text(word))
    check(name_text(word))


@QUICK
@given(st.sampled_from(["num", "bool", "str"]).flatmap(lambda t: st.tuples(st.just(t), program(t, 3, inexact=True))))
def test_any_program_is_well_formed(case: tuple[str, str]) -> None:
    type, body = case
    check(latex(compile_policy(f"(fn [{ARGUMENTS}] {body})", SLOTS[type])))


@pytest.mark.parametrize("name", memlab.packs())
def test_every_pack_can_be_printed(name: str) -> None:
    for found in load_pack(name).policies.values():
        text = latex(found)
        check(text)
        assert len(text) < 12_000


@pytest.mark.parametrize("step", ["(+ a{0} a{0})", "(* (exp a{0}) a{0})", "(and-like a{0})", "(/ a{0} (+ a{0} a{0}))"])
def test_what_doubles_at_every_level_stays_linear(step: str) -> None:
    step = step.replace("(and-like a{0})", "(if (< a{0} 1) (- a{0} 1) (abs a{0}))")
    lets = " ".join(f"a{i + 1} {step.format(i)}" for i in range(30))
    text = latex(policy(f"(let [a0 x {lets}] a30)"))
    check(text)
    assert len(text) < 30_000

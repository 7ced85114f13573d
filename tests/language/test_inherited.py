"""``(inherited)`` computes what the parent's text would compute in its place, and no name of one text reaches the other."""

import random
import re

import pytest

from memlab.errors import PolicyError, PolicyLimitError
from memlab.kernel.language import Input, Signature, compile_policy, inherit_form
from memlab.kernel.language.texts import parse
from tests.language.agreement import bits, disagreement
from tests.language.grammar import Grammar
from tests.language.vocabulary import SLOTS, records

SLOT = Signature(
    "score", [Input("x"), Input("y"), Input("z"), Input("tags", "set")], aggregates=True
)


def compiled(child, parent, helpers=(), signature=SLOT):
    """Compile a policy that inherits the policy ``parent``."""
    policy = parent if not isinstance(parent, str) else compile_policy(parent, signature)
    return compile_policy(child, signature, helpers=(*helpers, inherit_form(policy, "mine")))


def parts_of(source):
    """Return the helpers, the arguments and the body of a text, each as text."""
    whole = parse(source, None, ())
    body = whole.parts.body
    names = [argument.text for argument in whole.parts.arguments]
    return source[: whole.form.start], names, source[body.start : body.stop]


def by_hand(child, parent):
    """Return the expansion that a person would write: the parent's value bound by a let, its helpers renamed.

    An update cannot be bound, so it is copied.
    """
    front, names, body = parts_of(re.sub(r"\bh(\d)\b", r"parent-h\1", parent))
    own_front, own_names, own_body = parts_of(child)
    listed = " ".join(dict.fromkeys((*names, *own_names)))
    if "(update" in body:
        return f"{front}\n{own_front}\n(fn [{listed}] {own_body.replace('(inherited)', body)})"
    own_body = own_body.replace("(inherited)", "parent-value")
    return f"{front}\n{own_front}\n(fn [{listed}] (let [parent-value {body}] {own_body}))"


def distinct(source):
    """Return a text whose parameters have names of their own, so that two drawn texts do not contradict each other."""
    return re.sub(r":(weight|near|half_life)\b", r":parent-\1", source)


SHAPES = {
    "num": "(if (> (inherited) {0}) (boost (inherited) {0} 0.5) (blend {0} (inherited) 0.25))",
    "bool": "(or (and (inherited) {0}) (not (inherited)))",
    "str": "(if (= (inherited) {0}) (inherited) {0})",
    "record": "(if (> score 0.5) (inherited) {0})",
}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize(
    "count", [16, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.long])]
)
def test_the_value_is_that_of_the_expansion_by_hand(kind, count):
    dice = random.Random(11)
    grammar = Grammar(dice)
    rows = records(dice, 12)
    valid = 0
    for _ in range(count):
        parent, drawn = distinct(grammar.policy(kind).source), grammar.policy(kind).source
        _, _, body = parts_of(drawn)
        shape = SHAPES[kind].replace("(> score 0.5)", "(> (- 1 0.5) 0.4)")
        whole = parse(drawn, None, ())
        start, stop = whole.parts.body.start, whole.parts.body.stop
        child = drawn[:start] + shape.format(body) + drawn[stop:]
        signature = SLOTS[kind]
        try:
            expected = compile_policy(by_hand(child, parent), signature)
        except PolicyError:
            continue  # Beyond a limit.
        policy = compiled(child, compile_policy(parent, signature), signature=signature)
        valid += 1
        assert policy.meaning_hash == expected.meaning_hash, (parent, child)
        assert policy.inputs == expected.inputs
        assert dict(policy.params) == dict(expected.params)
        assert policy.inherited == compile_policy(parent, signature)
        if valid % 8 == 0:
            assert disagreement(policy, rows[:6]) is None, (parent, child)
        if valid % 8 == 1 and not policy.signature.aggregates:
            assert bits(policy.row(rows[0])) == bits(expected.row(rows[0]))
    assert valid > count * 0.6


def test_features_parameters_and_sets_of_both_texts_are_read():
    parent = '(fn [y tags] (+ (param :weight 2 :low 0 :high 9) y (if (has tags "a") 1 0)))'
    policy = compiled("(fn [x] (* (param :gain 3 :low 0 :high 9) (+ x (inherited))))", parent)
    assert policy.inputs == ('(has tags "a")', "x", "y")
    assert set(policy.params) == {"weight", "gain"}
    assert policy.row({"x": 1, "y": 2, "tags": ["a"]}) == 18.0
    changed = policy.with_params({"weight": 0})
    assert changed.row({"x": 1, "y": 2, "tags": []}) == 9.0
    assert changed.inherited.row({"y": 2, "tags": []}) == 2.0
    assert changed.hash != policy.hash


def test_a_shared_parameter_has_one_declaration():
    parent = "(fn [x] (* (param :weight 2 :low 0 :high 9) x))"
    same = "(fn [x] (+ (inherited) (param :weight 2 :low 0 :high 9)))"
    assert compiled(same, parent).with_params({"weight": 5}).row({"x": 3}) == 20.0
    with pytest.raises(PolicyError, match=":weight is declared twice"):
        compiled("(fn [x] (+ (inherited) (param :weight 3 :low 0 :high 9)))", parent)


def test_no_name_captures_another():
    # Both texts have a helper and a bound name of the same name, and the parent's helper hides one of the library.
    helper, library = "(defn grow [n] (* 10 n))", "(defn square [n] (+ n 100))"
    parent = compile_policy(
        "(fn [y] (let [t (grow y)] (square t)))", SLOT, helpers=(helper, library)
    )
    child = "(fn [x] (let [t (grow x) y 7] (+ (square t) (inherited) (* 0 y))))"
    policy = compiled(child, parent, helpers=("(defn grow [n] (+ 1 n))",))
    assert policy.row({"x": 2, "y": 3}) == 9 + 130
    # A feature that is named like a function of the parent's text.
    slot = Signature("score", [Input("recency"), Input("age")])
    decay = compile_policy("(fn [age] (recency age 30))", slot)
    assert compiled("(fn [recency] (+ (inherited) recency))", decay, signature=slot).row(
        {"age": 30, "recency": 2}
    ) == pytest.approx(2.5)


def test_the_hash_covers_both_texts_and_no_name_of_a_pack():
    child = "(fn [x] (+ (inherited) x))"
    one, other = (compiled(child, f"(fn [y] (* {n} y))") for n in (2, 3))
    assert one.source_hash == other.source_hash
    assert one.hash != other.hash
    renamed = inherit_form(compile_policy("(lambda (y) (* 2 y)) ; note", SLOT), "other")
    assert compile_policy(child, SLOT, helpers=(renamed,)).hash == one.hash
    # Helpers of one name in both texts: each of them counts.
    grown = [
        compiled(
            "(fn [x] (+ (grow x) (inherited)))",
            compile_policy("(fn [y] (grow y))", SLOT, helpers=(f"(defn grow [n] (* {b} n))",)),
            helpers=(f"(defn grow [n] (* {a} n))",),
        ).hash
        for a, b in ((1, 1), (1, 2), (2, 1), (2, 2))
    ]
    assert len(set(grown)) == 4


def test_inheritance_may_be_repeated():
    first = compile_policy("(fn [x] (* 2 x))", SLOT)
    second = compiled("(fn [y] (+ (inherited) y))", first)
    third = compiled("(fn [] (* 10 (inherited)))", second)
    assert third.row({"x": 1, "y": 3}) == 50.0
    assert third.inherited == second
    assert third.inherited.inherited == first
    text = "\n".join([*third.helpers, third.source])
    assert compile_policy(text, SLOT).hash == third.hash


REFUSED = {
    "(fn [x] (inherited))": "this text has no parent",
    "(inherit mine (fn [x] x)) (fn [x] (inherited x))": "takes 0 arguments",
    "(inherit mine (fn [x] x)) (fn [x] (+ inherited x))": "is a function",
    "(inherit mine (fn [x] x)) (fn [x] (let [inherited 2] x))": "cannot be bound",
    "(inherit mine (fn [x] x)) (defn f [n] (+ n (inherited))) (fn [x] (f x))": "not in a helper",
    "(defn inherited [n] n) (fn [x] x)": "cannot be redefined",
    "(inherit mine (fn [x] x)) (inherit mine (fn [x] x)) (fn [x] x)": "inherited is defined twice",
    "(inherit mine) (fn [x] x)": "The text is empty",
    "(inherit) (fn [x] x)": "(inherit pack policy)",
    '(inherit "mine" (fn [x] x)) (fn [x] x)': "(inherit pack policy)",
    "(inherit mine (fn [w] w)) (fn [x] (inherited))": "Unknown input w",
    '(inherit mine (fn [x] "a")) (fn [x] (inherited))': "this expression is a string",
    "(fn [x] (inherit mine (fn [x] x)))": "only at the top",
    "(inherit mine (fn [x] (inherited))) (fn [x] (inherited))": "this text has no parent",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_wrong_text_is_refused_with_its_position(text):
    with pytest.raises(PolicyError) as caught:
        compile_policy(text, SLOT)
    assert REFUSED[text] in caught.value.message
    assert caught.value.line == 1
    assert caught.value.column


@pytest.mark.long
def test_limits_hold_for_the_whole_program():
    slot = Signature("score", [Input(f"x{i}") for i in range(1200)])

    def wide(numbers, *more):
        names = [f"x{i}" for i in numbers]
        groups = [" ".join(names[at : at + 50]) for at in range(0, len(names), 50)]
        sums = " ".join(f"(+ {group})" for group in groups)
        return f"(fn [{' '.join(names)}] (max {' '.join([*more, sums])}))"

    parent = compile_policy(wide(range(600)), slot)
    compile_policy(wide(range(600, 1200)), slot)
    child = wide(range(600, 1200), "(inherited)")
    with pytest.raises(PolicyLimitError, match="distinct operations"):
        compiled(child, parent, signature=slot)
    # A text that inherits from itself many times is as long as its parents together.

    def grow(policy):
        for _ in range(200):
            policy = compiled("(fn [x] (+ (inherited) (inherited) (* 0.1 x)))", policy)

    with pytest.raises(PolicyLimitError):
        grow(compile_policy("(fn [x] (+ 0.001 x))", SLOT))


@pytest.mark.long
def test_a_value_that_is_used_often_is_checked_once():
    policy = compile_policy(f"(fn [x] (+ {'(abs x) ' * 60}))", SLOT)
    for _ in range(8):  # 4^8 copies would be beyond the limit of visited forms.
        policy = compiled("(fn [] (+ (inherited) (inherited) (inherited) (inherited)))", policy)
    assert policy.row({"x": 1}) == 60 * 4.0**8


def test_the_inherited_value_is_one_term_that_opens():
    parent = """(fn [x y]
      (+ (* 2 x)     ; meaning: similar words
         (* 3 y)     ; age: how long ago
      ))"""
    policy = compiled("(fn [z] (+ (* 0.5 (inherited)) (* 0.1 z)))", parent)
    values = {"x": 1, "y": 2, "z": 1}
    closed = policy.explain(values)
    assert [(term.text, term.value, term.label) for term in closed.terms] == [
        ("(* 0.5 (inherited))", 4.0, "the policy of mine"),
        ("(* 0.1 z)", 0.1, ""),
    ]
    opened = policy.explain(values, inherited=True)
    assert {(term.label, term.group) for term in opened.terms} >= {
        ("similar words", "meaning"),
        ("how long ago", "age"),
    }
    assert sum(term.value for term in opened.terms) == pytest.approx(closed.value)
    commented = compiled("(fn [] (+ 1 (inherited)))  ; base: all of it", parent)
    assert commented.explain(values).value == 9.0


def test_a_diff_shows_the_parents():
    from memlab.subjects.lens import diff_policies

    child = "(fn [x] (+ (inherited) x))"
    one, other = (compiled(child, f"(fn [y] (* {n} y))") for n in (2, 3))
    (change,) = diff_policies(one, other).changes
    assert (change.place, change.before, change.after) == ("score, inherited", "2", "3")
    assert "score, inherited" in str(diff_policies(compile_policy("(fn [x] x)", SLOT), one))
    assert "mine/score" in one._repr_html_()

"""Every mistake has an error that says what, where, and the nearest valid thing."""

from __future__ import annotations

import pickle

import pytest

from memlab.errors import PolicyError, PolicyNameError, PolicySyntaxError, PolicyTypeError
from memlab.kernel.language import Input, Signature, compile_policy

INPUTS = (
    Input("similarity"),
    Input("recency"),
    Input("pinned", "bool"),
    Input("kind", "str", words=("fact", "event", "goal")),
)
SLOT = Signature("recall-score", INPUTS)
LABEL = Signature("label", INPUTS, "str", words=("keep", "drop"))


def error(source: str, signature: Signature = SLOT, **options) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        compile_policy(source, signature, **options)
    return caught.value


def marked(error: PolicyError) -> str:
    """Return the text above the caret."""
    line = error.source.split("\n")[error.line - 1]
    return line[error.column - 1 : error.end_column]


NAMES = [
    (
        "(fn [similarty] similarty)",
        "Unknown input similarty of recall-score. Did you mean similarity?",
        "similarty",
    ),
    ("(fn [similarity] recency)", "recency is a feature, but not an argument", "recency"),
    (
        "(fn [similarity] (+ similarity recensy))",
        'Nothing is called "recensy" here. Did you mean recency?',
        "recensy",
    ),
    ("(fn [similarity] (squrt similarity))", 'no function "squrt". Did you mean sqrt', "squrt"),
    ("(fn [similarity] (gaus similarity 1 2))", "Did you mean gauss", "gaus"),
    ("(fn [similarity] (mod similarity 2))", "The remainder is left out", "mod"),
    ("(fn [] (random))", "no random numbers", "random"),
    ("(fn [] (now))", "no clock", "now"),
    ("(fn [similarity] (__import__ similarity))", "There is no function", "__import__"),
    ("(fn [] (let [a 1] b))", 'Nothing is called "b" here', "b"),
    ("(fn [] (defn f [x] x))", "only at the top", "(defn f [x] x)"),
    ("(defn if [x] x) (fn [] 1)", "if is a form of the dialect", "if"),
    ("(defn f [x] x) (defn f [x] x) (fn [] 1)", "f is defined twice", "f"),
]
TYPES = [
    ('(fn [] (if (= 1 1) 1 "a"))', "the first is a number, but this one is a string", '"a"'),
    (
        "(fn [similarity] (if similarity 1 2))",
        "if tests true or false, but this expression is a number",
        "similarity",
    ),
    (
        "(fn [pinned] (+ pinned 1))",
        "+ takes a number, but this expression is true or false",
        "pinned",
    ),
    ("(fn [kind] kind)", "recall-score returns a number, but this expression is a string", "kind"),
    (
        '(fn [kind] (if (= kind "fcat") 1 2))',
        '"fcat" is not a value of kind. Did you mean fact?',
        '"fcat"',
    ),
    (
        "(fn [kind] (if (= kind 'fcat) 1 2))",
        '"fcat" is not a value of kind. Did you mean fact?',
        "'fcat",
    ),
    (
        "(fn [kind] (if (!= (quote fcat) kind) 1 2))",
        '"fcat" is not a value of kind',
        "(quote fcat)",
    ),
    ("(fn [kind] (case kind 'fcat 1 else 2))", '"fcat" is not a value of kind', "fcat"),
    ("(fn [kind] (if (in kind '(fcat)) 1 2))", '"fcat" is not a value of kind', "fcat"),
    ('(fn [kind] (let [w "fcat"] (if (= kind w) 1 2)))', '"fcat" is not a value of kind', "w"),
    ('(fn [kind] (case kind "fact" 1 "gaol" 2 else 0))', "Did you mean goal", '"gaol"'),
    ('(fn [kind] (if (in kind ["fact" "evnt"]) 1 0))', "Did you mean event", '"evnt"'),
    ("(fn [kind similarity] (if (= kind similarity) 1 0))", "must have one type", "similarity"),
    (
        "(fn [similarity] (sqrt similarity 2))",
        "sqrt takes 1 argument, but 2 are given",
        "(sqrt similarity 2)",
    ),
    (
        "(fn [similarity] (clamp similarity 2))",
        "clamp takes 3 arguments, but 2 are given",
        "(clamp similarity 2)",
    ),
    ("(fn [similarity] (if pinned 1))", "if takes 3 arguments", "(if pinned 1)"),
    (
        "(fn [similarity] (similarity 1))",
        "similarity is a number here, not a function",
        "similarity",
    ),
    (
        "(fn [] (half-life-decay 1))",
        "(half-life-decay age half-life) takes 2 arguments",
        "(half-life-decay 1)",
    ),
    ("(fn [] half-life-decay)", "half-life-decay is a function", "half-life-decay"),
    ("(fn [] (let [+ 2] (+ 1 2)))", "+ is a form of the dialect and cannot be bound", "+"),
    ("(fn [] (let [a] a))", "has no value", "a"),
    ("(fn [] (let [a 1] a a))", "one expression as its body", "(let [a 1] a a)"),
    ("(fn [] (let a a))", "let needs bindings", "(let a a)"),
    ("(fn [pinned] (cond pinned 1))", "cond has no else", "(cond pinned 1)"),
    ("(fn [pinned] (cond pinned 1 else))", "has no value", "else"),
    ("(fn [pinned] (cond else 1 pinned 2 else 3))", "else must be the last test", "else"),
    ("(fn [kind] (case kind 1 2 else 3))", "compared with strings", "1"),
    ("(fn [pinned] (case pinned 1 2 else 3))", "case compares strings or numbers", "pinned"),
    ("(fn [kind] (if (in kind kind) 1 2))", "a list of literals", "kind"),
    ("(fn [] [1 2])", "A list in brackets is allowed only after in", "[1 2]"),
    ("(fn [] :a)", "a value is expected here", ":a"),
    ("(fn [] ())", "An empty form", "()"),
    ("(fn [] (1 2))", "The first item of a form", "1"),
    ("(fn [] ((fn [x] x) 1))", "The first item of a form", "(fn [x] x)"),
    ("(fn [] (fn [x] x))", "A function cannot be a value", "(fn [x] x)"),
    ("(fn [] (param :a))", "A parameter is a name, as a keyword, and a default", "(param :a)"),
    ("(fn [] (param a 1))", "as a keyword", "a"),
    ("(fn [] (param :a b))", "must be a number", "b"),
    ("(fn [] (param :a 1 :max 2))", "A bound must be :low or :high", ":max"),
    ("(fn [] (param :a 1 :low 2))", "outside its own bounds", "1"),
    ("(fn [] (+ (param :a 1) (param :a 2)))", "declared twice", ":a"),
    ("(fn [similarity similarity] 1)", "is listed twice", "similarity"),
    ("(fn [1] 1)", "An argument is a name", "1"),
    ("(fn similarity)", "The arguments are missing", "similarity"),
    ("(fn [similarity])", "The body is missing", "(fn [similarity])"),
    ("(fn [similarity] 1 2)", "one expression as its body", "2"),
    ("(defpolicy [similarity] 1)", "needs a name after defpolicy", "[similarity]"),
    ("(fn [similarity] (slate-max similarity))", "sees one item at a time", "slate-max"),
    ("(defn f [x] (f x)) (fn [] (f 1))", "f calls itself", "(f x)"),
    ("(defn f [x] (g x)) (defn g [x] (f x)) (fn [] (f 1))", "calls itself", "(f x)"),
]
SYNTAX = [
    ("", "The text is empty", None),
    ("(fn [] 1", "The text ends before the form that opens here is complete: ) is missing", "("),
    ("(fn [a 1)", '")" closes nothing here; ] is missing', ")"),
    ("(fn [] 1))", '")" closes nothing here', ")"),
    ('(fn [] "a)', "This string is not closed", '"'),
    ("(fn [] 1,000)", "not a number; numbers are written", "1,000"),
    ("(fn [] 1__0)", "not a number", "1__0"),
    ("(fn [] 0x10)", "not a number", "0x10"),
    ("(fn [] 1j)", "not a number", "1j"),
    ("(fn [] 1e309)", "beyond the range", "1e309"),
    ("(fn [] 9007199254740993)", "beyond 2^53", "9007199254740993"),
    ("(fn [] NaN)", "all numbers are finite", "NaN"),
    ("(fn [] -Inf)", "all numbers are finite", "-Inf"),
    ('(fn [] f"a")', "A string takes no prefix", 'f"'),
    ('(fn [] b"a")', "A string takes no prefix", 'b"'),
    ("(fn [] #[f[a{1}]f])", "has no f-strings", "#[f["),
    ("(fn [] {1 2})", "no dictionaries", "{"),
    ("(fn [] #{1 2})", "no set literals", "#{"),
    ("(fn [] #(1 2))", "no tuples", "#("),
    ("(fn [] (+ #* [1 2]))", "no unpacking", "#*"),
    ("(fn [] (+ #** [1 2]))", "no unpacking", "#**"),
    ("(fn [] #^ int 1)", "no annotations", "#^"),
    ("(fn [] `(a))", "Quasi-quotes", "`"),
    ("(fn [] ~a)", "Unquoting", "~"),
    ("(fn [] os.system)", "dotted name", "os.system"),
    ("(fn [] (.join 1))", "dotted name", ".join"),
    ("(fn [] #eval 1)", "reader macro", "#eval"),
    ("(fn [] (param : 1))", "A keyword is a colon and a name", ":"),
    ('(fn [] "\\N{BULLET}")', "not an escape of the policy language", '"\\N{BULLET}"'),
    ("(pack a)", "pass it to lab.policies.use", "(pack a)"),
    ("(+ 1 2)", "A policy is (fn [features] body)", "(+ 1 2)"),
    ("(fn [] 1) (fn [] 2)", "a second policy", "(fn [] 2)"),
    ("(defn f [x] x)", "Helpers alone", "(defn f [x] x)"),
    ("(fn [] 1) stray", "A policy is (fn", "stray"),
]


def check(source: str, message: str, under: str | None, kind: type[PolicyError]) -> None:
    result = error(source)
    assert type(result) is kind
    assert message in result.message
    if under is None:
        assert result.line is None
    else:
        assert marked(result) == under
        assert "^" in str(result)


@pytest.mark.parametrize(("source", "message", "under"), NAMES)
def test_names(source: str, message: str, under: str) -> None:
    check(source, message, under, PolicyNameError)


@pytest.mark.parametrize(("source", "message", "under"), TYPES)
def test_types(source: str, message: str, under: str) -> None:
    check(source, message, under, PolicyTypeError)


@pytest.mark.parametrize(("source", "message", "under"), SYNTAX)
def test_syntax(source: str, message: str, under: str | None) -> None:
    check(source, message, under, PolicySyntaxError)


def test_results_come_from_the_slots_words() -> None:
    assert (
        compile_policy('(fn [pinned] (if pinned "keep" "drop"))', LABEL).row({"pinned": True})
        == "keep"
    )
    result = error('(fn [pinned] (cond pinned "keep" else (let [a 1] "dorp")))', LABEL)
    assert result.message == '"dorp" is not a result of label. Did you mean drop?'
    assert marked(result) == '"dorp"'


def test_an_error_shows_line_caret_policy_file_and_hash() -> None:
    result = error(
        "(fn [similarity]\n  (+ similarity\n     recensy))", name="mine", file="packs/mine.hy"
    )
    assert (result.line, result.column, result.end_column) == (3, 6, 12)
    assert result.policy == "mine"
    text = str(result)
    assert text.startswith(
        f"packs/mine.hy, mine [{result.hash[:12]}], line 3, column 6: Nothing is called"
    )
    assert text.endswith("     recensy))\n       ^^^^^^^")
    assert str(pickle.loads(pickle.dumps(result))) == text


def test_an_error_inside_a_helper_shows_the_helper() -> None:
    result = error("(fn [kind] (grow kind))", helpers=("(defn grow [n]\n  (+ n 1))",))
    assert result.message == "+ takes a number, but this expression is a string."
    assert (result.line, marked(result)) == (2, "n")

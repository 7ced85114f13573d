"""Macros mean what their expansion by hand means, capture no name, end, and keep every older hash."""

import random

import hy
import numpy as np
import pytest

import memlab
from memlab.errors import (
    MemlabError,
    PolicyError,
    PolicyLimitError,
    PolicyNameError,
    PolicySyntaxError,
    PolicyTypeError,
)
from memlab.kernel.language import (
    Input,
    Signature,
    Text,
    compile_policy,
    inherit_form,
    policy_form_text,
    read_forms,
    read_pack,
)
from memlab.kernel.language.macros import flat_bindings, may_expand
from memlab.kernel.language.reader import FUNCTION_HEADS, MAX_CHARACTERS
from memlab.kernel.language.texts import parse, walk
from memlab.science.breeding import crossover, mutate
from memlab.subjects.lens import diff_policies, literals, parametrize, replace, subtrees
from memlab.subjects.lens.edit import with_param
from tests.language.agreement import disagreement
from tests.language.grammar import Grammar
from tests.language.vocabulary import SLOTS, records

SLOT = Signature(
    "recall-score", [Input("x"), Input("y"), Input("kind", "str"), Input("tags", "set")]
)
SQUARE = "(defmacro square-of [e] `(let [t ~e] (* t t)))"


def compiled(source, signature=SLOT, **options):
    return compile_policy(source, signature, **options)


BY_HAND = [
    ("(fn [x] (-> x (* 2) (+ 1)))", "(fn [x] (+ (* x 2) 1))"),
    ("(fn [x] (->> x (- 10) sqrt))", "(fn [x] (sqrt (- 10 x)))"),
    ("(fn [x y] (-> x (->> (- y)) abs))", "(fn [x y] (abs (- y x)))"),
    ("(fn [x] (-> x (if-null 0) (> 1) (if 1 2)))", "(fn [x] (if (> (if-null x 0) 1) 1 2))"),
    ("(fn [x] (-> x))", "(fn [x] x)"),
    ("(fn [x] (unless (> x 2) x))", "(fn [x] (if (> x 2) null x))"),
    ("(fn [x] (do x))", "(fn [x] x)"),
    ("(fn [x y] (do y (+ y 1) x))", "(fn [x y] (let [a y b (+ y 1)] x))"),
    ("(fn [x y] (when (> x 1) y x))", "(fn [x y] (when (> x 1) (let [a y] x)))"),
    ("(fn [x y] (unless (> x 1) y x))", "(fn [x y] (if (> x 1) null (let [a y] x)))"),
    (f"{SQUARE}(fn [x] (square-of x))", "(fn [x] (let [t x] (* t t)))"),
    (f"{SQUARE}(fn [x] (-> x square-of))", "(fn [x] (let [a x] (* a a)))"),
    # Longhand, a macro that another one calls, and one that is defined after the helper that calls it.
    ("(defmacro m [a] (quasiquote (+ (unquote a) 1)))(fn [x] (m x))", "(fn [x] (+ x 1))"),
    (
        f"(defmacro fourth [e] `(square-of (square-of ~e))){SQUARE}(fn [x] (fourth x))",
        "(fn [x] (let [a (let [b x] (* b b))] (* a a)))",
    ),
    (
        "(defn h [n] (twice n)) (defmacro twice [e] `(* 2 ~e)) (fn [x] (h x))",
        "(defn h [n] (* 2 n)) (fn [x] (h x))",
    ),
    # The names, the remaining forms and the items of an argument.
    ("(defmacro bind [n v b] `(let [~n ~v] ~b))(fn [x] (bind t x t))", "(fn [x] (let [t x] t))"),
    ("(defmacro sum [#* all] `(+ ~@all 1))(fn [x y] (sum x y))", "(fn [x y] (+ x y 1))"),
    ("(defmacro sum [#* all] `(+ ~@all 1))(fn [x y] (sum))", "(fn [x y] (+ 1))"),
    ("(defmacro mac [x call] `(~@call ~x))(fn [x] (mac 2 (- 10 x)))", "(fn [x] (- 10 x 2))"),
    ("(defmacro answer [] 42)(fn [x] (+ x (answer)))", "(fn [x] (+ x 42))"),
    ("(defmacro any [s #* w] `(has-any ~s [~@w]))(fn [tags] (if (any tags 'a \"b\") 1 0))",
     '(fn [tags] (if (has-any tags ["a" "b"]) 1 0))'),
    ("(defmacro fact? [k] `(= ~k 'fact))(fn [kind] (if (fact? kind) 1 0))",
     '(fn [kind] (if (= kind "fact") 1 0))'),
    ("(defmacro rate [k v] `(case ~k ((fact event) ~v) (else 0)))(fn [kind x] (rate kind x))",
     "(fn [kind x] (case kind ((fact event) x) (else 0)))"),
    ("(fn [kind x] (case kind ((do) (do x)) (else (-> x (+ 1)))))",
     "(fn [kind x] (case kind ((do) x) (else (+ x 1))))"),
    # A macro of the text hides one of the language and a helper of the library.
    ("(defmacro -> [a b] `(- ~a ~b))(fn [x y] (-> x y))", "(fn [x y] (- x y))"),
    ("(defmacro square [e] `(+ ~e 1))(fn [x] (square x))", "(fn [x] (+ x 1))"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expansion"), BY_HAND)
def test_a_text_has_the_hash_of_its_expansion_by_hand(source, expansion):
    policy = compiled(source)
    assert policy.hash == compiled(expansion).hash
    assert compiled(f"; a comment\n{source}").hash == policy.hash
    # A macro that nothing calls changes nothing.
    assert compiled(f"(defmacro unused [a] `(+ ~a 1)){source}").hash == policy.hash


def test_the_name_of_a_macro_is_not_hashed():
    assert (
        compiled(f"{SQUARE}(fn [x] (square-of x))").hash
        == compiled(f"{SQUARE}(fn [x] (square-of x))".replace("square-of", "sq")).hash
    )


def abstracted(dice, body, source):
    """Return a template and a call that expand to `body`, or None: random pieces and all features are arguments."""
    forms = [form for _, form, _ in walk(body) if form.start < form.stop]
    bound = {
        name.text
        for form in forms
        for name in (
            *(flat_bindings(form) or ())[::2],
            *(form.items[1].items if form.head in FUNCTION_HEADS else ()),
        )
    }
    symbols = {form.text for form in forms if form.kind == "symbol"}
    if bound & {"x", "y", *SLOTS["num"].inputs} or symbols & {"quote"}:
        return None
    pieces, spans = [], []
    for form in dice.sample(forms, min(6, len(forms))):
        inside = {item.text for _, item, _ in walk(form)}
        if form.kind not in ("call", "int", "float") or inside & bound or not form.items[:1]:
            continue
        if any(form.start < stop and start < form.stop for start, stop in spans):
            continue
        if source[form.start] == "(" and form.head and form.head not in ("else",):
            spans.append((form.start, form.stop))
    features = {f.text for f in forms if f.kind == "symbol" and f.text in SLOTS["num"].inputs}
    edits = [(start, stop, None) for start, stop in spans]
    for form in forms:
        covered = any(start <= form.start and form.stop <= stop for start, stop in spans)
        if form.kind == "symbol" and form.text in features and not covered:
            edits.append((form.start, form.stop, form.text))
    template, call, at, names = "", [], body.start, {}
    for start, stop, feature in sorted(edits):
        if feature in names:
            name = names[feature]
        else:
            name = f"p{len(call)}"
            call.append(source[start:stop])
            if feature:
                names[feature] = name
        template += source[at:start] + f"~{name}"
        at = stop
        pieces.append(name)
    template += source[at : body.stop]
    listed = " ".join(f"p{i}" for i in range(len(call)))
    return f"(defmacro drawn [{listed}] `{template})", f"(drawn {' '.join(call)})"


@pytest.mark.parametrize("kind", ["num", "bool", "str"])
@pytest.mark.parametrize(
    "count", [30, pytest.param(400, marks=[pytest.mark.slow, pytest.mark.long])]
)
def test_random_macros_expand_to_the_text_they_were_made_of(kind, count):
    dice = random.Random(5)
    grammar = Grammar(dice)
    rows = records(dice, 6)
    valid = by_hy = 0
    for _ in range(count):
        source = grammar.policy(kind).source
        whole = parse(source, None, ())
        parts = abstracted(dice, whole.written, source)
        if parts is None:
            continue
        macro, call = parts
        start, stop = whole.written.start, whole.written.stop
        text = f"{macro}\n{source[:start]}{call}{source[stop:]}"
        if len(text) > MAX_CHARACTERS:
            continue
        try:
            expected = compiled(source, SLOTS[kind])
        except PolicyError:
            continue
        policy = compiled(text, SLOTS[kind])
        assert policy.hash == expected.hash, text
        assert policy.meaning_hash == expected.meaning_hash
        valid += 1
        if valid % 8 == 0:
            assert disagreement(policy, rows) is None, text
        # Hy's own expander gives the same text. It renames nothing, and here no name needs it.
        try:
            hy.eval(hy.read(macro), module="__main__")
            model = hy.macroexpand_1(hy.read(call), module="__main__")
            expanded = None if str(model[0]) == "quote" else policy_form_text(model)
        except Exception:  # noqa: BLE001 - Hy does not read the spellings of Scheme.
            continue
        if expanded is not None:
            own = f"{source[:start]}{expanded}{source[stop:]}"
            assert compiled(own, SLOTS[kind]).meaning_hash == policy.meaning_hash
            by_hy += 1
    assert valid > count * 0.3
    assert by_hy >= (valid // 20 if kind == "num" else 1)


def test_no_name_of_a_template_captures_a_name_of_the_caller():
    assert compiled(f"{SQUARE}(fn [x] (let [t 3] (square-of (+ t x))))").row({"x": 1}) == 16.0
    # Each expansion has its own names, also in each other and as an argument.
    assert compiled(f"{SQUARE}(fn [x] (square-of (square-of x)))").row({"x": 3}) == 81.0
    both = "(defmacro swap [a b] `(let [t ~a u ~b] (- u t)))"
    assert compiled(f"{both}(fn [x y] (let [t x u y] (swap u t)))").row({"x": 1, "y": 5}) == -4.0
    # A template may pass a name to another macro, which binds it.
    nested = "(defmacro bind [n v b] `(let [~n ~v] ~b)) (defmacro m [e] `(bind t 10 (+ t ~e)))"
    assert compiled(f"{nested}(fn [x] (let [t x] (m t)))").row({"x": 1}) == 11.0
    # The same holds for the argument of a function, and for do.
    many = "(defmacro some [xs] `(first (filter (fn [i] (> (nth ~xs i) 1)) (range (length ~xs)))))"
    explore = memlab.kernel.policies.SLOTS["explore"].signature
    text = "(fn [acts] (first (filter (fn [i] (> (nth acts i) 1)) (range (length acts)))))"
    assert compiled(f"{many}(fn [acts] (some acts))", explore).hash == compiled(text, explore).hash


@pytest.mark.parametrize(
    ("source", "marked"),
    [
        ("(defmacro m [e] `(+ y ~e))\n(fn [x y] (m x))", "(m x)"),
        ("(defmacro m [e] `(+ t ~e))\n(fn [x] (let [t 1] (m x)))", "(m x)"),
        ("(defmacro m [e] `(square ~e))\n(fn [x] (let [square 1] (m x)))", "(m x)"),
        ("(defmacro m [e] `(+ t (let [t ~e] t)))\n(fn [x] (let [t 1] (m x)))", "(m x)"),
        ("(defmacro m [e] `(n ~e)) (defmacro n [e] `(* x ~e))\n(fn [x] (+ 1 (m 2)))", "(m 2)"),
    ],
)
def test_a_template_that_would_read_a_name_of_the_caller_is_refused(source, marked):
    with pytest.raises(PolicyNameError, match="which the caller has bound") as caught:
        compiled(source)
    line = source.splitlines()[1]
    assert (caught.value.line, caught.value.column) == (2, line.index(marked) + 1)
    assert caught.value.end_column == line.index(marked) + len(marked)


WRONG = [
    ("(defmacro m [e] `(m ~e))(fn [x] (m x))", "calls m again", PolicyTypeError),
    (
        "(defmacro a [e] `(b ~e))(defmacro b [e] `(a ~e))(fn [x] (a x))",
        "template of a calls a again",
        PolicyTypeError,
    ),
    ("(defmacro w [f e] `(~f ~f ~e))(fn [x] (w w x))", "has no end", PolicyLimitError),
    ("(defmacro m [e] (+ e 1))(fn [x] (m x))", "computes nothing", PolicySyntaxError),
    ("(defmacro m [e] `(+ ~(+ e 1)))(fn [x] (m x))", "computes nothing", PolicySyntaxError),
    ("(defmacro m [e] `(+ ~f ~e))(fn [x] (m x))", "followed by a parameter", PolicySyntaxError),
    ("(defmacro m [e] `(+ 1 2))(fn [x] (m x))", "does not use e", PolicySyntaxError),
    ("(defmacro m [#* r] `(+ ~r))(fn [x] (m x))", "by ~@r", PolicySyntaxError),
    ("(defmacro m [#* r] `~@r)(fn [x] (m x))", "by ~@r", PolicySyntaxError),
    (
        "(defmacro m [e] `(+ `~e))(fn [x] (m x))",
        "must not contain another template",
        PolicySyntaxError,
    ),
    ("(defmacro m [e] `(+ ~@e))(fn [x] (m x))", "a call or a list", PolicyTypeError),
    ("(defmacro m [e #* r s] `(+ ~e))(fn [x] (m x))", "An argument is a name", PolicyTypeError),
    ("(defmacro m [e e] `(+ ~e))(fn [x] (m x x))", "listed twice", PolicyTypeError),
    (
        "(defmacro m [e] `(+ ~e 1))(fn [x] (m))",
        r"\(m e\) takes 1 arguments, but 0",
        PolicyTypeError,
    ),
    ("(defmacro m [e #* r] `(+ ~e ~@r))(fn [x] (m))", "at least 1", PolicyTypeError),
    ("(defmacro if [e] `(+ ~e))(fn [x] x)", "cannot be redefined", PolicyNameError),
    ("(defmacro m [] 1)(defn m [a] a)(fn [x] x)", "defined twice", PolicyNameError),
    ("(defmacro m)(fn [x] x)", "arguments are missing", PolicyTypeError),
    ("(defmacro)(fn [x] x)", "needs a name", PolicyTypeError),
    ("(fn [x] (defmacro m [a] `~a))", "in front of a policy", PolicyNameError),
    ("(fn [x] `(+ x 1))", "only a defmacro can do", PolicySyntaxError),
    ("(fn [x] ~x)", "only the template", PolicySyntaxError),
    ("(fn [x] (+ #* x))", "no unpacking", PolicySyntaxError),
    ("(fn [x] (-> x 2))", "A step of -> is a function", PolicyTypeError),
    ("(fn [x] (-> x ()))", "A step of -> is a function", PolicyTypeError),
    ("(fn [x] (->))", "-> takes at least 1 argument, but 0", PolicyTypeError),
    ("(fn [x] (do))", "do takes at least 1 argument", PolicyTypeError),
    ("(fn [x] (unless x))", "unless takes at least 2 arguments, but 1", PolicyTypeError),
    ('(fn [x] (do (+ 1 "a") x))', "this expression is a string", PolicyTypeError),
    ("(fn [x] (unles (> x 1) x))", "Did you mean unless", PolicyNameError),
    ("(defmacro mine [e] `(+ ~e 1))(fn [x] (mne x))", "Did you mean mine", PolicyNameError),
    ("(fn [x] (let [t 1] (t~1 x)))", "only the template", PolicySyntaxError),
]


@pytest.mark.parametrize(("source", "message", "kind"), WRONG)
def test_a_wrong_macro_is_refused_with_its_position(source, message, kind):
    with pytest.raises(kind, match=message) as caught:
        compiled(source)
    assert caught.value.line == 1
    assert caught.value.column >= 1
    assert "^" in str(caught.value)


def test_an_error_within_an_expansion_points_at_the_call():
    text = '(defmacro m [e]\n  `(+ "a" ~e))\n(fn [x]\n  (* 2 (m x)))'
    with pytest.raises(PolicyTypeError) as caught:
        compiled(text)
    assert (caught.value.line, caught.value.column, caught.value.end_column) == (4, 8, 12)
    assert "in the expansion of m" in caught.value.message
    # A fault of the caller's own form has its own position, without the macro.
    with pytest.raises(PolicyTypeError) as caught:
        compiled('(defmacro m [e] `(+ 1 ~e))\n(fn [x] (m "a"))')
    assert (caught.value.line, caught.value.column) == (2, 12)
    assert "expansion" not in caught.value.message
    # Names are shown without the marks of the expansion.
    with pytest.raises(PolicyError) as caught:
        compiled("(defmacro m [e] `(let [tmp ~e] (tmp 1)))\n(fn [x] (m x))")
    assert "tmp is a number here" in caught.value.message
    assert "~" not in caught.value.message


def tower(levels):
    """Macros that each call the one below twice: an expansion of 2^levels forms."""
    rows = [f"(defmacro m{i} [e] `(m{i - 1} (m{i - 1} ~e)))" for i in range(1, levels)]
    return f"(defmacro m0 [e] `(+ ~e ~e)) {' '.join(rows)} (fn [x] (m{levels - 1} x))"


HOSTILE = {
    "100,000 calls in each other": SQUARE + "(fn [x] " + "(square-of " * 100_000 + "x" + ")" * 100_001,
    "90 calls in each other": SQUARE + "(fn [x] " + "(square-of " * 90 + "x" + ")" * 91,
    "100,000 quasi-quotes": "(defmacro m [e] " + "`" * 100_000 + "e)(fn [x] x)",
    "9,000 unquotes": "(defmacro m [e] `" + "~" * 9_000 + "e)(fn [x] x)",
    "3,000 steps": "(fn [x] (-> x" + " abs" * 3_000 + "))",
    "a macro that doubles, doubled": tower(40),
    "a tower of threads": tower(12),
    "a wide template": "(defmacro m [e] `(+ " + "~e " * 900 + "))(fn [x] (m (m (m x))))",
    "an argument copied": "(defmacro m [e] `(+ ~e ~e))(fn [x] " + "(m " * 60 + "x" + ")" * 61,
    "itself as an argument": "(defmacro w [f] `(~f ~f))(fn [x] (w w))",
    "longer each time": "(defmacro w [f #* r] `(~f ~f ~@r ~@r))(fn [x] (w w x))",
    "a ring of 300": " ".join(f"(defmacro r{i} [e] `(r{(i + 1) % 300} ~e))" for i in range(300))
    + " (fn [x] (r0 x))",
    "a chain of 300": " ".join(f"(defmacro r{i} [e] `(r{i + 1} ~e))" for i in range(300))
    + " (defmacro r300 [e] `(r300 (+ ~e 1))) (fn [x] (r0 x))",
    "deep templates": "(defmacro m [e] `" + "(+ 1 " * 60 + "~e" + ")" * 61
    + "(fn [x] (m (m (m x))))",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_macro_is_refused(source):
    with pytest.raises(PolicyError):
        compiled(source)
    with pytest.raises(PolicyError):
        read_pack(f"(pack p) {source.replace('(fn [x]', '(defpolicy recall-score [x]')}")


@pytest.mark.long
def test_the_work_of_a_pack_is_bounded_as_a_whole():
    macro = "(defmacro m [e] `(+ " + "~e " * 300 + "))"
    helpers = " ".join(f"(defn h{i} [n] (m n))" for i in range(300))
    with pytest.raises(PolicyLimitError, match="expand to more than"):
        read_pack(f"(pack p) {macro} {helpers}")


@pytest.mark.long
def test_a_chain_of_300_macros_expands():
    chain = " ".join(f"(defmacro r{i} [e] `(r{i + 1} ~e))" for i in range(300))
    text = f"{chain} (defmacro r300 [e] `(+ ~e 1)) (fn [x] (r0 x))"
    assert compiled(text).hash == compiled("(fn [x] (+ x 1))").hash


OLDER = [
    ("(defn unless [test value] (if test null value)) (fn [x] (unless (> x 2) x))", "ca6f4c54b7e4"),
    ("(defn do [a b] (+ a b)) (fn [x y] (do x y))", "6c717b992f82"),
    ("(defn -> [a b] (* a b)) (fn [x y] (-> x y))", "2a0527968111"),
    ("(fn [x] (let [do (* 2 x) unless 3] (+ do unless)))", "3ce02e5b42e9"),
    ("(fn [kind x] (case kind ((do unless) 1) (-> 2) (else x)))", "04457fe56d1f"),
    ("(fn [x] (when (> x 1) x))", "5916009a548f"),
    ("(fn [kind] (if (in kind '(do ->)) 1 0))", "82b896f36165"),
    ("(fn [x] (let ((do 1)) do))", "2b8a5046bbc0"),
]
"""Texts that compiled before there were macros, with the hashes that they had."""


@pytest.mark.parametrize(("source", "hash"), OLDER)
def test_an_older_text_keeps_its_hash(source, hash):
    signature = Signature("recall-score", [Input("x"), Input("y"), Input("kind", "str")])
    policy = compiled(source, signature)
    assert policy.hash.startswith(hash)
    helpers, _, text = source.rpartition(" (fn")
    if helpers:
        assert compiled(f"(fn{text}", signature, helpers=(helpers,)).hash == policy.hash


# Edits, labels, differences and breeding.

MIXED = f"""{SQUARE}
(defmacro weigh [value weight] `(* ~weight (clamp ~value 0 (param :top 1 :low 0 :high 9))))
(fn [x y]
  (+ (weigh x 0.4)                ; near: weighed
     (-> y (* 0.3) (clamp 0 1))   ; threaded
     (square-of (+ x 0.5))))
"""


def test_numbers_of_a_call_are_tuned_and_those_of_a_template_are_not():
    policy = compiled(MIXED)
    listed = [(n.value, n.structural, n.replaceable) for n in literals(policy)]
    assert listed == [
        (0.4, "", True),
        (0.3, "", True),
        (0.0, "a bound of clamp", True),
        (1.0, "a bound of clamp", True),
        (0.5, "", True),
    ]
    # A parameter of a template is a parameter of the policy.
    assert set(policy.params) == {"top"}
    assert policy.with_params({"top": 0.5}).hash != policy.hash
    tunable = parametrize(policy)
    assert set(tunable.params) == {"top", "x", "constant", "x-2"}
    assert tunable.meaning_hash == policy.meaning_hash
    assert "(weigh x (param :x 0.4))" in tunable.source
    assert with_param(policy, literals(policy)[1], "slope").params["slope"].value == 0.3


def test_a_call_is_one_expression_and_its_arguments_are_others():
    policy = compiled(MIXED)
    sources = {tree.source: tree for tree in subtrees(policy)}
    assert "(weigh x 0.4)" in sources
    assert "(-> y (* 0.3) (clamp 0 1))" in sources
    assert "(+ x 0.5)" in sources
    # A step lacks an argument, so it is no expression by itself.
    assert not {"(* 0.3)", "(clamp 0 1)"} & sources.keys()
    for source, tree in sources.items():
        if tree.type == "num":
            changed = replace(policy, tree.path, "y")
            start, stop = tree.span
            assert changed.source == policy.source[:start] + "y" + policy.source[stop:]
            assert policy.source[start:stop] == source
    inner = next(tree for tree in subtrees(policy) if tree.source == "(weigh x 0.4)")
    assert replace(policy, inner, "(weigh y 0.4)").inputs == ("x", "y")


def test_a_comment_labels_the_call_of_a_macro():
    lab = memlab.open()
    lab.remember("a note")
    text = MIXED.replace("[x y]", "[similarity recency]").replace(" x", " similarity")
    lab.policies.install("recall-score", text.replace(" y", " recency"))
    explanation = lab.recall("a note")[0].explain()
    labels = {label for _, label, _ in explanation.parts}
    assert {"weighed", "threaded"} <= labels
    assert np.isclose(sum(value for _, _, value in explanation.parts), explanation.score)


def test_a_difference_is_that_of_the_expansions():
    old, new = compiled(MIXED), compiled(MIXED.replace("`(* ~weight", "`(+ ~weight"))
    changes = [(c.kind, c.before, c.after) for c in diff_policies(old, new).changes]
    assert changes == [("changed", "(*)", "(+)")]
    same = compiled(MIXED.replace("square-of", "sq"))
    assert not diff_policies(old, same).changes
    assert "~" not in diff_policies(old, new).text()


@pytest.mark.long
def test_random_edits_of_policies_with_macros_are_valid_policies():
    rng = np.random.default_rng(3)
    policy, other = compiled(MIXED), compiled("(defn two [n] (* 2 n)) (fn [x] (+ (two x) 3))")
    kinds = set()
    for _ in range(60):
        child = mutate(policy, rng)
        kinds |= {edit.split(":")[0] for edit in child.edits}
        assert compiled(child.policy.source, helpers=child.policy.helpers).hash
    assert len(kinds) >= 6
    carried = 0
    for _ in range(60):
        child = crossover(other, policy, rng)
        carried += "defmacro" in "".join(child.policy.helpers)
        assert "~" not in child.policy.source.replace("~e", "").replace("~weight", "")
    assert carried


# Packs and labs.

PACK = f"""(pack mine "Macros and helpers." :inherits memlab)
(defpolicy recall-score [recency similarity]
  "The parent, a helper and a macro."
  (nudge (inherited) (fresh recency) (param :gain 0.1 :low 0 :high 1)))
(defn fresh [r] (square-of (if-null r 0)))
(defmacro nudge [base signal gain] `(+ ~base (* ~gain ~signal)))
{SQUARE}
"""


def test_macros_and_helpers_of_a_pack_mix_in_any_order():
    pack = memlab.load_pack(PACK)
    policy = pack.policies["recall-score"]
    plain = PACK.replace(
        "(nudge (inherited) (fresh recency) (param :gain 0.1 :low 0 :high 1))",
        "(+ (inherited) (* (param :gain 0.1 :low 0 :high 1) (fresh recency)))",
    )
    plain = plain.replace("(square-of (if-null r 0))", "(let [t (if-null r 0)] (* t t))")
    plain = plain[: plain.index("(defmacro")]
    assert memlab.load_pack(plain).hash == pack.hash
    assert read_pack(plain).hash == read_pack(PACK).hash
    assert policy.inherited.name == "memlab/recall-score"
    assert policy.doc


@pytest.mark.long
def test_inherited_within_a_template_is_the_parent():
    lab = memlab.open()
    macro = "(defmacro plus [signal] `(+ (inherited) (* 0.1 ~signal)))"
    version = lab.policies.install("recall-score", f"{macro}(fn [recency] (plus recency))")
    plain = memlab.open().policies.install(
        "recall-score", "(fn [recency] (+ (inherited) (* 0.1 recency)))"
    )
    assert version.hash == plain.hash
    assert version.policy.inherited.name == "memlab/recall-score"


def test_a_parent_keeps_its_macros_to_itself():
    parent = compiled(f"{SQUARE}(defn half [n] (/ (square-of n) 2))(fn [x] (half (square-of x)))")
    child = "(defmacro square-of [e] `(+ ~e 1))(fn [x] (square-of (inherited)))"
    policy = compiled(child, helpers=(inherit_form(parent, "mine"),))
    assert policy.row({"x": 2}) == 9.0
    assert policy.inherited == parent
    with pytest.raises(PolicyError, match="no function"):
        compiled("(fn [x] (square-of (inherited)))", helpers=(inherit_form(parent, "mine"),))
    # A helper that hides a macro of the language does so in its own text only.
    hidden = compiled("(defn unless [a b] (+ a b))(fn [x] (unless x 1))")
    text = "(fn [x] (unless (> (inherited) 9) x))"
    assert compiled(text, helpers=(inherit_form(hidden, "mine"),)).row({"x": 2}) == 2.0


def test_an_imported_policy_brings_its_macros():
    base = memlab.load_pack(
        f'(pack base "Base.") {SQUARE} (defpolicy recall-score [similarity] (-> similarity (square-of) (* 2)))'
    )
    text = (
        '(pack other "Other.") (from-pack base recall-score :as base-score)'
        "(defmacro more [e] `(+ ~e 1))(defpolicy recall-score [base-score recency] (more (+ base-score recency)))"
    )
    from memlab.kernel.language import inline_imports

    source = read_pack(text)
    inlined, helpers = inline_imports(
        source.policies["recall-score"], {"base-score": base.policy("recall-score")}, source.helpers
    )
    slot = memlab.kernel.policies.SLOTS["recall-score"].signature
    policy = compile_policy(inlined, slot, helpers=(*source.helpers, *helpers))
    assert policy.row({"similarity": 0.5, "recency": 0.25}) == 1.75


@pytest.mark.long
def test_a_lab_keeps_texts_with_macros(disk, tmp_path):
    text = f"{SQUARE}\n(fn [recency similarity]\n  (-> similarity square-of (+ (inherited))))"
    with disk() as lab:
        lab.remember("a note", at="2026-01-01")
        version = lab.policies.install("recall-score", text, reason="macros")
        first = lab.recall("a note")[0].score
        lab.policies.use(PACK)
    with disk() as lab:
        assert version.hash in lab.policies.history("recall-score")["hash"].to_list()
        lab.policies.rollback("recall-score", to=version.number)
        assert lab.policies["recall-score"].source == text
        assert lab.recall("a note")[0].score == pytest.approx(first)
        assert lab.policies["recall-score"].hash == version.hash


def test_what_is_accepted_as_data_may_have_macros():
    forms = hy.read_many(f"{SQUARE} (fn [similarity] (square-of similarity))")
    lab = memlab.open()
    version = lab.policies.install("recall-score", forms)
    assert version.policy.row({"similarity": 3}) == 9.0
    with pytest.raises(MemlabError, match="recall-score"):
        lab.policies.install("recall-score", "(fn [similarity] (square-of similarity)) ; gone")


def test_the_reader_returns_the_forms_of_hy():
    text = "(defmacro m [a #* r] `(+ ~a (f ~@r) [~@r]))"
    (form,) = read_forms(Text(text))

    def same(own, model):
        if own.items or isinstance(model, hy.models.Sequence):
            return len(own.items) == len(model) and all(map(same, own.items, model))
        return own.text == str(model)

    assert same(form, hy.read(text))


def test_words_in_strings_and_comments_are_no_macros() -> None:
    assert not may_expand('(fn [x] "when, do and ->" x) ; unless (when x)')
    assert may_expand("(fn [x] (; a comment\n when x 1 2))")
    assert may_expand('(fn [x] (if (= x #[[ " ]]) (do 1 2) #[[ " ]]))')

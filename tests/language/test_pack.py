"""A pack's file is read into settings, policies and helpers; policies are checked when a slot takes them."""

from __future__ import annotations

import pytest

from memlab.errors import PolicyError, PolicyNameError, PolicySyntaxError, PolicyTypeError
from memlab.kernel.language import Input, Signature, compile_policy, read_pack

TEXT = """; A pack.
(pack associative "Spreading activation." :inherits memlab)
(setting seeds 10) (setting mode "hybrid") (setting mmr true)
(setting damping (param :damping 0.7 :low 0 :high 1))

(defn laplace [s f]
  (/ s (+ s f 1)))

(defpolicy recall_score [activation success fail]
  "Activation first."
  (+ (* 0.4 activation)
     (* 0.1 (laplace success fail))))
(defpolicy half-life [success] success)
"""
SLOT = Signature("recall-score", [Input("activation"), Input("success"), Input("fail")])


def test_a_pack_is_read_into_its_parts() -> None:
    pack = read_pack(TEXT, file="associative.hy")
    assert (pack.name, pack.doc, pack.inherits) == (
        "associative",
        "Spreading activation.",
        "memlab",
    )
    assert {name: s.value for name, s in pack.settings.items()} == {
        "seeds": 10.0,
        "mode": "hybrid",
        "mmr": True,
        "damping": 0.7,
    }
    param = pack.settings["damping"].param
    assert param is not None
    assert (param.name, param.low, param.high) == ("damping", 0.0, 1.0)
    assert list(pack.policies) == ["recall-score", "half-life"]
    form = pack.policies["recall-score"]
    assert (form.inputs, form.doc, form.line) == (
        ("activation", "success", "fail"),
        "Activation first.",
        9,
    )
    assert form.source.startswith("(defpolicy recall_score")
    assert form.source.endswith("(laplace success fail))))")
    assert pack.helpers == ("(defn laplace [s f]\n  (/ s (+ s f 1)))",)


def test_its_policies_compile_as_forms_or_as_text() -> None:
    pack = read_pack(TEXT)
    form = pack.policies["recall-score"]
    policy = compile_policy(form, SLOT, helpers=pack.helpers)
    assert policy.row({"activation": 1.0, "success": 1.0, "fail": 0.0}) == pytest.approx(0.45)
    assert (policy.name, policy.doc, policy.source) == (
        "recall-score",
        "Activation first.",
        form.source,
    )
    again = compile_policy(form.source, SLOT, helpers=pack.helpers)
    assert again == policy
    assert form.hash == policy.source_hash


def test_errors_of_its_policies_point_into_the_file() -> None:
    pack = read_pack(TEXT.replace("0.4 activation", "0.4 activatoin"), file="associative.hy")
    with pytest.raises(PolicyNameError) as caught:
        compile_policy(pack.policies["recall-score"], SLOT, helpers=pack.helpers)
    assert (caught.value.file, caught.value.policy, caught.value.line) == (
        "associative.hy",
        "recall-score",
        11,
    )
    assert "Did you mean activation?" in str(caught.value)


def test_the_hash_covers_what_counts() -> None:
    base = read_pack(TEXT).hash
    for prose in ("; A pack.", '"Spreading activation."', '"Activation first."'):
        assert read_pack(TEXT.replace(prose, ";" if prose[0] == ";" else '"Other."')).hash == base
    for old, new in (
        ("10", "11"),
        ("memlab", "other"),
        ("0.4", "0.5"),
        ("f 1", "f 2"),
        ("0.7", "0.6"),
        ("true", "false"),
    ):
        assert read_pack(TEXT.replace(old, new)).hash != base, old


@pytest.mark.parametrize(
    ("text", "message", "kind"),
    [
        ("", "A pack begins with", PolicySyntaxError),
        ("(setting a 1)", "A pack begins with", PolicySyntaxError),
        ('(pack "name")', "A pack begins with", PolicySyntaxError),
        ("(pack a :extends b)", "This form is not allowed here", PolicySyntaxError),
        ("(pack a) (setting b)", "A setting is a name and a value", PolicySyntaxError),
        ("(pack a) (setting b (+ 1 2))", "A setting is a number", PolicyTypeError),
        ("(pack a) (setting b (param :c))", "A parameter is", PolicyTypeError),
        ("(pack a) (setting b (param :c 2 :high 1))", "outside its own bounds", PolicyTypeError),
        ("(pack a) (setting b 1) (setting b 2)", "setting b is given twice", PolicyNameError),
        (
            "(pack a) (defpolicy s [] 1) (defpolicy s [] 2)",
            "policy s is given twice",
            PolicyNameError,
        ),
        ("(pack a) (defn f [] 1) (defn f [] 2)", "f is defined twice", PolicyNameError),
        (
            "(pack a) (fn [] 1)",
            "A pack contains the forms pack, from-pack, setting, defpolicy, defn and defmacro only",
            PolicySyntaxError,
        ),
    ],
)
def test_mistakes(text: str, message: str, kind: type[PolicyError]) -> None:
    with pytest.raises(kind, match=message):
        read_pack(text)

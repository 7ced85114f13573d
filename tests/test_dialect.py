"""A pack's file as a module of Hy: its forms go to the safe compiler, and names are bound to policies."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import hy  # noqa: F401
import numpy as np
import pytest

import memlab
from memlab.errors import PolicyError, PolicyTypeError
from memlab.kernel.language import Policy, read_pack
from memlab.kernel.policies import load_pack

pytestmark = pytest.mark.long

PACKS = sorted((Path(memlab.__file__).parent / "kernel" / "policies" / "packs").glob("*.hy"))
PACK = """
    ; a comment
    (require memlab.dialect *)
    (import math)
    (pack tiny "A small pack." :inherits associative)
    (setting damping (param :damping 0.7 :low 0 :high 1))
    (setting spread-mode "cascade")
    (defn ratio [a b] "a of both." (/ a (+ a b 1)))
    (defpolicy recall-score [similarity age_days success fail]
      "Near, fresh and useful."   ; and a comment
      (* (param :weight 2 :low 0 :high 10) (+ similarity (half-life-decay age-days 30) (ratio success fail))))
    (defpolicy resolve [new/confidence old/confidence]
      (if (>= new/confidence old/confidence) "keep-new" "keep-old"))
    (defpolicy explore (lambda (accs) (first (filter (lambda (i) (< (nth accs i) 2)) (range (length accs))))))
    (setv circle (* 2 math.pi))
"""


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that imports a text as a module, by name."""
    monkeypatch.syspath_prepend(tmp_path)

    def load(source: str, name: str) -> ModuleType:
        (tmp_path / f"{name}.hy").write_text(textwrap.dedent(source), encoding="utf-8")
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return load


@pytest.mark.parametrize("path", PACKS, ids=lambda p: p.stem)
def test_a_shipped_pack_is_a_module_of_its_policies(path: Path, imported) -> None:
    text = path.read_text(encoding="utf-8")
    source, pack = read_pack(text), load_pack(path)
    taken = [name for each in source.imports for name in each.names]
    policies = pack.policies
    module = imported(text, f"shipped_{path.stem}")
    assert tuple(module.__pack__) == (source.name, source.doc, source.inherits)
    own = {*source.settings, *taken} & pack.settings.keys()
    assert module.__settings__ == {name: pack.settings[name] for name in own}
    for slot in {*source.policies, *taken} & policies.keys():
        bound = getattr(module, slot.replace("-", "_"))
        assert isinstance(bound, Policy)
        assert bound == policies[slot]
        assert bound.doc == policies[slot].doc


def test_hy_imports_a_pack_and_its_policies_can_be_called(imported) -> None:
    for _ in range(2):  # from source, then from the bytecode that Hy left
        module = imported(PACK, "tiny_pack")
        assert module.__pack__ == ("tiny", "A small pack.", "associative")
        assert module.__settings__ == {"damping": 0.7, "spread-mode": "cascade"}
        assert module.recall_score(0.5, 30, 1, 0) == 3.0
        assert module.recall_score(similarity=0.5, age_days=30, success=1, fail=0) == 3.0
        assert module.recall_score.with_params({"weight": 4})(0.5, 30, 1, 0) == 6.0
        assert module.ratio(1, 0) == 0.5
        assert module.ratio.doc == "a of both."
        assert module.resolve(new_confidence=1, old_confidence=0.5) == "keep-new"
        assert module.explore.arrays({"access": np.array([3.0, 1.0, 2.0])})[0].tolist() == [
            0.0,
            1.0,
            0.0,
        ]
        assert module.circle > 6


def test_the_same_text_is_a_pack_of_the_safe_compiler(imported) -> None:
    text = (
        textwrap.dedent(PACK)
        .replace("(import math)\n", "")
        .replace("(setv circle (* 2 math.pi))\n", "")
    )
    assert load_pack(text).policies["recall-score"] == imported(text, "tiny_twin").recall_score


def test_a_lambda_is_a_policy_and_a_policy_of_no_slot_has_features_and_numbers(imported) -> None:
    module = imported(
        """
        (require memlab.dialect *)
        (setv ratio (lambda (a b) (/ a b)))
        (defpolicy mine [kind x] (if (= kind "fact") x 0))
        (defpolicy fond [kind] (in kind ["preference" "goal"]))
        (defn plain [#* items] (len items))
        """,
        "loose",
    )
    assert module.ratio(1, 0) == float("inf")
    assert module.mine("fact", 2) == 2.0
    assert module.fond("goal") is True
    assert module.plain(1, 2) == 2


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("(defpolicy recall-score [similarity] (similar))", 'There is no function "similar"'),
        ("(defpolicy recall-score [similarity] (.upper similarity))", "dotted name"),
        (
            "(defpolicy label [kind] (= kind 'fct))",
            '"fct" is not a value of kind. Did you mean fact',
        ),
        ("(setting dampin 0.7)", "Did you mean damping"),
    ],
)
def test_forms_that_the_safe_compiler_refuses_are_refused_with_their_position(
    form: str, message: str, imported
) -> None:
    with pytest.raises((PolicyError, memlab.MemlabError), match=message) as caught:
        imported(f"(require memlab.dialect *)\n(pack wrong)\n\n{form}\n", "wrong_pack")
    if isinstance(caught.value, PolicyError):
        assert caught.value.line == 4
        assert str(caught.value.file).endswith("wrong_pack.hy")


def test_a_call_with_too_many_arguments_says_so(imported) -> None:
    module = imported(PACK, "tiny_pack")
    with pytest.raises(memlab.MemlabError, match="takes 4 arguments, but 5 are given"):
        module.recall_score(1, 2, 3, 4, 5)
    with pytest.raises(PolicyTypeError, match="ratio takes 2 arguments, not 1"):
        module.ratio(1)


def test_memlab_itself_never_loads_the_macros() -> None:
    code = (
        "import sys, memlab\n"
        "memlab.load_pack('associative').policies['recall-score']\n"
        "assert 'memlab.dialect' not in sys.modules, 'loaded too early'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

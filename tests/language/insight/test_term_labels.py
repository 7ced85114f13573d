"""Labels of terms: which comment describes which part of a score."""

from __future__ import annotations

import pytest

import memlab
from memlab.kernel.language import Input, Policy, Signature, compile_policy
from memlab.kernel.policies import load_pack
from memlab.subjects.lens.labels import read_labels

SLOT = Signature("recall-score", [Input("x"), Input("y"), Input("kind", "str")])
VALUES = {"x": 2.0, "y": 3.0, "kind": "fact"}


def labelled(source: str) -> list[tuple[float, str, str]]:
    terms = compile_policy(source, SLOT).explain(VALUES).terms
    return [(term.value, term.label, term.group) for term in terms]


def test_a_comment_at_the_end_of_a_line_labels_the_outermost_form_that_begins_there() -> None:
    source = """(fn [x y kind]
      (+ (* 2 x)                   ; words: uses the words of the query
         (if (= kind "fact")       ; states a fact
           (* 5 y) 0)
         (* x y)))"""
    assert labelled(source) == [
        (4.0, "uses the words of the query", "words"),
        (15.0, "states a fact", ""),
        (6.0, "", ""),
    ]


def test_a_comment_on_its_own_line_labels_the_next_form_and_may_take_several_lines() -> None:
    source = """(fn [x y]
      ; what the policy is
      (+
         ; context: its session
         ; is near
         (* 2 x)
         y ; meaning: similar
      ))"""
    assert labelled(source) == [
        (4.0, "its session is near", "context"),
        (3.0, "similar", "meaning"),
    ]


def test_a_comment_that_ends_with_a_comma_continues_and_a_part_has_the_group_of_the_whole() -> None:
    source = """(fn [x y kind]
      (+ (if (= kind "fact")       ; form: a fact is short,
           (* 0.5 x)               ; which helps
           (* 3 x))
         (if (= kind "fact")       ; people: who says it
           (* 0.25 y)              ; the speaker is near
           0)))"""
    assert labelled(source) == [
        (1.0, "a fact is short, which helps", "form"),
        (0.75, "the speaker is near", "people"),
    ]


def test_a_semicolon_within_a_string_is_no_comment() -> None:
    assert labelled('(fn [x kind] (+ (if (= kind ";; no") 2 x) 0.5))')[0] == (2.0, "", "")


def test_labels_change_no_hash_and_belong_to_the_text_that_has_them() -> None:
    def compiled(comment: str) -> Policy:
        return compile_policy(f"(fn [x y]\n (+ (* 2 x) ; {comment}\n y))", SLOT)

    first, second = compiled("first"), compiled("second")
    assert first.hash == second.hash
    assert first.meaning_hash == second.meaning_hash
    assert [p.explain(VALUES).terms[0].label for p in (first, second)] == ["first", "second"]


@pytest.fixture
def hits() -> memlab.Hits:
    lab = memlab.open()
    for text in ("Alice moved to Berlin.", "Bob likes pears.", "Alice now lives in Paris."):
        lab.remember(text)
    return lab.recall("Where does Alice live?")


@pytest.mark.long
def test_an_explanation_shows_labels_and_on_request_expressions(hits: memlab.Hits) -> None:
    explanation = hits[0].explain()
    parts = explanation.parts
    assert sum(value for _, _, value in parts) == pytest.approx(explanation.score)
    assert "(* 0.05 late)" not in repr(explanation)
    assert "(* 0.05 late)" in repr(hits[0].explain(expressions=True))
    assert explanation.frame.columns == ["term", "value", "label", "group"]


@pytest.mark.long
def test_terms_that_round_to_zero_are_one_line(hits: memlab.Hits) -> None:
    for expressions in (False, True):
        for text in (
            repr(hits.explain(hits[0], expressions=expressions)),
            repr(hits.why(*hits[:2])),
        ):
            assert "-0.0000" not in text
            assert not text.endswith("+0.0000")
    assert "contributed nothing" in repr(hits[0].explain())


@pytest.mark.long
def test_an_explanation_says_that_the_slot_select_changed_the_order() -> None:
    lab = memlab.open()
    for text in ("Alice moved to Berlin.", "Alice likes pears.", "Alice lives in Paris."):
        lab.remember(text)
    assert all(not hit.explain().order for hit in lab.recall("Where does Alice live?"))
    lab.policies.use(
        '(pack other "x" :inherits memlab) (defpolicy select [score] "Worst first." (- 1 score))'
    )
    best, *_, last = lab.recall("Where does Alice live?")
    assert "rank 3 by score, rank 1 after the slot select of the pack" in repr(best.explain())
    assert "rank 1 by score, rank 3" in last.explain().order


def test_the_terms_of_the_default_pack_have_labels_in_five_groups() -> None:
    labels = read_labels(load_pack("memlab").policies["recall-score"]).values()
    groups = {label.group for label in labels if label.group}
    assert groups == {"meaning", "words", "context", "people and time", "corrections"}

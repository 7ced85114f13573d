"""Colour adds nothing to the text but colour."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError
from memlab.kernel.policies import pack_names
from memlab.kernel.policies._packs import pack_source
from memlab.subjects.lens.highlight import highlight, read_tokens

ANSI = re.compile(r"\x1b\[[0-9;]*m")
SOURCE = """(defpolicy recall-score [similarity age_days] ; by nearness
  "What is near, and new."
  (+ (* (param :w 0.4 :low 0) similarity)
     (if (< age-days (weeks 2)) 1 null)))"""


def kinds(source: str, *features: str) -> dict[str, str]:
    return {text: kind for kind, text in read_tokens(source, frozenset(features))}


def test_kinds_of_tokens() -> None:
    result = kinds(SOURCE, "similarity", "age-days")
    assert {
        word: result[word] for word in ("defpolicy", "if", "*", "weeks", ":low", "0.4", "null")
    } == {
        "defpolicy": "keyword",
        "if": "keyword",
        "*": "builtin",
        "weeks": "builtin",
        ":low": "param",
        "0.4": "number",
        "null": "number",
    }
    assert result["age-days"] == result["age_days"] == result["similarity"] == "feature"
    assert result["; by nearness"] == "comment"
    assert result['"What is near, and new."'] == "string"


def test_a_name_that_only_begins_like_a_form_is_none() -> None:
    result = kinds("(letter iffy -x 2nd (minimal 1))")
    assert {result[word] for word in ("letter", "iffy", "-x", "minimal")} == {""}


@pytest.mark.parametrize("name", pack_names())
def test_a_pack_reads_the_same_without_its_colours(name: str) -> None:
    source = pack_source(name)
    assert ANSI.sub("", highlight(source, "terminal")) == source
    assert html.unescape(re.sub(r"<[^>]+>", "", highlight(source))) == source


@given(
    st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc"])
        | st.sampled_from("\n\t()[]\"';:#_\\ <&>")
    )
)
def test_any_text_comes_through(source: str) -> None:
    assert ANSI.sub("", highlight(source, "terminal")) == source
    page = highlight(source)
    assert html.unescape(re.sub(r"<[^>]+>", "", page)) == source
    assert "<" not in re.sub(r'</?(?:pre|span)(?: style="[^"<>]*")?>', "", page)


@pytest.mark.long
@given(st.text())
def test_a_terminal_is_not_steered(source: str) -> None:
    text = ANSI.sub("", highlight(source, "terminal"))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert len(text) == len(source)


def test_arguments_are_features_and_more_can_be_given() -> None:
    blue = "--jp-mirror-editor-variable-2-color"
    assert highlight("(lambda (x) y)").count(blue) == 1
    assert highlight("(lambda (x) y)", features=["y"]).count(blue) == 2
    assert highlight("(* x", features=["x"]).count(blue) == 1


def test_a_format_is_known() -> None:
    with pytest.raises(InputError, match="html"):
        highlight("x", "pdf")  # type: ignore[arg-type]

"""What one description of a result gives as text and as HTML; nothing hostile becomes markup."""

import polars as pl
import pytest

from memlab.kernel.base.display import (
    Displayed,
    Markup,
    Report,
    Table,
    box,
    code_block,
    details,
    format_rows,
    paragraph,
    render_html,
    render_text,
    table,
)
from tests.displays import html_of

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table><b>out</b>",
    "'><svg onload=alert(1)>",
    '"><iframe src=//evil>',
    "&lt;script&gt;",
]


class Found(Report):
    def __init__(self, text):
        self.words = text

    def _display(self):
        return (
            self.words,
            Table(self.words, [self.words, "n"], [[self.words, 1]], notes=[self.words]),
            [self.words],
        )


class Held(Displayed):
    def __init__(self, text):
        self.frame = pl.DataFrame({"word": [text]})
        self.text = text

    def __repr__(self):
        return f"<Held {self.text}>"


class TestHtml:
    @pytest.mark.parametrize("text", HOSTILE)
    @pytest.mark.parametrize(
        "show",
        [
            render_html,
            paragraph,
            box,
            code_block,
            lambda text: render_html([text, [text, text]]),
            lambda text: render_html((Table(text, [text], [[text]], notes=[text]), None)),
            lambda text: table(text, [text], [[text]], notes=[text]),
            lambda text: details(text, text),
            lambda text: details(text, [text, Table(text, [text], [[text]])], opened=True),
            lambda text: Markup("<b>{}</b> {name}").format(text, name=text),
            lambda text: html_of(Found(text)),
            lambda text: html_of(Held(text)),
        ],
    )
    def test_no_text_becomes_markup(self, text, show):
        shown = show(text)
        assert text not in shown
        for tag in ("<script", "<img", "<svg", "<iframe", "<b>out"):
            assert tag not in shown

    def test_markup_is_passed_through(self):
        assert render_html(Markup("<b>x</b>")) == "<b>x</b>"
        assert "<i>x</i>" in table("", ["a"], [[Markup("<i>x</i>")]])

    def test_a_single_part_has_no_element_around_it(self):
        assert render_html("x").startswith("<p")
        assert render_html(["x", "y"]).startswith("<div>")
        assert render_html(None) == ""

    def test_a_value_with_a_frame_shows_its_repr_and_the_frame(self):
        html = html_of(Held("x"))
        assert "Held x" in html
        assert "<table" in html


class TestText:
    def test_text_says_what_html_says(self):
        result = Found("rain")
        assert str(result) == "rain\n\nrain\nrain  n\nrain  1\nrain\n\nrain"
        assert html_of(result).count("rain") == 6

    def test_lines_are_no_wider_than_asked(self):
        shown = Found("several words of a long sentence").text(20)
        assert max(map(len, shown.splitlines())) <= 20

    def test_nothing_steers_a_terminal(self):
        assert "\x1b" not in repr(Found("\x1b[2J"))

    def test_empty_parts_leave_no_empty_lines(self):
        assert render_text(["a", None, [], "b"]) == "a\n\nb"


class TestRows:
    def test_a_missing_value_empties_its_cell(self):
        columns = [("both", "{low:.1f}..{high:.1f}"), ("n", lambda row: row["n"] + 1)]
        rows = [
            {"low": 0.25, "high": 1.0, "n": 1},
            {"low": None, "high": 1.0, "n": 2},
            {"low": float("nan"), "high": 1.0, "n": 3},
        ]
        assert format_rows(rows, columns) == (
            ["both", "n"],
            [["0.2..1.0", "2"], ["", "3"], ["", "4"]],
        )

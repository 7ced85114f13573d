"""Tooltips of buttons are the summaries of the methods that carry out their verbs."""

import re
from pathlib import Path

import pytest

import memlab
from memlab.ui import widgets

SOURCES = Path(widgets.__file__).parent / "src"
CLASSES = {
    value.bundle: value
    for name in widgets.__all__
    if isinstance(value := getattr(widgets, name), type) and hasattr(value, "bundle")
}


def test_every_hint_of_the_browser_has_a_summary():
    used = {
        (folder, verb)
        for folder in CLASSES
        for path in (SOURCES / folder).rglob("*.tsx")
        for verb in re.findall(r'hint\("(\w+)"\)', path.read_text(encoding="utf-8"))
    }
    assert len(used) == 15
    for folder, verb in used:
        assert getattr(CLASSES[folder], f"answer_{verb}").__doc__, (folder, verb)


@pytest.mark.parametrize("name", ["PolicyStudio", "MemoryTable", "VersionTimeline", "QuestionList"])
def test_hints_are_short_sentences_without_markup(name):
    widget = getattr(widgets, name)(memlab.open())
    assert widget.hints
    for verb, text in widget.hints.items():
        summary = getattr(type(widget), f"answer_{verb}").__doc__.splitlines()[0]
        assert summary == f"{text}."
        assert 10 < len(text) <= 80

"""Long runs of spaces, lines and dashes take linear time. The quadratic searches of before took minutes here."""

import time

import pytest

import memlab
import memlab.errors
from memlab.io.formats.chats import _MARK
from memlab.io.formats.whatsapp import _ADDED, _EDITED
from memlab.kernel.index import passages_of
from memlab.subjects.extraction.circumstances import read_setting
from memlab.subjects.extraction.work import _PARTS
from memlab.subjects.modules.scanning import _GO, _RUST
from memlab.subjects.purge.questions import _STARTS
from memlab.subjects.reading.acts import read_sentences
from memlab.subjects.reading.sentences import sentences_and_lines
from memlab.subjects.rederiving.rederiving import _PATH, Wording

SIZE = 100_000


@pytest.mark.long
@pytest.mark.parametrize("run", [" ", "\t", "\n", "\xa0", "-", "- ", "; "])
def test_a_long_run_takes_linear_time(run):
    run, words = run * (SIZE // len(run)), "word " * 300
    text = f"{words}{run}-end"
    began = time.process_time()
    assert passages_of(text)[-1][1] == len(text)
    assert sentences_and_lines(text)[-1].endswith("end")
    assert read_sentences(text)
    assert "long" in read_setting(text).signs(0)
    for pattern in (_ADDED, _EDITED, _MARK, _GO, _RUST):
        assert pattern.search(text) is None
    for pattern in (_PARTS, _STARTS):
        list(pattern.finditer(text))
    assert time.process_time() - began < 8


def test_marks_at_the_end_of_a_message_are_found_after_spaces():
    assert _EDITED.sub("", "See you  <This message was edited>") == "See you"
    assert _ADDED.subn("", "A  \u200e<attached: a.jpg> \u200e<b>")[0] == "A"
    assert _MARK.sub("", "I keep bees.  ->-> 1,2") == "I keep bees."
    assert [match.end() - 1 for match in _STARTS.finditer("We met.\n \n Ada (b)")] == [0, 11, 16]
    assert [match.span() for match in _PARTS.finditer("a ; ; b &&c\n\n d")] == [
        (1, 4),
        (4, 6),
        (7, 10),
        (11, 14),
    ]


@pytest.mark.long
def test_a_lab_remembers_a_text_with_a_long_run_of_spaces():
    lab, began = memlab.open(), time.process_time()
    lab.remember("word " * 300 + " " * 200_000 + "end")
    assert lab.recall("end").frame.height == 1
    assert time.process_time() - began < 20


@pytest.mark.parametrize("run", ["a", "a-", "a.", "~", "/", "a/", "a.b-"])
def test_a_long_word_is_searched_for_paths_in_linear_time(run):
    began = time.process_time()
    _PATH.findall(run * (SIZE // len(run)))
    assert time.process_time() - began < 4
    edit = Wording("see src/old.py and b.py", "see src/new-1.py and b.py")
    assert edit.corrected_path("src/old.py") == "src/new-1.py"
    assert _PATH.findall("~/a.b/c d.py, /e ./f x.yyyyyy g-h.rs") == [
        "~/a.b/c",
        "d.py",
        "/e",
        "./f",
        "g-h.rs",
    ]


def test_an_error_does_not_repeat_a_long_name():
    assert len(str(memlab.errors.UnknownName("kind", "a" * 1_000_000, ["turn"]))) < 400

"""The six policies of docs/howto/small-policies.md: short, and doing what their headings say."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "small-policies.md"
HEADINGS = (
    "Maximal marginal relevance",
    "A cap for each session",
    "A cross-encoder as a feature",
    "Upper confidence bounds",
    "Thompson sampling",
    "A Hebbian boost",
)
PIECES = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
CELLS = {
    piece.partition("\n")[0]: re.findall(r"```python\n(.*?)```", piece, flags=re.DOTALL)
    for piece in PIECES
}


@pytest.fixture
def names():
    """Run the first cell, and return its names."""
    names = {}
    exec(CELLS[PIECES[0].partition("\n")[0]][0], names)
    yield names
    if "cross" in names:
        names["lab"].features.remove("cross")


def run(heading, names):
    exec(CELLS[heading][0], names)
    return names["lab"]


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_cell_runs_alone_and_has_at_most_eight_lines(heading, names):
    (cell,) = CELLS[heading]
    assert len(cell.splitlines()) <= 8
    lab = run(heading, names)
    assert lab.recall("tabs or spaces?")


def test_mmr_moves_a_near_duplicate_down(names):
    before = [hit.id for hit in names["lab"].recall("we indent with four spaces", limit=3)]
    names["lab"].remember("We indent with four spaces, always.")
    lab = run("Maximal marginal relevance", names)
    policy = lab.policies["select"]
    assert policy.row({"score": 0.5, "likeness": 1.0}) == pytest.approx(0.4)
    assert policy.row({"score": 0.5, "likeness": 0.0}) == 0.5
    assert before


def test_a_session_fills_at_most_four_places(names):
    names["lab"].load([
        {"speaker": "Bob", "session": "wed", "content": f"We indent file {word} with tabs."}
        for word in ("one", "two", "three", "four", "five", "six")
    ])  # fmt: skip
    assert len(names["lab"].recall("indent with tabs", limit=9)) == 9
    lab = run("A cap for each session", names)
    sessions = lab.recall("indent with tabs", limit=9).frame["memory_id"].to_list()
    assert len([each for each in sessions if each > 3]) == 4


@pytest.mark.long
def test_a_cross_encoder_is_imported_at_the_first_recall(names, monkeypatch, tmp_path):
    lab = run("A cross-encoder as a feature", names)
    without = lab.recall("Makefiles need tabs.", log=False)
    assert without[0].text.endswith("Makefiles need tabs.")
    (tmp_path / "my_reranker.py").write_text(
        "class model:\n    predict = staticmethod(lambda pairs: [float('four' in t) for _, t in pairs])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    scores = {hit.text: hit.explain().parts for hit in lab.recall("unrelated words")}
    cross = {
        text: sum(value for _, label, value in parts if "cross" in label)
        for text, parts in scores.items()
    }
    assert all((value > 0) == ("four" in text) for text, value in cross.items())


def test_bounds_and_samples_prefer_what_is_little_known(names):
    lab = run("Upper confidence bounds", names)
    policy = lab.policies["explore"]
    new = policy.row({"success": 0, "fail": 0, "score": 1})
    assert new > policy.row({"success": 5, "fail": 5, "score": 1}) > 0
    lab = run("Thompson sampling", names)
    assert lab.policies["explore"].aggregates is not None


@pytest.mark.long
def test_what_is_used_together_is_recalled_together(names):
    lab = names["lab"]
    lab.remember("The kitchen is painted green.")
    lab = run("A Hebbian boost", names)
    other = 4
    query = "how does Emi indent with four spaces?"
    before = {hit.id: hit.score for hit in lab.recall(query, limit=9, log=False)}
    for _ in range(4):
        hits = lab.recall("Emi's four spaces and the green kitchen", limit=9)
        for hit in hits:
            if hit.id in (1, other):
                lab.feedback(hit, "success")
    after = {hit.id: hit.score for hit in lab.recall(query, limit=9, log=False)}
    assert after[other] > before.get(other, 0.0)

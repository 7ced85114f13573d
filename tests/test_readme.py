"""What the README shows runs as it stands there."""

import random
import re
from pathlib import Path

import polars as pl
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the log that the second example reads: five shown and one probe, twenty candidates."""
    dice = random.Random(2)
    rows = []
    for query in range(300):
        probe = dice.randrange(6, 21)
        for place in range(1, 21):
            shown = place <= 5 or place == probe
            rows.append(
                {
                    "query_id": query,
                    "memory_id": place,
                    "rank": min(place, 6) if shown else 0,
                    "clicked": float(dice.random() < 1 / place) if shown else None,
                    "p": 1.0 if place <= 5 else 1 / 15,
                    "old_score": -place,
                    "new_score": dice.random(),
                }
            )
    pl.DataFrame(rows).write_csv(tmp_path / "log.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


LEAVES = {0: "agent.memlab", 2: "out.html"}


def test_there_are_three_examples():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number, folder):
    exec(compile(EXAMPLES[number], f"README.md, example {number + 1}", "exec"), {})
    if number in LEAVES:
        assert (folder / LEAVES[number]).exists()


def test_every_link_to_a_file_leads_somewhere():
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert targets
    assert not [target for target in targets if not (Path(__file__).parents[1] / target).exists()]

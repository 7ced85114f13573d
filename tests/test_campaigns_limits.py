"""Short forms of the campaigns with hostile files and half-sent requests."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which Linux has"),
]

hostile_files: Any = importlib.import_module("tests.campaigns.hostile_files")
half_open: Any = importlib.import_module("tests.campaigns.half_open")

# Files that are written and read within a second; the campaign has larger ones.
QUICK = (
    "equal-texts.parquet",
    "deep.parquet",
    "archive.zip",
    "zero.txt",
    "zero.parquet",
    "pipe.jsonl",
    "pipe.hy",
    "socket.json",
    "itself.json",
    "levels",
    "pipes",
    "lab",
    "open.sexp",
)


def test_hostile_files_are_read_or_refused(tmp_path: Path) -> None:
    outcomes = list(hostile_files.run_listed(tmp_path, QUICK))
    assert [outcome for outcome in outcomes if outcome.kind not in ("read", "refused")] == []


def test_mutations_of_valid_files_are_read_or_refused(tmp_path: Path) -> None:
    (tmp_path / "valid").mkdir()
    files = hostile_files.valid_files(tmp_path / "valid")
    outcomes = list(hostile_files.run_mutations(files, tmp_path, 100, seed=4, processes=1))
    assert [outcome for outcome in outcomes if outcome.kind not in ("read", "refused")] == []
    assert {outcome.kind for outcome in outcomes} == {"read", "refused"}


@pytest.mark.parametrize("command", ["serve", "view"])
def test_an_honest_client_is_answered_beside_half_sent_requests(command: str) -> None:
    result = half_open.attack(command, connections=200, files=256, seed=1, patience=1)
    assert result.refused == []
    assert max(result.seconds) < 5
    assert len(result.errors) < 20
    assert result.files < 100

"""What was acknowledged is there after ``kill -9`` and after a power cut: short runs of tests/campaigns/durability.py."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

durability: Any = importlib.import_module("tests.campaigns.durability")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if (reason := durability.unsupported()) is not None:
        pytest.skip(reason)
    return durability.build_shim(tmp_path_factory.mktemp("shim"))


def check(name: str, runs: int, shim: Path | None = None) -> None:
    [case] = [case for case in durability.CASES if case.name == name]
    tally = durability.run_case(case, runs=runs, seed=20, shim=shim)
    assert tally.runs == runs
    assert tally.promised, "the children were killed before they wrote anything"
    assert tally.as_it_must_be, (tally.lost, tally.broken)


POWER_CUTS = [case.name for case in durability.CASES if case.cut != "kill"]


def test_a_killed_process_has_lost_nothing_that_it_acknowledged() -> None:
    check("process killed", 4)


@pytest.mark.parametrize("name", [name for name in POWER_CUTS if "control" not in name])
def test_a_power_cut_takes_nothing_that_was_acknowledged_as_durable(name: str, shim: Path) -> None:
    check(name, 3, shim)


@pytest.mark.slow
def test_without_syncing_a_power_cut_does_take_what_was_acknowledged(shim: Path) -> None:
    check("control: nothing synced", 4, shim)


@pytest.mark.slow
def test_a_hundred_kills() -> None:
    check("process killed", 100)


@pytest.mark.slow
@pytest.mark.parametrize("name", POWER_CUTS)
def test_a_hundred_power_cuts(name: str, shim: Path) -> None:
    check(name, 100, shim)

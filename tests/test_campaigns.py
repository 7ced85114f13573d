"""Short forms of the campaigns that break labs: ``python -m tests.campaigns.kill_points`` and its three siblings."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

kill_points: Any = importlib.import_module("tests.campaigns.kill_points")
interruptions: Any = importlib.import_module("tests.campaigns.interruptions")
damage: Any = importlib.import_module("tests.campaigns.damage")
fulldisk: Any = importlib.import_module("tests.campaigns.fulldisk")
breaking: Any = importlib.import_module("tests.campaigns.breaking")


def find_operation(campaign: Any, name: str) -> Any:
    [operation] = [operation for operation in campaign.OPERATIONS if operation.name == name]
    return operation


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("campaign") / "base"
    breaking.everything(path, recalls=4)
    return path


def test_an_acknowledged_write_of_a_killed_process_is_complete() -> None:
    tally = kill_points.run(find_operation(kill_points, "remember"), points=2, seed=1)
    assert tally.points == 2
    assert not tally.problems


@pytest.mark.slow
@pytest.mark.parametrize("name", [operation.name for operation in kill_points.OPERATIONS])
def test_kill_points_in_every_operation(name: str) -> None:
    assert not kill_points.run(find_operation(kill_points, name), points=20, seed=2).problems


@pytest.mark.parametrize("name", ["fold", "remember_many", "purge", "maintain"])
def test_an_interrupt_at_any_line_leaves_the_lab_whole_live_and_on_disk(
    name: str, base: Path
) -> None:
    tally = interruptions.interrupted_everywhere(
        find_operation(interruptions, name), base, limit=3, seed=1
    )
    assert tally.tried
    assert not tally.problems


@pytest.mark.parametrize(
    ("name", "block"),
    [("remember", "__exit__ of WriterLock"), ("re-embedding", "__exit__ of Store")],
)
def test_an_interrupt_as_a_block_closes_leaves_no_lock_behind(
    name: str, block: str, base: Path
) -> None:
    tally = interruptions.interrupted_everywhere(
        find_operation(interruptions, name), base, limit=None, seed=1, only=block
    )
    assert tally.tried
    assert not tally.problems


def test_an_interrupted_restore_leaves_the_backup_in_place_or_what_was_there(base: Path) -> None:
    operation = find_operation(interruptions, "restore")
    tally = interruptions.interrupted_everywhere(
        operation, base, limit=4, seed=1, only="_journal.py"
    )
    assert tally.tried
    assert not tally.problems


@pytest.mark.slow
# An interrupt as a block of a file begins leaves the file to the collector, which Python says.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", [operation.name for operation in interruptions.OPERATIONS])
def test_interrupts_in_every_operation(name: str, base: Path) -> None:
    assert not interruptions.interrupted_everywhere(
        find_operation(interruptions, name), base, limit=200, seed=2
    ).problems


def test_a_signal_at_any_instant_leaves_the_lab_whole_live_and_on_disk(base: Path) -> None:
    tally = interruptions.interrupted_by_signals(
        find_operation(interruptions, "remember_many"), base, times=3, seed=1
    )
    assert not tally.problems


def test_no_damage_of_a_file_goes_unnoticed(tmp_path: Path) -> None:
    settings = damage.make(tmp_path, names=("small",))
    ran = list(damage.run(settings, damage.cases(settings, 5, seed=1), tmp_path))
    assert [item for item in ran if item.was not in ("harmless", "told")] == []


@pytest.mark.slow
def test_damages_of_every_file(tmp_path: Path) -> None:
    settings = damage.make(tmp_path)
    ran = list(damage.run(settings, damage.cases(settings, 300, seed=2), tmp_path))
    assert [item for item in ran if item.was not in ("harmless", "told")] == []


@pytest.mark.parametrize("name", ["remember_many", "purge"])
def test_a_full_disk_is_told_and_loses_nothing(name: str) -> None:
    tally = fulldisk.run(find_operation(fulldisk, name), limits=1, seed=1)
    assert tally.refused
    assert not tally.problems

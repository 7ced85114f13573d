"""What a lab acknowledged survives a power cut; without syncing it does not. ``test_campaigns.py`` has kills.

Short runs of ``python -m tests.campaigns.durability --workload tests.campaigns.lab_durability``.
"""

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


def check(name: str, runs: int, shim: Path) -> None:
    [case] = [case for case in durability.CASES if case.name == name]
    tally = durability.run_case(
        case, runs=runs, seed=5, workload="tests.campaigns.lab_durability", shim=shim
    )
    assert tally.promised, "the children were killed before they wrote anything"
    assert tally.as_it_must_be, (tally.lost, tally.broken)


@pytest.mark.parametrize("runs", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost(runs: int, shim: Path) -> None:
    check("power cut, strict", runs, shim)


@pytest.mark.parametrize("runs", [pytest.param(20, marks=pytest.mark.slow)])
def test_without_syncing_something_is_lost(runs: int, shim: Path) -> None:
    check("control: nothing synced", runs, shim)

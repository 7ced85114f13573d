"""A short form of tests/campaigns/find_secrets.py: how much the gate finds of forms and disguises that it was not shown."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

find_secrets: Any = importlib.import_module("tests.campaigns.find_secrets")
secret_forms: Any = importlib.import_module("tests.campaigns.secret_forms")


def test_forms_are_made_without_the_gate() -> None:
    assert "memlab" not in (Path(secret_forms.__file__)).read_text(encoding="utf-8").replace(
        "of memlab", ""
    )


@pytest.mark.long
def test_nearly_all_are_found_in_nearly_every_disguise() -> None:
    result = secret_forms.cases(seed=7, each=1, half=1)
    outcome = find_secrets.shares(result)
    assert len(outcome["kind"]) >= 60
    everything = [item for some in outcome["kind"].values() for item in some]
    assert sum(everything) / len(everything) >= 0.97
    assert {
        name: some for name, some in outcome["disguise"].items() if sum(some) < 0.9 * len(some)
    } == {}
    # twenty texts of a kind are too few to tell .90 from less; that none is missed altogether, they tell
    assert {
        name: some for name, some in outcome["kind"].items() if sum(some) < 0.75 * len(some)
    } == {}


def test_a_leak_is_seen() -> None:
    assert secret_forms.leaks("abcdefghij", "x cdefg y")
    assert not secret_forms.leaks("abcdefghij", "x [REDACTED: token] y")


@pytest.mark.long
def test_nothing_is_redacted_in_the_first_lines_of_a_package() -> None:
    lines = [
        line for _, (_, _, line) in zip(range(3_000), find_secrets.lines_of("polars"), strict=False)
    ]
    assert not [item for item in find_secrets.screen_many(lines) if item.findings]

"""docs/secrets.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from memlab.kernel.privacy import PERSONAL
from memlab.kernel.privacy._kinds import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "secrets.md").read_text(encoding="utf-8")
TOLD = {"password", "secret", "token", "API key", "seed phrase", "private key"}
"""Kinds that are found by telling words, or by more than a pattern."""


def test_every_kind_is_in_the_table_with_an_example() -> None:
    table = PAGE.split("<!-- kinds -->")[1].split("<!-- /kinds -->")[0]
    rows = dict(re.findall(r"^\| ([^|`]+?) \| (`.+) \|$", table, re.MULTILINE))
    assert rows.keys() == {kind.name for kind in KINDS} | TOLD
    for kind in KINDS:
        assert f"`{kind.example}`" in rows[kind.name]


def test_every_setting_is_listed_with_its_kind() -> None:
    for setting, kind in PERSONAL.items():
        assert f"| `{setting}` | {kind} |" in PAGE

"""Tables of the documentation that repeat declarations, between ``<!-- table: name -->`` and ``<!-- end -->``.

``python tests/tables_of_docs.py`` writes them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import memlab
from memlab.io.serving.forms import MemoryAnswer
from memlab.io.serving.tools import TOOLS
from memlab.kernel.policies import SETTINGS, load_pack, pack_names
from memlab.kernel.policies._settings import SettingValue
from memlab.kernel.schema import EDGE, FIELDS, MEMORY, Column
from memlab.subjects.lab import RENAMED
from memlab.subjects.programs.program import OPERATIONS
from memlab.ui.cli import FORMER

DOCS = Path(__file__).parents[1] / "docs"
DESIGNS = ("cascade", "companion", "workbench", "associative", "factgraph")


def rows(head: str, lines: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    names = [name.strip() for name in head.split("|")]
    rule = "|".join("---" for _ in names)
    return "\n".join(
        [
            f"| {' | '.join(names)} |",
            f"|{rule}|",
            *(f"| {' | '.join(map(str, line))} |" for line in lines),
        ]
    )


def values_of(column: Column) -> str:
    """Return the words or the range of a column."""
    if column.words:
        return " ".join(f"`{word}`" for word in column.words) + (
            " or any short word where `open-words`" * column.open
        )
    if column.storage != "num":
        return ""
    high = "" if column.high == float("inf") else f"{column.high:g}"
    unit = "" if column.unit in ("", "share") else f" {column.unit}"
    return f"{column.low:g} to {high}{unit}" if high else f"{column.low:g} or more{unit}"


def default_of(column: Column) -> str:
    """Return the default of a column as a caller would write it."""
    if column.default is None:
        return "`[]`" if column.storage == "list" else "none"
    return f'"{column.default}"' if isinstance(column.default, str) else f"{column.default}"


def type_in(frame: object, name: str) -> str:
    """Return the type of a column, without the words that all times share."""
    text = str(frame.schema[name])  # type: ignore[attr-defined]
    return "Datetime" if text.startswith("Datetime") else text


def fields() -> str:
    frame = memlab.open().memories
    columns = [MEMORY[name] for name in FIELDS]
    lines = [
        (f"`{c.name}`", type_in(frame, c.name), values_of(c), default_of(c), c.doc) for c in columns
    ]
    lines[0] = (*lines[0][:3], "needed", lines[0][4])
    return rows("field | type | values | default | description", lines)


def derived() -> str:
    frame = memlab.open().memories
    own = [column for column in MEMORY.values() if column.name not in FIELDS]
    return rows(
        "column | type | description", [(f"`{c.name}`", type_in(frame, c.name), c.doc) for c in own]
    )


def edges() -> str:
    frame = memlab.open().edges
    lines = [
        (
            f"`{c.name}`",
            type_in(frame, c.name),
            values_of(c),
            default_of(c),
            "yes" if c.given else "no",
            c.doc,
        )
        for c in EDGE.values()
    ]
    return rows("column | type | values | default | may be given | description", lines)


def written(value: SettingValue) -> str:
    """Return the value of a setting as a cell; of a text its words, a line each."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return "<br>".join(value.split())
    return f"{value:g}"


def settings() -> str:
    packs = [load_pack(name) for name in ("memlab", *DESIGNS)]
    lines = []
    for name in SETTINGS:
        default, *others = (written(pack.settings[name]) for pack in packs)
        lines.append(
            (f"`{name}`", default, *("" if other == default else other for other in others))
        )
    return rows(" | ".join(("setting", *(pack.name for pack in packs))), lines)


def other_packs() -> str:
    lines = []
    for name in pack_names():
        if name in ("memlab", *DESIGNS):
            continue
        base = name.removesuffix("-plus") if name.endswith("-plus") else "memlab"
        own, other = load_pack(name).settings, load_pack(base).settings
        differs = [
            f"`{setting}` {written(own[setting]).replace('<br>', ' ')}"
            for setting in SETTINGS
            if own[setting] != other[setting]
        ]
        lines.append((f"`{name}`", f"`{base}`", ", ".join(differs) or "nothing"))
    return rows("pack | as | but for", lines)


def operations() -> str:
    lines = [
        (
            f"`{name}`",
            *(" ".join(f"`{item}`" for item in part) for part in (o.required, o.optional)),
            o.does,
            o.doc,
        )
        for name, o in OPERATIONS.items()
    ]
    return rows("operation | needed | optional | effect | description", lines)


def arguments() -> str:
    lines = []
    for tool in TOOLS:
        for name, field in tool.form.model_fields.items():
            needed = field.is_required()
            default = (
                "needed" if needed else "none" if field.default is None else f"`{field.default}`"
            )
            lines.append((f"`{tool.name}`", f"`{name}`", default, field.description or ""))
    return rows("verb | argument | default | description", lines)


def answers() -> str:
    models = {f"`{tool.name}`": tool.answer for tool in TOOLS} | {"a hit": MemoryAnswer}
    return rows(
        "of | attributes",
        [
            (who, " ".join(f"`{name}`" for name in value.model_fields))
            for who, value in models.items()
        ],
    )


def renamed_attributes() -> str:
    lines = [
        (f"`lab.{old}`", f"`lab.{new if isinstance(new, str) else new[0]}`")
        for old, new in RENAMED.items()
    ]
    return rows("old | new", lines)


def renamed_commands() -> str:
    return rows(
        "old | new", [(f"`memlab {old}`", f"`memlab {FORMER[old]}`") for old in sorted(FORMER)]
    )


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "../CHANGELOG.md": {
        "renamed-attributes": renamed_attributes,
        "renamed-commands": renamed_commands,
    },
    "reference/memories.md": {"fields": fields, "kept": derived, "edges": edges},
    "reference/operations.md": {"operations": operations},
    "reference/serving.md": {"arguments": arguments, "answers": answers},
    "systems.md": {"pack-settings": settings, "other-packs": other_packs},
}


def between(name: str) -> re.Pattern[str]:
    """Return a pattern for what stands between the marks of a table."""
    return re.compile(rf"(?<=<!-- table: {name} -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)


if __name__ == "__main__":
    for path, tables in TABLES.items():
        page = (DOCS / path).read_text(encoding="utf-8")
        for name, build_table in tables.items():
            page = between(name).sub(lambda _, made=build_table: made() + "\n", page, count=1)
        (DOCS / path).write_text(page, encoding="utf-8")

"""What the argument FILE of ``memlab policy`` may be: a pack that comes with memlab, a pack's file, or one policy."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.errors import InputError, PolicyError, UnknownName
from memlab.kernel.language import Policy, compile_policy, read_pack, slot_of
from memlab.kernel.policies import SLOTS, Pack, load_pack, slot_named

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PolicyFile", "errors_of", "given_values", "opened", "read_frame"]

_SPACE = r"(?:\s|;[^\n]*+)*+"
_IS_PACK = re.compile(rf"{_SPACE}(?:\(require memlab\.dialect \*\){_SPACE})?\({_SPACE}pack\b")


@dataclass(frozen=True)
class PolicyFile:
    """The policies of a file by slot; ``pack`` is None when it holds a single policy."""

    name: str
    policies: Mapping[str, Policy]
    pack: Pack | None

    def one(self, slot: str | None) -> Policy:
        """The policy of a slot, which may be left out when there is only one."""
        if slot is None:
            if len(self.policies) == 1:
                return next(iter(self.policies.values()))
            raise InputError(f"{self.name} holds several policies: say which with --slot ({', '.join(self.policies)}).")
        if slot not in self.policies:
            raise UnknownName("policy slot", slot, self.policies)
        return self.policies[slot]


def opened(spec: str, slot: str | None = None) -> PolicyFile:
    """The pack or the policy that ``spec`` names; ``slot`` says what a single policy is for, else its ``defpolicy``."""
    path = Path(spec).expanduser()
    if not path.is_file():
        pack = load_pack(spec)
        return PolicyFile(pack.name, pack.policies, pack)
    source = _text(path)
    if _IS_PACK.match(source):
        pack = load_pack(path) if spec.endswith(".hy") else load_pack(source)
        return PolicyFile(pack.name, pack.policies, pack)
    name = slot or slot_of(source, file=spec)
    if not name:
        raise InputError(f"{spec} does not name the slot of its policy: say it with --slot ({', '.join(SLOTS)}).")
    policy = compile_policy(source, slot_named(name).signature, name=name, file=spec)
    return PolicyFile(name, {name: policy}, None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}.") from None


def errors_of(spec: str, first: PolicyError) -> list[PolicyError]:
    """Every error of a pack's policies, each policy on its own; the first alone where they cannot be taken apart."""
    path = Path(spec).expanduser()
    if not path.is_file():
        return [first]
    try:
        pack = read_pack(_text(path), file=spec)
    except PolicyError:
        return [first]
    found: list[PolicyError] = []
    for slot, form in pack.policies.items():
        if slot not in SLOTS:
            continue
        try:
            compile_policy(form, SLOTS[slot].signature, name=f"{pack.name}/{slot}", helpers=pack.helpers, file=spec)
        except PolicyError as error:
            found.append(error)
    # an unknown slot, or a setting
    known = {(error.line, error.column, error.message) for error in found}
    return found if (first.line, first.column, first.message) in known else [first, *found]


def read_frame(path: Path) -> pl.DataFrame:
    """A table from a .parquet, .csv or .jsonl file."""
    import polars as pl

    from memlab.io.formats import UNREADABLE

    readers: dict[str, Any] = {
        ".parquet": pl.read_parquet,
        ".csv": pl.read_csv,
        ".jsonl": pl.read_ndjson,
        ".ndjson": pl.read_ndjson,
    }
    if path.suffix not in readers:
        raise InputError(f"{path} is no table: a frame is a .parquet, .csv or .jsonl file.")
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    try:
        frame: pl.DataFrame = readers[path.suffix](path)
    except UNREADABLE as error:
        raise InputError(f"{path} cannot be read as {path.suffix}: {str(error).splitlines()[0]}") from None
    return frame


def given_values(words: tuple[str, ...]) -> dict[str, object]:
    """Values from JSON objects and from ``name=value`` pairs, the last one for a name winning."""
    values: dict[str, object] = {}
    for word in words:
        if word.lstrip().startswith("{"):
            try:
                values |= json.loads(word)
            except json.JSONDecodeError as error:
                raise InputError(f"--values is not JSON: {error.msg} at character {error.pos + 1} of {word}") from None
            continue
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise InputError(f'{word} is no value: write name=value, or a JSON object such as {{"similarity": 0.8}}.')
        values[name.strip()] = _value(text.strip())
    return values


def _value(text: str) -> object:
    """JSON where it is JSON, else the text itself: ``kind=fact`` needs no quotation marks."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text

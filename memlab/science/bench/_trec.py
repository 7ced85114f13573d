"""Runs and judgements as the files that TREC's tools read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from memlab.errors import DatasetError

__all__ = ["write_trec"]


class _Run(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def rankings(self) -> Sequence[Sequence[str]]: ...


class _Found(Protocol):
    @property
    def questions(self) -> int: ...
    @property
    def queries(self) -> Sequence[str]: ...
    @property
    def evidence(self) -> Mapping[str, Sequence[frozenset[str]]]: ...
    @property
    def systems(self) -> Sequence[_Run]: ...


def write_trec(found: _Found, folder: Path) -> tuple[Path, ...]:
    """One ``.run`` a pack and one ``.qrels`` a set of labels; the paths."""
    files = {f"{_word(run.name)}.run": _run(run, found.queries) for run in found.systems}
    for name, evidence in found.evidence.items():
        files[f"{_word(name)}.qrels"] = _qrels(evidence[: found.questions], found.queries)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, lines in files.items():
            (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise DatasetError(f"{folder} cannot be written: {error.strerror}. Name another folder.") from error
    return tuple(folder / name for name in files)


def _run(run: _Run, queries: Sequence[str]) -> list[str]:
    lines = []
    for query, ranking in zip(queries, run.rankings, strict=True):
        once = list(dict.fromkeys(ranking))
        # tools sort by score, so it falls with the rank
        lines += [
            f"{_word(query)} Q0 {_word(item)} {rank} {len(once) + 1 - rank} {_word(run.name)}"
            for rank, item in enumerate(once, 1)
        ]
    return lines


def _qrels(evidence: Sequence[frozenset[str]], queries: Sequence[str]) -> list[str]:
    return [
        f"{_word(query)} 0 {_word(item)} 1"
        for query, items in zip(queries, evidence, strict=False)
        for item in sorted(items)
    ]


_SPACE = re.compile(r"[\s/\\]+")


def _word(name: str) -> str:
    """A name without white space or slashes, which a line's fields and a file's name cannot hold."""
    return _SPACE.sub("_", name.strip()) or "_"

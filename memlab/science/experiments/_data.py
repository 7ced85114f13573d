"""The data of an experiment: their digests, and their questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors

from memlab.errors import DatasetError, InputError
from memlab.io.ingest import (
    LabelledConversation,
    digest,
    read_beam,
    read_lmeb,
    read_locomo,
    read_longmemeval,
)
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.disk import open_regular
from memlab.kernel.embedding import EmbedderSpec
from memlab.kernel.policies import Pack
from memlab.kernel.slates import Slates
from memlab.science.bench.parts import (
    QUESTION_DELAY,
    PackTask,
    collect_questions,
    digest_lab,
    open_again,
    open_filled,
    open_folder,
    own_plan,
    own_questions,
)
from memlab.science.cells import hash_inputs
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab

_HEAD = 1 << 16
"""Bytes of a file in which its format shows: the first question of LongMemEval ends within them."""


def name_data(data: object) -> dict[str, Any]:
    """Return data by name: a mapping unchanged, and paths by their stems.

    Raises InputError for other data without a name, and for two paths with one stem.
    """
    # Only a path says its name; a list may also be the conversations of one data set.
    several = [data] if isinstance(data, str | Path) else data
    if isinstance(several, list | tuple) and all(isinstance(path, str | Path) for path in several):
        by_name: Any = {Path(path).stem: path for path in several}
        if len(by_name) < len(several):
            raise InputError(
                "Two paths of data have the same name. Pass a mapping of names to paths."
            )
    else:
        by_name = data
    if not isinstance(by_name, Mapping) or not by_name:
        raise InputError(
            'An experiment needs data: paths, or a mapping of names to data, such as {"locomo": "locomo10.json"}; not '
            f"{describe_value(data)}."
        )
    return {
        str(name): Path(value).expanduser() if isinstance(value, str) else value
        for name, value in by_name.items()
    }


def digest_data(value: Any, embedder: EmbedderSpec = None) -> str:
    """Return the SHA-256 of the contents of data, such as a file, a lab or a frame."""
    # Contents alone count, so that the digest is the same after a move and on another machine.
    if isinstance(value, Lab):
        return digest_lab(value)
    if isinstance(value, Path):
        if not _is_lab(value):
            return digest(value)
        with open_lab(value, read_only=True, embedder=embedder) as lab:
            return digest_lab(lab)
    if isinstance(value, Slates):
        tables = value.decisions, value.candidates, value.exposures, value.feedback
        value = [table.collect() for table in tables]
    if isinstance(value, pl.DataFrame):
        value = [value]
    listed = value if isinstance(value, list | tuple) else ()
    if listed and all(isinstance(item, LabelledConversation) for item in listed):
        return hash_inputs([asdict(item) for item in listed])
    try:
        if listed and all(isinstance(item, pl.DataFrame) for item in listed):
            # JSON has no bytes, and writes NaN and infinity as null.
            texts = selectors.float().cast(pl.String), selectors.binary().bin.encode("hex")
            return hash_inputs(
                [[str(item.schema), item.with_columns(*texts).write_ndjson()] for item in listed]
            )
        return hash_inputs(json.loads(json.dumps(value, allow_nan=False)))
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise InputError(
            "The data of an experiment are a path, a lab, a log, a frame, labelled conversations or JSON values; not "
            f"{describe_value(value)}."
        ) from None


def plan_data(name: str, value: Any, embedder: EmbedderSpec, pack: Pack) -> PackTask:
    """Return the questions of data, and a function that opens a lab to answer them.

    Raises DatasetError or InputError for data without labelled questions.
    """
    if isinstance(value, Lab):
        return PackTask(_plan_lab(name, value), partial(open_again, value), pack)
    if isinstance(value, Path) and _is_lab(value):
        with open_lab(value, read_only=True, embedder=embedder) as lab:
            return PackTask(_plan_lab(name, lab), partial(open_folder, value, embedder), pack)
    if isinstance(value, Path):
        value = _read_labelled(value)
    if not isinstance(value, list | tuple) or not all(
        isinstance(item, LabelledConversation) for item in value
    ):
        raise InputError(
            f'The data "{name}" have no labelled questions. Pass labelled conversations or a lab with questions, or '
            "measure= with a function that reads these data."
        )
    sources = tuple(item.conversation for item in value)
    plan = collect_questions(value, {})
    # Questions without an answer are not part of any figure.
    plan = replace(plan, questions=plan.questions[: plan.main])
    return PackTask(plan, partial(open_filled, sources, embedder), pack)


def _plan_lab(name: str, lab: Lab) -> Any:
    """Return the plan of a lab's accepted questions; their default time is a day after the last memory."""
    if not len(lab.questions):
        raise DatasetError(
            f'The lab "{name}" has no questions. Add some with lab.questions.add(...), or accept '
            "lab.questions.propose()."
        )
    memories = lab.memories
    plan = own_plan(memories, own_questions(lab.questions))
    # A question without a time would be asked now, and its answers would change from day to day.
    newest: Any = memories["created"].max()
    questions = tuple(
        replace(question, at=question.at or newest + QUESTION_DELAY) for question in plan.questions
    )
    return replace(plan, questions=questions)


def _is_lab(path: Path) -> bool:
    """Return whether a path is the folder of a lab."""
    return (path / "journal.db").is_file()


def _read_labelled(path: Path) -> tuple[LabelledConversation, ...]:
    """Read labelled conversations, in a format recognised from the path."""
    if path.is_dir():
        return read_lmeb(path) if any(path.rglob("queries.jsonl")) else read_beam(path)
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}.") from error
    return read_longmemeval(path) if b'"haystack_' in head else read_locomo(path)

"""Other labels for questions of LoCoMo: what a later reading found to be the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from memlab.errors import DatasetError
from memlab.io.formats.benchmarks.files import Place, loaded, named
from memlab.io.formats.benchmarks.labels import LabelledConversation, Question
from memlab.kernel.base.arguments import Taken, checked

__all__ = ["correct_evidence"]


@checked
def correct_evidence(
    conversations: Annotated[Sequence[LabelledConversation], Taken("what memlab.ingest.read_locomo(path) returns")],
    path: str | Path,
) -> tuple[LabelledConversation, ...]:
    """The conversations, with the evidence that a file of corrections gives in place of what was cited.

    The file is a list of objects with ``sample_id``, ``qa`` (the question's place, from 0), ``question`` and
    ``correct`` (ids of turns). Corrections of conversations that are not given are passed over. Raises ``DatasetError``
    for one that names another question than stands there, or a turn that does not exist.

    >>> from memlab.io.ingest import correct_evidence, read_locomo
    >>> correct_evidence(read_locomo("locomo10.json"), "corrections.json")             # doctest: +SKIP
    """
    path = Path(path).expanduser()
    place = Place(path)
    held = {labelled.conversation.name: index for index, labelled in enumerate(conversations)}
    questions = [list(labelled.questions) for labelled in conversations]
    known = [{turn.ref for turn in labelled.conversation.turns} for labelled in conversations]
    applied = 0
    for index, value in enumerate(place.items(loaded(path, "a file of corrections"), "(itself)", "corrections")):
        field = f"[{index}]"
        item = place.record(value, field)
        at = held.get(place.text(item, "sample_id", field))
        if at is None:
            continue
        number = _number(item, field, questions[at], place)
        questions[at][number] = replace(questions[at][number], evidence=_refs(item, field, known[at], place))
        applied += 1
    if not applied:
        raise DatasetError(f"{path} corrects no question of {', '.join(held) or 'no conversation'}.")
    return tuple(
        replace(labelled, questions=tuple(corrected))
        for labelled, corrected in zip(conversations, questions, strict=True)
    )


def _number(item: dict[str, Any], field: str, questions: Sequence[Question], place: Place) -> int:
    number = item.get("qa")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(questions):
        raise place.error(
            f"{field}.qa", f"expected the place of a question, 0-{len(questions) - 1}, found {named(number)}."
        )
    text = place.text(item, "question", field)
    if questions[number].text != text:
        raise place.error(
            f"{field}.question", f'"{text[:60]}" is not question {number}, "{questions[number].text[:60]}".'
        )
    return number


def _refs(item: dict[str, Any], field: str, known: set[str], place: Place) -> tuple[str, ...]:
    refs = place.items(item.get("correct"), f"{field}.correct", "turn ids")
    for ref in refs:
        if not isinstance(ref, str) or ref not in known:
            raise place.error(f"{field}.correct", f"the conversation has no turn {named(ref)}.")
    return tuple(dict.fromkeys(refs))

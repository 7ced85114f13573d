"""A lab with a past: the bundled conversation, its questions, and ten days of recalls by an assistant."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from memlab.errors import InputError
from memlab.io import ingest
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.clock import ManualClock, system_clock
from memlab.science import examples
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab

_AGENT = "quill"
"""The assistant of the conversation."""
_SHOWN = 5
"""Memories that the assistant asks for, so that some answers are out of reach."""
_UNRATED = 4
"""Each fourth recall has no feedback, as in real logs."""
_CORRECTED = (
    "My cousin Salma is staying for two weeks",
    "My cousin Salma is staying for three weeks from Saturday, she starts a pastry course.",
)
"""The beginning of a memory, and the text that supersedes it halfway through the ten days."""


class _SampleClock(ManualClock):
    """A clock that is set by hand until ``start``, and runs from there."""

    _began: int | None = None

    def start(self) -> None:
        """Start the clock of the sample lab."""
        self._began = system_clock()

    def __call__(self) -> int:
        return super().__call__() + (0 if self._began is None else system_clock() - self._began)


@checked
def sample_lab(path: str | Path | None = None) -> Lab:
    """Build a lab from the bundled conversation, with labelled questions and a log.

    An assistant asks the 36 questions of the conversation, and three without an answer, over ten
    days. Its feedback follows the labels. The lab's clock runs on from the last recall.

    Parameters
    ----------
    path
        The new directory of the lab; None for a lab in memory.

    Returns
    -------
    Lab
        The lab, which answers every call as any other.

    Raises
    ------
    InputError
        If the lab in the directory has memories.

    Examples
    --------
    >>> from memlab.ui.demo import sample_lab
    >>> lab = sample_lab()
    >>> len(lab), len(lab.questions), len(lab.agents.recalls())
    (172, 36, 41)
    """
    (labelled,) = ingest.read_locomo(examples.CONVERSATION)
    clock = _SampleClock(labelled.conversation.end)
    lab = open_lab(path, clock=clock)
    if len(lab):
        lab.close()
        raise InputError(f"The lab in {path} has memories already. Name a new directory.")
    lab.load(examples.CONVERSATION)
    lab.questions.add([labelled])
    project = labelled.conversation.name
    refs = dict(lab.memories.select("ref", "id").iter_rows())
    # Four questions a day: in the morning, at noon, and two in the afternoon.
    for number, question in enumerate(labelled.questions, 1):
        clock.advance(hours=12 if number % 4 == 1 else 4 if number % 4 == 2 else 1)
        if number == len(labelled.questions) // 2:
            begins, corrected = _CORRECTED
            (old,) = lab.memories.filter(pl.col("text").str.starts_with(begins))["id"]
            lab.edit(old, text=corrected)
        hits = lab.recall(
            question.text,
            limit=_SHOWN,
            project=project,
            viewer=_AGENT,
            session=f"day-{(number + 3) // 4}",
            explore=True,
        )
        if not question.answerable:
            lab.agents.verify(hits, [])
        elif number % _UNRATED:
            wanted = {refs[ref] for ref in question.evidence}
            right = [hit for hit in hits if hit.id in wanted]
            for hit in right or hits[:1]:
                clock.advance(minutes=1)
                lab.feedback(hit, "success" if right else "fail")
    for task in ("plan Mungo's stay during the Porto trip", "what should breakfast be for Noor?"):
        clock.advance(hours=2)
        lab.context(task, project=project, budget=300)
    clock.advance(hours=12)
    clock.start()
    return lab

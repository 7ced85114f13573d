"""The number of the vocabulary in which packs and policies are written, and what an event says of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memlab.errors import InputError, NewerLab, PolicyError, UnknownName
from memlab.kernel.version import __version__

__all__ = ["POLICY_FORMAT", "VOCABULARY", "naming_vocabulary"]

POLICY_FORMAT = 3
"""Raised whenever a slot, an input of one, a setting, a feature or a form is added, or means something else.

1: that of every event without a number, which memlab wrote before there was one. 2: the slot ``select``. 3: its inputs
``tokens`` and ``budget``.
"""

VOCABULARY = "vocabulary"
"""The field of an event with the text of a pack or a policy that holds the ``POLICY_FORMAT`` of its writer."""


@contextmanager
def naming_vocabulary(where: str, number: object) -> Iterator[None]:
    """Raise NewerLab for a text in a later vocabulary, in place of an error of the text.

    ``where`` is what errors call the text, ``number`` that of its vocabulary.

    A text in a later vocabulary that uses none of its new words is read like any other.
    """
    try:
        yield
    except (PolicyError, InputError) as error:
        if not isinstance(number, int) or number <= POLICY_FORMAT:
            raise
        raise NewerLab(
            f"{where} is written in the vocabulary of policies {number}, and memlab "
            f"{__version__} knows vocabularies up to {POLICY_FORMAT}. {_first_line(error)} Upgrade memlab."
        ) from error


def _first_line(error: PolicyError | InputError) -> str:
    """What is unknown, without the place in the text: the name is right, and its reader is too old."""
    said = error.message if isinstance(error, PolicyError) else str(error)
    if isinstance(error, UnknownName):
        return f'There is no {error.what} "{error.name}" here.'
    return said.split(" Did you mean ")[0].split(" Known: ")[0].splitlines()[0]

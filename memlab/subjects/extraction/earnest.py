"""Whether an answer is in earnest: one to "If you could ..." says nothing about its speaker."""

from __future__ import annotations

from memlab.kernel.english import holds, padded, phrases, words_of

__all__ = ["is_hypothetical"]

_LONGEST_QUESTION = 600


def is_hypothetical(question: str) -> bool:
    """Return whether a message asks what would be, and not what is.

    Parameters
    ----------
    question
        The message just before an answer.

    Returns
    -------
    bool
        Whether the message asks, and supposes something.

    Examples
    --------
    >>> [is_hypothetical(one) for one in ("If you could fly, where to?", "Where do you live?")]
    [True, False]
    """
    if "?" not in question and not question.lower().lstrip().startswith(_SUPPOSES):
        return False
    return holds(padded(words_of(question[-_LONGEST_QUESTION:])), phrases("answers", "hypothetical"))


_SUPPOSES = ("if you", "what if", "imagine", "pretend", "suppose", "would you rather")

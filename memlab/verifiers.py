"""Verifiers: who looks at what a recall showed and lets each hit pass or not.

A verifier is any callable from ``Hits`` to the hits (or ids) that pass, or to a ``Verdict``, which may also name how
they are related: a language model, a person, a rule. ``lab.verify(hits, verifier)`` carries its verdict out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from memlab.arguments import checked
from memlab.recall import Hit, Hits

if TYPE_CHECKING:
    from memlab.subjects.results import Memory

__all__ = ["Verdict", "Verifier", "overlap"]


@dataclass(frozen=True)
class Verdict:
    """The hits, or their ids, that pass; ``rejected`` those that do not, without it all others that were shown.

    ``relations`` says what joins two that pass, from the first id of a pair to the second: ``{(3, 7): "supersedes"}``.
    """

    accepted: Iterable[Memory | Hit | int]
    rejected: Iterable[Memory | Hit | int] | None = None
    relations: Mapping[tuple[int, int], str] = field(default_factory=dict)


Verifier = Callable[[Hits], "Verdict | Iterable[Memory | Hit | int]"]


@checked
def overlap(hits: Hits) -> Verdict:
    """A verifier without a model: a hit passes if it holds enough of what the question asks for.

    Enough is a share ``verify-coverage`` (a setting) of the question's words, each counted by how rare it is among the
    memories that could have been found (the feature ``coverage``); stems count, stop words do not. A hit that was
    called by one of its triggers passes too. It is strict with paraphrases: what shares no word with the question is
    rejected, however near it is. It reads the slate alone, so it costs next to nothing and its verdicts can be had
    again from a log.

    >>> import memlab
    >>> with memlab.open() as lab:
    ...     _ = lab.remember_many(["The user prefers tabs", "Deploys go out on Tuesdays"])
    ...     [hit.text for hit in overlap(lab.recall("tabs or spaces?")).accepted]
    ['The user prefers tabs']
    """
    slate = hits.slate
    passes = (slate.numbers["coverage"] >= hits.pack.number("verify-coverage")) | (slate.numbers["triggered"] > 0)
    passing = set(slate.ids[np.flatnonzero(passes)].tolist())
    return Verdict([hit for hit in hits if hit.id in passing])

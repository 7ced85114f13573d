"""Verifiers: who looks at what a recall showed and lets each hit pass or not.

A verifier is any callable from ``Hits`` to the hits (or ids) that pass, or to a ``Verdict``, which may also name how
they are related: a language model, a person, a rule. ``lab.agents.verify(hits, verifier)`` carries its verdict out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from memlab.kernel.base.arguments import checked
from memlab.kernel.recall import Hit, Hits
from memlab.kernel.verbs.results import Memory
from memlab.subjects.reading.claims import claim, conflicts, updates

__all__ = ["Verdict", "Verifier", "local", "overlap"]

_CLOSE = 0.5
"""Closeness from which ``local`` lets a hit pass that shares few words. Of the evidence that recalls of 300 LoCoMo
questions showed, .93 passes with it and .90 without (.82 and .77 under the default pack), and .12 and .13 (.15 and .16)
of what passes is evidence; where evidence was shown, nothing passes at .01 of the questions and .04 (.02 and .04).
"""

_COMPARED = 10
"""The best hits that pass of which each two are compared: 45 pairs of short texts take some milliseconds."""


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
    ...     _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
    ...     [hit.text for hit in overlap(lab.recall("tabs or spaces?")).accepted]
    ['The user prefers tabs']
    """
    slate = hits.slate
    passes = (slate.numbers["coverage"] >= hits.pack.number("verify-coverage")) | (
        slate.numbers["triggered"] > 0
    )
    passing = set(slate.ids[np.flatnonzero(passes)].tolist())
    return Verdict([hit for hit in hits if hit.id in passing])


@checked
def local(hits: Hits) -> Verdict:
    """The verifier of turns unless they are given another: ``overlap``, paraphrases, and relations by rules.

    A hit passes that ``overlap`` lets pass, and one whose closeness to the question is at least a half. Of two that
    pass, the later ``contradicts`` the earlier where short statements exclude one another, and ``updates`` it where it
    says that something changed (plain English; in other languages nothing is named). Neither retires a memory. It
    reads the slate and the texts, asks no model, and takes some milliseconds.

    >>> import memlab
    >>> with memlab.open() as lab:
    ...     _ = lab.remember(["The user speaks French fluently", "The user speaks no French"])
    ...     local(lab.recall("Does the user speak French?")).relations
    {(2, 1): 'contradicts'}
    """
    slate = hits.slate
    shared = {hit.id for hit in overlap(hits).accepted}  # type: ignore[union-attr]
    shared.update(slate.ids[np.flatnonzero(slate.numbers["closeness"] >= _CLOSE)].tolist())
    passed = [hit for hit in hits if hit.id in shared]
    age = dict(zip(slate.ids.tolist(), slate.numbers["age-days"].tolist(), strict=True))
    compared = sorted(passed[:_COMPARED], key=lambda hit: (age[hit.id], -hit.id))
    claims = [claim(hit.text) for hit in compared]
    relations: dict[tuple[int, int], str] = {}
    for place, (new, mine) in enumerate(zip(compared, claims, strict=True)):
        for old, other in zip(compared[place + 1 :], claims[place + 1 :], strict=True):
            if updates(mine, other):
                relations[new.id, old.id] = "updates"
            elif conflicts(mine, other):
                relations[new.id, old.id] = "contradicts"
    return Verdict(passed, relations=relations)

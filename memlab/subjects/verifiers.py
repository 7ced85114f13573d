"""Verifiers: functions that accept or reject the hits of a recall.

A verifier is a callable from ``Hits`` to the accepted hits (or ids), or to a ``Verdict``, which
may also relate them. It may be a language model, a person or a rule.
``lab.agents.verify(hits, verifier)`` applies its verdict.
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
"""Minimum closeness at which ``local`` accepts a hit that shares few words with the query.

Measured on recalls of 300 LoCoMo questions; figures in brackets are those of the default pack. Of
the evidence among the hits, .93 is accepted with this rule and .90 without (.82 and .77). Of the
accepted hits, .12 and .13 are evidence (.15 and .16). Of the questions with evidence among the
hits, .01 and .04 have no accepted hit (.02 and .04).
"""

_COMPARED = 10
"""Number of accepted hits that are compared: 45 pairs of short texts take milliseconds."""


@dataclass(frozen=True)
class Verdict:
    """A verifier's decision on the hits of a recall.

    Attributes
    ----------
    accepted
        The accepted hits, or their ids.
    rejected
        The rejected hits, or their ids. Default: all other hits.
    relations
        Relations between accepted memories, from the first id of a pair to the second:
        ``{(3, 7): "supersedes"}``.

    Examples
    --------
    >>> Verdict([3, 7], relations={(3, 7): "supersedes"}).accepted
    [3, 7]
    """

    accepted: Iterable[Memory | Hit | int]
    rejected: Iterable[Memory | Hit | int] | None = None
    relations: Mapping[tuple[int, int], str] = field(default_factory=dict)


Verifier = Callable[[Hits], "Verdict | Iterable[Memory | Hit | int]"]
"""A callable from the hits of a recall to the accepted ones or a `Verdict`."""


@checked
def overlap(hits: Hits) -> Verdict:
    """Accept the hits that contain a minimum share of the query's words.

    The setting ``verify-coverage`` is the share of the query's words that a hit must contain. Each
    word is weighted by its rarity among the candidates (the feature ``coverage``). Stems count,
    stop words do not. A hit that one of its triggers retrieved is accepted too.

    Parameters
    ----------
    hits
        The hits of a recall.

    Returns
    -------
    Verdict
        The accepted hits.

    Notes
    -----
    Paraphrases that share no word with the query are rejected. The verifier reads the slate alone,
    so it is fast and its verdicts can be repeated from a log.

    Examples
    --------
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
    """Accept hits by shared words or similarity, and infer relations by rules.

    This is the default verifier of turns. It accepts the hits that ``overlap`` accepts, and hits
    with a closeness to the query of at least 0.5. Of two accepted hits, the later ``contradicts``
    the earlier if short statements exclude each other, and ``updates`` it if it reports a change.
    Relations are found in plain English only, and no memory changes its status.

    Parameters
    ----------
    hits
        The hits of a recall.

    Returns
    -------
    Verdict
        The accepted hits and their relations.

    Notes
    -----
    The verifier reads the slate and the texts, uses no model, and takes some milliseconds.

    Examples
    --------
    >>> import memlab
    >>> with memlab.open() as lab:
    ...     _ = lab.remember(["The user speaks French fluently", "The user speaks no French"])
    ...     local(lab.recall("Does the user speak French?")).relations
    {(2, 1): 'contradicts'}
    """
    slate = hits.slate
    accepted = {hit.id for hit in overlap(hits).accepted}  # type: ignore[union-attr]
    accepted.update(slate.ids[np.flatnonzero(slate.numbers["closeness"] >= _CLOSE)].tolist())
    accepted_hits = [hit for hit in hits if hit.id in accepted]
    age = dict(zip(slate.ids.tolist(), slate.numbers["age-days"].tolist(), strict=True))
    compared = sorted(accepted_hits[:_COMPARED], key=lambda hit: (age[hit.id], -hit.id))
    claims = [claim(hit.text) for hit in compared]
    relations: dict[tuple[int, int], str] = {}
    for index, (new, new_claim) in enumerate(zip(compared, claims, strict=True)):
        for old, old_claim in zip(compared[index + 1 :], claims[index + 1 :], strict=True):
            if updates(new_claim, old_claim):
                relations[new.id, old.id] = "updates"
            elif conflicts(new_claim, old_claim):
                relations[new.id, old.id] = "contradicts"
    return Verdict(accepted_hits, relations=relations)

"""Whether a log's features are those that a policy would have read.

A feature that depends on settings, slots or the embedder was logged under a fingerprint. A policy may be scored again
on the logged pool only where each feature that it reads has, in every recall, the fingerprint that the policy's own
pack gives it. A log without fingerprints (anybody's frame) is taken at its word, and the evaluation says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from memlab.errors import InputError
from memlab.kernel.embedding import load_embedder
from memlab.kernel.policies import FEATURES, logged_owner
from memlab.kernel.slates import THINNED
from memlab.science.evaluation._log import RESERVED
from memlab.science.evaluation._rankers import Ranker

__all__ = ["Fingerprints", "read_fingerprints"]


@dataclass(frozen=True)
class Fingerprints:
    """``logged`` has one mapping of feature to fingerprint for each that occurs; ``embedder`` is the one that a policy
    would meet.
    """

    logged: tuple[Mapping[str, str], ...]
    embedder: str | None

    @property
    def thinned(self) -> bool:
        """Whether some recalls have no features any more."""
        return any(THINNED in given for given in self.logged)

    @property
    def any(self) -> bool:
        return any(self.logged)

    def objections(self, ranker: Ranker, schema: pl.Schema) -> list[str]:
        """Why the logged pool cannot be scored again by this ranker; nothing if it can."""
        thinned = sorted({given[THINNED] for given in self.logged if THINNED in given})
        lost = [name for name in ranker.reads if name not in RESERVED]
        if thinned and lost:
            return [
                f"it reads {', '.join(lost[:3])}{' and more' * (len(lost) > 3)}, which lab.upkeep.thin took from the "
                f"oldest recalls on {thinned[-1]}"
            ]
        spelled = {name.replace("_", "-") for name in schema.names()}
        found = [f"it reads {name}, which the log does not hold" for name in ranker.reads if _bare(name) not in spelled]
        if found or ranker.policy is None or not self.any:
            return found
        embedder = self.embedder or load_embedder().fingerprint
        wanted = ranker.pack.fingerprints(embedder) if ranker.pack is not None else {}
        for name in ranker.reads:
            held = {given.get(name) for given in self.logged}
            if name not in FEATURES:
                owners = sorted({owner for value in held if (owner := logged_owner(value)) is not None})
                if owners:
                    found.append(f"it reads {name}, a feature of the extension {owners[-1]}, which is not registered")
                continue
            if None in held:
                unread = "under a pack that does not read it, or " if FEATURES[name].on_demand else ""
                found.append(f"some recalls were logged {unread}by an older schema, without a fingerprint of {name}")
            elif len(held) > 1:
                found.append(f"it reads {name}, which means different things in different recalls ({_short(held)})")
            elif name in wanted and held != {wanted[name]}:
                depends = f", which depends on {', '.join(FEATURES[name].depends)}" if FEATURES[name].depends else ""
                found.append(
                    f"it reads {name}{depends}: logged with fingerprint {_short(held)}, where this policy would "
                    f"have {wanted[name]}"
                )
        return found


def read_fingerprints(decisions: pl.DataFrame, lab_embedder: str | None) -> Fingerprints:
    """Those of a table of decisions. ``lab_embedder`` is the fingerprint of the lab's embedder, if there is a lab; the
    log's own counts otherwise, where it is known, and then the one that memlab ships.
    """
    if "fingerprints" not in decisions.columns:
        return Fingerprints(({},), lab_embedder)
    logged = []
    for text in decisions["fingerprints"].unique(maintain_order=True).to_list():
        try:
            read = json.loads(text) if text else {}
        except json.JSONDecodeError as error:
            raise InputError(f"A fingerprints of decisions is no JSON object: {error}.") from None
        if not isinstance(read, dict):
            raise InputError(f"A fingerprints of decisions is no JSON object but {type(read).__name__}.")
        logged.append(read)
    own = {given["embedder"] for given in logged if "embedder" in given}
    return Fingerprints(tuple(logged), lab_embedder or (own.pop() if len(own) == 1 else None))


def _bare(name: str) -> str:
    return name.replace("_", "-")


def _short(held: set[str | None]) -> str:
    return ", ".join(sorted(str(value) for value in held))

"""The fields of events that hold content hashes which memlab computed, not words that anybody gave.

A hash is 64 hexadecimal digits, as random as a credential: of 300,000 random ones 36 look like a token, so that about
one pack in 2,000 could not be used. Such a field is not screened for secrets where it holds a hash; whatever else it
holds is screened like any other string.
"""

from __future__ import annotations

from types import MappingProxyType

__all__ = ["HASH_FIELDS"]

_POLICY = (("hash",), ("source",), ("live",))

HASH_FIELDS = MappingProxyType(
    {
        "calibrate": (("policy",),),
        "challenge": (("hash",), ("sources",)),
        "cluster": (("fingerprint",),),
        "consolidate": (("pack",),),
        "embedder": (("fingerprint",),),
        "feedback": (("pack",), ("policy",)),
        "import": (
            ("registers", "clusters", "fingerprint"),
            ("registers", "clusters", "own", "*", "fingerprint"),
            ("registers", "gaps", "embedder"),
        ),
        "install": _POLICY,
        "maintain": (("pack",),),
        "pin": _POLICY,
        "recall": (("pack",), ("of",)),
        "refine": (("fingerprint",),),
        "rollback": _POLICY,
        "rollback-pack": (("live",), ("policies", "*")),
        "run": (("hash",),),
        "unpin": (("hash",), ("live",)),
        "use": (("hash",), ("sources",), ("live",), ("policies", "*")),
        "verify": (("gap", "embedder"),),
    }
)
"""The names that lead to each such field, by kind of event; ``*`` is any name, and items of lists have no name."""

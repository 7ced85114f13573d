"""The limits of the dialect. Each one bounds the time that an untrusted text can cost.

Measured on two cores: a policy at every limit at once compiles in under 50 ms; the policies that ship use 1-5% of them.
"""

from __future__ import annotations

__all__ = [
    "MAX_CHARACTERS",
    "MAX_DEPTH",
    "MAX_FORMS",
    "MAX_INTEGER",
    "MAX_NESTING",
    "MAX_NODES",
    "MAX_OPEN",
    "MAX_PACK_CHARACTERS",
    "MAX_PACK_FORMS",
    "MAX_STEPS",
]

MAX_CHARACTERS = 20_000
"""Characters of one policy or helper, checked before anything is read."""

MAX_FORMS = 4_000
"""Atoms and lists in one policy."""

MAX_NESTING = 100
"""Open brackets at any one place."""

MAX_OPEN = 150
"""Calls within calls once helpers are inlined: some five frames of Python each, of the thousand that there are."""

MAX_NODES = 2_000
"""Distinct operations after helpers are inlined."""

MAX_DEPTH = 100
"""Operations between an input and the result; a chain of 3,000 costs Polars 16 s."""

MAX_STEPS = 8_000
"""Forms visited while helpers are inlined: the fuel that ends an exponential expansion."""

MAX_INTEGER = 2**53
"""Beyond it float64 no longer holds every integer."""

MAX_PACK_CHARACTERS = 60_000
MAX_PACK_FORMS = 6_000
"""Of a whole file: ten times the largest that ships, read in under 50 ms."""

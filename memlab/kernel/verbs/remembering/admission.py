"""Whether an utterance is worth remembering, and what became of one that was observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import UnknownName
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.policies import Pack
from memlab.kernel.schema import ROLES
from memlab.kernel.verbs.remembering.detectors import DETECTORS, Utterance
from memlab.kernel.verbs.results import Memory

__all__ = ["Admission", "Observation", "admission"]


@dataclass(frozen=True)
class Admission(Displayed):
    """What the ``admit`` policy makes of an utterance, and why.

    Attributes
    ----------
    text
        The utterance, without secrets.
    role
        Who spoke: "user", "assistant", "system" or "tool".
    worth
        What the policy gives, 0-1.
    admitted
        Whether ``worth`` reaches ``threshold``.
    reasons
        The detectors that fired, such as "tells-preference": the features of the slot ``admit``.
    confidence
        How clear the case is, 0-1, on the policy's own scale: ``worth`` where it is admitted, else 1 less ``worth``.
    threshold
        The pack's setting ``admit-threshold``.
    pack
        The name of the pack that decided.
    pack_hash
        The hash of that pack.
    """

    text: str
    role: str
    worth: float
    admitted: bool
    reasons: tuple[str, ...]
    confidence: float
    threshold: float
    pack: str
    pack_hash: str

    @property
    def frame(self) -> pl.DataFrame:
        """One row: role, worth, threshold, admitted, confidence, reasons, text."""
        return pl.DataFrame(
            {
                "role": [self.role],
                "worth": [self.worth],
                "threshold": [self.threshold],
                "admitted": [self.admitted],
                "confidence": [self.confidence],
                "reasons": [list(self.reasons)],
                "text": [self.text],
            },
            schema_overrides={"reasons": pl.List(pl.String)},
        )

    def __repr__(self) -> str:
        verdict = "admitted" if self.admitted else "not admitted"
        why = ", ".join(self.reasons) or "nothing that a detector knows"
        return printable(f"<Admission {verdict}: worth {self.worth:g} of {self.threshold:g}, {why}>")


@dataclass(frozen=True)
class Observation(Displayed):
    """What became of an utterance; true where it was stored.

    Attributes
    ----------
    admission
        Whether it was worth remembering, and why.
    memory
        The memory that came of it, or that it was merged into; None where it was not stored.
    """

    admission: Admission
    memory: Memory | None

    def __bool__(self) -> bool:
        return self.memory is not None

    def __repr__(self) -> str:
        became = "nothing was stored" if self.memory is None else f"memory {self.memory.id}"
        return printable(f"<Observation {became}; {repr(self.admission)[1:-1]}>")


def admission(
    pack: Pack, nearest: Callable[..., float | None], text: str, shown: Utterance, *, role: str, project: str | None
) -> Admission:
    """Ask the pack's ``admit`` policy. The nearest memory is looked for only if the policy reads it."""
    if role not in ROLES:
        raise UnknownName("role", role, ROLES)
    policy, threshold = pack.policies["admit"], pack.number("admit-threshold")
    given: dict[str, Any] = {
        "role": np.array([role], dtype=object),
        "length": np.array([float(shown.length)]),
        **{name: np.array([name in shown.fired]) for name in DETECTORS},
    }
    if "nearest" in policy.inputs:
        near = nearest(text, project=project)
        given["nearest"] = (np.array([np.nan if near is None else near]), np.array([near is None]))
    values, nulls = policy.arrays({name: given[name] for name in policy.inputs or ("length",)})
    unknown = (nulls is not None and bool(nulls[0])) or bool(np.isnan(values[0]))
    worth = 0.0 if unknown else float(np.clip(values[0], 0.0, 1.0))
    admitted = worth >= threshold
    return Admission(
        text=text,
        role=role,
        worth=worth,
        admitted=admitted,
        reasons=shown.reasons,
        confidence=worth if admitted else 1.0 - worth,
        threshold=threshold,
        pack=pack.name,
        pack_hash=pack.hash,
    )

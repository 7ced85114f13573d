"""Lineage: the packs from which a pack was made, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memlab.errors import InputError
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable

_PARENTS, _CHARACTERS = 100, 100
"""Limits of what an event stores: a search may merge many parents, and a SHA-256 hash has 64 characters."""


@dataclass(frozen=True, repr=False)
class Lineage(Displayed):
    """The origin of a pack that was made from other packs.

    The lineage is no part of the hash of a pack. ``lab.policies.use``, ``install`` and
    ``challenge`` store it, and ``lab.policies.history`` shows it.

    Attributes
    ----------
    parents
        Hashes of the packs that the pack was made from, at most 100.
    operator
        Name of the operator or proposer that made it, at most 100 characters.
    evidence
        Hash of the evidence that the operator read, or "".

    Raises
    ------
    InputError
        If a hash or the operator is no text, too long or no valid Unicode.

    Examples
    --------
    >>> import memlab
    >>> parent = memlab.load_pack("memlab")
    >>> memlab.Lineage((parent.hash,), "crossover").operator
    'crossover'
    """

    parents: tuple[str, ...] = ()
    operator: str = ""
    evidence: str = ""

    def __post_init__(self) -> None:
        parents = self.parents
        if not isinstance(parents, tuple | list) or len(parents) > _PARENTS:
            raise InputError(
                f"The parents of a lineage must be a tuple of at most {_PARENTS} hashes, not {parents!r:.80}."
            )
        for text in (*parents, self.operator, self.evidence):
            if (
                not isinstance(text, str)
                or len(text) > _CHARACTERS
                or text.encode("utf-8", "ignore").decode() != text
            ):
                raise InputError(
                    "Each text of a lineage (parents, operator, evidence) must be valid "
                    f"Unicode of at most {_CHARACTERS} characters, not {text!r:.80}."
                )
        object.__setattr__(self, "parents", tuple(parents))

    def __repr__(self) -> str:
        parents = ", ".join(parent[:12] for parent in self.parents) or "no parent"
        return printable(f"<Lineage: {self.operator or 'made'} of {parents}>")


def read_lineage(body: Mapping[str, Any]) -> Lineage | None:
    """Return the lineage that an event states, or None without a lineage."""
    if not (body.get("operator") or body.get("parents") or body.get("evidence")):
        return None
    return Lineage(tuple(body["parents"]), body["operator"], body["evidence"])

"""Facts and the entities that they are about."""

from __future__ import annotations

from memlab.lab_base import LabBase

__all__ = ["LabFacts"]


class LabFacts(LabBase):
    """``facts``, ``entities``, ``narrative``."""

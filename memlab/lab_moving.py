"""Moving memories out of a lab and into it."""

from __future__ import annotations

from memlab.lab_base import LabBase

__all__ = ["LabMoving"]


class LabMoving(LabBase):
    """``export``, ``mirror``, ``run``."""

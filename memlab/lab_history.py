"""History: what happened, and how it was at a time."""

from __future__ import annotations

from memlab.lab_base import LabBase

__all__ = ["LabHistory"]


class LabHistory(LabBase):
    """``at``, ``log``."""

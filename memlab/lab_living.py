"""Living: what time does to memories."""

from __future__ import annotations

from memlab.lab_base import LabBase

__all__ = ["LabLiving"]


class LabLiving(LabBase):
    """``maintain``, ``forecast``, ``consolidate``."""

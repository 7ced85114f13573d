"""What is wrong in a store of memories, anybody's: ``memlab.audit``."""

from memlab.auditing._audit import FINDINGS, Audit, audit

__all__ = ["FINDINGS", "Audit", "audit"]

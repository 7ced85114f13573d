"""Edits, statuses, and the way back: ``lab.edit``, ``lab.forget``, ``lab.delete``, ``lab.restore``."""

"""Edits, statuses, and the way back: ``lab.edit``, ``lab.forget``, ``lab.forget(how="delete")``, ``lab.restore``."""

"""``lab.consolidation``: which memories one summary replaces, and its text."""

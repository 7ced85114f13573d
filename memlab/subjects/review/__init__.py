"""``lab.upkeep.review``: deprecation, quarantine and release, gaps."""

"""``lab.review``: deprecation, quarantine and release, gaps."""

"""``lab.remember``: screening, limits, default values and the event of new memories."""

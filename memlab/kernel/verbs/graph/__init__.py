"""``lab.graph``: paths and activation."""

"""Modules: the map of a code base, and how well a lab knows each of its modules."""

"""Linking: comparing new memories with old ones, and its background worker."""

"""Linking: new memories are compared with old ones, at once or in the background."""

"""Turns that recall in the background, verification, and relationships with users."""

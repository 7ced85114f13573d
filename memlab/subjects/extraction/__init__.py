"""Extraction: facts and memories proposed from what was said, staged until somebody commits them."""

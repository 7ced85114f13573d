"""Interpretation of English text: sentences, speech acts, names, claims, changes."""

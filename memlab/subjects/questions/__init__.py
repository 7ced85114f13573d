"""Labelled questions of a lab, and the scores of policies on them."""

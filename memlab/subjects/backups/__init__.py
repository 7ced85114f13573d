"""Backups, checks, restoring."""

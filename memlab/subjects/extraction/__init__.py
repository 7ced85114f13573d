"""Extraction of facts and memories from messages; proposals wait until they are committed."""

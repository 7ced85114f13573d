"""Policies over lists, as some originals are written: lifted to columns, or interpreted with fuel."""

"""Turns that recall in the background; relationships of agents with their user."""

"""Upkeep of a lab: status transitions, pruned edges, a schedule and forecasts."""

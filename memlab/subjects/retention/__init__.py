"""``lab.upkeep``: transitions, pruning, schedule, forecast."""

"""``lab.upkeep.index``: reports on and rebuilds the nearest-neighbour index."""

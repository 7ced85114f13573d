"""``lab.upkeep.index``: the nearest-neighbour index."""

"""``lab.upkeep.index``: the search for neighbours."""

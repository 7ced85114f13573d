"""``lab.index``: the search for neighbours."""

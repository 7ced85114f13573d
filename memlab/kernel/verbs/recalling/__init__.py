"""``lab.recall`` and ``lab.graph.similar``: logged queries, and past queries repeated."""

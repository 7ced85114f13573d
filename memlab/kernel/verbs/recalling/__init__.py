"""``lab.recall``, ``lab.graph.similar``: logged questions; questions of the past asked again."""

"""``lab.recall``, ``lab.similar``: logged questions; questions of the past asked again."""

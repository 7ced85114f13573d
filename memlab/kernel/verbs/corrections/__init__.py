"""``lab.edit``, ``lab.forget`` and ``lab.restore``: edits, statuses and their inverse."""

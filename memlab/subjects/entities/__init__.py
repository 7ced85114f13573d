"""``lab.entities``: names that stand for one entity."""

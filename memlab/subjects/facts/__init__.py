"""``lab.facts``, ``lab.facts.entities``: facts as rows and in words; names that stand for one entity."""

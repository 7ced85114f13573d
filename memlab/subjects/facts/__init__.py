"""``lab.facts``: facts as rows and in words."""

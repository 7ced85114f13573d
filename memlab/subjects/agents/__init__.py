"""``lab.agents``: turns, admission, relationships."""

"""``lab.policies``: install, roll back, pin, attribute and watch policies."""

"""``lab.policies``: install, roll back, pin, attribute, watch."""

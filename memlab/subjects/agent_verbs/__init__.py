"""``lab.agents``: the verbs of a lab as one agent, composed of what other folders offer."""

"""``lab.agents``: the verbs of a lab as one agent, composed of other subjects."""

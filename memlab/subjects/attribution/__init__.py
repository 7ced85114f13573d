"""``lab.agents.credits``: rewards of retrieved memories, inferred from answers."""

"""``lab.agents.observe`` and ``admit``: decide whether to store an utterance."""

"""``lab.agents.observe`` and ``admit``: decide whether to remember an utterance."""

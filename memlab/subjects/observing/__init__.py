"""``lab.agents.observe`` and ``admit``: whether an utterance is worth remembering."""

"""``lab.agents.credits``: which of the memories that a recall showed an answer was made of, without a judgement."""

"""``lab.context``: what an agent is to know for a task, within a budget of tokens; and what came of it."""

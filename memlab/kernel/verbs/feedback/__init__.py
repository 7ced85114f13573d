"""``lab.feedback``, ``lab.agents.verify``: reinforcement, coactivation, verdicts, gaps."""

"""``lab.feedback``, ``lab.verify``: reinforcement, coactivation, verdicts, gaps."""

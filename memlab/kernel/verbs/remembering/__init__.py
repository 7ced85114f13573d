"""``lab.remember``, ``lab.agents.observe``: screening, limits, admission and its detectors, the body of the event."""

"""``lab.remember``, ``lab.observe``: screening, limits, admission and its detectors, the body of the event."""

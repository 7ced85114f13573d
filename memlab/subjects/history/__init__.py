"""``lab.at`` and ``lab.log``: labs of the past and of one viewer, and the history of events."""

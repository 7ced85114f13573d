"""``lab.at``, ``lab.viewed_by``, ``lab.log``: labs of the past and of one viewer."""

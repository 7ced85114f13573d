"""``lab.at``, ``lab.at(viewer=...)``, ``lab.log``: labs of the past and of one viewer."""

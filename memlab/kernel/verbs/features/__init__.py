"""``lab.features``: features that a user adds."""

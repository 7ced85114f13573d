"""``lab.guard``: a pack serves a share of recalls, and is rolled back if it is worse."""

"""``lab.clusters``: search, refinement, names, centroids."""

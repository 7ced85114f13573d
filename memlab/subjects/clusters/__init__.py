"""What memories have in common: clusters, summaries in their place, and the structure of a whole memory."""

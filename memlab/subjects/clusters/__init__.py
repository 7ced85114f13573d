"""The subject clusters: clusters, summaries that replace memories, and statistics of a memory graph."""

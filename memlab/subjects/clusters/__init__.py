"""Clusters, summaries that replace their members, and statistics of a memory."""

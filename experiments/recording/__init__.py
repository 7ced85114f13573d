"""The golden record: digests of the content and results of labs of every pack."""

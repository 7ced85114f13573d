"""Which pairs are compared, what ``link`` and ``resolve`` decide, the worker."""

"""``lab.context``: prompt contexts within a token budget, and their metrics."""

"""Random lives of a lab: what they do, how they are interrupted, and what must be the same afterwards."""

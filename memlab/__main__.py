"""``python -m memlab``."""

from memlab.cli import main

main()

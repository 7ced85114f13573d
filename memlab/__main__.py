"""``python -m memlab``."""

from memlab.ui.cli import main

main()

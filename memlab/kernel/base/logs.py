"""The logger ``memlab``, which is silent until the program configures ``logging``.

INFO has openings, closings and writes, DEBUG logged recalls, WARNING damage, ERROR failed listeners. A record names
kinds of events, numbers and the lab. It never has a text, a query or a name from a lab.
"""

from __future__ import annotations

import logging

# One logger for all of memlab, so that a program sets one level.
LOGGER = logging.getLogger("memlab")
# Without this handler Python would print warnings of a program that configured nothing.
LOGGER.addHandler(logging.NullHandler())

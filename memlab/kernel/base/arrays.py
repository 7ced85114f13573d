"""Names of the types of arrays that memlab passes around."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

Codes = NDArray[np.int32]
"""Small numbers, such as those of words in a vocabulary, where -1 means no word."""

Components = NDArray[np.int8]
"""Components of integer vectors."""

Values = NDArray[Any]
"""Numbers, flags or words, such as the values of a feature."""

Rows = Ints
"""Numbers of rows, most often those of the memories of a state."""

Scores = Floats
"""A number for each candidate, memory or row of an index."""

NO_ROWS: Rows = np.empty(0, dtype=np.int64)
"""Shared, because an empty array cannot be written to."""

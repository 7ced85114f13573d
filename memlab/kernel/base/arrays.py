"""Names of the types of arrays that memlab passes around."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

Rows = Ints
"""Numbers of rows, most often those of the memories of a state."""

Scores = Floats
"""A number for each candidate, memory or row of an index."""

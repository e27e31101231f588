"""Names of the arrays that the solver computes with."""

from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

Times = npt.NDArray[Any]
"""Seconds as floats or ticks as 64-bit integers."""

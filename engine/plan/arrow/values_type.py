"""NumPy's types of Arrow's values."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@cache
def values_type(arrow: pa.DataType) -> npt.DTypeLike:
    """Return the type of numbers and truth values, of dates and times that of the numbers they are stored as.

    pyarrow's own `to_pandas_dtype` imports pandas, without which its version 25 fails.
    """
    if pa.types.is_boolean(arrow):
        return np.dtype(np.bool_)
    is_unsigned = pa.types.is_unsigned_integer(arrow)
    letter = "f" if pa.types.is_floating(arrow) else "u" if is_unsigned else "i"
    return np.dtype(f"{letter}{arrow.bit_width // 8}")

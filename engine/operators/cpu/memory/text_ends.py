"""Where a column of strings is cut, so that no piece has more text than 32-bit offsets address."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....storage.columns.encodings import Array
from ..table import to_numpy, validity


def text_ends(array: pa.Array, most: int) -> list[int] | None:
    """Return after which rows to cut, so that each piece decoded has at most `most` bytes of text, or one row; None where it has."""
    ends = _bytes_until(array, most)
    if ends is None or not len(ends):
        return None
    found: list[int] = []
    start = before = 0
    while start < len(ends):
        start = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        before = int(ends[start - 1])
        found.append(start)
    return found


def _bytes_until(array: pa.Array, most: int) -> npt.NDArray[np.int64] | None:
    """Return the bytes of text up to the end of each row; None where all together are few."""
    t = array.type
    if pa.types.is_large_string(t):
        if array.nbytes <= most:
            return None
        ends: Array = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, 8 * array.offset)
        return np.asarray(ends[1:] - ends[0])
    if not pa.types.is_dictionary(t) or not len(array.dictionary):
        return None
    lengths = pc.fill_null(pc.binary_length(array.dictionary), 0)
    if (pc.max(lengths).as_py() or 0) * len(array) <= most:
        return None
    valid = validity(array.indices)
    codes = to_numpy(array)
    sizes = to_numpy(lengths)[codes if valid is None else np.where(valid, codes, 0)]
    return np.cumsum(sizes if valid is None else np.where(valid, sizes, 0), dtype=np.int64)

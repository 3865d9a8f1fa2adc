"""How many bytes of text rows of a `string` array have, by its offsets: what 32 bits cannot address becomes `large_string`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...storage.columns.encodings import numbers

FIRST_NOT_ASCII = 128


def string_bytes(array: pa.Array) -> int:
    """Return the bytes of all rows."""
    ends = _ends(array)
    return int(ends[-1]) - int(ends[0]) if len(ends) else 0


def picked_bytes(array: pa.Array, picks: pa.Array) -> int:
    """Return the bytes of the rows at `picks`, of which NULL stands for none; it looks at no others.

    The longest text of all rows times the picks took 7 ms a column of 6 million rows, however few were picked (SF1).
    """
    rows = numbers(picks.drop_null())
    ends = _ends(array)
    return int((ends[rows + 1] - ends[rows]).sum(dtype=np.int64)) if len(rows) else 0


def is_ascii(array: pa.Array) -> bool:
    """Whether no character of any row takes more than a byte: what lies under a NULL counts too."""
    if not len(array):
        return True
    _, offsets, text = array.buffers()
    large = isinstance(array, pa.LargeStringArray)
    ends = np.frombuffer(offsets, np.int64 if large else np.int32)[array.offset :][: len(array) + 1]
    content = np.frombuffer(text or b"", np.uint8)[ends[0] : ends[-1]]
    return not len(content) or int(content.max()) < FIRST_NOT_ASCII


def _ends(array: pa.Array) -> npt.NDArray[np.signedinteger]:
    """Return where the text of each row begins, and the end of the last one's."""
    if not len(array):
        return np.zeros(0, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)

"""Whether text is UTF-8: neither Arrow's nor Parquet's readers look, and all that reads text trusts it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...errors import DataError

HIGH_BITS = np.uint64(0x8080808080808080)


def check_utf8(array: pa.Array, what: str) -> None:
    """Raise `DataError` where a string is not UTF-8; `what` names the column and where it comes from.

    ASCII takes one look at each eight bytes (1 % of reading a column of comments from Parquet on one thread, validating string by
    string 9 %), other text one more, of the whole buffer as a single string.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    wide = pa.types.is_large_string(array.type)
    if not (wide or pa.types.is_string(array.type)) or not len(array):
        return
    offsets = np.frombuffer(
        array.buffers()[1],
        np.int64 if wide else np.int32,
        len(array) + 1,
        array.offset * (8 if wide else 4),
    )
    start, end = int(offsets[0]), int(offsets[-1])
    if start == end or _is_ascii(np.frombuffer(array.buffers()[2], np.uint8)[start:end]):
        return
    if _is_utf8_throughout(array, offsets):
        return
    try:
        array.validate(full=True)  # what lies under NULLs may be anything
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{what} holds text that is not UTF-8: write it anew in that encoding, or as BINARY."
        ) from error


def _is_ascii(data: np.ndarray) -> bool:
    whole = len(data) // 8 * 8
    words = data[:whole].view(np.uint64)
    rest = data[whole:]
    return not (len(words) and np.bitwise_or.reduce(words) & HIGH_BITS) and not (rest >= 128).any()


def _is_utf8_throughout(array: pa.Array, offsets: np.ndarray) -> bool:
    """Whether all characters together are UTF-8, and none of them lies in two strings."""
    data = array.buffers()[2]
    start, end = int(offsets[0]), int(offsets[-1])
    ends = pa.py_buffer(np.array([start, end], np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, ends, data]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    # A first byte 10xxxxxx belongs to a character that began in the string before
    begins = offsets[:-1]
    first = np.frombuffer(data, np.uint8)[begins[begins < end]]
    return not bool(((first & 0xC0) == 0x80).any())

"""Values that files and Arrow tables may hold and their types do not allow: digits of decimals, parts of microseconds, text that is not UTF-8.

Neither Arrow nor Parquet looks, what is planned from types would be wrong, and nothing here rounds: 999 nanoseconds
would be equal to none, and distinct moments one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import FileError
from ...plan.arrow.arrow_arrays import truth_values
from ...plan.calendar import MICROS_A_DAY
from ...plan.types import DataType, Kind, to_arrow
from ..tables.other_types import is_int96
from .encodings import LIMBS, values_of

if TYPE_CHECKING:
    from ..tables.parquet import ParquetTable


DIGITS_OF_128_BITS = 38


def check_decimals(array: pa.Array, what: str) -> None:
    """Raise `FileError` where an Arrow column has more digits than its type says; `what` names the column."""
    kind = array.type
    if not pa.types.is_decimal128(kind) or kind.precision >= DIGITS_OF_128_BITS or not len(array):
        return
    low, high = values_of(array, LIMBS).T
    low = low.view(np.uint64)
    most_high, most_low = divmod(10**kind.precision - 1, 1 << 64)
    if _within(low, high, most_high, most_low):
        return
    negative = high < 0
    size_low = np.where(negative, ~low + np.uint64(1), low)
    size_high = np.where(negative, ~high + (size_low == 0), high)
    wrong = (size_high > most_high) | ((size_high == most_high) & (size_low > np.uint64(most_low)))
    wrong |= size_high < 0  # -2^127, which has no positive
    if array.null_count:
        wrong &= truth_values(array.is_valid())
    if wrong.any():
        raise too_many_digits(what, kind.precision, kind.scale)


def _within(low: np.ndarray, high: np.ndarray, most_high: int, most_low: int) -> bool:
    """Whether the extremes of the halves alone show that all values are small enough."""
    if most_high:
        return -most_high < int(high.min()) and int(high.max()) < most_high
    signed = low.view(np.int64)
    least, greatest = int(signed.min()), int(signed.max())
    if least < -most_low or greatest > most_low:
        return False
    return not (high.any() if least >= 0 else (high != signed >> 63).any())


def check_narrow_decimals(low: int, high: int, data_type: DataType) -> None:
    """The same for unscaled values of which the least and the greatest are known."""
    least, greatest = data_type.integer_range
    if low < least or high > greatest:
        raise too_many_digits("A column", data_type.precision, data_type.scale)


def too_many_digits(what: str, precision: int, scale: int) -> FileError:
    return FileError(
        f"{what} is DECIMAL({precision},{scale}) and has values of more than {precision} digits: "
        "it was written with a wrong type. Write it again with a wider one."
    )


INT96_UNIT = (
    "us"  # Arrow's reader would make nanoseconds of INT96, which wrap outside of 1677 to 2262
)


def check_timestamps(array: pa.Array, data_type: DataType, what: str) -> None:
    """Raise `FileError` for timestamps that leave the 64 bits of what their type counts; `what` names the column."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary
    if pa.types.is_time(array.type):
        _check_within_a_day(array, what)
    if not pa.types.is_timestamp(array.type) or array.type.unit == to_arrow(data_type).unit:
        return
    try:
        array.cast(to_arrow(data_type))
    except pa.ArrowInvalid:
        raise lost(what, array.type.unit) from None


def _check_within_a_day(array: pa.Array, what: str) -> None:
    found = pc.min_max(array.cast(pa.time64("us")).view(pa.int64()))
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is not None and (low < 0 or high > MICROS_A_DAY):
        raise FileError(f"{what} holds times outside of a day: write it anew, or as a number.")


def lost(what: str, unit: str) -> FileError:
    """Return the error for a column whose values are not microseconds."""
    if unit == "ns":
        return FileError(
            f"{what} holds nanoseconds, of which TIMESTAMP has no digits: round it to microseconds before "
            '(pandas: .dt.round("us"), Arrow: pyarrow.compute.round_temporal), or keep it as BIGINT.'
        )
    return FileError(f"{what} holds moments outside of TIMESTAMP's years 290308 BC to 294247 AD.")


def is_int96_in(table: ParquetTable, source: str, file: int) -> bool:
    """Whether a column of a file has Parquet's old type of timestamps."""
    if table.types[source].kind is not Kind.TIMESTAMP:
        return False
    return is_int96(table.footers[file], table.parquet_names[source])


HIGH_BITS = np.uint64(0x8080808080808080)


def check_utf8(array: pa.Array, what: str) -> None:
    """Raise `FileError` where a string is not UTF-8; `what` names the column and where it comes from.

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
        raise FileError(
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

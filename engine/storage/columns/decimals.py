"""Whether decimals have the digits of their type: files and Arrow tables may hold others, and what is planned from types would be wrong."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...errors import DataError
from ...plan.types import DataType
from .blocks import values_of

DIGITS_OF_128_BITS = 38


def check_decimals(array: pa.Array, what: str) -> None:
    """Raise `DataError` where an Arrow column has more digits than its type says; `what` names the column."""
    kind = array.type
    if not pa.types.is_decimal128(kind) or kind.precision >= DIGITS_OF_128_BITS or not len(array):
        return
    low, high = values_of(array, "2i8").T
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
        wrong &= np.asarray(array.is_valid())
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


def check_narrow_decimals(low: int, high: int, data_type: DataType, what: str) -> None:
    """The same for unscaled values of which the least and the greatest are known."""
    least, greatest = data_type.integer_range
    if low < least or high > greatest:
        raise too_many_digits(what, data_type.precision, data_type.scale)


def too_many_digits(what: str, precision: int, scale: int) -> DataError:
    return DataError(
        f"{what} is DECIMAL({precision},{scale}) and has values of more than {precision} digits: "
        "it was written with a wrong type. Write it again with a wider one."
    )

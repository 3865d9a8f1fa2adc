"""Values as text, spelled as DuckDB spells them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....plan.arrow.arrow_arrays import array_from, from_numpy, scalar_from, truth_values
from ....plan.calendar import INFINITE_DAY, INFINITE_MICROS, interval_text
from ....plan.temporal.ticks import DAY_SECONDS
from ....plan.types import TICKS, DataType, Kind
from ..table import to_numpy
from . import kernels_calendar as calendar, kernels_wide as wide
from .vectors import WIDE, Array, Mask, Vector

Texts = Callable[[Array, Mask | None], pa.Array]
_EMPTY = scalar_from("")  # a text would be made one by pyarrow, which imports pandas for that


def printed(vector: Vector) -> pa.Array:
    """Return the strings of a vector of one dimension, NULL where it is NULL."""
    kind = vector.type.kind
    data, valid = vector.data, vector.valid
    if kind is Kind.BOOLEAN:
        return chosen(["false", "true"], data.astype(np.int64), valid)
    if vector.type.is_decimal:
        return _decimals(data, vector.type, valid)
    if vector.type.is_integer:
        return from_numpy(data, valid).cast(pa.string())
    if vector.type.is_float:
        return _floats(data, valid)
    if kind is Kind.DATE:
        return date_text(data.astype(np.int64), valid)
    if kind is Kind.TIME:
        return clock_text(data, valid)
    if vector.type.is_ticks:
        return _timestamps(data, TICKS[kind], valid)
    return _intervals(data, valid)


def _floats(data: Array, valid: Mask | None) -> pa.Array:
    """As DuckDB prints them: a FLOAT with the digits of the same DOUBLE where its own are not decided.

    So they are half way between two spellings as short, or where one lies half way to the next FLOAT: 128.953125 is neither 128.95312
    nor 128.95313.
    """
    texts = _shortest(data, valid)
    if data.dtype == np.float64:
        return texts
    exact = data.astype(np.float64)
    double = _shortest(exact, valid)
    known = np.isfinite(exact) & (data != 0)
    if valid is not None:
        known &= valid
    places = np.flatnonzero(known)
    short, long = texts.take(from_numpy(places)), double.take(from_numpy(places))
    own, other = _written_digits(short), _written_digits(long)
    one_more = pc.equal(
        pc.utf8_length(other), pc.add(pc.utf8_length(own), scalar_from(1, pa.int32()))
    )
    undecided = truth_values(pc.and_(one_more, pc.ends_with(other, "5")))
    value, read = np.abs(exact[places]), np.abs(to_numpy(short.cast(pa.float64())))
    # Where an end of its interval is a shorter number, or the one that was found
    half = np.spacing(np.abs(data[places])).astype(np.float64) / 2
    digits = to_numpy(pc.utf8_length(own))
    unit = 10.0 ** (np.floor(np.log10(read)) - digits + 2)
    below = np.where(np.frexp(value)[0] == 0.5, half / 2, half)  # powers of two
    for end in (value - below, value + half):
        undecided |= np.abs(end / unit - np.rint(end / unit)) < 1e-6
        undecided |= np.isclose(end, read, rtol=1e-13, atol=0)
    chosen_rows = np.zeros(len(data), np.bool_)
    chosen_rows[places] = undecided
    return pc.if_else(from_numpy(chosen_rows), double, texts) if undecided.any() else texts


def _written_digits(texts: pa.Array) -> pa.Array:
    """Numbers without sign, point, exponent and the zeros around them."""
    return pc.utf8_trim(pc.replace_substring_regex(texts, "e.*|[-.]", ""), "0")


def _shortest(data: Array, valid: Mask | None) -> pa.Array:
    """As Python's repr, which DuckDB prints like: the fewest digits that read back as the same value.

    Arrow finds the same digits ten times as fast as numpy, without a point behind whole numbers, and exponents begin elsewhere.
    """
    texts = from_numpy(data, valid).cast(pa.string())
    with np.errstate(invalid="ignore"):
        whole = data == np.trunc(data)
    if whole.any():
        texts = joined(texts, chosen(["", ".0"], whole.astype(np.int64), None))
    size = np.abs(data)
    others = ~(((size >= 1e-4) & (size < 1e9)) | (data == 0))
    if valid is not None:
        others &= valid
    if not others.any():
        return texts
    spelled = array_from(_spelled(data[others]).tolist(), pa.string())
    return pc.replace_with_mask(texts, from_numpy(others), spelled)


def _spelled(values: Array) -> Array:
    if values.dtype == np.float64:
        texts = values.astype("U")
    else:
        texts = np.array([_short(v) for v in values], "U")
    return np.where(np.isnan(values) & np.signbit(values), "-nan", texts)


def _short(value: np.float32) -> str:
    """A float32 in the form of Python's repr; numpy's str changes to exponents earlier."""
    if 1e-4 <= abs(value) < 1e16:
        return np.format_float_positional(value, unique=True, trim="0")
    if np.isfinite(value):
        return np.format_float_scientific(value, unique=True, trim="-", exp_digits=2)
    return str(value)


def chosen(texts: Sequence[str], places: Array, valid: Mask | None) -> pa.Array:
    """Return texts by their places; NULL where not valid."""
    return _at(array_from(list(texts), pa.string()), places, valid)


def _at(texts: pa.Array, places: Array, valid: Mask | None) -> pa.Array:
    if valid is not None:
        places = np.where(valid, places, 0)
    return texts.take(from_numpy(places.astype(np.int64), valid))


def joined(*pieces: object) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, _EMPTY)


_LONGEST_TABLE = 4  # digits of the numbers that are looked up


@cache
def _digits(width: int) -> pa.Array:
    return array_from([str(n).zfill(width) for n in range(10**width)], pa.string())


def padded(values: Array, width: int, valid: Mask | None) -> pa.Array:
    """Return numbers with leading zeros; more digits where the number has them."""
    values = values.astype(np.int64)
    fits = not values.size or (values.min() >= 0 and values.max() < 10**width)
    if fits and 1 < width <= _LONGEST_TABLE:
        return _at(_digits(width), values, valid)
    texts = from_numpy(np.abs(values), valid).cast(pa.string())
    texts = pc.utf8_lpad(texts, width, "0")
    return pc.if_else(from_numpy(values < 0), joined(scalar_from("-"), texts), texts)


_LONGEST_FRACTION = 6  # digits, beyond which Arrow writes small values with an exponent


def _decimals(data: Array, data_type: DataType, valid: Mask | None) -> pa.Array:
    if data.dtype == WIDE:
        return _digits_with_point(data_type, data, valid)
    if data_type.scale == 0:
        return from_numpy(data, valid).cast(pa.string())
    return by_value(data, valid, partial(_narrow_decimals, data_type))


def _narrow_decimals(data_type: DataType, data: Array, valid: Mask | None) -> pa.Array:
    scale = data_type.scale
    if scale > _LONGEST_FRACTION or data_type.precision == scale:
        return _digits_with_point(data_type, data, valid)
    limbs = np.stack([data, data >> 63], axis=1)
    return from_numpy(limbs, valid, pa.decimal128(38, scale)).cast(pa.string())


def _digits_with_point(data_type: DataType, data: Array, valid: Mask | None) -> pa.Array:
    if data.dtype == WIDE:
        negative = data["high"] < 0
        size = from_numpy(wide.magnitude(data), valid, pa.decimal128(38, 0))
    else:
        negative = data < 0
        size = from_numpy(np.abs(data), valid)
    digits = size.cast(pa.string())
    sign = chosen(["", "-"], negative.astype(np.int64), valid)
    scale = data_type.scale
    if scale == 0:
        return joined(sign, digits)
    # A type without digits before the point prints none: DECIMAL(2,2) is .05
    digits = pc.utf8_lpad(digits, scale + (data_type.precision > scale), "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    return joined(sign, whole, scalar_from("."), pc.utf8_slice_codeunits(digits, -scale, None))


def by_value(values: Array, valid: Mask | None, texts_of: Texts) -> pa.Array:
    """Return the texts of whole numbers, made once for each where those that there are span less than the rows."""
    if values.size and valid is not None:
        values = np.where(valid, values, values[np.argmax(valid)])
    if values.size > 4096:
        low, high = int(values.min()), int(values.max())
        if high - low < values.size // 4:
            texts = texts_of(np.arange(low, high + 1, dtype=np.int64), None)
            return texts.take(from_numpy(values - low, valid))
    return texts_of(values, valid)


def date_text(days: Array, valid: Mask | None) -> pa.Array:
    """YYYY-MM-DD."""
    return by_value(days, valid, _dates)


def _dates(days: Array, valid: Mask | None) -> pa.Array:
    year, month, day = calendar.civil(days)
    before = year <= 0
    text = joined(
        padded(np.where(before, 1 - year, year), 4, valid),
        scalar_from("-"),
        padded(month, 2, valid),
        scalar_from("-"),
        padded(day, 2, valid),
        chosen(["", " (BC)"], before.astype(np.int64), valid),
    )
    for infinite, word in ((INFINITE_DAY, "infinity"), (-INFINITE_DAY, "-infinity")):
        text = _replaced(text, days == infinite, word)
    return text


def _replaced(text: pa.Array, rows: Array, word: str) -> pa.Array:
    if not rows.any():
        return text
    return pc.if_else(pc.and_(from_numpy(rows), pc.is_valid(text)), scalar_from(word), text)


def clock_text(micros: Array, valid: Mask | None, second: int = 1_000_000) -> pa.Array:
    """HH:MM:SS of counts from 0 on, `second` of them a second, and what is left of one without trailing zeros."""
    rest = micros % second
    text = by_value(micros // second, valid, _clocks)
    if not rest.any():
        return text
    fraction = pc.utf8_rtrim(
        joined(scalar_from("."), padded(rest, len(str(second)) - 1, valid)), "0"
    )
    whole = from_numpy(rest == 0)
    return joined(
        text, pc.if_else(pc.and_(whole, pc.is_valid(fraction)), scalar_from(""), fraction)
    )


def _clocks(seconds: Array, valid: Mask | None) -> pa.Array:
    return joined(
        padded(seconds // 3600, 2, valid),
        scalar_from(":"),
        padded(seconds // 60 % 60, 2, valid),
        scalar_from(":"),
        padded(seconds % 60, 2, valid),
    )


def _timestamps(data: Array, second: int, valid: Mask | None) -> pa.Array:
    day = DAY_SECONDS * second
    text = joined(
        date_text(data // day, valid), scalar_from(" "), clock_text(data % day, valid, second)
    )
    for infinite, word in ((INFINITE_MICROS, "infinity"), (-INFINITE_MICROS, "-infinity")):
        text = _replaced(text, data == infinite, word)
    return text


def _intervals(data: Array, valid: Mask | None) -> pa.Array:
    """Text such as 1 year 2 months 3 days 04:05:06, made once for each different interval."""
    different, places = np.unique(data, return_inverse=True)
    return chosen(
        [interval_text(months, days, micros * 1000) for months, days, micros in different.tolist()]
        or [""],
        places.reshape(-1),
        valid,
    )

"""Keys as integers: what joins, groups, set operations and sorts work on.

Every value of a fixed-width type has an image in one or two int64 whose order and equality are those of SQL (NaN equals NaN and
is the largest number, -0.0 equals 0.0, an INTERVAL month has 30 days).  Strings get dictionary codes.  Several keys are
packed into one int64 where their ranges allow, otherwise into several, which are numbered by hashing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....plan.arrow.arrow_arrays import from_numpy, null_as
from ....plan.arrow.arrow_types import is_bytes
from ....records import dataclass
from ....storage.columns.encode import ascend
from ....storage.columns.encodings import Array
from .. import table as tables
from ..memory.chunks import each_chunk
from ..nested_arrays import Lists, fields_of
from .number_rows import Numbers, has_few_values, number_rows
from .text_order import leading_words, mostly_distinct, numbered, sorted_rows

Ints = npt.NDArray[np.int64]

PACKED_LIMIT = 1 << 62
SMALL_DOMAIN = (
    1 << 16
)  # slots of a direct-address array that are worth it however few rows there are
GROUP_SLOTS = 8  # a row; more would take more memory than hashing, and as long
DETERMINED_ROWS = 8  # with more rows a group, a key that follows from the others is unlikely
SIGN_BIT = np.int64(-(1 << 63))
DAY_MICROS = 86_400_000_000
FLOATS = (pa.HalfFloatArray, pa.FloatArray, pa.DoubleArray)


@dataclass(frozen=True)
class Image:
    """int64 values with the order and equality of an array's values, arbitrary where not `valid`; valid ones lie in low..high."""

    values: Ints
    valid: tables.Mask | None
    low: int
    high: int


def is_string(array: pa.Array) -> bool:
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary
    return isinstance(array, pa.StringArray | pa.LargeStringArray)


def is_plain_string(array: pa.Array) -> bool:
    return isinstance(array, pa.StringArray | pa.LargeStringArray)


def images(array: pa.Array) -> list[Image]:
    """Return the images of an array of any type but VARCHAR, most significant first."""
    valid = tables.validity(array)
    return [_measured(v.astype(np.int64, copy=False), valid) for v in image_values(array)]


def dictionary_image(array: pa.Array) -> tuple[Image, pa.Array]:
    """Return codes of strings (equality only) and the distinct values that they number."""
    if isinstance(array, pa.DictionaryArray) and len(array.dictionary) <= 2 * len(array):
        array = _distinct_dictionary(array)
    else:
        array = tables.decode(array)
        codes, values = numbered(array)
        return Image(codes, tables.validity(array), 0, len(values) - 1), values
    codes = tables.to_numpy(array).astype(np.int64)
    return Image(codes, tables.validity(array), 0, len(array.dictionary) - 1), array.dictionary


def _distinct_dictionary(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """The array with each value once in its dictionary; a function of a dictionary column may repeat some."""
    if ascend(array.dictionary):  # 61,000 texts in 0.4 ms, which take 7 to number
        return array
    distinct = array.dictionary.dictionary_encode()
    if len(distinct.dictionary) == len(array.dictionary):
        return array
    codes = pc.take(distinct.indices, array.indices)
    return pa.DictionaryArray.from_arrays(codes, distinct.dictionary)


def ranked_image(array: pa.Array) -> Image:
    """Return ranks of strings in binary order of their UTF-8 bytes."""
    if is_plain_string(array) and mostly_distinct(array):
        return _places_in_order(array)
    codes, values = dictionary_image(array)
    if not len(values) or (isinstance(array, pa.DictionaryArray) and ascend(values)):
        return codes
    ranks = np.empty(len(values), np.int64)
    ranks[sorted_rows(values)] = np.arange(len(values))
    if codes.valid is None:
        return Image(ranks[codes.values], None, 0, codes.high)
    return Image(ranks[np.where(codes.valid, codes.values, 0)], codes.valid, 0, codes.high)


def _places_in_order(array: pa.Array) -> Image:
    """Return ranks of strings that are sorted as they lie: where few are equal, numbering them takes longer than sorting, and four copies."""
    valid = tables.validity(array)
    rows = None if valid is None else np.flatnonzero(valid)
    strings = array if rows is None else array.take(from_numpy(rows))
    order = sorted_rows(strings)
    ordered = strings.take(from_numpy(order))
    steps = tables.to_numpy(
        pc.not_equal(ordered.slice(1), ordered.slice(0, max(0, len(ordered) - 1)))
    )
    ranks = np.zeros(len(array), np.int64)
    places = np.concatenate([np.zeros(min(1, len(order)), np.int64), np.cumsum(steps)])
    ranks[order if rows is None else rows[order]] = places
    return Image(ranks, valid, 0, int(places[-1]) if len(places) else -1)


def leading_image(array: pa.Array) -> Image:
    """Return an image whose order is that of an array's values, but in which some may be equal that are not: quicker for strings."""
    if is_plain_string(array):
        return _measured(leading_words(array) >> 3, tables.validity(array))  # with room for NULL
    return ordered_images(array)[0]


def ordered_images(array: pa.Array) -> list[Image]:
    """Return images of an array of any type, most significant first."""
    return [ranked_image(array)] if is_string(array) else images(array)


def group_codes(arrays: Sequence[pa.Array]) -> tuple[Ints, int]:
    """Return for each row a code in 0..size-1, equal where all keys are; NULL is a value.  Not all codes need occur."""
    found = group_numbers(arrays)
    return found.codes, found.size


def group_numbers(arrays: Sequence[pa.Array]) -> Numbers:
    """Return the codes of `group_codes`, and the first row of each where hashing has found it."""
    length = len(arrays[0])
    words = Words((), np.zeros(length, np.int64), 1)
    for array in arrays:
        if not is_plain_string(array):
            for image in [dictionary_image(array)[0]] if is_string(array) else _numbers_of(array):
                words = words.with_image(image)
    # Plain strings last: where the other keys tell rows apart already, hashing them is saved.
    for array in filter(is_plain_string, arrays):
        if words.full or words.size > length:
            words = words.numbered()
        if words.size * DETERMINED_ROWS > length and _determined(array, words.packed, words.size):
            continue
        words = words.with_image(dictionary_image(array)[0])
    # Unlike an index, groups touch all slots of what numbers those that occur
    if not words.full and words.size <= max(SMALL_DOMAIN, GROUP_SLOTS * length):
        return Numbers(words.packed, words.size)
    return number_rows([*words.full, words.packed] if words.size > 1 else words.full)


def _numbers_of(array: pa.Array) -> list[Image]:
    """Return the images of an array that is compared with no other one."""
    valid = tables.validity(array)
    if isinstance(array, FLOATS) and (whole := whole_doubles(tables.to_numpy(array), valid)):
        return [Image(whole.values, valid, whole.low, whole.high)]
    return images(array)


@dataclass(frozen=True)
class Words:
    """Keys as words of 64 bits, the last of which, `packed`, has `size` values and room for more keys."""

    full: tuple[Ints, ...]
    packed: Ints
    size: int

    def with_image(self, image: Image) -> Words:
        """Add a key: as a digit, or as a word of its own where its range takes all of one; NULL is a digit then."""
        nulls = 0 if image.valid is None else 1
        base = image.high - image.low + 1 + nulls
        if base > PACKED_LIMIT:
            word = image.values if image.valid is None else np.where(image.valid, image.values, 0)
            if has_few_values(
                word
            ):  # of which one digit is left: 1.5 million rows by two keys in a fifth of the time
                found = number_rows([word])
                wide = self._with_digit(found.codes, found.size)
            else:
                wide = Words((*self.full, word), self.packed, self.size)
            return (
                wide if image.valid is None else wide._with_digit(image.valid.astype(np.int64), 2)
            )
        if image.low == 0 and not nulls:
            return self._with_digit(image.values, max(base, 1))
        digit = image.values - image.low
        if image.valid is not None:
            digit += 1
            digit *= image.valid  # a tenth of the time of `where`
        return self._with_digit(digit, max(base, 1))

    def _with_digit(self, digit: Ints, base: int) -> Words:
        if self.size == 1:
            return Words(self.full, digit, base)
        if self.size * base > PACKED_LIMIT:
            return Words((*self.full, self.packed), digit, base)
        return Words(self.full, self.packed * base + digit, self.size * base)

    def numbered(self) -> Words:
        """Put the number of all keys in their place."""
        found = number_rows([*self.full, self.packed])
        return Words((), found.codes, found.size)


def _determined(array: pa.Array, codes: Ints, size: int) -> bool:
    """Whether the array has one value for each code, as the name has that follows from a grouped primary key."""
    first = np.empty(size, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    same = pc.equal(array, pc.take(array, from_numpy(first[codes]), boundscheck=False))
    return array.null_count == 0 and bool(pc.all(same).as_py())


def slots(rows: int) -> int:
    """Return how many slots a direct-address array may have; beyond that hashing the rows costs less.

    Hashing 6 million int64 takes 0.3 s; an array of 2^26 int32 that is mostly untouched 0.05 s (one core of a 2024 server).
    """
    return max(SMALL_DOMAIN, 4 * rows, min(32 * rows, 1 << 26))


def image_values(array: pa.Array) -> list[Ints]:
    """Return the values of `images` without their bounds; small integers keep their own width."""
    if isinstance(array, pa.NumericArray | pa.BooleanArray):
        values = tables.to_numpy(array)
        if isinstance(array, FLOATS):
            return [float_image(values)]
        return [values.view(np.int64) ^ SIGN_BIT] if isinstance(array, pa.UInt64Array) else [values]
    if isinstance(array, pa.NullArray):
        return [np.zeros(len(array), np.int64)]
    if isinstance(array, pa.Decimal128Array):
        low, high = tables.decimal_limbs(array).T
        if bool((high == low >> 63).all()):
            return [np.ascontiguousarray(low)]
        return wide_decimal_values(array)
    if isinstance(array, pa.MonthDayNanoIntervalArray):
        return _interval_values(array)
    return [value_ranks(array)] if is_ranked(array.type) else [tables.to_numpy(array)]


def wide_decimal_values(array: pa.Array) -> list[Ints]:
    low, high = tables.decimal_limbs(array).T
    return [np.ascontiguousarray(high), low ^ SIGN_BIT]


def float_image(values: Array) -> Ints:
    """Return int64 in the order of floats, NaN above all of them and all NaN alike."""
    wide = values.astype(np.float64)  # a copy, which may be written
    wide += 0.0  # -0.0 + 0.0 is 0.0
    wide[np.isnan(wide)] = np.nan
    bits = wide.view(np.int64)
    return bits ^ ((bits >> 63) & np.int64((1 << 63) - 1))


def is_ranked(arrow: pa.DataType) -> bool:
    """Whether values of an Arrow type are compared by `value_ranks`."""
    return pa.types.is_nested(arrow) or is_bytes(arrow)


def value_ranks(array: pa.Array) -> Ints:
    """Return ranks of lists, structs or bytes, equal for equal values; arbitrary where the value itself is NULL.

    Lists are compared element by element, and a list that another begins with is the smaller one; structs field by field.
    Within both, NULL is a value: the largest one, equal to itself.
    """
    if is_bytes(array.type):
        return _ranks_of_bytes(array)
    if pa.types.is_struct(array.type):
        found = np.zeros(len(array), np.int64)
        for field in fields_of(array):
            of_field = _ranks_with_null(field)
            # Below 2^31 each, so that both fit 64 bits
            packed = found * (int(of_field.max(initial=0)) + 1) + of_field
            found = places_among(packed)
        return found
    lists = Lists.of(array)
    # A list as bytes: the ranks of its elements, the most significant byte first
    words = _ranks_with_null(lists.elements).astype(">u4")
    offsets = np.zeros(len(lists.lengths) + 1, np.int64)
    np.cumsum(4 * lists.lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(words)]
    return _ranks_of_bytes(pa.Array.from_buffers(pa.large_binary(), len(lists.lengths), buffers))


def places_among(values: Array) -> Ints:
    """Return the place of each number among the different ones, from 0 on: by a table where they lie close together.

    Two million pairs of 265 zones take 0.6 s of CPU time, and 1.7 where each column is sorted; `CLOSE_NUMBERS` = -1 switches the table off.
    """
    is_whole = len(values) > 0 and values.dtype.kind in "biu"
    low, high = (int(values.min()), int(values.max())) if is_whole else (0, 0)
    if not is_whole or high - low > CLOSE_NUMBERS * len(values) or high > np.iinfo(np.int64).max:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    numbers = values.astype(np.int64) - low
    table = np.zeros(high - low + 1, np.int64)
    table[numbers] = 1
    return (np.cumsum(table, out=table) - 1)[numbers]


CLOSE_NUMBERS = 2  # a row, at most, in a table of all between the least and the greatest


def _ranks_of_bytes(array: pa.Array) -> Ints:
    found = array.dictionary_encode()
    ranks_of_codes = np.empty(len(found.dictionary), np.int64)
    ranks_of_codes[tables.to_numpy(pc.sort_indices(found.dictionary))] = np.arange(
        len(ranks_of_codes)
    )
    codes = tables.to_numpy(null_as(found.indices, 0))
    return ranks_of_codes[codes] if len(ranks_of_codes) else np.zeros(len(codes), np.int64)


def _ranks_with_null(array: pa.Array) -> Ints:
    """Return ranks from 0 on without gaps, NULL's above all others."""
    ranks = np.zeros(len(array), np.int64)
    valid = np.ones(len(array), bool)
    for image in ordered_images(array):
        digits = places_among(image.values)
        packed = ranks * (int(digits.max(initial=0)) + 1) + digits
        ranks = places_among(packed)
        valid = valid if image.valid is None else image.valid
    ranks[~valid] = int(ranks.max(initial=-1)) + 1
    return ranks


def _interval_values(array: pa.Array) -> list[Ints]:
    """Days and microseconds within a day, of months of 30 days: how DuckDB compares intervals."""
    parts = tables.spans_of(array)
    more_days, micros = np.divmod(parts["micros"], DAY_MICROS)
    days = parts["months"].astype(np.int64) * 30 + parts["days"] + more_days
    return [days, micros]


def _measured(values: Ints, valid: tables.Mask | None) -> Image:
    seen = values if valid is None else values[valid]
    if not len(seen):
        return Image(values, valid, 0, -1)
    return Image(values, valid, int(np.minimum.reduce(seen)), int(np.maximum.reduce(seen)))


LIMIT = 2.0**53  # up to which each whole number is a double
SAMPLE = 1 << 10  # first rows, which show most columns of fractions to be such


@dataclass(frozen=True)
class WholeNumbers:
    """Integers equal to doubles; some number between `low` and `high` where those are NULL."""

    values: npt.NDArray[np.int64]
    low: int
    high: int


def whole_doubles(values: Array, valid: npt.NDArray[np.bool_] | None) -> WholeNumbers | None:
    """Return floating-point values as integers; None where one is no whole number, NaN and infinity among them.

    They lie in a small range, where their bits do not: 1.5 million rows by a weekday and floor() take 33 ms of CPU time in all instead
    of 49 (SF1, two busy cores).
    """
    if not len(values):
        return None
    filling = values[0 if valid is None else int(valid.argmax())]
    whole = np.empty(len(values), np.int64)

    def convert(start: int, stop: int) -> tuple[float, float] | None:
        part = values[start:stop]
        if valid is not None:
            part = np.where(valid[start:stop], part, filling)
        low, high = float(part.min()), float(part.max())
        if not (low >= -LIMIT and high <= LIMIT):  # which NaN is not
            return None
        whole[start:stop] = part
        return (low, high) if bool((whole[start:stop] == part).all()) else None

    if convert(0, min(len(values), SAMPLE)) is None:
        return None
    ranges = each_chunk(convert, len(values))
    found = [bounds for bounds in ranges if bounds is not None]
    if len(found) < len(ranges):
        return None
    return WholeNumbers(whole, int(min(found)[0]), int(max(high for _, high in found)))

"""Where the rows of some row groups lie among all, and what footers say of one column in each row group, read in one pass and kept as lists: files may have thousands of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ...plan.types import DataType, Kind
from ...records import dataclass
from ..columns.encodings import Array
from .column_statistics import Bounds, constant_bounds, trusted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow.parquet as pq

    from ...plan.expr import Value
    from ...plan.physical import RowGroups
    from .parquet import ParquetTable


MAX_CODE_BITS = 12  # above, the dictionary itself is too large a part of the column to guess from
# A dictionary page with small codes behind it: few values.  What overflowed its dictionary takes more bytes a value.
DICTIONARY_BYTES_A_VALUE = 4.0
FIRST_DAY = date(1970, 1, 1).toordinal()
SIGNED = frozenset((Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT))
INTEGERS = frozenset(("INT32", "INT64"))

TRUSTED_BYTES = 1 << 20  # of a column chunk, which any memory has room for
# What codecs make of a byte at most; of pages, zstd repeats one byte 128 KiB long by four bytes
MOST_FROM_A_BYTE = {"UNCOMPRESSED": 1, "SNAPPY": 22, "LZ4": 256, "GZIP": 1040, "ZSTD": 1 << 16}


_starts: WeakKeyDictionary[ParquetTable, tuple[list[int], Array]] = WeakKeyDictionary()


@dataclass(frozen=True)
class ColumnChunks:
    """One entry a row group, those of all files one after the other.

    `lows` and `highs` are what `value` makes values of, in the same order, and None where they are not known.  `bytes` are
    those before compression; `values` counts what is in the chunks, `coded` says whether all have a dictionary.
    """

    rows: Sequence[int]
    nulls: Sequence[int | None]
    lows: Sequence[Any]
    highs: Sequence[Any]
    value: Callable[[Any], Value]
    bytes: Sequence[int] = ()
    values: int = 0
    coded: bool = False

    def within(self, start: int, end: int) -> Bounds:
        """Return what holds for the rows of all these row groups together."""
        found = self._within.get((start, end))
        if found is None:
            found = self._within[start, end] = self._found_within(start, end)
        return found

    def _found_within(self, start: int, end: int) -> Bounds:
        nulls = self.nulls[start:end]
        lows, highs = self.lows[start:end], self.highs[start:end]
        if self._some_without_values:
            valued = [i for i in range(start, end) if self.rows[i] != self.nulls[i]]
            lows, highs = [self.lows[i] for i in valued], [self.highs[i] for i in valued]
        return Bounds(
            sum(self.rows[start:end]),
            None if None in nulls else sum(nulls),  # type: ignore[arg-type]
            None if not lows or None in lows else self.value(min(lows)),
            None if not highs or None in highs else self.value(max(highs)),
        )

    def narrowest(self, start: int, end: int) -> Bounds | None:
        """Return the highest low and the lowest high, or None where some row group has no values.

        What excludes one of the row groups excludes these bounds too, also where the low is above the high.
        """
        if self._some_without_values:
            return None
        found = self._narrowest.get((start, end))
        if found is None:
            found = self._narrowest[start, end] = self._found_narrowest(start, end)
        return found

    def _found_narrowest(self, start: int, end: int) -> Bounds:
        lows = [low for low in self.lows[start:end] if low is not None]
        highs = [high for high in self.highs[start:end] if high is not None]
        low, high = max(lows, default=None), min(highs, default=None)
        nulls = 0 if 0 in self.nulls[start:end] else None
        low = None if low is None else self.value(low)
        return Bounds(1, nulls, low, None if high is None else self.value(high))

    # Texts ask for the same halves of the row groups again and again, of which there may be thousands

    @cached_property
    def _within(self) -> dict[tuple[int, int], Bounds]:
        return {}

    @cached_property
    def _narrowest(self) -> dict[tuple[int, int], Bounds]:
        return {}

    @cached_property
    def _some_without_values(self) -> bool:
        return any(rows == nulls for rows, nulls in zip(self.rows, self.nulls, strict=True))

    @property
    def has_few_values(self) -> bool:
        """Whether all values are in dictionaries, and those are small."""
        size = sum(self.bytes)
        return self.coded and self.values > 0 and size / self.values <= DICTIONARY_BYTES_A_VALUE

    @property
    def likely_distinct(self) -> int | None:
        """Guess how many values there are from the bits that a code takes; None without dictionaries."""
        if not self.coded or not self.values:
            return None
        bits = 8 * sum(self.bytes) / self.values
        return 1 << max(1, round(bits)) if bits <= MAX_CODE_BITS else None

    @property
    def likely_sorted(self) -> bool:
        """Guess whether values ascend with the rows, from row groups of which each begins where the last one ended, or above."""
        if len(self.rows) < 2 or None in self.lows or None in self.highs:
            return False
        return all(high <= low for high, low in zip(self.highs, self.lows[1:], strict=False))


def chunks_of_files(
    footers: Sequence[pq.FileMetaData],
    groups: Sequence[Sequence[pq.RowGroupMetaData]],
    positions: Sequence[int | None],
    data_type: DataType,
) -> ColumnChunks:
    """Read what footers say of a column, given the row groups of each file and the column's place there, None without it."""
    places = [f.schema.column(p) for f, p in zip(footers, positions, strict=True) if p is not None]
    value = None if any(map(_is_nanoseconds, places)) else _from_raw(data_type, places)
    known = not (data_type.kind is Kind.NULL or any(map(_is_nanoseconds, places)))
    rows: list[int] = []
    nulls: list[int | None] = []
    lows: list[Any] = []
    highs: list[Any] = []
    sizes: list[int] = []
    values, coded = 0, True
    for chunk, count in _chunks(groups, positions):
        rows.append(count)
        found = None if chunk is None else chunk.statistics
        nulls.append(found.null_count if found is not None and found.has_null_count else None)
        low = high = None
        if known and found is not None and found.has_min_max:
            low, high = (found.min_raw, found.max_raw) if value else _bounds(found, data_type)
        lows.append(low)
        highs.append(high)
        sizes.append(0 if chunk is None else decoded_bytes(chunk))
        values += 0 if chunk is None else chunk.num_values
        coded = coded and chunk is not None and chunk.has_dictionary_page
    return ColumnChunks(rows, nulls, lows, highs, value or _itself, sizes, values, coded)


def decoded_bytes(chunk: pq.ColumnChunkMetaData) -> int:
    """Return what a column chunk says that it takes, but no more than its codec can make of its bytes: a damaged footer says anything."""
    said = int(chunk.total_uncompressed_size)
    if said <= TRUSTED_BYTES:
        return said
    most = int(chunk.total_compressed_size) * MOST_FROM_A_BYTE.get(chunk.compression, 1 << 20)
    return min(said, most) if most > 0 else said


def _chunks(
    groups: Sequence[Sequence[pq.RowGroupMetaData]], positions: Sequence[int | None]
) -> Iterator[tuple[pq.ColumnChunkMetaData, int]]:
    for of_file, position in zip(groups, positions, strict=True):
        for group in of_file:
            yield None if position is None else group.column(position), group.num_rows


def chunks_of_constant(
    values: Sequence[Any], group_rows: Sequence[Sequence[int]], data_type: DataType
) -> ColumnChunks:
    """What is known of a column that is one value in each file."""
    each = [
        constant_bounds(value, rows, data_type)
        for value, groups in zip(values, group_rows, strict=True)
        for rows in groups
    ]
    rows = [rows for groups in group_rows for rows in groups]
    lows, highs = [b.low for b in each], [b.high for b in each]
    return ColumnChunks(rows, [b.nulls for b in each], lows, highs, _itself)


# Values


def _from_raw(
    data_type: DataType, places: Sequence[pq.ColumnChunkMetaData]
) -> Callable[[Any], Value] | None:
    """How values become of what files hold for them, where that is in the same order; None where it may not be."""
    kinds = {place.physical_type for place in places}
    if data_type.kind in SIGNED and kinds <= INTEGERS:
        return _itself
    if data_type.kind is Kind.DATE and kinds == {"INT32"}:
        return _day
    if data_type.is_decimal and kinds <= INTEGERS:
        return lambda raw: Decimal(raw).scaleb(-data_type.scale)
    if data_type.kind is Kind.VARCHAR and kinds == {"BYTE_ARRAY"}:
        return _text
    return None


def _itself(value: Any) -> Value:
    return value


def _day(raw: int) -> date | None:
    try:
        return date.fromordinal(FIRST_DAY + raw)
    except (ValueError, OverflowError):
        return None  # outside of Python's years


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None  # cut inside a character


def _bounds(found: Any, data_type: DataType) -> tuple[Any, Any]:
    """The extremes of a chunk; None where the writer is not to be trusted."""
    try:
        low, high = trusted(found.min, data_type), trusted(found.max, data_type)
    except (ValueError, OverflowError, ArithmeticError):
        return None, None  # a timestamp outside of Python's years
    return low, None if data_type.is_float else high


def _is_nanoseconds(place: pq.ColumnChunkMetaData) -> bool:
    """Nanoseconds lose digits when they become a TIMESTAMP, so that their bounds would not hold."""
    logical = place.logical_type
    return getattr(logical, "type", "") == "TIMESTAMP" and "nano" in str(logical)


def places_of(table: ParquetTable, selection: Iterable[RowGroups]) -> Array:
    """Return the numbers of row groups among those of all files."""
    first = starts_of(table)[0]
    parts = [np.array(part.groups, np.int64) + first[part.file] for part in selection]
    return np.concatenate([np.empty(0, np.int64), *parts])


def row_ranges(table: ParquetTable, selection: Sequence[RowGroups]) -> Iterator[tuple[int, int]]:
    """Yield first and last row (exclusive) of each run of neighbours among the selected row groups."""
    places, starts = np.sort(places_of(table, selection)), starts_of(table)[1]
    for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
        if len(run) and starts[run[0]] < starts[run[-1] + 1]:
            yield int(starts[run[0]]), int(starts[run[-1] + 1])


def starts_of(table: ParquetTable) -> tuple[list[int], Array]:
    """Return the number of each file's first row group, and of each row group's first row, and how many there are of both in all.

    Each chunk of a table asks, for each of its columns.
    """
    found = _starts.get(table)
    if found is None:
        rows = [count for groups in table.group_rows for count in groups]
        groups = list(accumulate(map(len, table.group_rows), initial=0))
        found = _starts[table] = groups, np.cumsum([0, *rows])
    return found

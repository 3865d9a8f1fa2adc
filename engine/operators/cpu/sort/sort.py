"""Sorting: keys become integers in the order asked for, are packed, and one integer sort orders the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ....plan import physical as p
from ....records import dataclass
from ...context import Context
from .. import table as tables
from ..memory.ask_memory import BYTES_A_CODE, ask_order, row_bytes
from ..memory.chunks import each_chunk
from ..table import Indices, Table
from .keys import (
    PACKED_LIMIT,
    Image,
    Ints,
    is_plain_string,
    leading_image,
    ordered_images,
)
from .ordering import LEAST_SAMPLED, lexicographic, stable_order
from .text_words import rows_up_to

SAMPLED_ROWS = 1 << 16
FEW_CANDIDATES = 1 << 14  # rows that are sorted by all keys at once

Digit = tuple[Ints, int]  # values 0..size-1; a size beyond PACKED_LIMIT: any int64


@dataclass(frozen=True)
class SortColumn:
    """One key: an array and its direction; NULL stands where `nulls_first` says, whatever the direction."""

    array: pa.Array
    descending: bool = False
    nulls_first: bool = False


def sort_rows(node: p.SortRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    ask_order(node, table, [o.column for o in node.keys], node.columns, context)
    return tables.take(table, sorted_order(_keys(node.keys, table)), node.columns)


def top_k(node: p.TopK, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    tables.fetch(table, [o.column for o in node.keys])
    kept = min(node.count, table.num_rows) * row_bytes(table, node.columns)
    context.ask(node, table.num_rows * BYTES_A_CODE * len(node.keys) + int(kept))
    end = min(node.offset + node.count, table.num_rows)
    rows = first_rows(_keys(node.keys, table), end)[node.offset :]
    return tables.take(table, rows, node.columns)


def sorted_order(keys: Sequence[SortColumn]) -> Indices:
    """Return the row numbers in sorted order; rows with equal keys keep theirs."""
    return order_of(packed_digits([digit for key in keys for digit in directed_digits(key)]))


def order_of(parts: Sequence[Digit]) -> Indices:
    """Return the row numbers sorted by integers, the most significant first; equal rows keep theirs."""
    if len(parts) > 1:
        return lexicographic([values for values, _ in parts])
    values, size = parts[0]
    return stable_order(values, size)


def first_rows(keys: Sequence[SortColumn], count: int) -> Indices:
    """Return the first `count` of `sorted_order`, sorting only rows that the leading keys let in."""
    length = len(keys[0].array)
    if count == 0:
        return np.zeros(0, np.int64)
    if count > length // 4:
        return sorted_order(keys)[:count]
    candidates = _candidates(keys, count)
    return candidates[sorted_order(_among(keys, candidates))[:count]]


def _candidates(keys: Sequence[SortColumn], count: int) -> Indices:
    """Return rows, ascending, among which are the first `count`.

    Where many tie in the first key, as groups of one row do in their counts, the next key chooses among these: ten of a million such groups by
    count and key take a third of the time of a sort by all keys.
    """
    key = keys[0]
    if is_plain_string(key.array):
        found = rows_up_to(key.array, count, key.descending, key.nulls_first)
        if found is not None:
            return found
    leading, is_whole = leading_digit(key)
    rows = _reaching(leading, count)
    if len(rows) <= max(FEW_CANDIDATES, 2 * count) or len(keys) == 1 or not is_whole:
        return rows
    values = leading[rows]
    last = values.max()
    before, tied = rows[values < last], rows[values == last]
    chosen = tied[_candidates(_among(keys[1:], tied), count - len(before))]
    return np.sort(np.concatenate([before, chosen]))


def _among(keys: Sequence[SortColumn], rows: Indices) -> list[SortColumn]:
    return [SortColumn(tables.take_array(k.array, rows), k.descending, k.nulls_first) for k in keys]


def leading_digit(key: SortColumn) -> tuple[Ints, bool]:
    """Return integers in the order of a key, and whether those of different values differ."""
    if is_plain_string(key.array):
        return packed_digits(_directed(leading_image(key.array), key))[0][0], False
    (values, _), *others = packed_digits(directed_digits(key))
    return values, not others


def _reaching(values: Ints, count: int) -> Indices:
    """Return rows among which are those of the `count` least values, all of equal ones.

    As many values of a sample are at most its own bound, so that one pass, of several threads, leaves few rows to partition.
    """
    bound = None
    sample = values[:: max(1, len(values) // SAMPLED_ROWS)]
    if len(sample) >= LEAST_SAMPLED * count:
        bound = np.partition(sample, count - 1)[count - 1]
        parts = each_chunk(
            lambda start, stop: np.flatnonzero(values[start:stop] <= bound) + start, len(values)
        )
        rows = np.concatenate(parts)
        values = values[rows]
    least = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return least if bound is None else rows[least]


def _keys(orders: Sequence[p.Order], table: Table) -> list[SortColumn]:
    return [SortColumn(table[o.column], o.descending, o.nulls_first) for o in orders]


def directed_digits(key: SortColumn) -> list[Digit]:
    """Return integers in the order of a key, with a place for NULL, the most significant first."""
    return [d for image in ordered_images(key.array) for d in _directed(image, key)]


def _directed(image: Image, key: SortColumn) -> list[Digit]:
    """Ascending integers for an image in the direction of its key, with a place for NULL."""
    size = max(image.high - image.low + 1, 1)
    if size + 1 > PACKED_LIMIT:
        # The complement reverses the order of all int64 without overflow.
        values = ~image.values if key.descending else image.values
        if image.valid is None:
            return [(values, size)]
        is_null = ~image.valid
        nulls = (~is_null if key.nulls_first else is_null).astype(np.int64)
        return [(nulls, 2), (np.where(is_null, 0, values), size)]
    values = image.high - image.values if key.descending else image.values - image.low
    if image.valid is None:
        return [(values, size)]
    if key.nulls_first:
        return [(np.where(image.valid, values + 1, 0), size + 1)]
    return [(np.where(image.valid, values, size), size + 1)]


def packed_digits(digits: Sequence[Digit]) -> list[Digit]:
    """Combine neighbours, most significant first, as long as the product of their sizes fits."""
    packed = [digits[0]]
    for values, size in digits[1:]:
        leading, leading_size = packed[-1]
        if leading_size * size <= PACKED_LIMIT:
            packed[-1] = (leading * size + values, leading_size * size)
        else:
            packed.append((values, size))
    return packed

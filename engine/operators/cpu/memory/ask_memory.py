"""How many bytes operators are about to take, asked for before they take them, from row counts that they know; and where a column of
strings is cut, so that no piece has more text than 32-bit offsets address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ....plan import physical as p
from ....plan.expr import AggregateCall, Column, ColumnRef, columns_of
from ....plan.functions import AGGREGATE
from ....plan.types import DataType, Kind, list_of, to_arrow
from ....storage.tables.parquet import ParquetTable
from ..table import Table, to_numpy, validity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ....codegen.compile_pipeline import Stages
    from ....plan.window.window_operator import WindowRows
    from ....storage.columns.encodings import Array
    from ...context import Context

BYTES_A_CODE = 8  # of a key as an integer
BYTES_A_PLACE = 8  # of a row number
BYTES_A_VALUE = 8  # of what an expression computes, about
BYTES_A_STATE = 16  # of an aggregate
PLACES_OF_FRAMES = 10  # for each row: its partition, peers and frame, and what is made of them
CODES_A_ROW = 4  # arrays of keys or row numbers that grouping and sorting have at a time


def row_bytes(table: Table, columns: Iterable[Column]) -> float:
    """Return how many bytes a row of some columns takes."""
    arrays = table.arrays
    size = table.size([c.id for c in columns if c.id in arrays])
    return size / max(1, table.num_rows)


def decoded_bytes(array: pa.Array) -> float:
    """Return how many bytes an array takes, a dictionary's about when it is decoded."""
    if not isinstance(array, pa.DictionaryArray):
        return float(array.nbytes)
    entries = array.dictionary
    return len(array) * entries.nbytes / max(1, len(entries))


def arrow_bytes(table: Table, columns: Iterable[Column]) -> int:
    """Return how many bytes columns take as Arrow has them, about, beside those that are passed on as they are."""
    return sum(int(_logical_bytes(table[c], c.type)) for c in columns)


def _logical_bytes(array: pa.Array, data_type: DataType) -> float:
    if isinstance(array, pa.DictionaryArray):
        return decoded_bytes(array)
    if data_type.is_wide_decimal:
        return 0
    expected = to_arrow(data_type)
    if array.type == expected and not data_type.holds(Kind.INTERVAL):
        return 0
    is_map = data_type.kind is Kind.MAP and array.type == to_arrow(list_of(data_type.children[0]))
    if is_map or isinstance(array, pa.LargeStringArray):  # of which the offsets alone are made anew
        return 4.0 * (len(array) + 1)
    if data_type.is_nested:
        return 2.0 * array.nbytes
    if data_type.kind is Kind.VARCHAR:
        return float(array.nbytes)
    return len(array) * expected.bit_width / 8


def ask_columns(node: p.ParquetScan, sources: Sequence[str], context: Context) -> None:
    """Ask for columns that are to be read, as their footers say."""
    table = node.table
    assert isinstance(table, ParquetTable)
    parts = table.all_row_groups if node.selection is None else node.selection
    read = [source for source in sources if source not in table.constants]
    if not read:
        return
    context.ask(node, sum(table.sizes.plain(read, part) for part in parts))


def askable_shares(
    node: p.ParquetScan | p.MemoryScan, share: list[tuple[Column, str]], context: Context
) -> Iterator[list[tuple[Column, str]]]:
    """Yield columns that may be read together: all, or where there is no room for them one by one."""
    if isinstance(node, p.ParquetScan):
        try:
            ask_columns(node, [source for _, source in share], context)
        except MemoryError:
            if len(share) == 1:
                raise
            for pair in share:
                yield from askable_shares(node, [pair], context)
            return
    yield share


def ask_joined(node: p.ConcatRows, columns: Sequence[Sequence[pa.Array]], context: Context) -> None:
    """Ask for arrays one after the other; of several types dictionaries are decoded."""
    alike = [len({array.type for array in arrays}) == 1 for arrays in columns]
    context.ask(
        node,
        sum(
            array.nbytes if same else int(decoded_bytes(array))
            for arrays, same in zip(columns, alike, strict=True)
            for array in arrays
        ),
    )


def ask_computed(node: p.ComputeColumns, rows: int, context: Context) -> None:
    computed = sum(not isinstance(expr, ColumnRef) for _, expr in node.items)
    context.ask(node, rows * computed * BYTES_A_VALUE)


def ask_kept(node: p.Physical, table: Table, count: int, context: Context) -> None:
    """Ask for rows that are kept, unless all are."""
    if count < table.num_rows:
        size = BYTES_A_PLACE + row_bytes(table, node.columns)
        context.ask(node, int(count * size))


def ask_groups(node: p.Physical, table: Table, keys: Sequence[Column], context: Context) -> None:
    """Ask for the codes of keys and what is made while they are numbered."""
    if keys:
        context.ask(node, table.num_rows * BYTES_A_CODE * CODES_A_ROW)


def ask_aggregates(node: p.HashAggregate, table: Table, groups: int, context: Context) -> None:
    """Ask for the keys and results of groups, and for the rows of a call that needs those of a group together."""
    keys = sum(table[c].nbytes for c in node.keys) / max(1, table.num_rows)
    results = groups * (keys + BYTES_A_STATE * len(node.aggregates))
    rows = 0.0
    for _, call in node.aggregates:
        is_text, is_together = call.type.varies_in_width, _is_together(call)
        if (
            not is_text and not is_together
        ):  # of thousands of calls each costs as much as asking for it
            continue
        size = sum(decoded_bytes(table[a.column]) for a in call.args if isinstance(a, ColumnRef))
        if is_text:
            whole = AGGREGATE[call.function].keeps_values
            results += size if whole else size * groups / max(1, table.num_rows)
        if is_together:
            rows = max(rows, size + table.num_rows * BYTES_A_CODE * CODES_A_ROW)
    context.ask(node, int(results + rows))


def _is_together(call: AggregateCall) -> bool:
    return call.distinct or bool(call.order) or AGGREGATE[call.function].keeps_values


def ask_order(
    node: p.SortRows | p.HashSetOperation,
    table: Table,
    keys: Iterable[Column],
    columns: Sequence[Column],
    context: Context,
) -> None:
    """Ask for the keys of a sort, for which text is copied once, the order and the rows in it."""
    texts = [key for key in keys if key.type.kind is Kind.VARCHAR]
    size = BYTES_A_CODE * CODES_A_ROW + row_bytes(table, columns) + row_bytes(table, texts)
    context.ask(node, int(table.num_rows * size))


def ask_window(node: WindowRows, table: Table, context: Context) -> None:
    """Ask for the order of the rows, the frames of one call at a time, and the results of all."""
    read = {c for _, call in node.calls for c in columns_of(call)} | {*node.partition}
    texts = [c for c in (*read, *(o.column for o in node.order)) if c.type.kind is Kind.VARCHAR]
    copied = 2 * sum(
        int(decoded_bytes(table[c])) for c in texts
    )  # in the order of the window, and picked
    arrays = CODES_A_ROW + PLACES_OF_FRAMES + len(node.calls)
    context.ask(node, table.num_rows * arrays * BYTES_A_PLACE + copied)


def ask_index(node: p.HashJoin, build: int, probe: int, slots: int, context: Context) -> None:
    """Ask for an index of the build side, and for the matches of probe rows where each has one."""
    index = build * (BYTES_A_CODE + 3 * BYTES_A_PLACE) + slots * (BYTES_A_PLACE // 2)
    context.ask(node, index + probe * 2 * BYTES_A_PLACE)


def ask_pairs(
    node: p.HashJoin | p.NestedLoopJoin, left: Table, right: Table, count: int, context: Context
) -> None:
    """Ask for pairs of rows, and the columns that are gathered for them."""
    row = row_bytes(left, node.columns) + row_bytes(right, node.columns)
    context.ask(node, int(count * (2 * BYTES_A_PLACE + row)))


def ask_ranges(node: p.Physical, rows: int, bounds: int, context: Context) -> None:
    """Ask for the values of one side that others bound, the bounds, and the range of bounds of each value."""
    context.ask(node, 2 * (rows + bounds) * (BYTES_A_VALUE + BYTES_A_PLACE))


def ask_kernels(node: p.Pipeline, stages: Stages, context: Context) -> None:
    """Ask for the indexes of a pipeline's kernels, and for the accumulators of each of its threads."""
    grouping = stages.main.grouping
    groups = 0 if grouping is None or grouping.hashed else grouping.groups
    accumulators = groups * len(stages.main.accumulators) * context.threads
    context.ask(node, (stages.index_values + accumulators) * BYTES_A_VALUE)


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
    if isinstance(array, pa.LargeStringArray):
        if array.nbytes <= most:
            return None
        ends: Array = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, 8 * array.offset)
        return np.asarray(ends[1:] - ends[0])
    if not isinstance(array, pa.DictionaryArray) or not len(array.dictionary):
        return None
    lengths = pc.binary_length(array.dictionary)
    if (pc.max(lengths).as_py() or 0) * len(array) <= most:
        return None
    valid = validity(array)
    codes = to_numpy(array)
    sizes = to_numpy(lengths)[codes if valid is None else np.where(valid, codes, 0)]
    return np.cumsum(sizes if valid is None else np.where(valid, sizes, 0), dtype=np.int64)

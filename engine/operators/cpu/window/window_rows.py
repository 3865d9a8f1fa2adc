"""Window functions over rows that are sorted once; results go back to where the rows came from."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import Located
from ....plan.expr import Column, ColumnRef
from ....plan.physical import Order
from ....plan.window.window_call import WindowCall
from ....plan.window.window_operator import WindowRows
from ...context import Context
from ...windows.window_places import argument, rank_to_cut_at
from ...windows.window_positions import NUMBERED, numbered, picked, shifted
from .. import table as tables
from ..memory.ask_memory import ask_window
from ..sort.keys import Ints, group_codes
from ..sort.sort import SortColumn, leading_digit
from ..table import Indices, Table, decode, from_numpy
from .frame_aggregates import aggregate_frames
from .places import HostRows, places_of


def window_rows(node: WindowRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    ask_window(node, table, context)
    most = rank_to_cut_at(node, table.num_rows)
    if most is not None:
        among = rows_up_to_rank(table, node.partition, node.order, most)
        table = table if among is None else tables.take(table, among)
    places = places_of(table, node.partition, node.order)
    if most is not None:
        table = tables.take(table, places.up_to_rank(most))
        places = places_of(table, node.partition, node.order)
    rows = HostRows(table, places)
    arrays = {c.id: table[c] for c in node.passed}
    for column, call in node.calls:
        context.check()
        with Located(call.span):
            if call.is_aggregate:
                ask = partial(context.ask, node)
                arrays[column.id] = aggregate_frames(call, rows, ask)
            else:
                arrays[column.id] = position(call, rows)
    return Table(arrays, table.num_rows)


SUBSETS = 4  # of a partition's rows, for each row that is wanted of it
LEAST_SUBSET = 2  # for each subset, below which sorting them takes as long


def rows_up_to_rank(
    table: Table, partition: tuple[Column, ...], keys: tuple[Order, ...], most: int
) -> Indices | None:
    """Return rows, ascending, among which are all up to a rank in their partitions; None where sorting all takes as long.

    The rows of a partition lie in several subsets, by their number.  Of the least values of the subsets, each of another row, the `most`-th
    is a bound: what comes after it has as many rows before it.  Two rows of each of 10,000 partitions of a million rows take 40 % of the time
    of a sort; `SUBSETS` = inf switches it off.
    """
    rows = table.num_rows
    codes, size = group_codes([table[c] for c in partition]) if partition else (None, 1)
    subsets = SUBSETS * most
    if not keys or size * subsets * LEAST_SUBSET > rows:
        return None
    values = _leading(table, keys[0])
    places = np.arange(rows) % subsets
    if codes is not None:
        places += codes * subsets
    least = np.full(size * subsets, np.iinfo(np.int64).max)
    np.minimum.at(least, places, values)
    bounds = np.partition(least.reshape(size, subsets), most - 1, axis=1)[:, most - 1]
    return np.flatnonzero(values <= (bounds[0] if codes is None else bounds[codes]))


def _leading(table: Table, key: Order) -> Ints:
    column = SortColumn(table[key.column], key.descending, key.nulls_first)
    return leading_digit(column)[0]


def position(call: WindowCall, rows: HostRows) -> pa.Array:
    """Return a function of `functions.WINDOW` of each row, in the order of the input's rows."""
    places, table = rows.places, rows.table
    if call.function in NUMBERED:
        values, valid = numbered(call, rows)
        return from_numpy(places.at_rows(values), None if valid is None else places.at_rows(valid))
    array = table[argument(call)]
    if call.function not in ("lag", "lead"):
        return places.take(array, picked(call, rows))
    found, outside = shifted(call, rows)
    taken = places.take(array, found)
    default = call.args[2] if len(call.args) > 2 else None
    if not isinstance(default, ColumnRef) or not outside.any():
        return taken
    mask = pa.array(places.at_rows(outside))
    return pc.if_else(mask, decode(table[default.column]), decode(taken))

"""The rows that a limit of ranks may leave: a bound for each partition, found without sorting, so that few rows are sorted."""

from __future__ import annotations

import numpy as np

from ....plan.expr import Column
from ....plan.physical import Order
from ..sort.keys import Ints, group_codes
from ..sort.sort import SortColumn, leading_digit
from ..table import Indices, Table

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

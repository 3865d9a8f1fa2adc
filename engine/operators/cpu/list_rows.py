"""One row for each element of lists: an index of rows by the lists' lengths, through which other columns are taken."""

from __future__ import annotations

import numpy as np

from ...plan import physical as p
from ..context import Context
from . import table as tables
from .memory.ask_memory import BYTES_A_PLACE, decoded_bytes, row_bytes
from .nested_arrays import Lists
from .table import Table


def unnest_rows(node: p.UnnestRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    lists = {made: Lists.of(tables.decode(table[column])) for made, column in node.lists}
    counts = np.max([each.lengths for each in lists.values()], axis=0)
    counts = np.maximum(counts, 1) if node.outer else counts
    count = int(counts.sum())
    elements = sum(decoded_bytes(each.elements) for each in lists.values())
    kept = count * (3 * BYTES_A_PLACE + row_bytes(table, node.keep))
    context.ask(node, int(kept + 2 * elements))
    rows = np.repeat(np.arange(table.num_rows), counts)
    places = np.arange(count) - np.repeat(np.cumsum(counts) - counts, counts)
    arrays = dict(tables.take(table, rows, node.keep).arrays) if node.keep else {}
    for made, each in lists.items():
        inside = places < each.lengths[rows]
        if bool(inside.all()):  # no list is longer than this one
            arrays[made.id] = each.elements
        else:
            found = np.where(inside, each.starts[rows] + places, -1)
            arrays[made.id] = tables.take_array(each.elements, found)
    if node.ordinality is not None:
        arrays[node.ordinality.id] = tables.from_numpy(places + 1)
    return Table(arrays, count)

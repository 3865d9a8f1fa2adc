"""Window functions over rows that are sorted once; results go back to where the rows came from."""

from __future__ import annotations

from functools import partial

from ....errors import Located
from ....plan.window.window_operator import WindowRows
from ...context import Context
from ...windows.window_places import rank_to_cut_at
from .. import table as tables
from ..memory.ask_memory import ask_window
from ..table import Table
from .frame_aggregates import aggregate_frames
from .places import HostRows, places_of
from .positions import position
from .ranked_rows import rows_up_to_rank


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

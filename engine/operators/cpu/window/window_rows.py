"""Window functions over rows that are sorted once; results go back to where the rows came from."""

from __future__ import annotations

import pyarrow as pa

from ....errors import Located
from ....plan.window.window_call import WindowCall
from ....plan.window.window_operator import WindowRows
from ...context import Context
from ..memory.ask_memory import ask_window
from ..table import Table
from .frame_aggregates import aggregate_frames
from .places import WindowPlaces, places_of
from .positions import POSITIONS


def window_rows(node: WindowRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    ask_window(node, table, context)
    places = places_of(table, node.partition, node.order)
    arrays = {c.id: table[c] for c in node.passed}
    for column, call in node.calls:
        context.check()
        with Located(call.span):
            arrays[column.id] = _computed(call, table, places, context)
    return Table(arrays, table.num_rows)


def _computed(call: WindowCall, table: Table, places: WindowPlaces, context: Context) -> pa.Array:
    if call.is_aggregate:
        return aggregate_frames(call, table, places, context)
    return POSITIONS[call.function](call, table, places)

"""Window functions that number rows, or pick the values of others, as Arrow arrays."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ....plan.expr import ColumnRef
from ....plan.window.window_call import WindowCall
from ...windows.window_places import argument
from ...windows.window_positions import NUMBERED, numbered, picked, shifted
from ..table import decode, from_numpy
from .places import HostRows


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

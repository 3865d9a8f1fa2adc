"""Window functions that number rows, or pick the values of others, as device columns."""

from __future__ import annotations

from ....plan.expr import ColumnRef
from ....plan.window.window_call import WindowCall
from ...windows.window_places import argument
from ...windows.window_positions import NUMBERED, numbered, picked, shifted
from ..columns import select, where_true
from ..dictionaries import Held, plain
from .device_array import column_of
from .places import DeviceRows


def position(call: WindowCall, rows: DeviceRows) -> Held:
    """Return a function of `functions.WINDOW` of each row, in the order of the input's rows."""
    places, table = rows.places, rows.table
    if call.function in NUMBERED:
        values, valid = numbered(call, rows)
        column = column_of(values)
        return places.at_rows(column if valid is None else where_true(column, column_of(valid)))
    held = table.columns[argument(call).id]
    if call.function not in ("lag", "lead"):
        return places.taken(held, picked(call, rows))
    found, outside = shifted(call, rows)
    taken = places.taken(held, found)
    default = call.args[2] if len(call.args) > 2 else None
    if not isinstance(default, ColumnRef) or not outside.any():
        return taken
    others = places.as_they_leave(table.columns[default.column.id])
    return select(plain(places.at_rows(column_of(outside))), plain(others), plain(taken))

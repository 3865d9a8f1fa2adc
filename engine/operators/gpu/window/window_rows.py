"""Window functions over rows that are sorted once; results go back to where the rows came from."""

from __future__ import annotations

from ....errors import Located
from ....plan.expr import ColumnRef
from ....plan.pipeline_steps import columns_read
from ....plan.types import Kind
from ....plan.window.window_call import WindowCall
from ....plan.window.window_operator import WindowRows
from ...context import Context
from ...windows.window_places import argument, rank_to_cut_at
from ...windows.window_positions import NUMBERED, numbered, picked, shifted
from .. import table as tables
from ..columns import empty, select, where_true
from ..dictionaries import Held, plain
from ..few_rows import run_on_host
from ..late_materialization import together
from ..memory.device import on_device
from ..sort.sort import led
from ..table import Table, device_type
from .device_array import column_of
from .frame_aggregates import aggregate_frames
from .places import DeviceRows, MarkedPlaces, places_of

READS_A_WRITE = 2  # at random, in the same time


@on_device
def window_rows(node: WindowRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    few = run_on_host(node, inputs, context) or _led(node, table, context)
    if few is not None:
        return few
    if not table.num_rows:
        return Table({c.id: empty(device_type(c.type)) for c in node.columns}, 0)
    stays = _stays(node)
    places = places_of(table, node.partition, node.order, stays)
    most = rank_to_cut_at(node, table.num_rows)
    if most is not None:
        wanted = places.up_to_rank(most)
        table = tables.gather(table, wanted, columns_read(node))
        places = places_of(table, node.partition, node.order, stays)
    rows = DeviceRows(table, places)
    made: dict[int, Held] = {}
    for column, call in node.calls:
        context.check()
        with Located(call.span):
            if call.is_aggregate:
                made[column.id] = aggregate_frames(call, rows, context)
            else:
                made[column.id] = position(call, rows)
    passed = tables.only(table, node.passed)
    if isinstance(places, MarkedPlaces) and places.stays:
        assert places.order is not None
        passed = tables.gather(passed, places.order, node.passed)
    return Table(together(passed.columns, made), table.num_rows)


def _led(node: WindowRows, table: Table, context: Context) -> Table | None:
    """Bring the first rows of one partition to the host, where no others are wanted: their ranks are the same without the rest.

    Two ranks up to 11 of 50,055 rows take 7 ms of TPC-DS Q44's 10.5 ms without it (SF10, H200).
    """
    most = rank_to_cut_at(node, table.num_rows)
    if most is None or node.partition or not node.order:
        return None
    key = node.order[0]
    few = led(table, key, node.input.columns, most)
    if few is None:
        return None
    return run_on_host(node, (Table(few, len(few.lying(key.column))),), context)


def _stays(node: WindowRows) -> bool:
    """Whether rows come out in the order of the window, of which SQL says nothing.

    A value that is read at random takes half as long as one that is written so (0.85 ms and 1.94 ms of 30 M on an H200), and texts
    longer.
    """
    few = len(node.passed) <= READS_A_WRITE * len(node.calls)
    return few and all(c.type.kind is not Kind.VARCHAR for c in node.passed)


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

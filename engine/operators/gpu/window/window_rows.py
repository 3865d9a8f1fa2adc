"""Window functions over rows that are sorted once; results go back to where the rows came from.

Aggregates over frames are folds of ranges where the function allows, else over the rows of each frame one after the other.
"""

from __future__ import annotations

import numpy as np
import pylibcudf as plc
from pylibcudf.interop import ColumnMetadata

from .... import stopping
from ....errors import Located
from ....plan import physical as p
from ....plan.expr import Column, ColumnRef, columns_of, new_column
from ....plan.functions import AGGREGATE
from ....plan.pipeline_steps import columns_read
from ....plan.types import INTEGER, Kind
from ....plan.window.window_call import WindowCall
from ....plan.window.window_operator import WindowRows
from ...context import Context
from ...windows.frames import Ranges, argument, rank_to_cut_at
from ...windows.wavelet import added, finished, moments_of_rows
from ...windows.window_positions import NUMBERED, numbered, picked, shifted
from .. import columns as col, table as tables
from ..aggregate.aggregate import AGGREGATES, arguments, coded_argument, hash_aggregate
from ..aggregate.groups import GroupedArgument, pick_held
from ..dictionaries import Coded, Held, plain
from ..distinct_rows import first_of_each
from ..few_rows import run_on_host
from ..join.join_pairs import UNMATCHED, in_a_pair
from ..late_materialization import together
from ..memory.device import on_device
from ..sort.sort import led
from ..table import Table, concat_held, device_type
from .device_array import as_array, as_rows, column_of
from .folds import FrameGroups, folded
from .places import DeviceRows, MarkedPlaces, pick_held_or_null, places_of

MOST_PAIRS = 1 << 26  # of a frame and a row of it that are looked at together


def aggregate_frames(call: WindowCall, rows: DeviceRows, context: Context) -> Held:
    """Return an aggregate over the frame of each row, in the order of the input's rows."""
    places, table = rows.places, rows.table
    columns: dict[int, Held] = {c.id: places.at_places(table.columns[c.id]) for c in _read(call)}
    groups = FrameGroups(call, rows, columns)
    row = AGGREGATE[call.function]
    distinct = call.distinct and bool(call.args) and not row.idempotent
    if distinct and groups.is_running:
        args, distinct = _first_of_equal(call, groups), False
    else:
        args = arguments(call.aggregate, groups)
    if distinct or call.order or row.keeps_values:
        return places.at_rows(_one_by_one(call, columns, groups.ranges, context))
    if row.moments:
        return places.at_rows(_moments(call, args, groups))
    coded = None if call.distinct else coded_argument(call.aggregate, groups)
    if coded is not None:
        args = [coded[0]]
    answer = AGGREGATES[call.function](call.aggregate, args, groups)
    groups.run()
    found = answer()
    return places.at_rows(found if coded is None else Coded(found, coded[1].keys))


def _read(call: WindowCall) -> set[Column]:
    """The columns that the aggregate reads, without those of the frame."""
    return set(columns_of(call.aggregate))


def _first_of_equal(call: WindowCall, groups: FrameGroups) -> list[GroupedArgument]:
    """Return arguments NULL but in the first rows with their values in each partition.

    That is all which DISTINCT leaves of frames that begin with the partition.
    """
    args = arguments(call.aggregate, groups)
    partition = column_of(groups.places.partition_numbers)
    first = first_of_each(plc.Table([partition, *(col.as_key(a.column) for a in args)]))
    keep = in_a_pair(first, groups.rows)
    return [GroupedArgument(("first", a.key), col.where_true(a.column, keep)) for a in args]


def _moments(call: WindowCall, args: list[GroupedArgument], groups: FrameGroups) -> plc.Column:
    columns = [col.cast(a.column, col.FLOAT64) for a in args]
    known = as_array(plc.unary.is_valid(columns[0]))
    for column in columns[1:]:
        known = known & as_array(plc.unary.is_valid(column))
    state = moments_of_rows([as_array(col.without_nulls(c, 0.0)) for c in columns], known)
    nothing = as_array(col.constant(0.0, col.FLOAT64, groups.count))
    values, there = finished(
        call.function, folded(state, added, groups.ranges, (nothing,) * len(state))
    )
    return col.where_true(column_of(values), column_of(there))


# Over the rows of each frame


def _one_by_one(
    call: WindowCall, columns: dict[int, Held], ranges: Ranges, context: Context
) -> Held:
    """Aggregate the rows of each frame, those of several frames together."""
    summed = plc.Table([column_of(np.cumsum(ranges.sizes))])
    ends = summed.to_arrow([ColumnMetadata("end")]).column(0).to_numpy()
    found: list[Held] = []
    start = 0
    while start < len(ranges):
        stopping.check()
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + MOST_PAIRS, "right")))
        found.append(_grouped(call, columns, ranges.at(slice(start, stop)), context))
        start = stop
    return found[0] if len(found) == 1 else concat_held(found)


def _grouped(call: WindowCall, columns: dict[int, Held], frames: Ranges, context: Context) -> Held:
    count = len(frames)
    frame, made = new_column("frame", INTEGER), new_column("made", call.type)
    codes, members = _pairs(frames)
    read = sorted(_read(call), key=lambda c: c.id)
    table = Table(
        {frame.id: codes, **{c.id: pick_held(columns[c.id], members) for c in read}}, codes.size()
    )
    source = p.ValuesScan((frame, *read), ())
    node = p.HashAggregate(source, (frame,), ((made, call.aggregate),))
    result = hash_aggregate(node, (table,), context)
    rows = plc.Table([col.constant(UNMATCHED, col.INT32, count)])
    if result.num_rows:
        numbers = plc.Table([col.sequence(result.num_rows)])
        rows = plc.copying.scatter(numbers, result[frame], rows)
    answer = pick_held_or_null(result.columns[made.id], rows.columns()[0])
    return col.without_nulls(plain(answer), 0) if AGGREGATE[call.function].counts else answer


def _pairs(frames: Ranges) -> tuple[plc.Column, plc.Column]:
    """Return for each row of each frame the frame's number and the row's place; those of a frame come in their order."""
    numbers = col.sequence(len(frames))
    codes, members = [], []
    for begin, end in frames.parts:
        sizes = end - begin
        total = int(sizes.sum())
        first = begin - (np.cumsum(sizes) - sizes)
        repeated = plc.filling.repeat(plc.Table([numbers, column_of(first)]), as_rows(sizes))
        code, start = repeated.columns()
        codes.append(code)
        members.append(
            as_rows(as_array(start) + as_array(col.sequence(total, data_type=col.INT64)))
        )
    return concat_held(codes), concat_held(members)


READS_A_WRITE = 2  # at random, in the same time


@on_device
def window_rows(node: WindowRows, inputs: tuple[Table, ...], context: Context) -> Table:
    (table,) = inputs
    few = run_on_host(node, inputs, context) or _led(node, table, context)
    if few is not None:
        return few
    if not table.num_rows:
        return Table({c.id: col.empty(device_type(c.type)) for c in node.columns}, 0)
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
    return run_on_host(node, (Table(few, len(few.held[key.column.id][1])),), context)


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
        return places.at_rows(column if valid is None else col.where_true(column, column_of(valid)))
    held = table.columns[argument(call).id]
    if call.function not in ("lag", "lead"):
        return places.taken(held, picked(call, rows))
    found, outside = shifted(call, rows)
    taken = places.taken(held, found)
    default = call.args[2] if len(call.args) > 2 else None
    if not isinstance(default, ColumnRef) or not outside.any():
        return taken
    others = places.as_they_leave(table.columns[default.column.id])
    return col.select(plain(places.at_rows(column_of(outside))), plain(others), plain(taken))

"""Aggregates that look at all values of a group together: quantiles, the mode, joined strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pylibcudf as plc

from ....plan.arrow.arrow_arrays import from_numpy
from ....plan.expr import AggregateCall, Literal
from ....plan.types import DataType
from ....records import dataclass
from ....storage.columns.device_encode import TIMESTAMPS
from ....storage.columns.encodings import Array
from ...cpu.aggregate.aggregate_order import between, neighbours, occurring
from ...cpu.table import physical_type, to_numpy
from .. import columns as col, few_rows
from ..join.join_pairs import UNMATCHED
from ..memory.to_host import numbers_on_host
from ..memory.upload import column_of, row_numbers
from ..sort.packed_keys import LIMIT, KeyDigit, numbered
from ..sort.sort import sorted_rows
from ..table import DONT_CHECK
from .aggregate_values import ordered_places
from .groups import INCLUDE, Answer, GroupedArgument, Groups, matching_order, pick

Op = plc.binaryop.BinaryOperator


def string_agg(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    """Values in the order of the rows, NULLs left out; NULL for a group without values."""
    (argument,) = args
    separator = call.args[1]
    assert isinstance(separator, Literal)
    count = groups.ask_rows()
    missing = argument.column.null_count() == groups.rows
    if separator.value is None or missing:
        return lambda: col.null_column(count().size(), col.TEXT)
    lists = groups.ask(argument, "collect")
    combine = plc.strings.combine

    def join() -> plc.Column:
        return combine.join_list_elements(
            lists(),
            col.scalar(separator.value, col.TEXT),
            col.scalar("", col.TEXT),
            col.scalar("", col.TEXT),
            combine.SeparatorOnNulls.NO,
            combine.OutputIfEmptyList.NULL_ELEMENT,
        )

    return join


def quantile_cont(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    return _continuous(call, args[0], groups, call.fraction)


def quantile_disc(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    """A value that occurs: the ceil(n * fraction)-th, for 0 the first."""
    fraction = col.scalar(call.fraction, col.FLOAT64)
    groups.need()

    def find() -> plc.Column:
        if not _has_values(args[0].column):
            return col.null_column(groups.count, args[0].column.type())
        values = _sorted_values(call, args[0], groups)
        if isinstance(values, _SortedNumbers):
            return values.discrete(call.fraction)
        left = col.binary(
            values.sizes,
            col.binary(values.sizes, fraction, Op.MUL, col.FLOAT64),
            Op.SUB,
            col.FLOAT64,
        )
        place = col.binary(values.sizes, _floor(left), Op.SUB, col.FLOAT64)
        place = col.binary(place, col.scalar(1.0, col.FLOAT64), Op.NULL_MAX, col.FLOAT64)
        return values.at(col.binary(place, col.scalar(1.0, col.FLOAT64), Op.SUB, col.FLOAT64))

    return find


def mode(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    """The most frequent value, of several the one that occurs first."""
    (argument,) = args
    groups.need()

    def find() -> plc.Column:
        if not _has_values(argument.column):
            return col.null_column(groups.count, argument.column.type())
        rows = plc.Table([*groups.keys, col.as_key(argument.column), groups.row_numbers()])
        width = len(groups.keys)
        *keys, numbers = plc.stream_compaction.drop_nulls(rows, [width], 1).columns()
        aggregations = [plc.aggregation.count(INCLUDE), plc.aggregation.min()]
        request = plc.groupby.GroupByRequest(numbers, aggregations)
        distinct, (found,) = plc.groupby.GroupBy(plc.Table(keys), INCLUDE).aggregate([request])
        frequency, first = found.columns()
        # Within a group by descending frequency, then by first occurrence: the first of each group wins.
        order = [(True, False), (False, False)]
        places = ordered_places("mode", [frequency, first], order)
        owners = list(distinct.columns())[:width]
        members = Groups(owners, first.size(), {})
        winner = members.ask(places.argument, "min")
        members.run()
        assert places.rows is not None
        row = pick(first, pick(places.rows, winner()))
        if groups.keys:
            order = matching_order(groups.group_keys, members.group_keys)
            row = col.without_nulls(pick(row, order, nullify=True), UNMATCHED)
        return pick(argument.column, row, nullify=True)

    return find


def _has_values(column: plc.Column) -> bool:
    return bool(column.null_count() < column.size())


@dataclass(frozen=True)
class _Sorted:
    """The values of each group in ascending order without NULL, group after group; of each group, in the order of the result, how many and where."""

    column: plc.Column
    starts: plc.Column  # INT32, `UNMATCHED` for a group without values
    sizes: plc.Column  # FLOAT64

    def at(self, places: plc.Column) -> plc.Column:
        """Return the value at a FLOAT64 place of each group, NULL for an empty group."""
        rows = col.binary(self.starts, col.cast(places, col.INT32), Op.ADD, col.INT32)
        return pick(self.column, rows, nullify=True)

    def between(self, fraction: float, data_type: DataType) -> plc.Column:
        """Return the interpolated value at `fraction` of the way through each of few groups: the host mixes neighbours in less time than launches take."""
        starts, sizes = numbers_on_host(self.starts, self.sizes)

        def at(rows: Array) -> Array:
            return numbers_on_host(pick(self.column, row_numbers(rows)))[0]

        sizes = sizes.astype(np.int64)
        return _interpolated(starts, sizes, at, fraction, self.column.type(), data_type)


@dataclass(frozen=True)
class _SortedNumbers:
    """The same of few groups as sorted numbers of a group and a value each, which take no gathering of rows; where groups lie is known to the host."""

    numbers: plc.Column
    value: KeyDigit
    starts: Array
    sizes: Array
    kind: plc.DataType

    def _values(self, rows: Array) -> Array:
        (found,) = numbers_on_host(pick(self.numbers, row_numbers(rows)))
        return self.value.values(found.astype(np.int64) % self.value.size)

    def discrete(self, fraction: float) -> plc.Column:
        """Return a value that occurs."""
        some = self.sizes > 0
        found = self._values(np.where(some, self.starts + occurring(self.sizes, fraction), 0))
        return column_of(found.astype(col.NUMBERS[self.kind.id()]), some, self.kind)

    def between(self, fraction: float, data_type: DataType) -> plc.Column:
        """Return the interpolated value at `fraction` of the way through each group."""
        return _interpolated(self.starts, self.sizes, self._values, fraction, self.kind, data_type)


def _interpolated(
    starts: Array,
    sizes: Array,
    at: Callable[[Array], Array],
    fraction: float,
    kind: plc.DataType,
    data_type: DataType,
) -> plc.Column:
    """Return values between neighbours, which `at` gives by their rows, NULL for a group without values."""
    below, above, weight = neighbours(sizes, fraction)
    some, half = sizes > 0, len(starts)
    found = at(np.where(np.tile(some, 2), np.concatenate([starts + below, starts + above]), 0))
    arrow = physical_type(data_type)
    low, high = (from_numpy(part, some, arrow) for part in (found[:half], found[half:]))
    return column_of(to_numpy(between(low, high, weight)), some, kind)


def _sorted_values(
    call: AggregateCall, argument: GroupedArgument, groups: Groups
) -> _Sorted | _SortedNumbers:
    descending = bool(call.order) and call.order[0].descending

    def sort() -> _Sorted | _SortedNumbers:
        column, width = argument.column, len(groups.keys)
        table = plc.Table([*groups.keys, column])
        if column.null_count():
            table = plc.stream_compaction.drop_nulls(table, [width], 1)
        found = _sort_numbers(table, groups, descending)
        return _sort(table, groups, descending) if found is None else found

    return groups.once(("sorted", argument.key, descending), sort)


def _sort_numbers(table: plc.Table, groups: Groups, descending: bool) -> _SortedNumbers | None:
    """Sort rows of few groups by one number alone; None for many, and for keys and values that are no integers of few places."""
    *keys, column = table.columns()
    if groups.count > few_rows.MOST_ROWS or col.is_float(column):
        return None
    directions = [(False, False)] * len(keys) + [(descending, False)]
    found = numbered([*keys, col.as_integers(column)], directions, LIMIT)
    if found is None:
        return None
    *digits, value = found.digits
    slots = found.places // value.size
    if slots > few_rows.MOST_ROWS:
        return None
    order, nulls = [plc.types.Order.ASCENDING], [plc.types.NullOrder.AFTER]
    ordered = plc.sorting.sort(plc.Table([found.numbers]), order, nulls)
    kind = found.numbers.type()
    bounds = (np.arange(slots + 1) * value.size).astype(col.NUMBERS[kind.id()])
    ends = plc.search.lower_bound(ordered, plc.Table([column_of(bounds, None, kind)]), order, nulls)
    given = [replace(d, key=k).numbers() for d, k in zip(digits, groups.group_keys, strict=True)]
    ends_there, *places = numbers_on_host(ends, *given)
    # A group of NULLs alone may have a key that no other row has
    some, slot = np.ones(groups.count, np.bool_), np.zeros(groups.count, np.int64)
    for digit, place in zip(digits, places, strict=True):
        some &= (place >= 0) & (place < digit.size)
        slot = slot * digit.size + np.where(some, place, 0)
    slot = np.where(some, slot, 0)
    starts = ends_there[slot].astype(np.int64)
    sizes = np.where(some, ends_there[slot + 1] - starts, 0)
    return _SortedNumbers(ordered.columns()[0], value, starts, sizes, column.type())


def _sort(table: plc.Table, groups: Groups, descending: bool) -> _Sorted:
    directions = [(False, False)] * len(groups.keys) + [(descending, False)]
    order = sorted_rows(table.columns(), directions)
    *keys, values = plc.copying.gather(table, order, DONT_CHECK).columns()
    if not keys:
        return _Sorted(
            values,
            col.constant(0, col.INT32, 1),
            col.constant(float(values.size()), col.FLOAT64, 1),
        )
    sorted_keys = plc.groupby.GroupBy(plc.Table(keys), INCLUDE, plc.types.Sorted.YES)
    request = plc.groupby.GroupByRequest(values, [plc.aggregation.count(INCLUDE)])
    group_keys, (counted,) = sorted_keys.aggregate([request])
    sizes = counted.columns()[0]
    starts = plc.reduce.scan(sizes, plc.aggregation.sum(), plc.reduce.ScanType.EXCLUSIVE)
    place = matching_order(groups.group_keys, list(group_keys.columns()))
    starts, sizes = (pick(c, place, nullify=True) for c in (col.cast(starts, col.INT32), sizes))
    return _Sorted(
        values,
        col.without_nulls(starts, UNMATCHED),
        col.cast(col.without_nulls(sizes, 0), col.FLOAT64),
    )


def _continuous(
    call: AggregateCall, argument: GroupedArgument, groups: Groups, fraction: float
) -> Answer:
    """The value at `fraction` of the way through the sorted group, interpolated between two neighbours."""
    groups.need()

    def interpolate() -> plc.Column:
        if not _has_values(argument.column):
            return col.null_column(groups.count, argument.column.type())
        values = _sorted_values(call, argument, groups)
        if isinstance(values, _SortedNumbers) or groups.count <= few_rows.MOST_ROWS:
            return values.between(fraction, call.type)
        last = col.binary(values.sizes, col.scalar(1.0, col.FLOAT64), Op.SUB, col.FLOAT64)
        last = col.binary(last, col.scalar(0.0, col.FLOAT64), Op.NULL_MAX, col.FLOAT64)
        place = col.binary(last, col.scalar(fraction, col.FLOAT64), Op.MUL, col.FLOAT64)
        below = _floor(place)
        above = plc.unary.unary_operation(place, plc.unary.UnaryOperator.CEIL)
        weight = col.binary(place, below, Op.SUB, col.FLOAT64)
        mix = _between_floats if call.type.is_float else _between_integers
        return mix(values.at(below), values.at(above), weight)

    return interpolate


def _between_integers(low: plc.Column, high: plc.Column, weight: plc.Column) -> plc.Column:
    """Timestamps, rounded to the nearest, halves up, or unscaled decimals, rounded towards zero."""
    a, b = col.as_integers(low), col.as_integers(high)
    distance = col.cast(col.binary(b, a, Op.SUB, col.INT64), col.FLOAT64)
    step = _float(distance, weight, Op.MUL)
    whole = _floor(step)
    rest = _float(step, whole, Op.SUB)
    mixed = col.binary(a, col.cast(whole, col.INT64), Op.ADD, col.INT64)
    zero, half = col.scalar(0, col.INT64), col.scalar(0.5, col.FLOAT64)
    if low.type().id() in TIMESTAMPS.values():
        up = col.binary(rest, half, Op.GREATER_EQUAL, col.BOOL)
        return col.reinterpret(
            col.binary(mixed, col.cast(up, col.INT64), Op.ADD, col.INT64), low.type()
        )
    some = col.binary(rest, col.scalar(0.0, col.FLOAT64), Op.GREATER, col.BOOL)
    up = col.binary(col.binary(mixed, zero, Op.LESS, col.BOOL), some, Op.LOGICAL_AND, col.BOOL)
    mixed = col.binary(mixed, col.cast(up, col.INT64), Op.ADD, col.INT64)
    # DuckDB rounds the whole sum to a double; from 2^53 on that would lose digits.
    total = _rounded_once(col.cast(a, col.FLOAT64), distance, weight)
    size = plc.unary.unary_operation(total, plc.unary.UnaryOperator.ABS)
    exact = col.binary(size, col.scalar(2.0**53, col.FLOAT64), Op.LESS, col.BOOL)
    return col.reinterpret(
        col.select(col.without_nulls(exact, False), col.cast(total, col.INT64), mixed), low.type()
    )


def _rounded_once(base: plc.Column, distance: plc.Column, weight: plc.Column) -> plc.Column:
    """Return base + distance * weight with one rounding, from the rounding errors of the product and of the sum.

    Dekker, A floating-point technique for extending the available precision, 1971.
    """
    product = _float(distance, weight, Op.MUL)
    (d, d_low), (w, w_low) = _halves(distance), _halves(weight)
    error = _float(_float(d, w, Op.MUL), product, Op.SUB)
    for one, other in ((d, w_low), (d_low, w), (d_low, w_low)):
        error = _float(error, _float(one, other, Op.MUL), Op.ADD)
    total = _float(base, product, Op.ADD)
    added = _float(total, base, Op.SUB)
    lost = _float(base, _float(total, added, Op.SUB), Op.SUB)
    lost = _float(lost, _float(product, added, Op.SUB), Op.ADD)
    return _float(total, _float(lost, error, Op.ADD), Op.ADD)


def _halves(column: plc.Column) -> tuple[plc.Column, plc.Column]:
    """Split doubles into two of 26 bits, whose products are exact."""
    far = _float(column, col.scalar(float((1 << 27) + 1), col.FLOAT64), Op.MUL)
    high = _float(far, _float(far, column, Op.SUB), Op.SUB)
    return high, _float(column, high, Op.SUB)


def _float(
    left: plc.Column, right: plc.Column | plc.Scalar, operator: plc.binaryop.BinaryOperator
) -> plc.Column:
    return col.binary(left, right, operator, col.FLOAT64)


def _between_floats(low: plc.Column, high: plc.Column, weight: plc.Column) -> plc.Column:
    """Mix doubles by their weights and floats by their difference, as DuckDB; a neighbour that is not needed must not make it NaN."""
    data_type = low.type()
    if data_type.id() == col.FLOAT64.id():
        rest = col.binary(col.scalar(1.0, col.FLOAT64), weight, Op.SUB, col.FLOAT64)
        low_share = col.binary(low, rest, Op.MUL, col.FLOAT64)
        mixed = col.binary(
            low_share, col.binary(high, weight, Op.MUL, col.FLOAT64), Op.ADD, col.FLOAT64
        )
    else:
        step = col.binary(col.binary(high, low, Op.SUB, data_type), weight, Op.MUL, col.FLOAT64)
        mixed = col.cast(col.binary(low, step, Op.ADD, col.FLOAT64), data_type)
    exact = col.binary(weight, col.scalar(0.0, col.FLOAT64), Op.EQUAL, col.BOOL)
    return col.select(exact, low, mixed)


def _floor(column: plc.Column) -> plc.Column:
    return plc.unary.unary_operation(column, plc.unary.UnaryOperator.FLOOR)

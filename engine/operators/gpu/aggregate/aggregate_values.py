"""Aggregates that count rows or pick one of the values: extremes, first and last, bits.

A value is picked by its place: each row has a number in the order that counts (of the input, or of a sort), libcudf finds the
smallest number of each group by hashing, and the value is gathered from that row at the end.
"""

from __future__ import annotations

import pylibcudf as plc

from ....plan.expr import AggregateCall, ColumnRef
from ....records import dataclass
from .. import columns as col
from ..join.join_pairs import UNMATCHED
from ..sort.sort import sorted_rows
from ..table import count_true
from .groups import Answer, GroupedArgument, Groups, pick
from .text_extremes import text_extreme


@dataclass(frozen=True)
class OrderedPlaces:
    """Rows in an order: `rows[p]` is the row at place p, None when that is p itself; `argument` the place of each row."""

    argument: GroupedArgument
    rows: plc.Column | None

    def among(self, valid: plc.Column | None, key: object) -> OrderedPlaces:
        """Leave out the rows where `valid` is not TRUE."""
        if valid is None:
            return self
        column = col.where_true(self.argument.column, valid)
        return OrderedPlaces(GroupedArgument((self.argument.key, key), column), self.rows)


def count_star(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    """`args` is empty, or the FILTER column with NULL for the rows that it leaves out."""
    return groups.ask_count(args[0]) if args else groups.ask_rows()


def count(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    return groups.ask_count(args[0])


def bits(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    return groups.ask(args[0], call.function)


def first(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    return _picked(args[0], places_in_order(call, groups), groups, "min")


def last(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    return _picked(args[0], places_in_order(call, groups), groups, "max")


def any_value(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    """The first value that is not NULL."""
    places = places_in_order(call, groups).among(_valid(args[0].column), ("valid", args[0].key))
    return _picked(args[0], places, groups, "min")


def extreme(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    """Ask for the extreme of the integers behind a column, for which the hardware has an instruction, or of many texts."""
    (argument,), aggregation = args, call.function
    column = argument.column
    by_kernel = text_extreme(argument, groups, aggregation)
    if by_kernel is not None:
        return by_kernel
    if col.is_float(column):
        return _float_extreme(argument, groups, aggregation)
    bits = col.as_integers(column)
    if bits is column:
        return groups.ask(argument, aggregation)
    found = groups.ask(argument.derive("integers", bits), aggregation)
    return lambda: col.reinterpret(found(), column.type())


def _float_extreme(argument: GroupedArgument, groups: Groups, aggregation: str) -> Answer:
    """NaN is the greatest value, which the hardware's minimum and maximum do not know."""
    column = argument.column
    nan = groups.once(("is nan", argument.key), lambda: _is_nan(column))
    if not groups.once(("has nan", argument.key), lambda: count_true(nan)):
        return groups.ask(argument, aggregation)
    numbers = groups.once(
        ("numbers", argument.key), lambda: col.where_true(column, col.negate(nan))
    )
    extreme = groups.ask(argument.derive("numbers", numbers), aggregation)
    # min: NaN where there are values and all are NaN.  max: NaN where any value is.
    decisive = groups.ask(argument.derive("is nan", nan), aggregation)
    not_a_number = col.scalar(float("nan"), column.type())

    def settle() -> plc.Column:
        return col.select(col.without_nulls(decisive(), False), not_a_number, extreme())

    return settle


def _is_nan(column: plc.Column) -> plc.Column:
    """Whether each value is NaN, NULL for NULL."""
    nan = plc.unary.is_nan(column)
    return col.where_true(nan, plc.unary.is_valid(column)) if column.null_count() else nan


def places_in_order(call: AggregateCall, groups: Groups) -> OrderedPlaces:
    """Number the rows in the order that the call asks for, by default the input's."""
    if not call.order:
        return _filtered(
            OrderedPlaces(GroupedArgument("row numbers", groups.row_numbers()), None), call, groups
        )
    keys = [groups.source(k.expr.column) for k in call.order if isinstance(k.expr, ColumnRef)]
    directions = [
        (k.descending, k.nulls_first) for k in call.order if isinstance(k.expr, ColumnRef)
    ]
    key = ("order", tuple(k.key for k in keys), tuple(directions))
    columns = [k.column for k in keys]
    places = groups.once(key, lambda: ordered_places(key, columns, directions))
    return _filtered(places, call, groups)


def _filtered(places: OrderedPlaces, call: AggregateCall, groups: Groups) -> OrderedPlaces:
    """Leave out the rows that FILTER excludes, which matters where NULL is a value."""
    if not isinstance(call.filter, ColumnRef):
        return places
    keep = groups.source(call.filter.column)
    return places.among(keep.column, keep.key)


def ordered_places(
    key: object, columns: list[plc.Column], directions: list[tuple[bool, bool]]
) -> OrderedPlaces:
    rows = sorted_rows(columns, directions)
    numbers = col.sequence(rows.size())
    (places,) = plc.copying.scatter(plc.Table([numbers]), rows, plc.Table([numbers])).columns()
    return OrderedPlaces(GroupedArgument(key, places), rows)


def _picked(
    argument: GroupedArgument, places: OrderedPlaces, groups: Groups, aggregation: str
) -> Answer:
    """Gather the value at the first (min) or last (max) place of each group, NULL for none."""
    place = groups.ask(places.argument, aggregation)

    def gather() -> plc.Column:
        rows = col.without_nulls(place(), UNMATCHED)
        if places.rows is not None:
            rows = col.without_nulls(pick(places.rows, rows, nullify=True), UNMATCHED)
        return pick(argument.column, rows, nullify=True)

    return gather


def value_at_extreme(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    """The value of the first row with the extreme key; rows with NULL in either do not count."""
    (value, by), descending = args, call.function == "arg_max"
    key = ("extreme", by.key, descending)
    places = groups.once(key, lambda: ordered_places(key, [by.column], [(descending, False)]))
    for argument in args:
        places = places.among(_valid(argument.column), ("valid", argument.key))
    return _picked(value, places, groups, "min")


def _valid(column: plc.Column) -> plc.Column | None:
    return plc.unary.is_valid(column) if column.null_count() else None

"""Variance, covariance and correlation: a first pass finds the means of the groups, a second one adds up products of the distances.

Sums of squares in one pass, as libcudf makes them, lose most digits when the mean is large.
"""

from __future__ import annotations

import pylibcudf as plc

from ....plan.expr import AggregateCall
from ....plan.functions import AGGREGATE
from .. import columns as col
from .aggregate_sums import as_double, float_sum
from .groups import Answer, GroupedArgument, Groups, matching_order, pick

Op = plc.binaryop.BinaryOperator
Unary = plc.unary.UnaryOperator


def corr(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    """NaN where a side does not vary, a single row included; NULL without rows."""
    x, y = _pairs(args, groups)
    distance_x, distance_y = _distances(x, groups), _distances(y, groups)
    count = groups.ask_count(x)

    def divide() -> plc.Column:
        dx, dy = distance_x(), distance_y()
        products = [_product(dx, dy), _product(dx, dx), _product(dy, dy)]
        shared, of_x, of_y = _added(products, ("corr", x.key, y.key), groups)
        spread = _product(*(plc.unary.unary_operation(s, Unary.SQRT) for s in (of_x, of_y)))
        return _where_more_than(0, count(), col.binary(shared, spread, Op.DIV, col.FLOAT64))

    return divide


def variance(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    """Over `count - ddof`; NULL where that is not positive, 0 for one value, infinite or NaN though it may be."""
    row, values = AGGREGATE[call.function], as_double(args[0], groups)
    distances = _distances(values, groups)
    count = groups.ask_count(values)

    def settle() -> plc.Column:
        steps = distances()
        squares, rest = _added([_product(steps, steps), steps], ("squares", values.key), groups)
        # The distances would add up to 0 but for the rounding of the mean.
        correction = col.binary(_product(rest, rest), count(), Op.DIV, col.FLOAT64)
        size = plc.unary.unary_operation(correction, Unary.ABS)
        infinite = col.true_mask(
            col.binary(size, col.scalar(float("inf"), col.FLOAT64), Op.EQUAL, col.BOOL)
        )
        correction = col.select(infinite, col.scalar(0.0, col.FLOAT64), correction)
        corrected = col.binary(squares, correction, Op.SUB, col.FLOAT64)
        divisor = col.binary(count(), col.scalar(row.ddof, col.INT64), Op.SUB, col.INT64)
        alone = col.binary(count(), col.scalar(1, col.INT64), Op.EQUAL, col.BOOL)
        variance = col.binary(corrected, divisor, Op.DIV, col.FLOAT64)
        variance = col.select(alone, col.scalar(0.0, col.FLOAT64), variance)
        found = _where_more_than(row.ddof, count(), variance)
        return plc.unary.unary_operation(found, Unary.SQRT) if row.root else found

    return settle


def covariance(call: AggregateCall, args: list[GroupedArgument], groups: Groups) -> Answer:
    ddof = AGGREGATE[call.function].ddof
    x, y = _pairs(args, groups)
    distance_x, distance_y = _distances(x, groups), _distances(y, groups)
    count = groups.ask_count(x)

    def settle() -> plc.Column:
        product = _product(distance_x(), distance_y())
        (shared,) = _added([product], ("covariance", x.key, y.key), groups)
        divisor = col.binary(count(), col.scalar(ddof, col.INT64), Op.SUB, col.INT64)
        return _where_more_than(ddof, count(), col.binary(shared, divisor, Op.DIV, col.FLOAT64))

    return settle


def _pairs(args: list[GroupedArgument], groups: Groups) -> list[GroupedArgument]:
    """Two arguments, each NULL wherever the other one is."""
    x, y = (as_double(a, groups) for a in args)
    return [_beside(x, y, groups), _beside(y, x, groups)]


def _beside(argument: GroupedArgument, other: GroupedArgument, groups: Groups) -> GroupedArgument:
    if not other.column.null_count():
        return argument
    key = ("beside", argument.key, other.key)
    valid = plc.unary.is_valid(other.column)
    return GroupedArgument(key, groups.once(key, lambda: col.where_true(argument.column, valid)))


def _distances(values: GroupedArgument, groups: Groups) -> Answer:
    """Ask for the mean of each group; the answer is the distance of each row from it."""
    total, count = float_sum(values, groups), groups.ask_count(values)

    def subtract() -> plc.Column:
        means = col.binary(total(), count(), Op.DIV, col.FLOAT64)
        column = values.column
        if not groups.keys:
            return col.binary(column, means.to_scalar(), Op.SUB, col.FLOAT64)
        return col.binary(column, pick(means, _group_of_row(groups)), Op.SUB, col.FLOAT64)

    return lambda: groups.once(("distances", values.key), subtract)


def _group_of_row(groups: Groups) -> plc.Column:
    """Return for each row the place of its group in the answers."""
    return groups.once("group of row", lambda: matching_order(groups.keys, groups.group_keys))


def _added(columns: list[plc.Column], key: object, groups: Groups) -> list[plc.Column]:
    """Return the sum of each column in each group."""
    return groups.once(("added", key), lambda: _second_pass(columns, groups))


def _second_pass(columns: list[plc.Column], groups: Groups) -> list[plc.Column]:
    if not groups.rows:
        return [col.null_column(groups.count, col.FLOAT64) for _ in columns]
    keys = [_group_of_row(groups)] if groups.keys else []
    members = Groups(keys, groups.rows, {}, groups.deterministic)
    sums = [float_sum(GroupedArgument(i, column), members) for i, column in enumerate(columns)]
    members.run()
    found = [answer() for answer in sums]
    if not groups.keys:
        return found
    numbers = members.group_keys[0]
    return [
        plc.copying.scatter(plc.Table([f]), numbers, plc.Table([f])).columns()[0] for f in found
    ]


def _product(left: plc.Column, right: plc.Column) -> plc.Column:
    return col.binary(left, right, Op.MUL, col.FLOAT64)


def _where_more_than(least: int, count: plc.Column, answer: plc.Column) -> plc.Column:
    enough = col.binary(count, col.scalar(least, col.INT64), Op.GREATER, col.BOOL)
    return col.select(enough, answer, col.scalar(None, col.FLOAT64))

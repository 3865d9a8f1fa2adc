"""Moments made of numbers, and what clocks of a zone show at them: a search in the table of the zone's changes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pylibcudf as plc

from ....plan.arrow.arrow_arrays import array_from
from ....plan.expr import Call, Literal
from ....plan.temporal import zones
from ....plan.types import Kind
from ..columns import BOOL, INT32, INT64, cast, reinterpret
from ..table import device_type
from .values import Constant, Kernel, RowScope, Value, as_column, binary, integers, null, settled

Op = plc.binaryop.BinaryOperator
SURE_MICROS = 1 << 62  # within which a number is a moment


def make_timestamp(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    """Of microseconds since 1970."""
    column = as_column(args[0], scope.rows)
    micros = as_column(integers(column, INT64), scope.rows)
    usual = _between(micros, -SURE_MICROS, SURE_MICROS)
    return settled(call, scope, column, reinterpret(micros, device_type(call.type)), usual)


def timezone(call: Call, scope: RowScope, args: tuple[Value, ...]) -> Value:
    zone = call.args[0]  # whose value is a column where the moments are a constant too
    if not isinstance(zone, Literal) or not isinstance(zone.value, str):
        return null(call.type)
    column = as_column(args[1], scope.rows)
    micros = as_column(integers(column), scope.rows)
    to_local = call.type.kind is not Kind.TIMESTAMPTZ
    table, offsets, first, last = _changes(zone.value, to_local)
    none = plc.types.NullOrder.BEFORE
    after = plc.search.upper_bound(table, plc.Table([micros]), [plc.types.Order.ASCENDING], [none])
    place = binary(cast(after, INT32), Constant(1, INT32), Op.SUB, INT32)
    policy = plc.copying.OutOfBoundsPolicy.NULLIFY
    (offset,) = plc.copying.gather(offsets, place, policy).columns()
    shown = binary(micros, offset, Op.ADD if to_local else Op.SUB, INT64)
    usual = _between(micros, first, last)
    return settled(
        call, scope, column, reinterpret(shown, device_type(call.type)), usual, argument=1
    )


def _between(micros: plc.Column, first: int, last: int) -> plc.Column:
    """Whether numbers are at least the first bound and below the last."""
    least = binary(micros, Constant(first, INT64), Op.GREATER_EQUAL, BOOL)
    return binary(least, binary(micros, Constant(last, INT64), Op.LESS, BOOL), Op.LOGICAL_AND, BOOL)


@lru_cache(maxsize=16)
def _changes(name: str, to_local: bool) -> tuple[plc.Table, plc.Table, int, int]:
    """Return when a zone's offsets begin, in UTC or by its own clocks, the offsets, and between which moments they hold."""
    zone = zones.zone(name)
    begins = zone.begins if to_local else zone.begins + zone.offsets
    table, offsets = (
        plc.Table([plc.Column.from_arrow(array_from(v))]) for v in (begins, zone.offsets)
    )
    return table, offsets, int(begins[0]), zones.END - int(np.abs(zone.offsets).max())


def _timezone_refusal(call: Call) -> str | None:
    if isinstance(call.args[0], Literal):
        return None
    return f"{call.function}() with a column as its zone"


def _made_refusal(call: Call) -> str | None:
    return None if len(call.args) == 1 else f"{call.function}() of year, month and day"


KERNELS: dict[str, Kernel] = {"make_timestamp": make_timestamp, "timezone": timezone}
REFUSALS = {"make_timestamp": _made_refusal, "timezone": _timezone_refusal}

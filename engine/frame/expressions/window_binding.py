"""Windows of expressions that are bound: which of their calls get one, and what a written frame means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal as OneOf, cast as typed, get_args

from ...errors import InvalidQuery, WrongArguments, shown
from ...plan import infer
from ...plan.expr import AggregateCall, Expr, SortKey
from ...plan.functions import WINDOW, window_name
from ...plan.window.window_call import WHOLE, Exclude, Over, Side, Unit, WindowCall, WindowFrame
from ...plan.window.windowed import (
    FrameBounds,
    check_sides,
    default_frame,
    framed,
    is_framed,
    over,
    range_bounds,
    rows_offset,
    without_order,
)
from .unbound import Resolve, Unbound, operand

_UNITS = get_args(Unit)
_EXCLUDED = get_args(Exclude)


def window_function(
    function: str,
    args: Sequence[Unbound],
    ignore_nulls: bool = False,
    frame: WindowFrame | None = None,
) -> Unbound:
    """Return the call of a window function that is no aggregate, before it has a window; `frame` is one that it always has."""

    def bind(resolve: Resolve) -> Expr:
        typed_args, result = infer.typed(WINDOW[function], [a.bind(resolve) for a in args], None)
        own = frame or (WindowFrame() if is_framed(function) else WHOLE)
        return WindowCall(function, typed_args, result, own, ignore_nulls=ignore_nulls)

    nulls = " IGNORE NULLS" if ignore_nulls else ""
    return Unbound(bind, f"{function}({', '.join(a.name for a in args)}{nulls})")


def windowed(
    expr: Expr,
    partition: tuple[Expr, ...],
    order: tuple[SortKey, ...],
    given: FrameBounds | None = None,
) -> Expr | None:
    """Return an expression with its aggregates and window functions over a window; None where it has none.

    A call that has its order already, as that of a rank, gets the partition.
    """
    match expr:
        case Over(partition=(), order=own):
            if own and not order and given is None:
                return Over(expr.call, partition, own, expr.span)
            raise InvalidQuery("over() follows an expression that is over a window already.")
        case Over():
            raise InvalidQuery("over() follows an expression that is over a window already.")
        case AggregateCall():
            named = window_name(expr.function)  # of the first and last row
            bounds = given or FrameBounds(default_frame(order))
            call = framed(expr, bounds)
            if named is not None and isinstance(call, WindowCall):
                call = replace(call, function=named)
            return over(call, partition, order)
        case WindowCall():
            return Over(_placed(expr, order, given), partition, order)
    found = [windowed(child, partition, order, given) for child in expr.children]
    if all(child is None for child in found):
        return None
    pairs = zip(expr.children, found, strict=True)
    return expr.with_children([old if new is None else new for old, new in pairs])


def _placed(call: WindowCall, order: tuple[SortKey, ...], given: FrameBounds | None) -> WindowCall:
    """Return a window function with the frame that `over` says, where it has none of its own."""
    framed_by = call.function in WINDOW and is_framed(call.function)
    if call.frame != WindowFrame() or not framed_by:
        if given is not None:
            raise InvalidQuery(f"{call.function} takes no frame, or has one already.")
        return call
    if given is None:
        return replace(call, frame=default_frame(order))
    return replace(
        call,
        frame=given.frame,
        start=given.start,
        end=given.end,
        key=given.key,
        descending=given.descending,
    )


def over_all(expr: Expr) -> Expr:
    """Return an expression whose window functions without `over` see the rows of the whole frame."""
    if isinstance(expr, Over):
        inner = [over_all(child) for child in expr.call.children]
        partition, order = map(over_all, expr.partition), map(over_all, expr.order)
        return expr.with_children([expr.call.with_children(inner), *partition, *order])
    expr = expr.with_children([over_all(child) for child in expr.children])
    if isinstance(expr, WindowCall):
        return Over(_placed(expr, (), None))
    return expr


def written_frame(
    frame: object, exclude: object
) -> Callable[[tuple[SortKey, ...], Resolve], FrameBounds]:
    """Return what binds a frame to the order of its window."""
    parts = list(frame) if isinstance(frame, list | tuple) else []
    unit = parts.pop(0) if len(parts) == 3 else "rows"
    if len(parts) != 2 or unit not in _UNITS:
        raise WrongArguments(
            f'`frame` is (start, end) or ("rows" | "range" | "groups", start, end), not {shown(frame)}.'
        )
    if exclude not in _EXCLUDED:
        raise InvalidQuery(f"`exclude` is one of {', '.join(_EXCLUDED)}, not {shown(exclude)}.")
    (start, first), (end, last) = _side(parts[0], "preceding"), _side(parts[1], "following")
    check_sides(start, end)
    whole = WindowFrame(typed("Unit", unit), start, end, typed("Exclude", exclude))

    def bind(order: tuple[SortKey, ...], resolve: Resolve) -> FrameBounds:
        offsets = [None if o is None else o.bind(resolve) for o in (first, last)]
        if unit == "range" and offsets != [None, None]:
            return range_bounds(whole, offsets[0], offsets[1], order)
        placed = whole if order else without_order(whole)
        return FrameBounds(placed, rows_offset(offsets[0], placed), rows_offset(offsets[1], placed))

    return bind


def _side(value: object, unbounded: OneOf["preceding", "following"]) -> tuple[Side, Unbound | None]:
    """Return one side of a frame and its offset, which is below zero, or is a negative interval, where it lies before the row."""
    if value is None:
        return typed("Side", f"unbounded {unbounded}"), None
    if isinstance(value, Unbound):
        return unbounded, value
    number: Any = value
    try:
        zero = number * 0
        if number == zero:
            return "current row", None
        before = number < zero
    except TypeError as error:
        raise WrongArguments(
            f"A frame starts and ends at a number, a timedelta, an expression or None, not at {shown(value)}."
        ) from error
    return ("preceding", operand(-number)) if before else ("following", operand(number))


def specification(partition: Sequence[Unbound], order: Sequence[Unbound]) -> str:
    """Return a window as DuckDB writes it in the name of a column."""
    parts = []
    if partition:
        parts.append("PARTITION BY " + ", ".join(k.name for k in partition))
    if order:
        parts.append(
            "ORDER BY " + ", ".join(o.name + (" DESC" if o.descending else "") for o in order)
        )
    return " ".join(parts)

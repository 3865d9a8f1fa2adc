"""What makes windows of bound expressions: frames with their bounds, calls over them, and the nodes that compute these.

SQL's OVER and dataframe calls bind their expressions each in its own way, and build windows of them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from ...errors import InvalidQuery, Span
from ...records import dataclass
from .. import infer
from ..expr import AggregateCall, Column, ColumnRef, Expr, Literal, SortKey, new_column
from ..functions import WINDOW
from ..logical import Logical
from ..node import walk
from ..types import BIGINT
from .window_call import WHOLE, Over, Side, Window, WindowCall, WindowFrame

_ORDERED_SIDES: tuple[Side, ...] = get_args(Side)


@dataclass(frozen=True)
class FrameBounds:
    """A frame with the bound expressions of its offsets."""

    frame: WindowFrame
    start: Expr | None = None
    end: Expr | None = None
    key: Expr | None = None
    descending: bool = False


def check_sides(start: Side, end: Side, place: Span | None = None) -> None:
    """Raise `InvalidQuery` for a frame that ends before it starts."""
    if start == "unbounded following" or end == "unbounded preceding":
        which = "start with" if start == "unbounded following" else "end with"
        wrong = start if start == "unbounded following" else end
        raise InvalidQuery(f"A frame cannot {which} {wrong.upper()}.", place)
    if _ORDERED_SIDES.index(end) < _ORDERED_SIDES.index(start):
        raise InvalidQuery(
            f"A frame that starts with {start.upper()} cannot end with {end.upper()}.", place
        )


def rows_offset(bound: Expr | None, frame: WindowFrame, place: Span | None = None) -> Expr | None:
    """Return a number of rows or groups as a frame has it; raises `InvalidQuery` for NULL and negative constants."""
    if bound is None:
        return None
    offset = infer.cast(bound, BIGINT) if bound.type != BIGINT else bound
    value = bound.value if isinstance(bound, Literal) else 0
    if value is None or (isinstance(value, int) and value < 0):
        wrong = "NULL" if value is None else "negative"
        raise InvalidQuery(
            f"The bound of a {frame.unit.upper()} frame cannot be {wrong}.", bound.span or place
        )
    return offset


def range_bounds(
    frame: WindowFrame,
    first: Expr | None,
    last: Expr | None,
    order: tuple[SortKey, ...],
    place: Span | None = None,
) -> FrameBounds:
    """Return a RANGE frame whose bounds are values: the order key less or more an offset."""
    if len(order) != 1:
        raise InvalidQuery(
            "A RANGE frame with an offset needs exactly one ORDER BY expression.", place
        )
    (key,) = order

    def value(offset: Expr | None, side: Side) -> Expr | None:
        if offset is None:
            return None
        if isinstance(offset, Literal) and offset.value is None:
            raise InvalidQuery("The bound of a RANGE frame cannot be NULL.", offset.span or place)
        back = (side == "preceding") != key.descending
        return infer.call("sub" if back else "add", [key.expr, offset], offset.span)

    values = [value(first, frame.start), value(last, frame.end)]
    typed = infer.unify([key.expr, *(v for v in values if v is not None)], key.span)
    start = typed[1] if values[0] is not None else None
    return FrameBounds(
        frame, start, typed[-1] if values[1] is not None else None, typed[0], key.descending
    )


def framed(expr: Expr, bounds: FrameBounds, place: Span | None = None) -> Expr:
    """Return what an aggregate stands for, with its calls over a frame."""
    if isinstance(expr, AggregateCall):
        return WindowCall(
            expr.function,
            expr.args,
            expr.type,
            bounds.frame,
            bounds.start,
            bounds.end,
            bounds.key,
            expr.distinct,
            False,
            bounds.descending,
            expr.filter,
            expr.order,
            place,
        )
    return expr.with_children([framed(child, bounds, place) for child in expr.children])


def over(call: Expr, partition: tuple[Expr, ...], order: tuple[SortKey, ...]) -> Expr:
    """Return what an aggregate stands for, with its calls over the window."""
    if isinstance(call, WindowCall):
        return Over(call, partition, order, call.span)
    return call.with_children([over(child, partition, order) for child in call.children])


def has_window(exprs: Sequence[Expr]) -> bool:
    """Whether one of the expressions holds a window call, outside of subqueries."""
    return any(isinstance(e, Over) for expr in exprs for e in walk(expr))


class WindowRewriter:
    """Rewrites expressions with window calls to expressions over the columns that compute them."""

    def __init__(self, plan: Logical) -> None:
        self.input = plan
        self._known: dict[Over, Column] = {}
        self._names: dict[Over, str] = {}

    def name_outputs(self, outputs: Sequence[tuple[str, Expr]]) -> None:
        """Give window calls that are outputs the names of those."""
        for name, value in outputs:
            if isinstance(value, Over):
                self._names.setdefault(value, name)

    def rewrite(self, expr: Expr) -> Expr:
        if isinstance(expr, Over):
            if expr not in self._known:
                name = self._names.get(expr, expr.call.function)
                self._known[expr] = new_column(name, expr.type)
            return ColumnRef(self._known[expr], expr.span)
        if not expr.children:
            return expr
        return expr.with_children([self.rewrite(child) for child in expr.children])

    def rewrite_innermost(self, expr: Expr) -> Expr:
        """Rewrite the window calls that hold no other, of which a further node is made."""
        if isinstance(expr, Over) and not has_window(expr.children):
            return self.rewrite(expr)
        if not expr.children:
            return expr
        return expr.with_children([self.rewrite_innermost(child) for child in expr.children])

    def plan(self) -> Logical:
        """Return the input below one node for each partition and order; to be called after all expressions were rewritten."""
        calls: dict[tuple[tuple[Expr, ...], tuple[SortKey, ...]], list[tuple[Column, WindowCall]]]
        calls = {}
        for window, column in self._known.items():
            calls.setdefault((window.partition, window.order), []).append((column, window.call))
        plan = self.input
        for (partition, order), made in calls.items():
            plan = Window(plan, partition, order, tuple(made))
        return plan


def default_frame(order: Sequence[SortKey]) -> WindowFrame:
    """Return the frame of an aggregate where none is written: up to the peers of each row, or without an order all rows."""
    return WindowFrame() if order else WHOLE


def is_framed(function: str) -> bool:
    """Whether a window function that is no aggregate sees the rows of its frame alone."""
    return WINDOW[function].reach == "frame"


def without_order(frame: WindowFrame) -> WindowFrame:
    """Return a RANGE or GROUPS frame without ORDER BY, where all rows are peers."""
    if frame.unit == "rows":
        return frame
    start: Side = "unbounded preceding" if frame.start == "current row" else frame.start
    end: Side = "unbounded following" if frame.end == "current row" else frame.end
    return WindowFrame(frame.unit, start, end, frame.exclude)

"""GroupBy: a frame and its group keys, waiting for aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from ..errors import InvalidQuery
from ..fence import fenced
from ..plan.expr import AggregateCall, Column, ColumnRef, Expr, new_column
from ..plan.logical import Aggregate, Item, Logical, Project
from ..plan.node import walk
from ..plan.window.window_call import Over
from .api_hints import missing
from .binding import bind_columns, flat, lift_aggregates, lift_windows, output_column
from .expressions.expression import Expression, all_, as_column
from .expressions.unbound import Operand
from .functions import count

if TYPE_CHECKING:
    from .frame import Frame


@fenced
class GroupBy:
    """What `Frame.group_by` returns: `agg` makes a frame of it again."""

    def __init__(self, frame: Frame, keys: tuple[Item, ...]) -> None:
        self._frame = frame
        self._keys = keys

    def agg(self, *aggregates: Expression | Sequence[Expression], **named: Operand) -> Frame:
        """Return one row a group: the keys, then the aggregates, which may be parts of larger expressions.

        `.filter(col("n") > 1)` after it is SQL's HAVING.
        """
        frame = self._frame
        chosen = [as_column(a) for a in flat(aggregates)]
        chosen.extend(as_column(a).alias(name) for name, a in named.items())
        if not chosen and not self._keys:
            raise InvalidQuery("agg() needs at least one aggregate, such as count().")
        grouped = {e.column for _, e in self._keys if isinstance(e, ColumnRef)}
        bound: list[tuple[str, Expr]] = []
        with frame.in_zone():
            for expression in chosen:
                bound += bind_columns(
                    expression, frame.plan.columns, frame.resolve, True, hidden=grouped
                )
        plan, values = _below_aggregates(frame.plan, [value for _, value in bound])
        calls: list[tuple[Column, AggregateCall]] = []
        keys = tuple(
            (new_column(c.name, c.type) if isinstance(e, ColumnRef) and e.column == c else c, e)
            for c, e in self._keys
        )
        items: list[Item] = [(c, ColumnRef(c)) for c, _ in keys]
        for (name, _), expr in zip(bound, values, strict=True):
            value = lift_aggregates(expr, keys, calls, name)
            items.append((output_column(name, value, items), value))
        return frame.with_plan(Project(Aggregate(plan, keys, tuple(calls)), tuple(items)))

    def __getattr__(self, name: str) -> NoReturn:
        """Say what a method of other libraries is called here."""
        raise missing(GroupBy, name)

    def __repr__(self) -> str:
        names = ", ".join(c.name for c, _ in self._keys)
        return f"<GroupBy: {names}; agg(...) makes a Frame of it>"

    def count(self) -> Frame:
        """Return the number of rows of each group."""
        return self.agg(count().alias("count"))

    def len(self) -> Frame:
        """Return the number of rows of each group, as `len`."""
        return self.agg(count().alias("len"))

    def sum(self, *columns: str) -> Frame:
        """Return the sum of these columns, by default of all others, under their names."""
        return self._each("sum", columns)

    def mean(self, *columns: str) -> Frame:
        return self._each("mean", columns)

    def min(self, *columns: str) -> Frame:
        return self._each("min", columns)

    def max(self, *columns: str) -> Frame:
        return self._each("max", columns)

    def median(self, *columns: str) -> Frame:
        return self._each("median", columns)

    def n_unique(self, *columns: str) -> Frame:
        return self._each("n_unique", columns)

    def first(self, *columns: str) -> Frame:
        return self._each("first", columns)

    def last(self, *columns: str) -> Frame:
        return self._each("last", columns)

    def _each(self, method: str, columns: Sequence[str]) -> Frame:
        chosen = [as_column(c) for c in flat(columns)] or [all_()]
        return self.agg([getattr(c, method)().keep_name() for c in chosen])


def _below_aggregates(plan: Logical, exprs: list[Expr]) -> tuple[Logical, list[Expr]]:
    """Compute the window functions that aggregates are of, below them; raises `InvalidQuery` for others."""
    inside = [
        over
        for expr in exprs
        for call in walk(expr)
        if isinstance(call, AggregateCall)
        for over in walk(call)
        if isinstance(over, Over)
    ]
    outside = [e for expr in exprs for e in walk(expr) if isinstance(e, Over)]
    if len(outside) > len(inside):
        raise InvalidQuery(
            "A window function of agg() stands inside of an aggregate: one of the groups is a with_columns() after it."
        )
    return lift_windows(plan, exprs)

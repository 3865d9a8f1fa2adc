"""GroupBy: a frame and its group keys, waiting for aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidQuery
from ..fence import fenced
from ..plan.expr import AggregateCall, Column, ColumnRef, new_column
from ..plan.logical import Aggregate, Item, Project
from .api_hints import missing
from .binding import bind, flat, lift_aggregates, output_column
from .functions import Expression, Operand, as_column, count

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
        calls: list[tuple[Column, AggregateCall]] = []
        keys = tuple(
            (new_column(c.name, c.type) if isinstance(e, ColumnRef) and e.column == c else c, e)
            for c, e in self._keys
        )
        items: list[Item] = [(c, ColumnRef(c)) for c, _ in keys]
        for expression in chosen:
            with frame.in_zone():
                bound = bind(expression, frame.plan.columns, frame.resolve, aggregates=True)
            value = lift_aggregates(bound, keys, calls, expression.name)
            items.append((output_column(expression.name, value, items), value))
        return frame.over(Project(Aggregate(frame.plan, keys, tuple(calls)), tuple(items)))

    def __getattr__(self, name: str) -> Any:
        """Say what a method of other libraries is called here."""
        raise missing(GroupBy, name)

    def __repr__(self) -> str:
        names = ", ".join(c.name for c, _ in self._keys)
        return f"<GroupBy: {names}; agg(...) makes a Frame of it>"

    def count(self) -> Frame:
        """Return the number of rows of each group."""
        return self.agg(count().alias("count"))

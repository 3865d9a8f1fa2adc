"""GroupBy: a frame and its group keys, waiting for aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .functions import Expression, count
from .plan.expr import AggregateCall, Column, ColumnRef, new_column
from .plan.logical import Aggregate, Item, Project
from .projection import lift_aggregates, output_column

if TYPE_CHECKING:
    from .frame import Frame


class GroupBy:
    """What `Frame.group_by` returns: `agg` makes a frame of it again."""

    def __init__(self, frame: Frame, keys: tuple[Item, ...]) -> None:
        self._frame = frame
        self._keys = keys

    def agg(self, *aggregates: Expression, **named: Any) -> Frame:
        """Return one row a group: the keys, then the aggregates, which may be parts of larger expressions."""
        frame = self._frame
        chosen = [*aggregates, *(a.alias(name) for name, a in named.items())]
        calls: list[tuple[Column, AggregateCall]] = []
        keys = tuple(
            (new_column(c.name, c.type) if isinstance(e, ColumnRef) and e.column == c else c, e)
            for c, e in self._keys
        )
        items: list[Item] = [(c, ColumnRef(c)) for c, _ in keys]
        for expression in chosen:
            bound = expression.bind(frame.resolve)
            value = lift_aggregates(bound, keys, calls, expression.name)
            items.append((output_column(expression.name, value, items), value))
        return frame.over(Project(Aggregate(frame.plan, keys, tuple(calls)), tuple(items)))

    def count(self) -> Frame:
        """Return the number of rows of each group."""
        return self.agg(count().alias("count"))

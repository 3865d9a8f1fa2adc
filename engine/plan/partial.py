"""Aggregates in parts: over shares of the rows, then over the parts' results.

    HashAggregate(x)  =  finish(merge(concat(partial(x1), partial(x2), ...)))

where x1, x2 ... are the rows of x, cut in order.  The parts may be chunks of a table that memory does not hold, one after the
other, or shares of several devices.  `merge` gives rows of the same columns as `partial`, so it may run as often as parts come
together: over chunks as they grow, or up a tree of devices.
"""

from __future__ import annotations

from dataclasses import field, replace

from ..records import dataclass
from .expr import AggregateCall, Call, Cast, Column, ColumnRef, Expr, Literal, new_column
from .functions import AGGREGATE
from .logical import Item
from .physical import ComputeColumns, HashAggregate, Physical
from .types import BIGINT, BOOLEAN, DOUBLE, decimal


@dataclass(frozen=True, slots=True)
class Average:
    """A column of the result that is a sum divided by a count, rounded once: as exact as the operator's own avg()."""

    made: Column
    total: Column
    count: Column

    def __str__(self) -> str:
        return f"{self.total.name} / {self.count.name} as {self.made.name}"


@dataclass(frozen=True, slots=True)
class PartialAggregate:
    """The steps of an aggregation in parts.

    `partial` reads what the aggregation reads.  The steps of `merge` run one after the other over the rows of all parts, in the
    parts' order, and give back the columns of `partial`.  Of these, what the aggregation makes keeps its identity; `finish` makes
    the averages of them at the end, if there are any.
    """

    partial: HashAggregate
    merge: tuple[Physical, ...]
    finish: tuple[Physical, ...]


@dataclass(frozen=True)
class FinishAverages(Physical):
    """The averages of sums and counts that were merged; `made` are the columns that come out."""

    input: Physical
    averages: tuple[Average, ...]
    made: tuple[Column, ...]


def merges_in_any_order(call: AggregateCall) -> bool:
    """Whether the aggregate of all rows follows from those of parts in any order; for sums of doubles up to their last bits."""
    function = AGGREGATE[call.function]
    mergeable = call.function == "avg" or (bool(function.merge) and not function.in_order)
    return mergeable and not (call.distinct or call.order)


def is_exact_of_parts(call: AggregateCall) -> bool:
    """Whether it does to the last bit: a sum of doubles depends on the order."""
    added = call.function == "avg" or AGGREGATE[call.function].merge == "sum"
    inexact = added and any(argument.type.is_float for argument in call.args)
    return merges_in_any_order(call) and not inexact


def in_parts(node: HashAggregate) -> PartialAggregate | str:
    """Return how to aggregate in parts, or the reason why an aggregate needs all rows at once.

    A sum of a DECIMAL of more than 18 digits raises `OutOfRange` when that of one part has more than 38 digits.
    """
    states = _States(bool(node.keys))
    for column, call in node.aggregates:
        reason = states.add(column, call)
        if reason is not None:
            return reason
    partial = replace(node, aggregates=tuple(states.partial))
    below: Physical = partial
    steps: list[Physical] = []
    if states.flags:
        passed = tuple((c, ColumnRef(c)) for c in partial.columns)
        below = ComputeColumns(below, (*passed, *states.flags), device=node.device)
        steps.append(below)
    merged = HashAggregate(below, node.keys, tuple(states.merged), device=node.device)
    again = (*((c, ColumnRef(c)) for c in node.keys), *states.again)
    steps += [merged, ComputeColumns(merged, again, device=node.device)]
    averages = FinishAverages(steps[-1], tuple(states.averages), node.columns, device=node.device)
    return PartialAggregate(partial, tuple(steps), (averages,) if states.averages else ())


@dataclass
class _States:
    """What parts keep for each call, and how two parts' states become one.

    `again` gives the merged states the columns of the parts'.  `flags` are computed for the rows of the parts before a merge.
    """

    has_keys: bool
    partial: list[tuple[Column, AggregateCall]] = field(default_factory=list)
    flags: list[Item] = field(default_factory=list)
    merged: list[tuple[Column, AggregateCall]] = field(default_factory=list)
    again: list[Item] = field(default_factory=list)
    averages: list[Average] = field(default_factory=list)

    def add(self, made: Column, call: AggregateCall) -> str | None:
        """Take in a call; return the reason why it cannot be."""
        name = call.function
        if call.distinct:
            return f"{name}(DISTINCT) needs the rows of a group together"
        if call.order:
            return f"{name}(... ORDER BY ...) needs the rows of a group together"
        if name == "avg":
            self._average(made, call)
        elif name in ("first", "last"):
            self._first_or_last(made, call)
        elif merge := AGGREGATE[name].merge:
            self._keep(made, call, merge)
        else:
            return f"{name}() needs the rows of a group together"
        return None

    def _keep(
        self,
        made: Column,
        call: AggregateCall,
        merge: str,
        condition: Column | None = None,
    ) -> None:
        """Keep the call's own result, and combine those of parts with the aggregate `merge`."""
        self.partial.append((made, call))
        constants = tuple(a for a in call.args[1:] if isinstance(a, Literal))
        adds = merge == "sum" and not made.type.is_float
        result = decimal(38, made.type.scale) if adds else made.type
        joined = new_column(made.name, result)
        rows = None if condition is None else ColumnRef(condition)
        args = (ColumnRef(made), *constants)
        again = AggregateCall(merge, args, result, filter=rows, span=call.span)
        self.merged.append((joined, again))
        # The sum of counts has 38 digits and becomes a count again
        back: Expr = ColumnRef(joined)
        self.again.append((made, back if result == made.type else Cast(back, made.type)))

    def _average(self, made: Column, call: AggregateCall) -> None:
        argument = call.args[0].type
        kind = DOUBLE if argument.is_float else decimal(38, argument.scale)
        total = new_column(f"{made.name} sum", kind)
        count = new_column(f"{made.name} count", BIGINT)
        self._keep(total, replace(call, function="sum", type=kind), "sum")
        self._keep(count, replace(call, function="count", type=BIGINT), "sum")
        self.averages.append(Average(made, total, count))

    def _first_or_last(self, made: Column, call: AggregateCall) -> None:
        """A part's NULL is its first row's value, unless no row counted; where that can be, the parts count their rows."""
        if self.has_keys and call.filter is None:
            self._keep(made, call, call.function)
            return
        count = new_column(f"{made.name} rows", BIGINT)
        met = new_column(f"{made.name} met", BOOLEAN)
        rows = AggregateCall("count_star", (), BIGINT, filter=call.filter)
        self._keep(count, rows, "sum")
        self.flags.append((met, _is_positive(count)))
        self._keep(made, call, call.function, condition=met)


def _is_positive(count: Column) -> Expr:
    return Call("gt", (ColumnRef(count), Literal(0, BIGINT)), BOOLEAN)

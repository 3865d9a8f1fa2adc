"""Rule `aggregate_unions`: the inputs of a UNION ALL are joined and grouped one by one, each by a kernel.

Full joins in two halves, each of which a kernel can hold: the rows of one side with their matches, and those of the other without.

FULL(a, b)  ->  LEFT(a, b)  union all  (b ANTI a, with NULLs for the columns of a)

On a GPU `a` is the side of more rows: 25 threads would each follow thousands of matches.

A condition of the join that reads one side alone and cannot raise filters that side where it is the build side: fewer rows are put into
its index, and a probe of few rows does not follow the others of its key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...plan import expr as ex, physical as p
from ...plan.all_values import never_raises
from ...plan.join_kinds import JoinKind
from ...plan.logical import Item
from ...plan.partial import FinishAverages, in_parts
from ...plan.pipeline_steps import leaf_of
from ...plan.types import BIGINT, BOOLEAN, Kind
from ...records import dataclass
from ..rewrite import reads_only, replace_columns
from .group_keys import MIN_ROWS_A_GROUP
from .pipeline_shape import exchanged, is_cheap, leaves, table_rows

if TYPE_CHECKING:
    from .fuse import Fusion


FEW_GROUPS = 1 << 12


def halves(node: p.Physical) -> tuple[p.Physical, p.Physical] | None:
    """Return the halves of a full join, or None for one whose keys kernels may not be able to hold, and of few rows that the host joins."""
    assert isinstance(node, p.HashJoin)
    if node.device == "gpu" and all(map(_is_few_groups, node.children)):
        return None
    if any(key.type.kind in (Kind.VARCHAR, Kind.INTERVAL) for key in node.left_keys):
        return None  # two joins by operators take longer than one
    kept = node.columns
    if node.device == "gpu" and node.build == "left":
        node = exchanged(node)
    right, of_pairs = _filtered(node.right, node.residual)
    matched = replace(
        node, right=right, residual=of_pairs, kind=JoinKind.LEFT, build="right", keep=kept
    )
    left, of_pairs = _filtered(node.left, node.residual)
    own = tuple(c for c in kept if c in node.right.columns)
    alone = p.HashJoin(
        node.right,
        left,
        JoinKind.ANTI,
        node.right_keys,
        node.left_keys,
        node.null_equal,
        of_pairs,
        keep=own,
        device=node.device,
        reason=node.reason,
        estimate=node.right.estimate,
    )
    items = tuple(_item(column, column in own) for column in kept)
    return matched, p.ComputeColumns(alone, items).placed_as(alone)


def _is_few_groups(side: p.Physical) -> bool:
    """Whether a side is few rows that come out of kernels: 2,400 days beside 2,500 take 0.4 ms of CPU time, and an H200 2.3 by two kernels."""
    if side.estimate is None or side.estimate > FEW_GROUPS:
        return False
    while isinstance(side, p.ComputeColumns | p.FilterRows | FinishAverages):
        side = side.input
    return isinstance(side, p.HashAggregate)


def _filtered(side: p.Physical, condition: ex.Expr | None) -> tuple[p.Physical, ex.Expr | None]:
    """Return a side with what a condition asks of it alone, and the rest of the condition."""
    parts = list(ex.conjuncts(condition))
    own = [part for part in parts if reads_only(part, side.columns) and never_raises(part)]
    others = [part for part in parts if part not in own]
    if not own:
        return side, condition
    filtered = p.FilterRows(side, ex.conjunction(own)).placed_as(side)
    return filtered, ex.conjunction(others) if others else None


def _item(column: ex.Column, there: bool) -> Item:
    if there:
        return column, ex.ColumnRef(column)
    return ex.new_column(column.name, column.type), ex.Literal(None, column.type)


def aggregate_unions(node: p.Physical, fusion: Fusion) -> p.Physical | None:
    """Aggregate each input of a UNION ALL, then the groups of all.

        HashAggregate(k, sum(a), HashJoin(ConcatRows(x, y), z))
          ->  HashAggregate(k, sum(s), ConcatRows(HashAggregate(k, s: sum(a), HashJoin(x, z)),
                                                  HashAggregate(k, s: sum(a), HashJoin(y, z))))

    What is computed of the rows, which of them are kept and what they are joined with goes into each input, whose columns have the union's
    names there.  What is joined with them is read once for each input, so that it may not have more rows than the union; its own joins
    are done once for all.
    Seven million rows of two tables by month take two CPU cores 236 ms where they are put together first, and 10 ms by a kernel for each.
    A column that is a literal in an input, as of where its rows come from, is no key of that input's groups: three tables of sales by such
    a text and year take 216 ms of CPU time with it (TPC-DS SF1), since a literal has no number in kernels, and 30 without.
    A full join is one of two halves (`full_joins.halves`): parts beside their stock by manufacturer take two cores 8 ms of CPU time and
    45 where the pairs are put together first, orders beside customers 10 and 38.
    Joined with others, TPC-DS Q54 at SF1, which nobody looked at for this, takes two busy cores 29 and 15 ms, Q2 189 and 36, Q5 95 and 35.
    `MIN_ROWS_A_GROUP` = inf switches it off.
    """
    if not isinstance(node, p.HashAggregate):
        return None
    for path in _paths(node.input, fusion):
        groups = path.rows if node.estimate is None else node.estimate
        if groups * MIN_ROWS_A_GROUP > path.rows or path.read_again() > path.rows:
            continue
        parts = in_parts(node)
        if isinstance(parts, str):
            return None
        fusion.readers.update(path.again())
        inputs = tuple(
            fusion.visit(_grouped(parts.partial, path, child)) for child in path.union.inputs
        )
        if not any(_is_fused(part, parts.partial) for part in inputs):
            fusion.readers.subtract(path.again())
            continue
        found = len(inputs) * groups
        made: p.Physical = p.ConcatRows(inputs, parts.partial.columns).placed_as(path.union, found)
        for step in (*parts.merge, *parts.finish):
            made = replace(step, estimate=node.estimate, reason=node.reason).with_children([made])
        return made
    return None


def _is_fused(made: p.Physical, aggregate: p.HashAggregate) -> bool:
    """Whether a kernel makes the groups of an aggregation, or those of the first of its two phases."""
    groups = leaf_of(made)
    calls = (column for column, _ in aggregate.aggregates)
    return (
        isinstance(groups, p.Pipeline)
        and groups.steps.groups is not None
        and {*calls} <= {*groups.columns}
    )


def _grouped(partial: p.HashAggregate, path: _Path, child: p.Physical) -> p.Physical:
    """Return the groups of one input of a union: keys that are literals there are put to the others' groups."""
    found = path.literals(child)
    literals = {key: found[key] for key in partial.keys if key in found}
    source, keys = path.over(child), tuple(k for k in partial.keys if k not in literals)
    if not literals:
        return replace(partial, input=source)
    made: p.Physical
    if keys:
        made = replace(partial, input=source, keys=keys)
    else:  # without keys no rows make a group too
        count = ex.new_column("rows", BIGINT)
        counted = (*partial.aggregates, (count, ex.AggregateCall("count_star", (), BIGINT)))
        made = replace(partial, input=source, keys=keys, aggregates=counted)
        some = ex.Call("gt", (ex.ColumnRef(count), ex.Literal(0, BIGINT)), BOOLEAN)
        made = p.FilterRows(made, some).placed_as(partial, 1.0)
    items = tuple((c, literals.get(c) or ex.ColumnRef(c)) for c in partial.columns)
    return p.ComputeColumns(made, items).placed_as(partial, partial.estimate)


@dataclass(frozen=True, slots=True)
class _Path:
    """The way from an aggregate down to a UNION ALL: operators that rows go through one by one, each with the input on that way."""

    steps: tuple[tuple[p.Physical, int], ...]
    union: p.ConcatRows
    halved: tuple[p.Physical, ...] = ()  # the sides of a full join, of which each input reads both

    @property
    def rows(self) -> float:
        return sum(child.estimate or 0.0 for child in self.union.inputs)

    @property
    def _sides(self) -> list[p.Physical]:
        """What the rows are joined with."""
        return [c for step, place in self.steps for i, c in enumerate(step.children) if i != place]

    def again(self) -> Counter[int]:
        """How many more read each of the sides, by its identity, where each input is joined with it."""
        sides = (*self._sides, *self.halved)
        return Counter([id(side) for side in sides for _ in self.union.inputs[1:]])

    def read_again(self) -> float:
        """How many rows of the sides they read; what is not cheap is stored."""
        rows = (
            sum(map(table_rows, leaves(side))) if is_cheap(side) else side.estimate or 0.0
            for side in self._sides
        )
        return sum(rows) * (len(self.union.inputs) - 1)

    def literals(self, source: p.Physical) -> dict[ex.Column, ex.Literal]:
        """Return the columns at the end of the way that one input of the union has a literal for."""
        items = dict(source.items) if isinstance(source, p.ComputeColumns) else {}
        pairs = zip(self.union.made, map(items.get, source.columns), strict=True)
        found = {column: expr for column, expr in pairs if isinstance(expr, ex.Literal)}
        for step, _ in reversed(self.steps):
            if isinstance(step, p.ComputeColumns):
                made = ((column, replace_columns(expr, found)) for column, expr in step.items)
                found |= {column: expr for column, expr in made if isinstance(expr, ex.Literal)}
        return found

    def over(self, source: p.Physical) -> p.Physical:
        """Return the operators over one input of the union."""
        items = tuple(zip(self.union.made, map(ex.ColumnRef, source.columns), strict=True))
        made: p.Physical = p.ComputeColumns(source, items).placed_as(self.union, source.estimate)
        share = (source.estimate or 0.0) / max(self.rows, 1.0)
        for step, place in reversed(self.steps):
            children = [made if i == place else c for i, c in enumerate(step.children)]
            rows = None if step.estimate is None else step.estimate * share
            made = replace(step.with_children(children), estimate=rows)
        return made


def _paths(
    node: p.Physical, fusion: Fusion, steps: tuple[tuple[p.Physical, int], ...] = ()
) -> Iterator[_Path]:
    """Yield the ways to a UNION ALL on which nothing is read by others too."""
    if fusion.readers[id(node)] > 1:
        return
    if isinstance(node, p.ConcatRows):
        yield _Path(steps, node)
        return
    if isinstance(node, p.HashJoin) and _keeps_both(node.kind):
        found = halves(node)
        if found is not None:
            yield _Path(steps, p.ConcatRows(found, node.columns).placed_as(node), node.children)
        return
    for place in _row_inputs(node):
        yield from _paths(node.children[place], fusion, (*steps, (node, place)))


def _row_inputs(node: p.Physical) -> tuple[int, ...]:
    """Return the inputs of a node whose rows may go through it a share at a time."""
    match node:
        case p.ComputeColumns() | p.FilterRows():
            return (0,)
        case p.HashJoin(kind=kind) | p.NestedLoopJoin(kind=kind):
            return (0, 1) if kind is JoinKind.INNER else (0,) if kind.is_divisible else ()
    return ()


def _keeps_both(kind: JoinKind) -> bool:
    """Whether rows of either side without a match come out, so that two halves make the join."""
    return kind.keeps_left and kind.keeps_right

"""What is expected of the columns of operators, as `estimate` says it of logical plans, whose row counts they keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from ...plan import physical as p
from ...plan.expr import Column
from ...records import dataclass
from .estimate import projected
from .relation_estimate import UNKNOWN_ROWS, RelationEstimate, scan_relation
from .selectivity import ColumnEstimate, Columns, Lazily, narrowed, selectivity, united


@dataclass
class ChainEstimates:
    """Estimates of operators, each worked out once; `inputs` are those that `Stored` stands for, `stored` has their estimates."""

    inputs: Sequence[p.Physical] = ()
    stored: ChainEstimates | None = None
    _known: dict[int, tuple[p.Physical, RelationEstimate]] = field(default_factory=dict)

    def relation(self, node: p.Physical) -> RelationEstimate:
        found = self._known.get(id(node))
        if found is None:
            found = node, self._estimate(node)  # the node is kept, so that its id stays its own
            self._known[id(node)] = found
        return found[1]

    def _estimate(self, node: p.Physical) -> RelationEstimate:
        match node:
            case p.ParquetScan() | p.MemoryScan():
                return scan_relation(node)
            case p.Stored(number=number):
                return (self.stored or self).relation(self.inputs[number])
            case p.Pipeline(body=body):
                return ChainEstimates(node.inputs, self.stored or self).relation(body)
        below = [self.relation(child) for child in node.children]
        rows = node.estimate
        if rows is None and isinstance(node, p.FilterRows):
            rows = below[0].rows * selectivity(node.predicate, below[0].columns)
        if rows is None:
            rows = max((source.rows for source in below), default=UNKNOWN_ROWS)
        columns, own = self._columns(node, below, rows), frozenset(node.columns)
        unknown = ColumnEstimate(max(rows, 1.0), max(rows, 1.0), False)

        def shown(column: Column) -> ColumnEstimate | None:
            return columns.get(column) or unknown if column in own else None

        return RelationEstimate(max(rows, *(s.rows for s in below), 0.0), Lazily(shown)).scaled(
            rows
        )

    def _columns(self, node: p.Physical, below: list[RelationEstimate], rows: float) -> Columns:
        """What is expected of the columns of a node that makes so many rows, those that it drops included."""
        match node:
            case p.FilterRows(predicate=predicate):
                (source,) = below
                return narrowed(source.columns, predicate)
            case p.ComputeColumns(items=items):
                return projected(items, *below)
            case p.HashAggregate(keys=keys, aggregates=aggregates):
                (source,) = below
                unique = len(keys) == 1
                made: dict[Column, ColumnEstimate] = {
                    key: replace(expected_column(source, key), unique=unique, ascending=False)
                    for key in keys
                }
                groups = ColumnEstimate(rows, rows, False, derived=True)
                return made | dict.fromkeys((column for column, _ in aggregates), groups)
            case p.HashJoin():
                built = self.relation(node.build_side).columns
                return united(_unordered(built), self.relation(node.probe_side).columns)
        columns: Columns = {}
        for source in below:
            columns = united(columns, source.columns)
        return columns


def _unordered(columns: Columns) -> Columns:
    def looked_up(column: Column) -> ColumnEstimate | None:
        known = columns.get(column)
        return known and replace(known, ascending=False)

    return Lazily(looked_up)


def expected_column(relation: RelationEstimate, column: Column) -> ColumnEstimate:
    """What is expected of one column, which `relation` may not know."""
    rows = max(relation.rows, 1.0)
    return relation.columns.get(column) or ColumnEstimate(rows, rows, False)

"""What is expected of the columns of operators, as `estimate` says it of logical plans, whose row counts they keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..plan.expr import Column
from ..plan.physical import (
    ComputeColumns,
    FilterRows,
    HashAggregate,
    HashJoin,
    MemoryScan,
    ParquetScan,
    Physical,
    Pipeline,
    Stored,
    build_side,
    probe_side,
)
from .estimate import UNKNOWN_ROWS, Relation, expected, scan_relation
from .selectivity import ColumnEstimate, narrowed, selectivity


@dataclass
class ChainEstimates:
    """Estimates of operators, each worked out once; `inputs` are those that `Stored` stands for."""

    inputs: Sequence[Physical] = ()
    _known: dict[int, tuple[Physical, Relation]] = field(default_factory=dict)

    def relation(self, node: Physical) -> Relation:
        found = self._known.get(id(node))
        if found is None:
            found = node, self._estimate(node)  # the node is kept, so that its id stays its own
            self._known[id(node)] = found
        return found[1]

    def _estimate(self, node: Physical) -> Relation:
        match node:
            case ParquetScan() | MemoryScan():
                return scan_relation(node)
            case Stored(number=number):
                return self.relation(self.inputs[number])
            case Pipeline(body=body):
                return ChainEstimates(node.inputs).relation(body)
        below = [self.relation(child) for child in node.children]
        rows = node.estimate
        columns: dict[Column, ColumnEstimate] = {}
        match node:
            case FilterRows(predicate=predicate):
                (source,) = below
                columns = narrowed(source.columns, predicate)
                if rows is None:
                    rows = source.rows * selectivity(predicate, source.columns)
            case ComputeColumns(items=items):
                (source,) = below
                columns = {column: expected(expr, source) for column, expr in items}
            case HashAggregate(keys=keys, aggregates=aggregates):
                (source,) = below
                columns = {key: expected_column(source, key) for key in keys}
                groups = source.rows if rows is None else rows
                for column, _ in aggregates:
                    columns[column] = ColumnEstimate(groups, groups, False, derived=True)
                for key in keys:
                    unique = len(keys) == 1
                    columns[key] = replace(columns[key], unique=unique, ascending=False)
            case HashJoin():
                built = self.relation(build_side(node)).columns
                columns = {c: replace(known, ascending=False) for c, known in built.items()}
                columns |= self.relation(probe_side(node)).columns
            case _:
                for source in below:
                    columns |= source.columns
        if rows is None:
            rows = max((source.rows for source in below), default=UNKNOWN_ROWS)
        shown = {
            c: columns.get(c) or ColumnEstimate(max(rows, 1.0), max(rows, 1.0), False)
            for c in node.columns
        }
        return Relation(max(rows, *(s.rows for s in below), 0.0), shown).scaled(rows)


def expected_column(relation: Relation, column: Column) -> ColumnEstimate:
    """What is expected of one column, which `relation` may not know."""
    rows = max(relation.rows, 1.0)
    return relation.columns.get(column) or ColumnEstimate(rows, rows, False)

"""Which row of a pipeline's relations decides group keys, and whether the keys are few enough to be addressed directly."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...plan.device_costs import costs_of
from ...plan.expr import Column, ColumnRef
from ...plan.join_kinds import JoinKind
from ...plan.physical import HashAggregate, HashJoin, ParquetScan, Physical
from ...plan.pipeline_steps import leaf_of, spine
from ...plan.types import Kind
from ..estimates.chain_estimate import ChainEstimates, expected_column
from .pipeline_shape import leaves, table_rows
from .probe_order import domain

HASHED_GROUPS = 2.0**63  # numbers that a hash table in a kernel tells apart
SMALL_TABLE = 1 << 12  # rows whose strings are numbered, however many differ


def is_held(node: HashAggregate, chain: Physical, estimates: ChainEstimates, hashed: bool) -> bool:
    """Whether groups of a chain's rows have numbers: those of a build side's rows, or one for each combination of keys.

    `hashed`: the numbers need not be few.
    """
    joins = inner_joins(chain)
    if any(tells_apart(node.keys, j) and decides(j, joins, node.keys) for j in joins):
        return True
    if any(has_no_numbers(chain, key) for key in node.keys):
        return False
    known = estimates.relation(chain)
    counted = (a for _, call in node.aggregates if call.distinct for a in call.args)
    arguments = [a.column for a in counted if isinstance(a, ColumnRef)]
    columns = dict.fromkeys((*node.keys, *arguments))
    numbers = math.prod(domain(expected_column(known, column)) for column in columns)
    costs = costs_of(node.device)
    rows = table_rows(leaf_of(chain)) / costs.rows_a_group
    direct = max(costs.group_limit, min(rows, costs.most_groups))
    if arguments:  # whose combinations with the keys are no keys of a hash table
        return numbers <= costs.group_limit
    return numbers <= (HASHED_GROUPS if hashed else direct)


def has_no_numbers(chain: Physical, column: Column) -> bool:
    """Whether a column is strings that a file keeps in no dictionary, as it would if they came again."""
    if column.type.kind is not Kind.VARCHAR:
        return False
    for leaf in leaves(chain):
        if isinstance(leaf, ParquetScan) and column in leaf.made:
            statistics = leaf.table.statistics()
            known = statistics.columns.get(leaf.sources[leaf.made.index(column)])
            many = (statistics.rows or 0) > SMALL_TABLE
            return many and known is not None and not (known.distinct or known.likely_distinct)
    return False


def inner_joins(chain: Physical) -> list[HashJoin]:
    """Return the inner joins of a chain that its rows go through, the last one first."""
    joins = (node for node in spine(chain) if isinstance(node, HashJoin))
    return [join for join in joins if join.kind is JoinKind.INNER]


def decides(join: HashJoin, joins: Sequence[HashJoin], keys: Sequence[Column]) -> bool:
    """Whether all keys follow from the row that a join finds: its columns, and those found by these in turn."""
    decided = {*join.build_side.columns, *join.probe_keys}
    for other in reversed(joins):
        if decided.issuperset(other.probe_keys):
            decided |= set(other.build_side.columns)
    return decided.issuperset(keys)


def tells_apart(keys: Sequence[Column], join: HashJoin) -> bool:
    """Whether the keys include those of a join, of either side, so that no two rows of its build side have the same."""
    return all(
        a in keys or b in keys for a, b in zip(join.probe_keys, join.build_keys, strict=True)
    )

"""The keys of a pipeline's groups: which relation's row decides them, whether they are few, and which are composed of codes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from ...plan.all_values import is_whole, never_raises
from ...plan.device_costs import costs_of
from ...plan.expr import Case, Column, ColumnRef, Expr, Literal, columns_of, new_column
from ...plan.join_kinds import JoinKind
from ...plan.partial import in_parts
from ...plan.physical import ComputeColumns, HashAggregate, HashJoin, ParquetScan, Physical
from ...plan.pipeline_steps import leaf_of, spine
from ...plan.types import Kind
from ...records import dataclass
from ..estimates.chain_estimate import ChainEstimates, expected_column
from ..estimates.estimate import expected
from ..estimates.relation_estimate import RelationEstimate
from ..rewrite import pass_on
from .pipeline_shape import computed, leaves, table_rows
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


def numbers_floats(node: HashAggregate, chain: Physical, estimates: ChainEstimates) -> bool:
    """Whether kernels have numbers for all floats among the keys, of which `outside` says that they may have some."""
    floats = [expr for key in node.keys if key.type.is_float and (expr := computed(node, key))]
    if not floats:
        return True
    assert isinstance(chain, ComputeColumns)
    known = estimates.relation(chain.input)
    return all(_has_table(expr, known) or _is_whole(expr, known) for expr in floats)


def _has_table(expr: Expr, known: RelationEstimate) -> bool:
    read = columns_of(expr)
    return len(read) == 1 and all(
        c.type.fits_register
        and not c.type.is_float
        and domain(expected_column(known, c)) <= MOST_LOOKED_UP
        for c in read
    )


def _is_whole(expr: Expr, known: RelationEstimate) -> bool:
    return (
        expr.type.kind is Kind.DOUBLE and is_whole(expr) and expected(expr, known).low is not None
    )


def has_no_numbers(chain: Physical, column: Column) -> bool:
    """Whether a column is strings of which files keep no dictionary, and whose values do not come again either."""
    if column.type.kind is not Kind.VARCHAR:
        return False
    for leaf in leaves(chain):
        if isinstance(leaf, ParquetScan) and column in leaf.made:
            statistics = leaf.table.statistics()
            known = statistics.columns.get(leaf.sources[leaf.made.index(column)])
            if known is None or known.distinct or known.likely_distinct:
                return False
            return (statistics.rows or 0) > SMALL_TABLE and not known.comes_again()
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


MIN_ROWS_A_GROUP = 8.0  # for groups that others are made of to be worth more than the rows

MOST_LOOKED_UP = 1 << 16  # values of a column for which kernels have a table of strings


def by_parts_of_keys(node: HashAggregate, estimates: ChainEstimates) -> Physical | None:
    """Group by the values that a string is made of, and make one string for each of these groups.

        HashAggregate(a || b, sum(c), x)
          ->  HashAggregate(a || b, sum(s), ComputeColumns(a || b, s, HashAggregate(a, b, s: sum(c), x)))

    Six million strings of three flags, made and grouped by two CPU cores, take 517 ms, and so 9: the groups of the flags are few, and a
    kernel finds them.  Of CASE the values are its conditions.  `MIN_ROWS_A_GROUP` = inf switches it off.
    """
    below = node.input
    if not isinstance(below, ComputeColumns):
        return None
    items = dict(below.items)
    known = estimates.relation(below.input)
    made = {key: items[key] for key in node.keys if is_composed(items[key], known)}
    parts = in_parts(node)
    if not made or isinstance(parts, str):
        return None
    found = _KeyValues({expr: column for column, expr in items.items() if column in node.keys})
    labels = tuple((key, found.split(expr)) for key, expr in made.items())
    kept = [(column, expr) for column, expr in below.items if column not in made]
    new = [(column, expr) for expr, column in found.columns.items() if column not in items]
    keys = tuple(dict.fromkeys((*(k for k in node.keys if k not in made), *found.read)))
    inner = replace(below, items=(*kept, *new))
    if not _are_few(keys, dict(inner.items), below.input, estimates):
        return None
    early = replace(parts.partial, input=inner, keys=keys)
    passed = pass_on(c for c in parts.partial.columns if c not in made)
    groups: Physical = ComputeColumns(early, (*labels, *passed)).placed_as(node)
    for step in (*parts.merge, *parts.finish):
        groups = replace(step, estimate=node.estimate, reason=node.reason).with_children([groups])
    return groups


def is_composed(expr: Expr, known: RelationEstimate) -> bool:
    """Whether strings are made of several values, or of what a column of many values is compared with: a lookup table has others."""
    if expr.type.kind is not Kind.VARCHAR or isinstance(expr, ColumnRef):
        return False
    values, read = set(_values(expr)), columns_of(expr)
    if len(read) != 1 or not values:
        return len(read) > 1 and len(values) > 1
    (column,) = read
    many = domain(expected_column(known, column)) > MOST_LOOKED_UP
    return many and all(e.type.kind is Kind.BOOLEAN for e in values)


def _values(expr: Expr) -> Iterator[Expr]:
    """Yield the outermost expressions below a string that are columns or no strings."""
    if isinstance(expr, ColumnRef) or expr.type.kind is not Kind.VARCHAR:
        if not isinstance(expr, Literal):
            yield expr
        return
    for child in expr.children:
        yield from _values(child)


@dataclass
class _KeyValues:
    """The values that strings are made of, each with the column that has it; `read` are those that were met.

    What may raise is none under a CASE, which may not come to it.
    """

    columns: dict[Expr, Column]
    read: list[Column] = field(default_factory=list)

    def split(self, expr: Expr, chosen: bool = False) -> Expr:
        """Return an expression of the columns of values; `chosen`: by a CASE."""
        if isinstance(expr, Literal):
            return expr
        chosen = chosen or isinstance(expr, Case)
        whole = expr.type.kind is not Kind.VARCHAR and (not chosen or never_raises(expr))
        if not whole and not isinstance(expr, ColumnRef):
            return expr.with_children([self.split(child, chosen) for child in expr.children])
        name = expr.column.name if isinstance(expr, ColumnRef) else "value"
        column = self.columns.setdefault(expr, new_column(name, expr.type))
        self.read.append(column)
        return ColumnRef(column)


def _are_few(
    keys: tuple[Column, ...],
    items: dict[Column, Expr],
    below: Physical,
    estimates: ChainEstimates,
) -> bool:
    """Whether a kernel has numbers for all keys, and they are few for the rows."""
    known = estimates.relation(below)
    if any(
        has_no_numbers(below, e.column) for e in map(items.get, keys) if isinstance(e, ColumnRef)
    ):
        return False
    values = [
        expected_column(known, e.column) if isinstance(e, ColumnRef) else expected(e, known)
        for e in (items[key] for key in keys)
    ]
    return math.prod(map(domain, values)) * MIN_ROWS_A_GROUP <= known.rows

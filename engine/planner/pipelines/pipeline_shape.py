"""The trees that a pipeline can hold: chains of filters, projections and joins over scans and over what is stored before.

body := FilterRows(HashAggregate(chain)) | HashAggregate(chain) | chain
chain := FilterRows(chain) | ComputeColumns(chain) | HashJoin(chain, chain) | NestedLoopJoin(chain, one row) | scan | Stored
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice

from ...plan import expr as ex, physical as p
from ...plan.all_values import is_whole
from ...plan.functions import AGGREGATE
from ...plan.join_kinds import JoinKind
from ...plan.node import transform_up, walk, walk_once
from ...plan.partial import FinishAverages
from ...plan.types import BOOLEAN, INTEGER, Kind
from ...plan.udf.python_function import runs_apart
from ...records import dataclass
from ..estimates.chain_estimate import ChainEstimates
from ..rewrite import pass_on

JOINS = p.HashJoin | p.NestedLoopJoin

# Rows of tables that are joined anew for each reader rather than once for all: indexes of so few rows cost a launch
REPEATED_ROWS = 100_000
MOST_REPEATED = 64  # operators


@dataclass
class Body:
    """Makes one pipeline's body; `inputs` are the operators that it reads as `Stored`.

    `ends`: whether a filter is a condition on groups in which another pipeline ends.  `estimates` serve all that is planned of it, `stored`
    those of the operators that several bodies read.  `hashed`: kernels join tables however small they are and number groups by hash
    tables too.
    """

    readers: Mapping[int, int]
    ends: Callable[[p.FilterRows], bool] = lambda node: False
    hashed: bool = False
    inputs: list[p.Physical] = field(default_factory=list)
    stored: ChainEstimates = field(default_factory=ChainEstimates)
    estimates: ChainEstimates = field(init=False)
    _stored: dict[int, p.Stored] = field(default_factory=dict)
    _root: p.Physical | None = None
    _origins: dict[int, tuple[p.Physical, p.Physical]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.estimates = ChainEstimates(self.inputs, self.stored)

    def chain(self, node: p.Physical, root: bool = True) -> p.Physical:
        """Return `node` as a chain; what others read too is stored, unless it costs less to do it again.

        Joins that the chain reaches twice are stored in any case: of columns that two of its joins make, one would hide the other.
        """
        if root:
            self._root = node
        made = self._chain(node, root)
        self._origins[id(made)] = made, node  # `made` is kept, so that its id stays its own
        return made

    def store(self, chain: p.Physical) -> p.Stored:
        """Return what `chain` made as rows that are stored before."""
        return self._store(self._origins[id(chain)][1])

    def _chain(self, node: p.Physical, root: bool) -> p.Physical:
        shared = not root and self.readers.get(id(node), 1) > 1
        shared = shared and (not is_cheap(node) or self._joins_twice(node))
        if shared or not self._goes_on(node):
            return self._store(node)
        match node:
            case p.HashJoin() if one_row_side(node) is not None:
                return self._with_one_row(_as_loop(node))
            case p.HashJoin(kind=JoinKind.RIGHT):
                node = replace(exchanged(node), kind=JoinKind.LEFT)
            case p.NestedLoopJoin() if has_one_row(node):
                return self._with_one_row(node)
            case p.NestedLoopJoin():
                node = _by_constant_key(node)
        return node.with_children([self.chain(child, False) for child in node.children])

    def _goes_on(self, node: p.Physical) -> bool:
        """Whether the chain has this operator, or else reads its rows as they are stored."""
        return is_link(node) and not (isinstance(node, p.FilterRows) and self.ends(node))

    def _joins_twice(self, node: p.Physical) -> bool:
        """Whether the chain comes to these joins over several paths; what is stored reads its own inputs, in another pipeline."""
        paths: dict[int, int] = {id(node): 1}

        def count(part: p.Physical) -> int:
            if id(part) not in paths:
                paths[id(part)] = sum(map(count, part.children)) if self._goes_on(part) else 0
            return paths[id(part)]

        assert self._root is not None
        return has_joins(node) and count(self._root) > 1

    def _with_one_row(self, node: p.NestedLoopJoin) -> p.Physical:
        """The one row on the right, as it is stored."""
        if node.kind is JoinKind.INNER and not is_one_row(node.right):
            node = replace(node, left=node.right, right=node.left, keep=node.columns)
        left, right = self.chain(node.left, False), self._store(node.right)
        return node.with_children([left, right])

    def _store(self, node: p.Physical) -> p.Stored:
        if id(node) not in self._stored:
            self._stored[id(node)] = p.Stored(len(self.inputs), node.columns).placed_as(node)
            self.inputs.append(node)
        return self._stored[id(node)]


def is_link(node: p.Physical) -> bool:
    """Whether a chain can go on below this operator, or end in it."""
    match node:
        case p.ParquetScan() | p.MemoryScan():
            return True
        case p.FilterRows(predicate=predicate):
            return not runs_apart(predicate)
        case p.ComputeColumns(items=items):
            return not any(runs_apart(expr) for _, expr in items)
        case p.HashJoin() | p.NestedLoopJoin():
            return outside(node) is None
    return False


def outside(node: p.Physical) -> str | None:
    """Return why no kernel holds a join or an aggregate, as far as its operator says it."""
    match node:
        case p.HashJoin(kind=JoinKind.FULL):
            return "a full join keeps rows of both sides"
        case p.HashJoin():
            keys = (*node.left_keys, *node.right_keys)
            unfit = next((c for c in keys if c.type.kind is Kind.INTERVAL), None)
            return None if unfit is None else f'the join key "{unfit.name}" is an INTERVAL'
        case p.NestedLoopJoin() if has_one_row(node) or has_few_rows(node):
            return None
        case p.NestedLoopJoin():
            return "a join without an equality compares all rows with all rows: an = between its sides would spare that"
        case p.HashAggregate(keys=keys, aggregates=aggregates):
            unfit = next((c for c in keys if not _has_number(node, c)), None)
            if unfit is not None:
                return f'the group key "{unfit.name}" is a {unfit.type}, whose values kernels do not number: round or cast it where that is meant'
            calls = (_unfolded(call) for _, call in aggregates)
            return next((reason for reason in calls if reason is not None), None)
    return None


def _has_number(node: p.HashAggregate, key: ex.Column) -> bool:
    """Whether values of a key may be numbered from their bounds, or from those of the one column that they are computed of."""
    if not key.type.is_float:
        return key.type.kind is not Kind.INTERVAL
    expr = computed(node, key)
    return expr is not None and (is_whole(expr) or len(ex.columns_of(expr)) == 1)


def computed(node: p.HashAggregate, key: ex.Column) -> ex.Expr | None:
    """Return what an aggregate's input computes for a key, None of what it only passes on."""
    items = dict(node.input.items) if isinstance(node.input, p.ComputeColumns) else {}
    expr = items.get(key)
    return None if isinstance(expr, ex.ColumnRef) else expr


def _unfolded(call: ex.AggregateCall) -> str | None:
    if not AGGREGATE[call.function].fold:
        return f"{call.function} needs all rows of a group together, which operators gather"
    if call.distinct and call.function != "count":
        return f"{call.function}(DISTINCT ...) keeps all values of a group, which operators do"
    return None


def untested(node: p.FilterRows, groups: p.HashAggregate) -> str | None:
    """Return why no kernel tests a condition on groups, as far as operators say it."""
    calls = dict(groups.aggregates)
    for column in sorted(ex.columns_of(node.predicate), key=lambda c: c.id):
        call = calls.get(column)
        if call is None:
            if column.type.fits_register:
                continue
            return f'the condition on groups reads the key "{column.name}", a {column.type}'
        if not AGGREGATE[call.function].tested or call.distinct:
            return f"the condition on groups reads {call.function}(), which operators test"
        if not column.type.fits_register:
            return f'the condition on groups reads "{column.name}", a {column.type}'
    return None


def is_one_row(node: p.Physical) -> bool:
    """Whether an operator makes exactly one row whatever the data."""
    while isinstance(node, p.ComputeColumns | FinishAverages):
        node = node.input
    return isinstance(node, p.HashAggregate) and not node.keys


def has_one_row(node: p.NestedLoopJoin) -> bool:
    """Whether a kernel knows the row that a join finds: the only one of a side."""
    if node.kind is JoinKind.INNER:
        return is_one_row(node.left) or is_one_row(node.right)
    return node.kind in (JoinKind.LEFT, JoinKind.SINGLE) and is_one_row(node.right)


FEW_ROWS = 16  # that a kernel compares with each row of the other side; of 1.5 million prices in 16 bands that takes 45 ms of CPU time, and 48 by sorted bounds


def has_few_rows(node: p.NestedLoopJoin) -> bool:
    """Whether a side has so few rows that a kernel goes through all of them."""
    read = frozenset() if node.condition is None else ex.columns_of(node.condition)
    if not all(column.type.fits_register for column in read):
        return False
    if node.kind is JoinKind.INNER:
        return _is_few_rows(node.left) or _is_few_rows(node.right)
    return (node.kind.is_filter or node.kind is JoinKind.LEFT) and _is_few_rows(node.right)


def _is_few_rows(node: p.Physical) -> bool:
    """Whether an operator makes few rows whatever it drops, by what is known and not estimated."""
    match node:
        case p.ValuesScan(rows=rows):
            return len(rows) <= FEW_ROWS
        case p.ParquetScan() | p.MemoryScan():
            known = node.table.statistics().rows
            return known is not None and known <= FEW_ROWS
        case p.FilterRows(input=x) | p.ComputeColumns(input=x):
            return _is_few_rows(x)
    return False


def one_row_side(node: p.HashJoin) -> p.Physical | None:
    """Return the side of an inner join that is one row, so that there is nothing to hash."""
    if node.kind is not JoinKind.INNER:
        return None
    return next((side for side in (node.right, node.left) if is_one_row(side)), None)


def _as_loop(node: p.HashJoin) -> p.NestedLoopJoin:
    """An inner join with one row as a filter."""
    parts: list[ex.Expr] = [
        ex.Call(
            "is_not_distinct" if null_equal else "eq", (ex.ColumnRef(a), ex.ColumnRef(b)), BOOLEAN
        )
        for a, b, null_equal in zip(node.left_keys, node.right_keys, node.null_equal, strict=True)
    ]
    if node.residual is not None:
        parts.append(node.residual)
    condition = ex.conjunction(parts)
    made = p.NestedLoopJoin(node.left, node.right, JoinKind.INNER, condition, keep=node.keep)
    return made.placed_as(node)


def _by_constant_key(node: p.NestedLoopJoin) -> p.HashJoin:
    """A join on any condition as one by a key that is the same in all rows, so that each has all of the other side before it."""
    left, right = (ex.new_column("all", INTEGER) for _ in range(2))
    sides = (
        p.ComputeColumns(side, (*pass_on(side.columns), (key, ex.Literal(0, INTEGER))))
        for side, key in ((node.left, left), (node.right, right))
    )
    below, beside = (made.placed_as(node, made.input.estimate) for made in sides)
    return p.HashJoin(
        left=below,
        right=beside,
        kind=node.kind,
        left_keys=(left,),
        right_keys=(right,),
        null_equal=(False,),
        residual=node.condition,
        keep=node.columns,
    ).placed_as(node)


def exchanged(node: p.HashJoin) -> p.HashJoin:
    """A join with its sides the other way round, of which the right one is hashed."""
    return replace(
        node,
        left=node.right,
        right=node.left,
        left_keys=node.right_keys,
        right_keys=node.left_keys,
        build="right",
        keep=node.columns,
    )


def is_cheap(node: p.Physical) -> bool:
    """Whether doing the work of a chain again costs less than storing its rows and reading them."""
    parts = list(islice(walk(node), MOST_REPEATED + 1))
    if len(parts) > MOST_REPEATED or not all(map(is_link, parts)):
        return False
    return not has_joins(node) or sum(map(table_rows, leaves(node))) <= REPEATED_ROWS


def has_joins(node: p.Physical) -> bool:
    return any(isinstance(part, JOINS) for part in walk_once(node))


def leaves(node: p.Physical) -> list[p.Physical]:
    return [part for part in walk_once(node) if not part.children]


def table_rows(leaf: p.Physical) -> float:
    """Rows of a leaf before all filters."""
    if isinstance(leaf, p.ParquetScan | p.MemoryScan):
        rows = leaf.table.statistics().rows
        if rows is not None:
            return float(rows)
    return leaf.estimate or 0.0


def with_used(
    body: p.Physical, inputs: Sequence[p.Physical]
) -> tuple[p.Physical, tuple[p.Physical, ...]]:
    """Return a body with those of its inputs that it reads."""
    used = list(dict.fromkeys(n.number for n in walk(body) if isinstance(n, p.Stored)))
    known: dict[int, p.Stored] = {}

    def renumbered(node: p.Physical) -> p.Stored | None:
        if not isinstance(node, p.Stored):
            return None
        place = used.index(node.number)
        return known.setdefault(
            place, node if place == node.number else replace(node, number=place)
        )

    return transform_up(body, renumbered), tuple(inputs[number] for number in used)

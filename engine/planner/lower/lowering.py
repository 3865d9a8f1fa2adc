"""What the parts of `lower` share, one physical operator for each logical node and columns where operators want columns, and GROUP BY:
keys and arguments become columns, grouping sets one aggregation each over the same input.

Parts that several expressions of one node have in common.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ...plan import expr as ex
from ...plan.functions import AGGREGATE, constants
from ...plan.logical import Aggregate, Item, Logical
from ...plan.physical import ComputeColumns, ConcatRows, HashAggregate, Physical, ValuesScan
from ...plan.types import BIGINT
from ...records import dataclass
from ..estimates.estimate import Estimates, expected, group_count
from ..rewrite import pass_on

Needed = frozenset[ex.Column]


@dataclass
class Lowering:
    """The state of one pass: a logical node reached twice for the same columns becomes one physical object."""

    estimates: Estimates
    dispatch: Callable[[Logical, Needed, Lowering], Physical]
    _made: dict[tuple[int, Needed], tuple[Logical, Physical]] = field(default_factory=dict)
    _exact: dict[tuple[int, tuple[ex.Column, ...]], Physical] = field(default_factory=dict)

    def lower(self, node: Logical, needed: Needed) -> Physical:
        """Return an operator that makes `needed`, and maybe more, of the columns of `node`."""
        key = (id(node), needed)
        if key not in self._made:
            physical = self.dispatch(node, needed, self)
            if physical.estimate is None:
                physical = physical.replaced(estimate=self.estimates.rows(node))
            self._made[key] = node, physical
        return self._made[key][1]

    def exact(self, node: Logical, columns: tuple[ex.Column, ...]) -> Physical:
        """Return an operator that makes exactly `columns`, in this order."""
        key = id(node), columns
        if key not in self._exact:
            self._exact[key] = exactly(self.lower(node, frozenset(columns)), columns)
        return self._exact[key]


def exactly(physical: Physical, columns: tuple[ex.Column, ...]) -> Physical:
    if physical.columns == columns:
        return physical
    if isinstance(physical, ComputeColumns) and set(columns) <= set(physical.columns):
        items = dict(physical.items)
        return dataclasses.replace(physical, items=tuple((c, items[c]) for c in columns))
    return ComputeColumns(physical, pass_on(columns), estimate=physical.estimate)


def kept(columns: Iterable[ex.Column], needed: Needed) -> tuple[ex.Column, ...] | None:
    """Return those of `columns` that are needed; None, for all of them, when nothing falls away."""
    available = tuple(columns)
    chosen = tuple(c for c in available if c in needed)
    return None if len(chosen) == len(available) else chosen


def compute(physical: Physical, items: tuple[Item, ...]) -> Physical:
    """Return the columns of `items`, what several of them share computed once below."""
    shared = shared_parts([e for _, e in items])
    if not shared:
        return ComputeColumns(physical, items, estimate=physical.estimate)
    names = {part: ex.new_column("shared", part.type) for part in shared}
    items = tuple((c, replace_parts(e, names)) for c, e in items)
    read = frozenset().union(*(ex.columns_of(e) for _, e in items))
    passed = pass_on(c for c in physical.columns if c in read)
    return ComputeColumns(
        compute(physical, (*passed, *((c, e) for e, c in names.items()))),
        items,
        estimate=physical.estimate,
    )


@dataclass
class Computed:
    """Expressions that an operator wants as columns; equal expressions become one column."""

    items: list[Item] = field(default_factory=list)
    _known: dict[ex.Expr, ex.Column] = field(default_factory=dict)

    def column(self, expr: ex.Expr, name: str) -> ex.Column:
        if isinstance(expr, ex.ColumnRef):
            return expr.column
        if expr not in self._known:
            self._known[expr] = ex.new_column(name, expr.type)
            self.items.append((self._known[expr], expr))
        return self._known[expr]

    def above(self, physical: Physical, needed: Needed) -> Physical:
        """Return `physical` with the computed columns beside those of its own that are needed."""
        if not self.items:
            return physical
        passed = pass_on(c for c in physical.columns if c in needed)
        return compute(physical, (*passed, *self.items))


Calls = Sequence[tuple[ex.Column, ex.AggregateCall]]


def lower_aggregate(node: Aggregate, needed: Needed, to: Lowering) -> Physical:
    computed = Computed()
    calls = [(c, _over_columns(call, computed)) for c, call in node.aggregates if c in needed]
    if node.grouping_sets is not None:
        return _lower_grouping_sets(node, calls, computed, to)
    keys = []
    for column, expr in node.keys:
        if not (isinstance(expr, ex.ColumnRef) and expr.column == column):
            computed.items.append((column, expr))
        keys.append(column)
    return _aggregated(_input(node, keys, calls, computed, to), tuple(keys), tuple(calls))


def _aggregated(
    below: Physical, keys: tuple[ex.Column, ...], calls: Calls, estimate: float | None = None
) -> Physical:
    """Return an aggregate; of no keys and no calls it is one row whatever is below, as ROLLUP's last set may be."""
    if not keys and not calls:
        return ValuesScan((), ((),))
    return HashAggregate(below, keys, tuple(calls), estimate=estimate)


def _over_columns(call: ex.AggregateCall, computed: Computed) -> ex.AggregateCall:
    """Return the call with columns for arguments."""

    def as_ref(expr: ex.Expr, name: str) -> ex.ColumnRef:
        return ex.ColumnRef(computed.column(expr, name))

    fixed = constants(AGGREGATE[call.function].signature)
    args = tuple(a if i in fixed else as_ref(a, "argument") for i, a in enumerate(call.args))
    condition = None if call.filter is None else as_ref(call.filter, "condition")
    order = tuple(
        ex.SortKey(as_ref(k.expr, "key"), k.descending, k.nulls_first)
        for k in call.order
        if not isinstance(k.expr, ex.Literal)
    )
    return dataclasses.replace(call, args=args, filter=condition, order=order)


def _input(
    node: Aggregate, keys: list[ex.Column], calls: Calls, computed: Computed, to: Lowering
) -> Physical:
    """Return the input with all keys and arguments as columns, and nothing else once something is computed."""
    own = frozenset(node.input.columns)
    wanted = frozenset(keys).union(*(ex.columns_of(call) for _, call in calls)) & own
    read = wanted.union(*(ex.columns_of(e) for _, e in computed.items))
    return computed.above(to.lower(node.input, read), wanted)


def _lower_grouping_sets(
    node: Aggregate, calls: Calls, computed: Computed, to: Lowering
) -> Physical:
    """Concatenate one aggregation for each set; keys outside of a set are NULL."""
    assert node.grouping_sets is not None
    keys = []
    for column, expr in node.keys:
        if isinstance(expr, ex.ColumnRef):
            keys.append(expr.column)
        else:
            keys.append(ex.new_column(column.name, column.type))
            computed.items.append((keys[-1], expr))
    below = _input(node, keys, calls, computed, to)
    made = (*(c for c, _ in node.keys), *(c for c, _ in calls))
    if node.grouping_id is not None:
        made = (*made, node.grouping_id)
    known = to.estimates.relation(node.input)
    values = [expected(expr, known) for _, expr in node.keys]
    branches = tuple(
        _grouped(
            node, chosen, keys, calls, below, group_count([values[i] for i in chosen], known.rows)
        )
        for chosen in node.grouping_sets
    )
    return ConcatRows(branches, made)


def _grouped(
    node: Aggregate,
    chosen: tuple[int, ...],
    keys: list[ex.Column],
    calls: Calls,
    below: Physical,
    estimate: float,
) -> Physical:
    """Return one grouping set with columns of its own for all that the node makes."""
    own_calls = tuple((ex.new_column(c.name, c.type), call) for c, call in calls)
    own_keys = tuple(dict.fromkeys(keys[i] for i in chosen))
    grouped = _aggregated(below, own_keys, own_calls, estimate)
    items: list[Item] = []
    for i, key in enumerate(keys):
        value: ex.Expr = ex.ColumnRef(key) if i in chosen else ex.Literal(None, key.type)
        items.append((ex.new_column(key.name, key.type), value))
    items += [(ex.new_column(c.name, c.type), ex.ColumnRef(c)) for c, _ in own_calls]
    if node.grouping_id is not None:
        bits = [1 << (len(keys) - 1 - i) for i in range(len(keys)) if i not in chosen]
        items.append((ex.new_column(node.grouping_id.name, BIGINT), ex.Literal(sum(bits), BIGINT)))
    return ComputeColumns(grouped, tuple(items), estimate=estimate)


LAZY = frozenset(("coalesce",))  # later arguments are evaluated where the first ones are NULL


def shared_parts(exprs: list[ex.Expr]) -> list[ex.Expr]:
    """Return the largest calls that occur more than once, in the order in which they are met.

    A part of a CASE branch may be computed for all rows only where it is computed for all rows anyway: for others it might raise.
    """
    always: Counter[ex.Expr] = Counter()
    everywhere: Counter[ex.Expr] = Counter()
    for expr in exprs:
        for part, unconditional in _parts(expr, True):
            everywhere[part] += 1
            always[part] += unconditional
    repeated = {p for p, count in everywhere.items() if count > 1 and always[p]}
    found: dict[ex.Expr, None] = {}

    def largest(expr: ex.Expr) -> None:
        if expr in repeated:
            found[expr] = None
            return
        for child in expr.children:
            largest(child)

    if repeated:
        for expr in exprs:
            largest(expr)
    return list(found)


def replace_parts(expr: ex.Expr, names: Mapping[ex.Expr, ex.Column]) -> ex.Expr:
    """Read the columns of `names` instead of computing their expressions."""
    if isinstance(expr, ex.Call) and expr in names:
        return ex.ColumnRef(names[expr])
    return expr.with_children([replace_parts(c, names) for c in expr.children])


def _parts(expr: ex.Expr, unconditional: bool) -> Iterator[tuple[ex.Expr, bool]]:
    if isinstance(expr, ex.Call):
        yield expr, unconditional
    lazy = isinstance(expr, ex.Case) or (isinstance(expr, ex.Call) and expr.function in LAZY)
    for i, child in enumerate(expr.children):
        yield from _parts(child, unconditional and not (lazy and i > 0))

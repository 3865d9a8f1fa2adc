"""How many rows each part of a plan makes, and how many values its columns have.

Estimates start from `TableStatistics` and assume independent predicates, uniform values and that keys of the smaller domain
occur in the larger one (Selinger et al., 1979).  They steer join orders and build sides; no answer depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field, replace
from functools import partial, singledispatch

from ...plan import logical as rel
from ...plan.expr import AggregateCall, Cast, Column, ColumnRef, Expr, Literal
from ...plan.join_kinds import JoinKind
from ...plan.shapes.plan_model import decided_over
from ...plan.types import Kind
from ...plan.window.window_call import Window
from ...records import dataclass
from ..expressions.simplification import equalities
from ..plan_properties import at_most_one_row
from .relation_estimate import RelationEstimate, bounds_of, cast_estimate, scan_relation
from .selectivity import (
    ColumnEstimate,
    Columns,
    Lazily,
    narrowed,
    number,
    selectivity,
    selectivity_class,
    united,
)


@dataclass
class Estimates:
    """Estimates of the nodes of a plan, each worked out once."""

    _known: dict[int, tuple[rel.Logical, RelationEstimate]] = field(default_factory=dict)

    def rows(self, node: rel.Logical) -> float:
        return self.relation(node).rows

    def relation(self, node: rel.Logical) -> RelationEstimate:
        found = self._known.get(id(node))
        if found is None:
            found = node, _estimate(node, self)  # the node is kept, so that its id stays its own
            self._known[id(node)] = found
        return found[1]


LIKELY_ELEMENTS = 4.0  # of a list; nothing is measured of lists


@singledispatch
def _estimate(node: rel.Logical, estimates: Estimates) -> RelationEstimate:
    raise TypeError(f"{type(node).__name__} has no estimate")


@_estimate.register
def _(node: rel.Scan, estimates: Estimates) -> RelationEstimate:
    return scan_relation(node)


@_estimate.register
def _(node: rel.CommonScan, estimates: Estimates) -> RelationEstimate:
    below = node.common.once(_of_common)
    sources = dict(zip(node.made, node.sources, strict=True))
    return RelationEstimate(
        below.rows, Lazily(lambda c: below.columns.get(sources[c]) if c in sources else None)
    )


def _of_common(plan: rel.Logical) -> RelationEstimate:
    """Estimate a common query; its columns at once, or a chain of such queries would ask as deep as it is long."""
    found = Estimates().relation(plan)
    return RelationEstimate(found.rows, {c: e for c in plan.columns if (e := found.columns.get(c))})


@_estimate.register
def _(node: rel.Range, estimates: Estimates) -> RelationEstimate:
    rows = float(max(0, len(range(node.start, node.stop, node.step)))) if node.step else 0.0
    low, high = sorted((float(node.start), float(node.stop)))
    made = ColumnEstimate(max(rows, 1.0), max(rows, 1.0), True, low, high)
    return RelationEstimate(rows, {node.made: made})


@_estimate.register
def _(node: rel.Values, estimates: Estimates) -> RelationEstimate:
    rows = float(len(node.rows))
    made = {}
    for i, column in enumerate(node.made):
        exprs = [row[i] for row in node.rows]
        values = [number(e.hint) if isinstance(e, Literal) else None for e in exprs]
        known = [v for v in values if v is not None]
        complete = known and len(known) == len(values)
        distinct = float(max(1, len(set(known)) if complete else len(values)))
        low, high = (min(known), max(known)) if complete else (None, None)
        made[column] = ColumnEstimate(distinct, distinct, distinct >= rows, low, high)
    return RelationEstimate(rows, made)


@_estimate.register
def _(node: rel.Filter, estimates: Estimates) -> RelationEstimate:
    below = estimates.relation(node.input)
    fraction = selectivity(node.predicate, below.columns)
    # Constants that keep far more rows, or far fewer, are planned anew
    decided_over(partial(selectivity_class, columns=below.columns), node.predicate)
    columns = narrowed(below.columns, node.predicate)
    return RelationEstimate(below.rows, columns).scaled(below.rows * fraction)


@_estimate.register
def _(node: rel.Project, estimates: Estimates) -> RelationEstimate:
    below = estimates.relation(node.input)
    return RelationEstimate(below.rows, projected(node.items, below))


@_estimate.register
def _(node: Window, estimates: Estimates) -> RelationEstimate:
    below = estimates.relation(node.input)
    rows = max(1.0, below.rows)
    made = {c: ColumnEstimate(rows, rows, False) for c, _ in node.calls}
    return RelationEstimate(below.rows, united(below.columns, made))


@_estimate.register
def _(node: rel.Unnest, estimates: Estimates) -> RelationEstimate:
    below = estimates.relation(node.input)
    rows = max(1.0, below.rows * LIKELY_ELEMENTS)
    made = {c: ColumnEstimate(rows, rows, False) for c in node.made}
    return RelationEstimate(rows, united(below.scaled(rows).columns, made))


@_estimate.register
def _(node: rel.Aggregate, estimates: Estimates) -> RelationEstimate:
    below = estimates.relation(node.input)
    keys = {column: expected(expr, below) for column, expr in node.keys}
    groups = group_count(keys.values(), below.rows)
    if node.grouping_sets is not None:
        sets = [[keys[node.keys[i][0]] for i in chosen] for chosen in node.grouping_sets]
        groups = sum(group_count(chosen, below.rows) for chosen in sets)
    made: dict[Column, ColumnEstimate] = dict(keys)
    if len(node.keys) == 1:
        (column,) = keys
        made[column] = replace(keys[column], unique=keys[column].domain <= groups * 1.01)
    if node.grouping_id is not None:
        made[node.grouping_id] = ColumnEstimate(2.0, 2.0, False)
    calls = dict(node.aggregates)

    def grouped(column: Column) -> ColumnEstimate | None:
        call = calls.get(column)
        return made.get(column) if call is None else aggregated(call, below, groups)

    return RelationEstimate(groups, Lazily(grouped))


@_estimate.register
def _(node: rel.Distinct, estimates: Estimates) -> RelationEstimate:
    below = estimates.relation(node.input)
    if node.on is None:
        keys = [below.columns[column] for column in dict.fromkeys(node.columns)]
    else:
        keys = [expected(e, below) for e in node.on]
    return below.scaled(group_count(keys, below.rows))


@_estimate.register
def _(node: rel.Sort, estimates: Estimates) -> RelationEstimate:
    return estimates.relation(node.input)


@_estimate.register
def _(node: rel.Limit, estimates: Estimates) -> RelationEstimate:
    below = estimates.relation(node.input)
    if node.per:
        groups = group_count([expected(e, below) for e in node.per], below.rows)
        return below.scaled(min(below.rows, groups * (node.count or below.rows)))
    kept = max(0.0, below.rows - node.offset)
    return below.scaled(kept if node.count is None else min(kept, float(node.count)))


@_estimate.register
def _(node: rel.SetOperation, estimates: Estimates) -> RelationEstimate:
    left, right = estimates.relation(node.left), estimates.relation(node.right)
    rows = {
        "union": left.rows + right.rows,
        "intersect": min(left.rows, right.rows),
        "except": left.rows,
    }[node.kind]
    made = {}
    pairs = zip(node.left.columns, node.right.columns, strict=True)
    for column, (a, b) in zip(node.made, pairs, strict=True):
        one, other = left.columns[a], right.columns[b]
        made[column] = _united(one, other) if node.kind == "union" else one
    relation = RelationEstimate(rows, made).scaled(rows)
    return relation if node.all else relation.scaled(group_count(made.values(), rows))


@_estimate.register
def _(node: rel.Join, estimates: Estimates) -> RelationEstimate:
    left, right = estimates.relation(node.left), estimates.relation(node.right)
    own, other = frozenset(node.left.columns), frozenset(node.right.columns)
    both = Lazily(lambda c: (right if c in other else left).columns.get(c))
    keys, rest = equalities(node.condition, own, other)
    pairs = [(expected(a, left), expected(b, right)) for a, b in keys]
    residual = selectivity(rest, both)
    matches = join_rows(left.rows, right.rows, pairs) * residual
    match node.kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            fraction = semi_fraction(node.kind, pairs, right.rows, residual)
            kept = left.scaled(left.rows * fraction)
            return _with_keys_of(kept, keys, right) if node.kind is JoinKind.SEMI else kept
        case JoinKind.MARK:
            assert node.mark is not None
            made = {node.mark: ColumnEstimate(2.0, 2.0, False)}
            return RelationEstimate(left.rows, united(left.columns, made))
        case JoinKind.INNER:
            if at_most_one_row(node.right) and not keys:
                matches = max(1.0, left.rows * residual)
            return RelationEstimate(max(left.rows, right.rows) + matches, both).scaled(matches)
    rows = {
        JoinKind.LEFT: max(left.rows, matches),
        JoinKind.SINGLE: left.rows,
        JoinKind.RIGHT: max(right.rows, matches),
        JoinKind.FULL: max(left.rows, right.rows, matches),
    }[node.kind]
    return RelationEstimate(left.rows + right.rows, both).scaled(rows)


def group_count(keys: Iterable[ColumnEstimate], rows: float) -> float:
    """Expected groups: the product of the keys' values, each further key counting less, and at most a row each."""
    product = 1.0
    for i, key in enumerate(sorted(keys, key=lambda k: -k.distinct)):
        product *= key.distinct if i < 2 else math.sqrt(key.distinct)
    return min(rows, product) if rows >= 1.0 else max(rows, min(1.0, product))


def key_domain(a: ColumnEstimate, b: ColumnEstimate) -> float:
    """Values among which keys of both sides lie: a unique key's, where there is one, as foreign keys point at it."""
    if a.unique and b.unique:
        return min(a.domain, b.domain)
    if a.unique or b.unique:
        return a.domain if a.unique else b.domain
    return max(a.distinct, b.distinct)


def join_rows(
    left: float, right: float, keys: list[tuple[ColumnEstimate, ColumnEstimate]]
) -> float:
    """Expected pairs with equal keys.

    Several keys together have at most as many combinations as the smaller side once had rows, or a join over a composite
    foreign key would seem to lose nearly all rows.
    """
    if not keys:
        return left * right
    domain = math.prod(key_domain(a, b) for a, b in keys)
    if len(keys) > 1:
        sides = list(zip(*keys, strict=True))
        combinations = min(
            bound
            for side in sides
            for bound in (math.prod(k.domain for k in side), max(k.source_rows for k in side))
        )
        domain = min(domain, max(combinations, 1.0))
    return left * right / max(domain, 1.0)


def semi_fraction(
    kind: str,
    keys: list[tuple[ColumnEstimate, ColumnEstimate]],
    right_rows: float,
    residual: float,
) -> float:
    """Expected share of left rows that a semi or anti join keeps."""
    if not keys:
        matched = min(1.0, right_rows * residual)
    else:
        matched = 1.0
        for a, b in keys:
            matched = min(matched, b.distinct / max(key_domain(a, b), a.distinct, 1.0))
        matched = min(1.0, matched) * (residual if residual > 0.2 else 0.2)
    return max(matched, 0.0) if kind is JoinKind.SEMI else max(0.1, 1.0 - matched)


def projected(items: Iterable[rel.Item], below: RelationEstimate) -> Columns:
    exprs = dict(items)

    def made(column: Column) -> ColumnEstimate | None:
        expr = exprs.get(column)
        return None if expr is None else expected(expr, below)

    return Lazily(made)


def expected(expr: Expr, relation: RelationEstimate) -> ColumnEstimate:
    """What is expected of an expression's values: those of its column, through casts; of a call, guessed."""
    match expr:
        case ColumnRef(column=column):
            found = relation.columns.get(column)
            return found or ColumnEstimate(relation.rows, relation.rows, False)
        case Literal():
            value = number(expr.hint)
            return ColumnEstimate(1.0, 1.0, False, value, value)
        case Cast(operand=operand) as cast:
            return cast_estimate(cast, expected(operand, relation))
    distinct = 1.0
    for child in expr.children:
        distinct *= expected(child, relation).distinct
    if expr.type.kind is Kind.BOOLEAN:
        distinct = min(distinct, 2.0)
    between = bounds_of(expr, lambda argument: expected(argument, relation))
    low, high = between or (None, None)
    if low is not None and high is not None:
        distinct = min(distinct, high - low + 1)
    distinct = max(1.0, min(distinct, relation.rows))
    return ColumnEstimate(distinct, distinct, False, low, high, derived=True)


def _with_keys_of(
    kept: RelationEstimate, keys: Iterable[tuple[Expr, Expr]], right: RelationEstimate
) -> RelationEstimate:
    """A semi join's rows: their keys are among those of the other side."""
    fewer: dict[Column, ColumnEstimate] = {}
    for a, b in keys:
        if isinstance(a, ColumnRef) and a.column in kept.columns:
            known = fewer.get(a.column) or kept.columns[a.column]
            distinct = min(known.distinct, expected(b, right).distinct)
            fewer[a.column] = replace(known, distinct=distinct)
    return RelationEstimate(kept.rows, united(kept.columns, fewer))


def aggregated(call: AggregateCall, below: RelationEstimate, groups: float) -> ColumnEstimate:
    """What is expected of an aggregate: a sum of as many uniform values as a group has rows, on average.

    Different counts are few: n of them, 0, 1, 2 ... at least, take about n * n / 2 rows.
    """
    rows = below.rows / max(groups, 1.0)
    if call.function in ("count", "count_star"):
        few = max(1.0, min(groups, math.sqrt(2 * below.rows) + 1))
        counted = ColumnEstimate(few, few, False, derived=True)
        if call.filter is not None or call.distinct:
            return counted
        return replace(counted, mean=rows, deviation=math.sqrt(rows))
    made = ColumnEstimate(groups, groups, False, derived=True)
    if call.filter is not None or call.distinct or call.function not in ("sum", "avg"):
        return made
    value = expected(call.args[0], below)
    if rows <= 1.0:  # as where what is below has been grouped by the same keys: the values stay
        made = replace(
            made, distinct=min(groups, value.distinct), domain=min(groups, value.distinct)
        )
    if value.low is None or value.high is None:
        return made
    mean, variance = (value.low + value.high) / 2, (value.high - value.low) ** 2 / 12
    if call.function == "avg":
        return replace(made, mean=mean, deviation=math.sqrt(variance / max(rows, 1.0)))
    return replace(made, mean=rows * mean, deviation=math.sqrt(rows * (variance + mean**2)))


def _united(a: ColumnEstimate, b: ColumnEstimate) -> ColumnEstimate:
    low = None if a.low is None or b.low is None else min(a.low, b.low)
    high = None if a.high is None or b.high is None else max(a.high, b.high)
    distinct = a.distinct + b.distinct
    return ColumnEstimate(distinct, distinct, False, low, high)

"""Rule `push_aggregates`: rows that a left join would only multiply are counted and added up before it."""

from __future__ import annotations

from dataclasses import replace

from ...plan import expr as ex
from ...plan.functions import AGGREGATE
from ...plan.join_kinds import JoinKind
from ...plan.logical import Aggregate, Item, Join, Logical, Project
from ...plan.node import transform_up
from ...plan.types import BIGINT, BOOLEAN, HUGEINT
from ...records import dataclass
from ..estimates.estimate import Estimates, expected, group_count
from ..expressions.simplification import as_equality
from ..rewrite import pass_on, reads_only

MIN_ROWS_A_KEY = (
    4.0  # on the side that is aggregated first, or the join has nearly as many rows as before
)


def push_aggregates(plan: Logical) -> Logical:
    """Aggregate the right side of a left join by its join keys first.

        Aggregate(k, count(y.a), Join(x, y, left, x.j = y.j))
          -> Aggregate(k, sum(n), Join(x, Aggregate(y.j, n: count(y.a), y), left, x.j = y.j))

    Each row of x meets its whole group of y or none of it.  As in eager aggregation (Yan and Larson, 1995); of an inner join, whose
    sides can be exchanged, rather the side with unique keys is looked up.
    """
    estimates = Estimates()
    return transform_up(plan, lambda node: _push(node, estimates))


def _push(node: Logical, estimates: Estimates) -> Logical | None:
    match node:
        case Aggregate(input=Join(kind=JoinKind.LEFT) as join, grouping_sets=None):
            pairs = _pairs(join)
            own = join.left.columns
            if not pairs or not all(reads_only(e, own) for _, e in node.keys):
                return None
            parts = [_part(column, call, join) for column, call in node.aggregates]
            if not parts or not _shrinks(join.right, pairs, estimates):
                return None
            known = [part for part in parts if part is not None]
            return _pushed(node, join, pairs, known) if len(known) == len(parts) else None
    return None


@dataclass(frozen=True, slots=True)
class _Pair:
    """An equality of the join: a left expression and a right one, by the function `test`."""

    test: str
    left: ex.Expr
    right: ex.Expr


@dataclass(frozen=True, slots=True)
class _Part:
    """An aggregate in two steps: `early` makes `partial`, `late` makes `total`, and `result` is what was asked for."""

    partial: ex.Column
    early: ex.AggregateCall
    total: ex.Column
    late: ex.AggregateCall
    made: ex.Column
    result: ex.Expr


def _pairs(join: Join) -> list[_Pair]:
    """Return the equalities that a join consists of; none if there is anything else to it."""
    left, right = frozenset(join.left.columns), frozenset(join.right.columns)
    found = []
    for part in ex.conjuncts(join.condition):
        sides = as_equality(part, left, right)
        if sides is None:
            return []
        assert isinstance(part, ex.Call)
        found.append(_Pair(part.function, *sides))
    return found


def _part(made: ex.Column, call: ex.AggregateCall, join: Join) -> _Part | None:
    """Split an aggregate of a column of the right side; rows without a match have NULL there, or count as one row."""
    if call.distinct or call.filter is not None or call.order:
        return None
    match call:
        case ex.AggregateCall(function="count_star"):
            return _count(made, call, ex.Literal(1, BIGINT))
        case ex.AggregateCall(args=(ex.ColumnRef(column=column),)) if column in join.right.columns:
            if call.function == "count":
                return _count(made, call, ex.Literal(0, BIGINT))
            if AGGREGATE[call.function].merges and not call.type.is_float:
                partial = ex.new_column(made.name, call.type)
                late = replace(call, args=(ex.ColumnRef(partial),))
                return _Part(partial, call, made, late, made, ex.ColumnRef(made))
    return None


def _count(made: ex.Column, call: ex.AggregateCall, without_match: ex.Literal) -> _Part:
    partial = ex.new_column(made.name, BIGINT)
    total = ex.new_column(made.name, HUGEINT)
    counted = ex.Call("coalesce", (ex.ColumnRef(partial), without_match), BIGINT)
    late = ex.AggregateCall("sum", (counted,), total.type)
    none = ex.Literal(0, BIGINT)  # without keys there is a row of no rows too
    result = ex.Call("coalesce", (ex.Cast(ex.ColumnRef(total), BIGINT), none), BIGINT)
    return _Part(partial, call, total, late, made, result)


def _shrinks(right: Logical, pairs: list[_Pair], estimates: Estimates) -> bool:
    relation = estimates.relation(right)
    groups = group_count([expected(pair.right, relation) for pair in pairs], relation.rows)
    return relation.rows >= MIN_ROWS_A_KEY * max(groups, 1.0)


def _pushed(node: Aggregate, join: Join, pairs: list[_Pair], parts: list[_Part]) -> Logical:
    keys: list[Item] = [(ex.new_column("key", pair.right.type), pair.right) for pair in pairs]
    early = Aggregate(join.right, tuple(keys), tuple((p.partial, p.early) for p in parts))
    tests: list[ex.Expr] = [
        ex.Call(pair.test, (pair.left, ex.ColumnRef(key)), BOOLEAN)
        for pair, (key, _) in zip(pairs, keys, strict=True)
    ]
    joined = Join(join.left, early, JoinKind.LEFT, ex.conjunction(tests))
    late = Aggregate(joined, node.keys, tuple((p.total, p.late) for p in parts))
    return Project(late, (*pass_on(c for c, _ in node.keys), *((p.made, p.result) for p in parts)))

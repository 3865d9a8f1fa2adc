"""What holds of a plan's rows whatever the data: how many there can be, which columns identify one, which are never NULL."""

from __future__ import annotations

from collections.abc import Sequence

from ..plan import logical as rel
from ..plan.expr import AggregateCall, Column, ColumnRef, Expr, Literal
from ..plan.functions import AGGREGATE
from ..plan.join_kinds import JoinKind
from ..plan.window.window_call import Window
from .expressions.nullness import compared_columns, is_never_null
from .expressions.simplification import equalities

Key = frozenset[Column]
MAX_KEYS = 8  # kept for one node: more are never asked for


def exactly_one_row(plan: rel.Logical) -> bool:
    match plan:
        case rel.Values(rows=rows):
            return len(rows) == 1
        case rel.Aggregate(keys=(), grouping_sets=None):
            return True
        case rel.Project(input=x) | rel.Sort(input=x) | rel.Distinct(input=x) | Window(input=x):
            return exactly_one_row(x)
        case rel.Limit(input=x, count=count, offset=0):
            return (count is None or count >= 1) and exactly_one_row(x)
        case rel.Join(
            left=a, right=b, kind=JoinKind.INNER | JoinKind.LEFT | JoinKind.SINGLE, condition=None
        ):
            return exactly_one_row(a) and exactly_one_row(b)
        case rel.Join(left=a, kind=JoinKind.MARK):
            return exactly_one_row(a)
        case rel.CommonScan(common=common):
            return common.once(exactly_one_row)
    return False


def at_most_one_row(plan: rel.Logical) -> bool:
    if exactly_one_row(plan):
        return True
    match plan:
        case rel.Values(rows=rows):
            return len(rows) <= 1
        case rel.Limit(input=x, count=count, per=per):
            return (count is not None and count <= 1 and not per) or at_most_one_row(x)
        case (
            rel.Project(input=x)
            | rel.Sort(input=x)
            | rel.Distinct(input=x)
            | rel.Filter(input=x)
            | Window(input=x)
        ):
            return at_most_one_row(x)
        case rel.Join(left=a, right=b, kind=JoinKind.INNER | JoinKind.LEFT | JoinKind.SINGLE):
            return at_most_one_row(a) and (plan.kind is JoinKind.SINGLE or at_most_one_row(b))
        case rel.Join(left=a, kind=JoinKind.SEMI | JoinKind.ANTI | JoinKind.MARK):
            return at_most_one_row(a)
        case rel.CommonScan(common=common):
            return common.once(at_most_one_row)
    return False


def unique_keys(plan: rel.Logical) -> list[Key]:
    """Return sets of columns of which no two rows have equal values (NULL counting as a value); the empty set: at most one row."""
    if at_most_one_row(plan):
        return [frozenset()]
    match plan:
        case rel.Scan():
            return _scan_keys(plan)
        case rel.CommonScan(common=common, made=made, sources=sources):
            columns = [(c, ColumnRef(s)) for c, s in zip(made, sources, strict=True)]
            return _renamed_keys(common.once(unique_keys), columns)
        case rel.Range(made=column):
            return [frozenset((column,))]
        case rel.Filter(input=x) | rel.Sort(input=x) | rel.Limit(input=x) | Window(input=x):
            return unique_keys(x)
        case rel.Project(input=x, items=items):
            return _renamed_keys(unique_keys(x), items)
        case rel.Aggregate(keys=keys, grouping_sets=None):
            return [frozenset(c for c, _ in keys)]
        case rel.Distinct(input=x, on=on):
            found = unique_keys(x)
            if on is None:
                return [*found, frozenset(x.columns)][:MAX_KEYS]
            refs = [e.column for e in on if isinstance(e, ColumnRef)]
            return [*found, frozenset(refs)][:MAX_KEYS] if len(refs) == len(on) else found
        case rel.SetOperation(all=False, made=made):
            return [frozenset(made)]
        case rel.Join():
            return _join_keys(plan)
    return []


def _scan_keys(scan: rel.Scan) -> list[Key]:
    known = scan.table.statistics().columns
    found = []
    for column, source in zip(scan.made, scan.sources, strict=True):
        facts = known.get(source)
        if facts is not None and facts.unique:
            found.append(frozenset((column,)))
    return found


def _renamed_keys(below: list[Key], items: Sequence[tuple[Column, Expr]]) -> list[Key]:
    new_name = {e.column: c for c, e in items if isinstance(e, ColumnRef)}
    return [frozenset(new_name[c] for c in key) for key in below if all(c in new_name for c in key)]


def _join_keys(join: rel.Join) -> list[Key]:
    left = unique_keys(join.left)
    if join.kind.at_most_one:
        return left
    if join.kind is JoinKind.FULL:
        return []
    right = unique_keys(join.right)
    pairs, _ = equalities(
        join.condition, frozenset(join.left.columns), frozenset(join.right.columns)
    )
    left_read = {a.column for a, _ in pairs if isinstance(a, ColumnRef)}
    right_read = {b.column for _, b in pairs if isinstance(b, ColumnRef)}
    found: list[Key] = []
    if not join.kind.keeps_right and any(key <= right_read for key in right):
        found += left
    if not join.kind.keeps_left and any(key <= left_read for key in left):
        found += right
    found += [a | b for a in left for b in right]
    return found[:MAX_KEYS]


def never_null(plan: rel.Logical) -> set[Column]:
    """Return columns that hold no NULL."""
    match plan:
        case rel.Scan():
            known = plan.table.statistics().columns
            pairs = zip(plan.made, plan.sources, strict=True)
            return {c for c, s in pairs if s in known and known[s].nulls == 0}
        case rel.CommonScan(common=common, made=made, sources=sources):
            below = common.once(never_null)
            return {c for c, s in zip(made, sources, strict=True) if s in below}
        case rel.Range(made=column):
            return {column}
        case rel.Values(made=made, rows=rows):
            return {c for i, c in enumerate(made) if all(_is_value(r[i]) for r in rows)}
        case rel.Filter(input=x, predicate=predicate):
            return never_null(x) | compared_columns(predicate)
        case rel.Sort(input=x) | rel.Limit(input=x) | rel.Distinct(input=x) | Window(input=x):
            return never_null(x)
        case rel.Project(input=x, items=items):
            below = never_null(x)
            return {c for c, e in items if is_never_null(e, below)}
        case rel.Aggregate(input=x, keys=keys, aggregates=aggregates, grouping_sets=sets):
            below = never_null(x)
            grouped = bool(keys) and (sets is None or () not in sets)  # no group without rows
            found = {c for c, call in aggregates if _aggregate_never_null(call, grouped, below)}
            return found | {c for c, e in keys if sets is None and is_never_null(e, below)}
        case rel.Join(kind=kind):
            left = never_null(plan.left) if not kind.keeps_right else set()
            if plan.mark is not None:
                return left if plan.null_aware else left | {plan.mark}
            right = never_null(plan.right) if kind.outputs_right and not kind.keeps_left else set()
            held = compared_columns(plan.condition) if kind is JoinKind.INNER else set()
            return left | right | held
    return set()


def _aggregate_never_null(call: AggregateCall, grouped: bool, below: set[Column]) -> bool:
    row = AGGREGATE[call.function]
    total = row.total and grouped and call.filter is None
    return row.counts or (total and all(is_never_null(a, below) for a in call.args))


def _is_value(expr: Expr) -> bool:
    return isinstance(expr, Literal) and not expr.is_null

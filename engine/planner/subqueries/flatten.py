"""The right side of a dependent join, node by node: how each carries the outer values along."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ...plan import expr as ex, logical as rel
from ...plan.copies import fresh
from ...plan.functions import AGGREGATE
from ...plan.join_kinds import JoinKind
from ...plan.types import BIGINT, BOOLEAN
from ...plan.window.window_call import Window
from ..expressions.simplification import simplified
from ..plan_properties import at_most_one_row
from ..rewrite import narrow, pass_on, replace_columns, swapped
from .unnest import Bound, Outer, absorb, bind, materialized, without_nulls


def flatten(node: rel.Logical, outer: Outer) -> Bound:
    """Return `node`, which may read columns of `outer`, as a plan that reads none."""
    if not outer.is_read_by(node):
        return Bound(node)
    match node:
        case rel.Filter():
            return _filter(node, outer)
        case rel.Project():
            return _project(node, outer)
        case rel.Aggregate():
            return _aggregate(node, outer)
        case rel.Join():
            return _join(node, outer)
        case rel.Distinct():
            return _distinct(node, outer)
        case Window():
            return _window(node, outer)
        case rel.Unnest():
            return _unnest(node, outer)
        case rel.Sort():
            return _sort(node, outer)
        case rel.Limit():
            return _limit(node, outer)
        case rel.SetOperation():
            return _set_operation(node, outer)
        case rel.Values():
            return flatten(_as_projections(node), outer)
    raise TypeError(f"{type(node).__name__} reads no columns")


def _complete(node: rel.Logical, outer: Outer, columns: Iterable[ex.Column] = ()) -> Bound:
    """Return `node` flattened with nothing pending and no default, and these outer columns bound."""
    return bind(materialized(flatten(node, outer), outer), outer, columns)


def _local(node: rel.Logical, bound: Bound) -> rel.Logical:
    """Return `node` over the bound plan, its expressions reading bound columns instead of outer ones."""
    refs = bound.refs
    rewritten = node.map_expressions(lambda e: replace_columns(e, refs))
    return rewritten.with_children([bound.plan])


def _filter(node: rel.Filter, outer: Outer) -> Bound:
    below = flatten(node.input, outer)
    if below.default is not None:
        verdict = simplified(replace_columns(node.predicate, below.default))
        if isinstance(verdict, ex.Literal) and verdict.truth is not True:
            below = dataclasses.replace(below, default=None)  # nor has the default row a place
        else:
            below = materialized(below, outer)
    return absorb(below, outer, ex.conjuncts(node.predicate))


def _project(node: rel.Project, outer: Outer) -> Bound:
    below = flatten(node.input, outer)
    read = outer.reads(*node.expressions)
    if not read <= below.where.keys():
        below = bind(below, outer, read)
    refs = below.refs
    items = tuple((c, replace_columns(e, refs)) for c, e in node.items)
    made = {c for c, _ in items}
    carried = pass_on(c for c in below.carried() if c not in made)
    default = None
    if below.default is not None:
        default = {c: simplified(replace_columns(e, below.default)) for c, e in node.items}
    return dataclasses.replace(
        below, plan=rel.Project(below.plan, (*items, *carried)), default=default
    )


def _aggregate(node: rel.Aggregate, outer: Outer) -> Bound:
    """Group by the outer values too.  Without keys there is a row for outer values that have no rows: the default."""
    if node.grouping_sets is not None and () in node.grouping_sets:
        return flatten(_one_by_one(node), outer)
    below = _complete(node.input, outer, outer.reads(*node.expressions))
    local = _local(node, below)
    assert isinstance(local, rel.Aggregate)
    own = {c for c, _ in node.keys}
    added = pass_on(c for c in dict.fromkeys(below.where.values()) if c not in own)
    sets = local.grouping_sets
    if sets is not None:
        shift = len(added)
        sets = tuple((*range(shift), *(i + shift for i in chosen)) for chosen in sets)
    plan = dataclasses.replace(local, keys=(*added, *local.keys), grouping_sets=sets)
    default = None
    if not node.keys and below.where:
        default = {c: _of_nothing(c, call.function) for c, call in node.aggregates}
    return Bound(plan, below.where, below.strict, (), default)


def _of_nothing(column: ex.Column, function: str) -> ex.Expr:
    """Return an aggregate of no rows."""
    return ex.Literal(0 if AGGREGATE[function].counts else None, column.type)


def _one_by_one(node: rel.Aggregate) -> rel.Logical:
    """Return grouping sets as a union, since the empty set has a row of an empty input and the others have not."""
    assert node.grouping_sets is not None
    branches: list[rel.Logical] = []
    for chosen in node.grouping_sets:
        copy, renamed = fresh(rel.Aggregate(node.input, node.keys, node.aggregates))
        assert isinstance(copy, rel.Aggregate)
        grouped = dataclasses.replace(copy, keys=tuple(copy.keys[i] for i in chosen))
        items: list[tuple[ex.Column, ex.Expr]] = []
        for i, (column, _) in enumerate(node.keys):
            value = ex.ColumnRef(renamed[column]) if i in chosen else ex.Literal(None, column.type)
            items.append((ex.new_column(column.name, column.type), value))
        items += [
            (ex.new_column(c.name, c.type), ex.ColumnRef(renamed[c])) for c, _ in node.aggregates
        ]
        if node.grouping_id is not None:
            away = sum(
                1 << (len(node.keys) - 1 - i) for i in range(len(node.keys)) if i not in chosen
            )
            items.append((ex.new_column(node.grouping_id.name, BIGINT), ex.Literal(away, BIGINT)))
        branches.append(rel.Project(grouped, tuple(items)))
    return _union(branches, node.columns)


def _union(branches: list[rel.Logical], made: tuple[ex.Column, ...]) -> rel.Logical:
    plan = branches[0]
    for i, branch in enumerate(branches[1:], 2):
        last = i == len(branches)
        columns = made if last else tuple(ex.new_column(c.name, c.type) for c in made)
        plan = rel.SetOperation(plan, branch, "union", True, columns)
    if len(branches) == 1:
        renaming = zip(made, plan.columns, strict=True)
        plan = rel.Project(plan, tuple((c, ex.ColumnRef(s)) for c, s in renaming))
    return plan


def _join(node: rel.Join, outer: Outer) -> Bound:
    match node.kind:
        case JoinKind.INNER:
            return _inner_join(node, outer)
        case JoinKind.RIGHT:
            return flatten(swapped(node), outer)
        case JoinKind.FULL:
            return _full_join(node, outer)
    return _left_join(node, outer)


def _inner_join(node: rel.Join, outer: Outer) -> Bound:
    left = materialized(flatten(node.left, outer), outer)
    right = materialized(flatten(node.right, outer), outer)
    joined = Bound(
        rel.Join(left.plan, right.plan, JoinKind.INNER, None),
        {**right.where, **left.where},
        left.strict | right.strict,
        (*left.pending, *right.pending),
    )
    same = [_same(left, right, c) for c in left.where if c in right.where]
    return absorb(joined, outer, [*ex.conjuncts(node.condition), *same])


def _same(left: Bound, right: Bound, column: ex.Column) -> ex.Expr:
    strict = column in left.strict or column in right.strict
    args = ex.ColumnRef(left.where[column]), ex.ColumnRef(right.where[column])
    return ex.Call("eq" if strict else "is_not_distinct", args, BOOLEAN)


def _left_join(node: rel.Join, outer: Outer) -> Bound:
    """Kinds that decide for each left row: what the right side and the condition read is bound on the left."""
    condition = list(ex.conjuncts(node.condition))
    if node.null_aware and (outer.is_read_by(node.right) or outer.reads(*condition)):
        return flatten(plain_join(node), outer)
    right = materialized(flatten(node.right, outer), outer)
    read = right.where.keys() | outer.reads(*condition, *right.pending)
    left = materialized(flatten(node.left, outer), outer)
    if not read <= left.where.keys():
        left = bind(left, outer, read)
    refs = left.refs
    parts = [replace_columns(p, refs) for p in (*condition, *right.pending)]
    parts += [_same(left, right, c) for c in right.where]
    joined = dataclasses.replace(
        node, left=left.plan, right=right.plan, condition=ex.conjunction(parts) if parts else None
    )
    return dataclasses.replace(left, plan=joined)


def _full_join(node: rel.Join, outer: Outer) -> Bound:
    """Both sides carry all values, and a row takes them from the side that it has."""
    condition = list(ex.conjuncts(node.condition))
    first_left, first_right = flatten(node.left, outer), flatten(node.right, outer)
    pending = (*condition, *first_left.pending, *first_right.pending)
    read = first_left.where.keys() | first_right.where.keys() | outer.reads(*pending)
    left = without_nulls(bind(materialized(first_left, outer), outer, read))
    right = without_nulls(bind(materialized(first_right, outer), outer, read))
    parts = [replace_columns(p, left.refs) for p in condition]
    parts += [_same(left, right, c) for c in left.where]
    joined = rel.Join(
        left.plan, right.plan, JoinKind.FULL, ex.conjunction(parts) if parts else None
    )
    where = {c: ex.new_column(c.name, c.type) for c in left.where}
    either = tuple(
        (
            own,
            ex.Call(
                "coalesce", (ex.ColumnRef(left.where[c]), ex.ColumnRef(right.where[c])), own.type
            ),
        )
        for c, own in where.items()
    )
    return Bound(rel.Project(joined, (*pass_on(node.columns), *either)), where)


def plain_join(node: rel.Join) -> rel.Logical:
    """Return a null-aware join as joins whose condition says what an unknown comparison means."""
    assert node.null_aware
    assert isinstance(node.condition, ex.Call)
    if node.kind is JoinKind.ANTI:
        condition = not_false(node.condition)
        return dataclasses.replace(node, condition=condition, null_aware=False)
    assert node.mark is not None
    return marked(node.left, node.right, [], node.condition, node.mark)


def not_false(comparison: ex.Call) -> ex.Expr:
    """Return whether a comparison is TRUE or NULL."""
    if comparison.function in ("and", "or"):
        args = tuple(not_false(a) for a in comparison.args if isinstance(a, ex.Call))
        return ex.Call(comparison.function, args, BOOLEAN)
    nulls = (ex.Call("is_null", (a,), BOOLEAN) for a in comparison.args)
    return ex.Call("or", (comparison, *nulls), BOOLEAN)


def marked(
    left: rel.Logical,
    right: rel.Logical,
    parts: list[ex.Expr],
    comparison: ex.Expr,
    mark: ex.Column,
) -> rel.Logical:
    """Return `left` with a three-valued mark: whether `comparison` is TRUE for a row of `right` under `parts`.

    One mark says whether it is TRUE for any row, another whether it is NULL for any.
    """
    found, unknown = ex.new_column("found", BOOLEAN), ex.new_column("unknown", BOOLEAN)
    copy, renamed = fresh(right)
    first = rel.Join(left, right, JoinKind.MARK, ex.conjunction([*parts, comparison]), mark=found)
    is_unknown = ex.Call("is_null", (comparison,), BOOLEAN)
    refs: dict[ex.Column, ex.Expr] = {c: ex.ColumnRef(n) for c, n in renamed.items()}
    condition = replace_columns(ex.conjunction([*parts, is_unknown]), refs)
    second = rel.Join(first, copy, JoinKind.MARK, condition, mark=unknown)
    answer = ex.Case(
        (ex.ColumnRef(found), ex.ColumnRef(unknown)),
        (ex.TRUE, ex.Literal(None, BOOLEAN)),
        ex.Literal(False, BOOLEAN),
        BOOLEAN,
    )
    return rel.Project(second, (*pass_on(left.columns), (mark, answer)))


def _distinct(node: rel.Distinct, outer: Outer) -> Bound:
    below = flatten(node.input, outer)
    if below.default is not None and node.on is None:
        return below  # one row
    below = bind(materialized(below, outer), outer, outer.reads(*node.expressions))
    carried = [c for c in below.where.values() if c not in node.columns]
    exact = dataclasses.replace(
        below, plan=narrow(below.plan, (*node.columns, *dict.fromkeys(carried)))
    )
    local = _local(node, exact)
    assert isinstance(local, rel.Distinct)
    if local.on is not None:
        local = dataclasses.replace(local, on=(*local.on, *below.refs.values()))
    return dataclasses.replace(exact, plan=local)


def _sort(node: rel.Sort, outer: Outer) -> Bound:
    """Rows for one outer row stay in order when all are sorted."""
    below = flatten(node.input, outer)
    if below.default is not None:
        return below  # one row
    read = outer.reads(*node.expressions)
    if not read <= below.where.keys():
        below = bind(below, outer, read)
    return dataclasses.replace(below, plan=_local(node, below))


def _window(node: Window, outer: Outer) -> Bound:
    """The rows for each outer row are partitions of their own."""
    below = _complete(node.input, outer, outer.reads(*node.expressions))
    local = _local(node, below)
    assert isinstance(local, Window)
    partition = tuple(dict.fromkeys((*below.refs.values(), *local.partition)))
    return dataclasses.replace(below, plan=dataclasses.replace(local, partition=partition))


def _unnest(node: rel.Unnest, outer: Outer) -> Bound:
    """The lists of the rows for each outer row, which may be its own."""
    below = _complete(node.input, outer, outer.reads(*node.expressions))
    return dataclasses.replace(below, plan=_local(node, below))


def _limit(node: rel.Limit, outer: Outer) -> Bound:
    """The first rows for each outer row."""
    if node.count is None and node.offset == 0:
        return flatten(node.input, outer)
    if node.offset == 0 and node.count != 0 and at_most_one_row(node.input):
        return flatten(node.input, outer)
    if isinstance(node.input, rel.Project):
        below = dataclasses.replace(node, input=node.input.input)
        return flatten(dataclasses.replace(node.input, input=below), outer)
    if isinstance(node.input, rel.Sort):
        sort = node.input
        bound = _complete(sort.input, outer, outer.reads(*sort.expressions))
        bound = dataclasses.replace(bound, plan=_local(sort, bound))
    else:
        bound = _complete(node.input, outer)
    if not bound.where:
        return dataclasses.replace(bound, plan=node.with_children([bound.plan]))
    keys = tuple(dict.fromkeys(bound.refs.values()))
    if node.count == 1 and node.offset == 0:
        return dataclasses.replace(bound, plan=rel.Distinct(bound.plan, keys))
    return dataclasses.replace(bound, plan=rel.Limit(bound.plan, node.count, node.offset, keys))


def _set_operation(node: rel.SetOperation, outer: Outer) -> Bound:
    left, right = flatten(node.left, outer), flatten(node.right, outer)
    read = left.where.keys() | right.where.keys() | outer.reads(*left.pending, *right.pending)
    left = without_nulls(bind(materialized(left, outer), outer, read))
    right = without_nulls(bind(materialized(right, outer), outer, read))
    order = sorted(read, key=lambda c: c.id)
    where = {c: ex.new_column(c.name, c.type) for c in order}
    sides = [
        _positional(side, columns, order)
        for side, columns in ((left, node.left.columns), (right, node.right.columns))
    ]
    made = (*node.made, *where.values())
    return Bound(rel.SetOperation(sides[0], sides[1], node.kind, node.all, made), where)


def _positional(
    bound: Bound, columns: tuple[ex.Column, ...], order: list[ex.Column]
) -> rel.Logical:
    """Return the plan with its columns and the outer values in their places; a column may stand for both."""
    own = [(ex.new_column(c.name, c.type), ex.ColumnRef(bound.where[c])) for c in order]
    return rel.Project(bound.plan, (*pass_on(columns), *own))


def _as_projections(node: rel.Values) -> rel.Logical:
    """Return VALUES as projections of a single row, which can read outer columns."""
    unit = rel.Values((), ((),))
    branches: list[rel.Logical] = [
        rel.Project(
            unit,
            tuple((ex.new_column(c.name, c.type), e) for c, e in zip(node.made, row, strict=True)),
        )
        for row in node.rows
    ]
    return _union(branches, node.made)

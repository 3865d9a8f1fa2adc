"""The right side of a dependent join, node by node: how each carries the outer values along."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ...plan.copies import fresh
from ...plan.expr import (
    TRUE,
    Call,
    Case,
    Column,
    ColumnRef,
    Expr,
    Literal,
    conjunction,
    conjuncts,
    new_column,
)
from ...plan.functions import AGGREGATE
from ...plan.join_kinds import JoinKind
from ...plan.logical import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Logical,
    Project,
    SetOperation,
    Sort,
    Unnest,
    Values,
)
from ...plan.types import BIGINT, BOOLEAN
from ...plan.window.window_call import Window
from ..expressions.simplification import simplified
from ..plan_properties import at_most_one_row
from ..rewrite import narrow, pass_on, replace_columns, swapped
from .unnest import Bound, Outer, absorb, bind, materialized, without_nulls


def flatten(node: Logical, outer: Outer) -> Bound:
    """Return `node`, which may read columns of `outer`, as a plan that reads none."""
    if not outer.is_read_by(node):
        return Bound(node)
    match node:
        case Filter():
            return _filter(node, outer)
        case Project():
            return _project(node, outer)
        case Aggregate():
            return _aggregate(node, outer)
        case Join():
            return _join(node, outer)
        case Distinct():
            return _distinct(node, outer)
        case Window():
            return _window(node, outer)
        case Unnest():
            return _unnest(node, outer)
        case Sort():
            return _sort(node, outer)
        case Limit():
            return _limit(node, outer)
        case SetOperation():
            return _set_operation(node, outer)
        case Values():
            return flatten(_as_projections(node), outer)
    raise TypeError(f"{type(node).__name__} reads no columns")


def _complete(node: Logical, outer: Outer, columns: Iterable[Column] = ()) -> Bound:
    """Return `node` flattened with nothing pending and no default, and these outer columns bound."""
    return bind(materialized(flatten(node, outer), outer), outer, columns)


def _local(node: Logical, bound: Bound) -> Logical:
    """Return `node` over the bound plan, its expressions reading bound columns instead of outer ones."""
    refs = bound.refs
    rewritten = node.map_expressions(lambda e: replace_columns(e, refs))
    return rewritten.with_children([bound.plan])


def _filter(node: Filter, outer: Outer) -> Bound:
    below = flatten(node.input, outer)
    if below.default is not None:
        verdict = simplified(replace_columns(node.predicate, below.default))
        if isinstance(verdict, Literal) and verdict.truth is not True:
            below = dataclasses.replace(below, default=None)  # nor has the default row a place
        else:
            below = materialized(below, outer)
    return absorb(below, outer, conjuncts(node.predicate))


def _project(node: Project, outer: Outer) -> Bound:
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
    return dataclasses.replace(below, plan=Project(below.plan, (*items, *carried)), default=default)


def _aggregate(node: Aggregate, outer: Outer) -> Bound:
    """Group by the outer values too.  Without keys there is a row for outer values that have no rows: the default."""
    if node.grouping_sets is not None and () in node.grouping_sets:
        return flatten(_one_by_one(node), outer)
    below = _complete(node.input, outer, outer.reads(*node.expressions))
    local = _local(node, below)
    assert isinstance(local, Aggregate)
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


def _of_nothing(column: Column, function: str) -> Expr:
    """Return an aggregate of no rows."""
    return Literal(0 if AGGREGATE[function].counts else None, column.type)


def _one_by_one(node: Aggregate) -> Logical:
    """Return grouping sets as a union, since the empty set has a row of an empty input and the others have not."""
    assert node.grouping_sets is not None
    branches: list[Logical] = []
    for chosen in node.grouping_sets:
        copy, renamed = fresh(Aggregate(node.input, node.keys, node.aggregates))
        assert isinstance(copy, Aggregate)
        grouped = dataclasses.replace(copy, keys=tuple(copy.keys[i] for i in chosen))
        items: list[tuple[Column, Expr]] = []
        for i, (column, _) in enumerate(node.keys):
            value = ColumnRef(renamed[column]) if i in chosen else Literal(None, column.type)
            items.append((new_column(column.name, column.type), value))
        items += [(new_column(c.name, c.type), ColumnRef(renamed[c])) for c, _ in node.aggregates]
        if node.grouping_id is not None:
            away = sum(
                1 << (len(node.keys) - 1 - i) for i in range(len(node.keys)) if i not in chosen
            )
            items.append((new_column(node.grouping_id.name, BIGINT), Literal(away, BIGINT)))
        branches.append(Project(grouped, tuple(items)))
    return _union(branches, node.columns)


def _union(branches: list[Logical], made: tuple[Column, ...]) -> Logical:
    plan = branches[0]
    for i, branch in enumerate(branches[1:], 2):
        last = i == len(branches)
        columns = made if last else tuple(new_column(c.name, c.type) for c in made)
        plan = SetOperation(plan, branch, "union", True, columns)
    if len(branches) == 1:
        renaming = zip(made, plan.columns, strict=True)
        plan = Project(plan, tuple((c, ColumnRef(s)) for c, s in renaming))
    return plan


def _join(node: Join, outer: Outer) -> Bound:
    match node.kind:
        case JoinKind.INNER:
            return _inner_join(node, outer)
        case JoinKind.RIGHT:
            return flatten(swapped(node), outer)
        case JoinKind.FULL:
            return _full_join(node, outer)
    return _left_join(node, outer)


def _inner_join(node: Join, outer: Outer) -> Bound:
    left = materialized(flatten(node.left, outer), outer)
    right = materialized(flatten(node.right, outer), outer)
    joined = Bound(
        Join(left.plan, right.plan, JoinKind.INNER, None),
        {**right.where, **left.where},
        left.strict | right.strict,
        (*left.pending, *right.pending),
    )
    same = [_same(left, right, c) for c in left.where if c in right.where]
    return absorb(joined, outer, [*conjuncts(node.condition), *same])


def _same(left: Bound, right: Bound, column: Column) -> Expr:
    strict = column in left.strict or column in right.strict
    args = ColumnRef(left.where[column]), ColumnRef(right.where[column])
    return Call("eq" if strict else "is_not_distinct", args, BOOLEAN)


def _left_join(node: Join, outer: Outer) -> Bound:
    """Kinds that decide for each left row: what the right side and the condition read is bound on the left."""
    condition = list(conjuncts(node.condition))
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
        node, left=left.plan, right=right.plan, condition=conjunction(parts) if parts else None
    )
    return dataclasses.replace(left, plan=joined)


def _full_join(node: Join, outer: Outer) -> Bound:
    """Both sides carry all values, and a row takes them from the side that it has."""
    condition = list(conjuncts(node.condition))
    first_left, first_right = flatten(node.left, outer), flatten(node.right, outer)
    pending = (*condition, *first_left.pending, *first_right.pending)
    read = first_left.where.keys() | first_right.where.keys() | outer.reads(*pending)
    left = without_nulls(bind(materialized(first_left, outer), outer, read))
    right = without_nulls(bind(materialized(first_right, outer), outer, read))
    parts = [replace_columns(p, left.refs) for p in condition]
    parts += [_same(left, right, c) for c in left.where]
    joined = Join(left.plan, right.plan, JoinKind.FULL, conjunction(parts) if parts else None)
    where = {c: new_column(c.name, c.type) for c in left.where}
    either = tuple(
        (own, Call("coalesce", (ColumnRef(left.where[c]), ColumnRef(right.where[c])), own.type))
        for c, own in where.items()
    )
    return Bound(Project(joined, (*pass_on(node.columns), *either)), where)


def plain_join(node: Join) -> Logical:
    """Return a null-aware join as joins whose condition says what an unknown comparison means."""
    assert node.null_aware
    assert isinstance(node.condition, Call)
    if node.kind is JoinKind.ANTI:
        condition = not_false(node.condition)
        return dataclasses.replace(node, condition=condition, null_aware=False)
    assert node.mark is not None
    return marked(node.left, node.right, [], node.condition, node.mark)


def not_false(comparison: Call) -> Expr:
    """Return whether a comparison is TRUE or NULL."""
    if comparison.function in ("and", "or"):
        args = tuple(not_false(a) for a in comparison.args if isinstance(a, Call))
        return Call(comparison.function, args, BOOLEAN)
    nulls = (Call("is_null", (a,), BOOLEAN) for a in comparison.args)
    return Call("or", (comparison, *nulls), BOOLEAN)


def marked(
    left: Logical, right: Logical, parts: list[Expr], comparison: Expr, mark: Column
) -> Logical:
    """Return `left` with a three-valued mark: whether `comparison` is TRUE for a row of `right` under `parts`.

    One mark says whether it is TRUE for any row, another whether it is NULL for any.
    """
    found, unknown = new_column("found", BOOLEAN), new_column("unknown", BOOLEAN)
    copy, renamed = fresh(right)
    first = Join(left, right, JoinKind.MARK, conjunction([*parts, comparison]), mark=found)
    is_unknown = Call("is_null", (comparison,), BOOLEAN)
    refs: dict[Column, Expr] = {c: ColumnRef(n) for c, n in renamed.items()}
    condition = replace_columns(conjunction([*parts, is_unknown]), refs)
    second = Join(first, copy, JoinKind.MARK, condition, mark=unknown)
    answer = Case(
        (ColumnRef(found), ColumnRef(unknown)),
        (TRUE, Literal(None, BOOLEAN)),
        Literal(False, BOOLEAN),
        BOOLEAN,
    )
    return Project(second, (*pass_on(left.columns), (mark, answer)))


def _distinct(node: Distinct, outer: Outer) -> Bound:
    below = flatten(node.input, outer)
    if below.default is not None and node.on is None:
        return below  # one row
    below = bind(materialized(below, outer), outer, outer.reads(*node.expressions))
    carried = [c for c in below.where.values() if c not in node.columns]
    exact = dataclasses.replace(
        below, plan=narrow(below.plan, (*node.columns, *dict.fromkeys(carried)))
    )
    local = _local(node, exact)
    assert isinstance(local, Distinct)
    if local.on is not None:
        local = dataclasses.replace(local, on=(*local.on, *below.refs.values()))
    return dataclasses.replace(exact, plan=local)


def _sort(node: Sort, outer: Outer) -> Bound:
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


def _unnest(node: Unnest, outer: Outer) -> Bound:
    """The lists of the rows for each outer row, which may be its own."""
    below = _complete(node.input, outer, outer.reads(*node.expressions))
    return dataclasses.replace(below, plan=_local(node, below))


def _limit(node: Limit, outer: Outer) -> Bound:
    """The first rows for each outer row."""
    if node.count is None and node.offset == 0:
        return flatten(node.input, outer)
    if node.offset == 0 and node.count != 0 and at_most_one_row(node.input):
        return flatten(node.input, outer)
    if isinstance(node.input, Project):
        below = dataclasses.replace(node, input=node.input.input)
        return flatten(dataclasses.replace(node.input, input=below), outer)
    if isinstance(node.input, Sort):
        sort = node.input
        bound = _complete(sort.input, outer, outer.reads(*sort.expressions))
        bound = dataclasses.replace(bound, plan=_local(sort, bound))
    else:
        bound = _complete(node.input, outer)
    if not bound.where:
        return dataclasses.replace(bound, plan=node.with_children([bound.plan]))
    keys = tuple(dict.fromkeys(bound.refs.values()))
    if node.count == 1 and node.offset == 0:
        return dataclasses.replace(bound, plan=Distinct(bound.plan, keys))
    return dataclasses.replace(bound, plan=Limit(bound.plan, node.count, node.offset, keys))


def _set_operation(node: SetOperation, outer: Outer) -> Bound:
    left, right = flatten(node.left, outer), flatten(node.right, outer)
    read = left.where.keys() | right.where.keys() | outer.reads(*left.pending, *right.pending)
    left = without_nulls(bind(materialized(left, outer), outer, read))
    right = without_nulls(bind(materialized(right, outer), outer, read))
    order = sorted(read, key=lambda c: c.id)
    where = {c: new_column(c.name, c.type) for c in order}
    sides = [
        _positional(side, columns, order)
        for side, columns in ((left, node.left.columns), (right, node.right.columns))
    ]
    made = (*node.made, *where.values())
    return Bound(SetOperation(sides[0], sides[1], node.kind, node.all, made), where)


def _positional(bound: Bound, columns: tuple[Column, ...], order: list[Column]) -> Logical:
    """Return the plan with its columns and the outer values in their places; a column may stand for both."""
    own = [(new_column(c.name, c.type), ColumnRef(bound.where[c])) for c in order]
    return Project(bound.plan, (*pass_on(columns), *own))


def _as_projections(node: Values) -> Logical:
    """Return VALUES as projections of a single row, which can read outer columns."""
    unit = Values((), ((),))
    branches: list[Logical] = [
        Project(
            unit,
            tuple((new_column(c.name, c.type), e) for c, e in zip(node.made, row, strict=True)),
        )
        for row in node.rows
    ]
    return _union(branches, node.made)

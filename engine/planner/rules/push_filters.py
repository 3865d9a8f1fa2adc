"""Rule `push_filters`: predicates go to where their columns come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ...plan import expr as ex, logical as rel
from ...plan.copies import fresh
from ...plan.join_kinds import JoinKind
from ...plan.window.window_call import Window
from ..expressions.nullness import rejects_nulls
from ..expressions.simplification import implied, implied_across, implied_of, simplified
from ..rewrite import pass_on, reads_only, replace_columns, swapped, unless_same

Parts = list[ex.Expr]


def push_filters(plan: rel.Logical) -> rel.Logical:
    """Move each part of a predicate down to the smallest input that has its columns.

        Filter(p, Project(e, x))           -> Project(e, Filter(p[e], x))
        Filter(p, Aggregate(k, a, x))      -> Aggregate(k, a, Filter(p[k], x))        p reads keys alone
        Filter(p, Window(k, f, x))         -> Window(k, f, Filter(p, x))              p reads columns of the partition alone
        Filter(p, Unnest(l, x))            -> Unnest(l, Filter(p, x))                 p reads columns of x alone
        Filter(p, SetOperation(x, y))      -> SetOperation(Filter(p, x), Filter(p, y))
        Filter(p, Join(x, y, inner, q))    -> Join(Filter(p1, x), Filter(p2, y), inner, q and p3)
        Filter(p, Join(x, y, left, q))     -> Filter(p, Join(x, y, inner, q))         p is never TRUE on NULLs of y
        Filter(y.j is null, Join(x, y, left, x.j = y.j)) -> Project(x, NULLs, Join(x, y, anti, x.j = y.j))
        Filter(p, Join(Join(x, y), z, single)) -> Join(Filter(p, Join(x, z, single)), y)      p reads x and z alone
        Filter(m, Join(x, y, mark m, q))   -> Join(x, y, semi, q);  not m: anti

    A cross product with an equality above it becomes an equality join.  Among the inner joins below one another, equalities are taken
    to be transitive: from a = b and b < 5 follows a < 5.  From an OR over several inputs follows, for each input, the OR
    of what its branches say of it; so it does for the keys of groups and of windows' partitions from an OR that reads
    results too, which a common query that is read for one year and for another has: TPC-DS Q4, Q11 and Q74 read two of five years so.
    """
    return _push(plan, [])


def _push(node: rel.Logical, parts: Parts) -> rel.Logical:
    """Return `node` with `parts` applied to it or below, itself where they change nothing."""
    return unless_same(_pushed(node, parts), node)


def _pushed(node: rel.Logical, parts: Parts) -> rel.Logical:
    match node:
        case rel.Filter(input=x, predicate=predicate):
            return _push(x, _distinct([*parts, *ex.conjuncts(predicate)]))
        case rel.Project(input=x, items=items):
            replacement = dict(items)
            inlined = [simplified(replace_columns(p, replacement)) for p in parts]
            return node.with_children([_push(x, [q for p in inlined for q in ex.conjuncts(p)])])
        case rel.Sort(input=x):
            return node.with_children([_push(x, parts)])
        case rel.Distinct(input=x, on=on):
            keys = (
                x.columns if on is None else [e.column for e in on if isinstance(e, ex.ColumnRef)]
            )
            below, above = _split_implied(parts, keys)
            return _filtered(node.with_children([_push(x, below)]), above)
        case rel.Unnest(input=x):
            below, above = _split_reading(parts, x.columns)
            return _filtered(node.with_children([_push(x, below)]), above)
        case Window(input=x, partition=partition):
            keys = [e.column for e in partition if isinstance(e, ex.ColumnRef)]
            below, above = _split_reading(parts, keys)
            return _filtered(node.with_children([_push(x, below)]), above)
        case rel.Aggregate():
            return _push_aggregate(node, parts)
        case rel.SetOperation(left=left, right=right, made=made):
            sides = []
            for side in (left, right):
                names = {c: ex.ColumnRef(s) for c, s in zip(made, side.columns, strict=True)}
                sides.append(_push(side, [replace_columns(p, names) for p in parts]))
            return node.with_children(sides)
        case rel.Join():
            return _push_join(node, parts)
    return _filtered(node.with_children([_push(c, []) for c in node.children]), parts)


def _distinct(parts: Parts) -> Parts:
    return list(dict.fromkeys(parts))


def _split(parts: Parts, columns: Iterable[ex.Column]) -> tuple[Parts, Parts]:
    """Return the parts that read only `columns`, and the others."""
    below: Parts = []
    above: Parts = []
    if parts:
        own = frozenset(columns)
        for part in parts:
            (below if reads_only(part, own) else above).append(part)
    return below, above


def _split_implied(parts: Parts, columns: Iterable[ex.Column]) -> tuple[Parts, Parts]:
    """As `_split`; to those that read only `columns` comes what follows for these from the others."""
    own = frozenset(columns)
    below, above = _split(parts, own)
    return _distinct([*below, *implied_of(above, own)]), above


def _filtered(node: rel.Logical, parts: Parts) -> rel.Logical:
    return rel.Filter(node, ex.conjunction(parts)) if parts else node


def _push_aggregate(node: rel.Aggregate, parts: Parts) -> rel.Logical:
    """Parts that read only keys of every grouping set; without keys there is a row of an empty input too."""
    keys = list(node.keys)
    if node.grouping_sets is not None:
        everywhere = set.intersection(*(set(s) for s in node.grouping_sets))
        keys = [key for i, key in enumerate(node.keys) if i in everywhere]
    if not keys:
        return _filtered(node.with_children([_push(node.input, [])]), parts)
    below, above = _split_implied(parts, (c for c, _ in keys))
    inlined = [replace_columns(p, dict(keys)) for p in below]
    return _filtered(node.with_children([_push(node.input, inlined)]), above)


def _push_join(node: rel.Join, parts: Parts) -> rel.Logical:
    match node.kind:
        case JoinKind.INNER:
            return _push_inner(node, parts)
        case JoinKind.LEFT:
            return _push_left(node, parts)
        case JoinKind.RIGHT:
            return _push(swapped(node), parts)
        case JoinKind.FULL:
            return _push_full(node, parts)
        case JoinKind.SEMI | JoinKind.ANTI:
            return _push_semi(node, parts)
        case JoinKind.MARK:
            return _push_mark(node, parts)
    below, above = _split(parts, node.left.columns)
    if (lowered := _lowered(node, above)) is not None:
        return _push(lowered, parts)
    sides = [_push(node.left, below), _push(node.right, [])]
    return _filtered(node.with_children(sides), above)


def _lowered(node: rel.Join, parts: Parts) -> rel.Logical | None:
    """Return an inner join one of whose sides gets the single value, if that side has all else that `parts` read.

    TPC-DS Q6 and Q54 ask for the month that a subquery names: of days, and not of all sales joined with their days.
    """
    if node.kind is not JoinKind.SINGLE or node.condition is not None or not parts:
        return None
    rows = node.left.input if isinstance(node.left, rel.Filter) else node.left
    if not isinstance(rows, rel.Join) or rows.kind is not JoinKind.INNER:
        return None
    for i, side in enumerate(rows.children):
        own = frozenset((*side.columns, *node.right.columns))
        if all(reads_only(part, own) for part in parts):
            sides = list(rows.children)
            sides[i] = node.with_children([side, node.right])
            made = rows.with_children(sides)
            return (
                rel.Filter(made, node.left.predicate) if isinstance(node.left, rel.Filter) else made
            )
    return None


def _push_inner(node: rel.Join, parts: Parts) -> rel.Logical:
    """Treat inner joins below one another as one: all their conditions in one list, dealt out anew."""
    found = list(parts)
    leaves: list[rel.Logical] = []

    def gather(inner: rel.Logical) -> None:
        match inner:
            case rel.Join(kind=JoinKind.INNER, left=left, right=right, condition=condition):
                found.extend(ex.conjuncts(condition))
                gather(left)
                gather(right)
            case rel.Filter(input=x, predicate=predicate):
                found.extend(ex.conjuncts(predicate))
                gather(x)
            case _:
                leaves.append(inner)

    def deal(inner: rel.Logical, own: Parts) -> rel.Logical:
        match inner:
            case rel.Join(kind=JoinKind.INNER, left=left, right=right):
                to_left, others = _split(own, left.columns)
                to_right, here = _split(others, right.columns)
                condition = ex.conjunction(here) if here else None
                made = rel.Join(
                    deal(left, to_left), deal(right, to_right), JoinKind.INNER, condition
                )
                return unless_same(made, inner)
            case rel.Filter(input=x):
                return unless_same(deal(x, own), inner)
        return _push(inner, own)

    gather(node)
    found = _distinct(found)
    everything = found + implied(found, [leaf.columns for leaf in leaves])
    return deal(node, everything)


def _push_left(node: rel.Join, parts: Parts) -> rel.Logical:
    right_columns = frozenset(node.right.columns)
    to_left, above = _split_implied(parts, node.left.columns)
    if any(rejects_nulls(p, right_columns) for p in above):
        return _push(dataclasses.replace(node, kind=JoinKind.INNER), parts)
    if (unmatched := _asks_unmatched(node, above)) is not None:
        return _push(_unmatched(node), [p for p in parts if p is not unmatched])
    to_right, here = _split(list(ex.conjuncts(node.condition)), right_columns)
    to_right += implied_across(here, to_left, frozenset(node.left.columns), right_columns)
    sides = _push(node.left, to_left), _push(node.right, _distinct(to_right))
    return _filtered(rel.Join(*sides, JoinKind.LEFT, ex.conjunction(here) if here else None), above)


def _unmatched(node: rel.Join) -> rel.Logical:
    """Return the rows of a left join that have no match, as an anti join; what the right side made is NULL."""
    assert node.condition is not None
    right, renamed = fresh(node.right)
    condition = replace_columns(
        node.condition, {c: ex.ColumnRef(new) for c, new in renamed.items()}
    )
    rows = rel.Join(node.left, right, JoinKind.ANTI, condition)
    nulls = ((c, ex.Literal(None, c.type)) for c in node.right.columns)
    return rel.Project(rows, (*pass_on(node.left.columns), *nulls))


def _asks_unmatched(node: rel.Join, parts: Parts) -> ex.Expr | None:
    """Return the part that asks for rows of the left side without a match: a column is NULL that no match has NULL."""
    for part in parts:
        match part:
            case ex.Call(function="is_null", args=(ex.ColumnRef(column=column),)) if (
                column in node.right.columns
                and any(rejects_nulls(q, {column}) for q in ex.conjuncts(node.condition))
            ):
                return part
    return None


def _push_full(node: rel.Join, parts: Parts) -> rel.Logical:
    """A predicate that NULLs on one side cannot pass leaves only rows that have a match or come from that side."""
    keeps_left = any(rejects_nulls(p, frozenset(node.left.columns)) for p in parts)
    keeps_right = any(rejects_nulls(p, frozenset(node.right.columns)) for p in parts)
    if keeps_left and keeps_right:
        return _push(dataclasses.replace(node, kind=JoinKind.INNER), parts)
    if keeps_left or keeps_right:
        return _push(
            dataclasses.replace(node, kind=JoinKind.LEFT if keeps_left else JoinKind.RIGHT), parts
        )
    return _filtered(node.with_children([_push(c, []) for c in node.children]), parts)


def _push_semi(node: rel.Join, parts: Parts) -> rel.Logical:
    """All parts read the left side alone; of the condition, what reads one side goes there.

    An anti join keeps in its condition what reads the left side: where that is not TRUE, the row stays.
    """
    if node.null_aware:
        return node.with_children([_push(node.left, parts), _push(node.right, [])])
    to_right, here = _split_reading(list(ex.conjuncts(node.condition)), node.right.columns)
    to_left = list(parts)
    if node.kind is JoinKind.SEMI:
        more, here = _split(here, node.left.columns)
        to_left += more
    left_columns, right_columns = frozenset(node.left.columns), frozenset(node.right.columns)
    to_right += implied_across(here, to_left, left_columns, right_columns)
    sides = _push(node.left, _distinct(to_left)), _push(node.right, _distinct(to_right))
    return rel.Join(*sides, node.kind, ex.conjunction(here) if here else None)


def _split_reading(parts: Parts, columns: Iterable[ex.Column]) -> tuple[Parts, Parts]:
    """As `_split_implied`, but a constant is among the others."""
    below, above = _split_implied(parts, columns)
    constant = [p for p in below if not ex.columns_of(p)]
    return [p for p in below if ex.columns_of(p)], constant + above


def _push_mark(node: rel.Join, parts: Parts) -> rel.Logical:
    assert node.mark is not None
    for part in parts:
        kind = _asked(part, node.mark)
        if kind is not None:
            null_aware = node.null_aware and kind is JoinKind.ANTI
            join = rel.Join(node.left, node.right, kind, node.condition, null_aware)
            value: ex.Literal = ex.TRUE if kind is JoinKind.SEMI else ex.FALSE
            items = (*pass_on(node.left.columns), (node.mark, value))
            return _push(rel.Project(join, items), [p for p in parts if p is not part])
    to_left, above = _split(parts, node.left.columns)
    to_right: Parts = []
    condition = node.condition
    if not node.null_aware:
        to_right, here = _split_reading(list(ex.conjuncts(condition)), node.right.columns)
        condition = ex.conjunction(here) if here else None
    sides = _push(node.left, to_left), _push(node.right, to_right)
    return _filtered(rel.Join(*sides, JoinKind.MARK, condition, node.null_aware, node.mark), above)


def _asked(part: ex.Expr, mark: ex.Column) -> JoinKind | None:
    match part:
        case ex.ColumnRef(column=column) if column == mark:
            return JoinKind.SEMI
        case ex.Call(function="not", args=(ex.ColumnRef(column=column),)) if column == mark:
            return JoinKind.ANTI
    return None

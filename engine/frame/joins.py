"""Joins and set operations of dataframe calls: what a call with two frames makes of their plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal as OneOf

from ..errors import AmbiguousName, InvalidQuery, WrongArguments, check_text, shown
from ..plan import expr as ex, infer
from ..plan.composed.ordered_joins import asof_join
from ..plan.copies import fresh
from ..plan.join_kinds import JoinKind
from ..plan.logical import Item, Join, Logical, Project, SetOperation
from ..plan.node import walk
from ..plan.types import BOOLEAN
from .binding import bind
from .expressions.expression import Expression
from .plan_columns import cast_columns, find_column

How = OneOf["inner", "left", "right", "full", "outer", "semi", "anti", "cross"]
On = str | Sequence[str | tuple[str, str]] | Expression | None
AsofStrategy = OneOf["backward", "forward"]
JOIN_KINDS: dict[How, JoinKind] = {
    "inner": JoinKind.INNER,
    "left": JoinKind.LEFT,
    "right": JoinKind.RIGHT,
    "full": JoinKind.FULL,
    "outer": JoinKind.FULL,
    "semi": JoinKind.SEMI,
    "anti": JoinKind.ANTI,
    "cross": JoinKind.INNER,
}


def join_plans(
    left: Logical,
    right: Logical,
    on: On,
    how: How,
    suffix: str,
) -> Logical:
    """Return the join as `Frame.join` describes it; a plan that both sides share gets columns of its own on the right."""
    if how not in JOIN_KINDS:
        raise InvalidQuery(f'There is no join "{how}": expected one of {", ".join(JOIN_KINDS)}.')
    if not isinstance(on, str | Expression | list | tuple | None) or (on is None) != (
        how == "cross"
    ):
        raise InvalidQuery(
            "A join takes `on`: a column name, a list of them or of pairs, or a condition; a cross join none."
        )
    _check_suffix(suffix)
    renamed: dict[ex.Column, ex.Column] = {}
    if _columns(left) & _columns(right):
        right, renamed = fresh(right)
    if isinstance(on, Expression):
        condition = _condition(on, left, right, renamed)
        return _projected(left, right, JOIN_KINDS[how], condition, {}, suffix)
    names = [on] if isinstance(on, str) else list(on or ())
    if on is not None and not names:
        raise InvalidQuery("`on` is empty: name the columns to join on, or join with how='cross'.")
    pairs = [_pair(left, right, name) for name in names]
    parts = [infer.call("eq", [ex.ColumnRef(a), ex.ColumnRef(b)]) for a, b in pairs]
    using = ex.conjunction(parts) if parts else None
    return _projected(left, right, JOIN_KINDS[how], using, _merged(pairs), suffix)


def asof_plans(
    left: Logical,
    right: Logical,
    on: tuple[str | None, str | None],
    by: str | Sequence[str | tuple[str, str]] | None,
    how: How,
    strategy: AsofStrategy,
    suffix: str,
) -> Logical:
    """Return the join as `Frame.join_asof` describes it."""
    if how not in ("left", "inner"):
        raise InvalidQuery(f'An ASOF join is "left" or "inner", not {shown(how)}.')
    if strategy not in ("backward", "forward"):
        raise InvalidQuery(
            f'`strategy` is "backward" or "forward", not {shown(strategy)}: join both ways and compare for the nearest.'
        )
    if on[0] is None or on[1] is None:
        raise InvalidQuery("An ASOF join takes `on`, or both `left_on` and `right_on`.")
    _check_suffix(suffix)
    if _columns(left) & _columns(right):
        right, _ = fresh(right)
    names = [by] if isinstance(by, str) else list(by or ())
    keys = [_pair(left, right, name) for name in names]
    mine, theirs = find_column(left.columns, on[0]), find_column(right.columns, on[1])
    tests = [infer.call("eq", [ex.ColumnRef(a), ex.ColumnRef(b)]) for a, b in keys]
    sign = "ge" if strategy == "backward" else "le"
    tests.append(infer.call(sign, [ex.ColumnRef(mine), ex.ColumnRef(theirs)]))
    joined = asof_join(left, right, JOIN_KINDS[how], ex.conjunction(tests), None)
    dropped = {b for a, b in keys if a.name.lower() == b.name.lower()}
    return _named(joined, left, right, {}, dropped, suffix)


def _pair(left: Logical, right: Logical, name: object) -> tuple[ex.Column, ex.Column]:
    """Return the columns that a name, or a pair of names, stands for on both sides."""
    if isinstance(name, tuple | list):
        if len(name) != 2:
            raise InvalidQuery(f"A pair of `on` names two columns, not {shown(name)}.")
        mine, theirs = name
    else:
        mine = theirs = name
    return find_column(left.columns, mine), find_column(right.columns, theirs)


def _merged(pairs: Sequence[tuple[ex.Column, ex.Column]]) -> dict[ex.Column, ex.Column]:
    """Return the pairs whose columns come out once: those of one name."""
    return {a: b for a, b in pairs if a.name.lower() == b.name.lower()}


def _check_suffix(suffix: object) -> None:
    if not isinstance(suffix, str):
        raise WrongArguments(f"The suffix of a join is a str, not {shown(suffix)}.")
    check_text(suffix, "The suffix")


def union_by_name(left: Logical, right: Logical, all_: bool) -> Logical:
    """Return the rows of both with the columns of both: those of the left side first, then those that the right one has alone."""
    right, _ = fresh(right)
    mine, theirs = ({c.name.lower(): c for c in side.columns} for side in (left, right))
    for side, known in ((left, mine), (right, theirs)):
        if len(known) < len(side.columns):
            raise AmbiguousName("union_by_name() needs columns of different names on each side.")
    names = [*mine, *(name for name in theirs if name not in mine)]

    def sided(plan: Logical, own: dict[str, ex.Column], other: dict[str, ex.Column]) -> Logical:
        items: list[Item] = []
        for name in names:
            if name in own:
                items.append((own[name], ex.ColumnRef(own[name])))
            else:
                column = ex.new_column(other[name].name, other[name].type)
                items.append((column, ex.Literal(None, column.type)))
        return Project(plan, tuple(items))

    return set_operation(sided(left, mine, theirs), sided(right, theirs, mine), "union", all_)


def set_operation(
    left: Logical, right: Logical, kind: OneOf["union", "intersect", "except"], all_: bool
) -> Logical:
    """Return the operation over columns by position, cast to their common types and named as on the left."""
    right, _ = fresh(right)
    if len(left.columns) != len(right.columns):
        raise InvalidQuery(
            f"{kind} needs as many columns on both sides: {len(left.columns)} and {len(right.columns)} given."
        )
    types = [
        infer.common_type([a.type, b.type])
        for a, b in zip(left.columns, right.columns, strict=True)
    ]
    made = tuple(ex.new_column(c.name, t) for c, t in zip(left.columns, types, strict=True))
    sides = (cast_columns(left, types), cast_columns(right, types))
    return SetOperation(*sides, kind, all_, made)


def _columns(plan: Logical) -> set[int]:
    """The ids of all columns that a plan makes anywhere."""
    return {c.id for node in walk(plan) for c in node.columns}


def _condition(
    on: Expression, left: Logical, right: Logical, renamed: dict[ex.Column, ex.Column]
) -> ex.Expr:
    mine = set(left.columns)
    both = (*left.columns, *right.columns)

    def resolve(name: str) -> ex.Expr:
        if sum(c.name.lower() == name.lower() for c in both) > 1:
            raise AmbiguousName(
                f'Both sides of the join have a column "{name}": write frame["{name}"].'
            )
        return ex.ColumnRef(find_column(both, name))

    before = {old for old, new in renamed.items() if new in right.columns}
    written = bind(on, {*both, *before}, resolve)
    for column in ex.columns_of(written) & mine & before:
        raise AmbiguousName(
            f'Both sides of the join come from one frame and have its column "{column.name}": '
            "join on the name, or rename the column on one side."
        )
    bound = ex.substitute(
        written, lambda c: ex.ColumnRef(renamed[c]) if c in renamed and c not in mine else None
    )
    return infer.coerce(bound, BOOLEAN)


def _projected(
    left: Logical,
    right: Logical,
    kind: JoinKind,
    condition: ex.Expr | None,
    pairs: dict[ex.Column, ex.Column],
    suffix: str,
) -> Logical:
    """Name the columns of both sides: those of `pairs` come out once, from the side that has the row."""
    join = Join(left, right, kind, condition)
    if kind.is_filter:
        return join
    merged = pairs if kind.keeps_right else {}
    return _named(join, left, right, merged, {*pairs.values()}, suffix)


def _named(
    join: Logical,
    left: Logical,
    right: Logical,
    merged: dict[ex.Column, ex.Column],
    dropped: set[ex.Column],
    suffix: str,
) -> Logical:
    """Return the columns of both sides, but for the `dropped` ones of the right; the `merged` ones are of the side that has the row."""
    items: list[Item] = []
    for c in left.columns:
        if c in merged:
            value = infer.call("coalesce", [ex.ColumnRef(c), ex.ColumnRef(merged[c])])
            items.append((ex.new_column(c.name, value.type), value))
        else:
            items.append((c, ex.ColumnRef(c)))
    taken = {c.name.lower() for c, _ in items}
    for c in right.columns:
        if c in dropped:
            continue
        renamed = ex.new_column(c.name + suffix, c.type) if c.name.lower() in taken else c
        if renamed is not c and renamed.name.lower() in taken:
            raise InvalidQuery(
                f'The join would have two columns "{renamed.name}": pass another suffix than {shown(suffix)}.'
            )
        items.append((renamed, ex.ColumnRef(c)))
    return Project(join, tuple(items))

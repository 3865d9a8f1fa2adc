"""Joins and set operations of dataframe calls: what a call with two frames makes of their plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal as OneOf

from ..errors import AmbiguousName, InvalidQuery, WrongArguments, check_text, shown
from ..plan import infer
from ..plan.copies import fresh
from ..plan.expr import Column, ColumnRef, Expr, columns_of, conjunction, new_column, substitute
from ..plan.join_kinds import JoinKind
from ..plan.logical import Item, Join, Logical, Project, SetOperation
from ..plan.node import walk
from ..plan.types import BOOLEAN
from .binding import bind, cast_columns, find_column
from .functions import Expression

How = OneOf["inner", "left", "right", "full", "semi", "anti", "cross"]
JOIN_KINDS: dict[How, JoinKind] = {
    "inner": JoinKind.INNER,
    "left": JoinKind.LEFT,
    "right": JoinKind.RIGHT,
    "full": JoinKind.FULL,
    "semi": JoinKind.SEMI,
    "anti": JoinKind.ANTI,
    "cross": JoinKind.INNER,
}


def join_plans(
    left: Logical,
    right: Logical,
    on: str | Sequence[str] | Expression | None,
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
            "A join takes `on`: a column name, a list of them or a condition; a cross join none."
        )
    if not isinstance(suffix, str):
        raise WrongArguments(f"The suffix of a join is a str, not {shown(suffix)}.")
    check_text(suffix, "The suffix")
    renamed: dict[Column, Column] = {}
    if _columns(left) & _columns(right):
        right, renamed = fresh(right)
    if isinstance(on, Expression):
        condition = _condition(on, left, right, renamed)
        return _projected(left, right, JOIN_KINDS[how], condition, {}, suffix)
    names = [on] if isinstance(on, str) else list(on or ())
    if on is not None and not names:
        raise InvalidQuery("`on` is empty: name the columns to join on, or join with how='cross'.")
    pairs = {find_column(left.columns, n): find_column(right.columns, n) for n in names}
    parts = [infer.call("eq", [ColumnRef(a), ColumnRef(b)]) for a, b in pairs.items()]
    using = conjunction(parts) if parts else None
    return _projected(left, right, JOIN_KINDS[how], using, pairs, suffix)


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
    made = tuple(new_column(c.name, t) for c, t in zip(left.columns, types, strict=True))
    sides = (cast_columns(left, types), cast_columns(right, types))
    return SetOperation(*sides, kind, all_, made)


def _columns(plan: Logical) -> set[int]:
    """The ids of all columns that a plan makes anywhere."""
    return {c.id for node in walk(plan) for c in node.columns}


def _condition(
    on: Expression, left: Logical, right: Logical, renamed: dict[Column, Column]
) -> Expr:
    mine = set(left.columns)
    both = (*left.columns, *right.columns)

    def resolve(name: str) -> Expr:
        if sum(c.name.lower() == name.lower() for c in both) > 1:
            raise AmbiguousName(
                f'Both sides of the join have a column "{name}": write frame["{name}"].'
            )
        return ColumnRef(find_column(both, name))

    before = {old for old, new in renamed.items() if new in right.columns}
    written = bind(on, {*both, *before}, resolve)
    for column in columns_of(written) & mine & before:
        raise AmbiguousName(
            f'Both sides of the join come from one frame and have its column "{column.name}": '
            "join on the name, or rename the column on one side."
        )
    bound = substitute(
        written, lambda c: ColumnRef(renamed[c]) if c in renamed and c not in mine else None
    )
    return infer.coerce(bound, BOOLEAN)


def _projected(
    left: Logical,
    right: Logical,
    kind: JoinKind,
    condition: Expr | None,
    pairs: dict[Column, Column],
    suffix: str,
) -> Logical:
    """Name the columns of both sides: those of `pairs` come out once, from the side that has the row."""
    join = Join(left, right, kind, condition)
    if kind.is_filter:
        return join
    items: list[Item] = []
    for c in left.columns:
        if c in pairs and kind.keeps_right:
            merged = infer.call("coalesce", [ColumnRef(c), ColumnRef(pairs[c])])
            items.append((new_column(c.name, merged.type), merged))
        else:
            items.append((c, ColumnRef(c)))
    taken = {c.name.lower() for c, _ in items}
    for c in right.columns:
        if c in pairs.values():
            continue
        renamed = new_column(c.name + suffix, c.type) if c.name.lower() in taken else c
        if renamed is not c and renamed.name.lower() in taken:
            raise InvalidQuery(
                f'The join would have two columns "{renamed.name}": pass another suffix than {shown(suffix)}.'
            )
        items.append((renamed, ColumnRef(c)))
    return Project(join, tuple(items))

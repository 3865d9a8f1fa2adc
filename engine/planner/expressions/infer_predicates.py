"""Predicates that follow from others: what is equal has the same bounds, and an OR says something of each input."""

from __future__ import annotations

from collections.abc import Iterable

from ...plan.expr import Call, Column, ColumnRef, Expr, InList, Literal, columns_of, conjunction
from ...plan.functions import SCALAR
from ..rewrite import reads_only, replace_columns
from .logic import combine, terms
from .simplification import simplified


def implied(parts: list[Expr], inputs: list[tuple[Column, ...]]) -> list[Expr]:
    """Return what follows from `parts`, which all hold, for single inputs, and is not among them."""
    known = dict.fromkeys(parts)
    new: dict[Expr, None] = {}
    for fact in [*_from_ors(parts, inputs)]:
        if fact not in known:
            new[fact] = None
    classes = EqualColumns(parts)
    for part in [*parts, *new]:
        column = _bounded(part)
        if column is None:
            continue
        for other in classes.others(column):
            fact = replace_columns(part, {column: ColumnRef(other)})
            if fact not in known:
                new[fact] = None
    return list(new)


def implied_across(
    condition: list[Expr], parts: list[Expr], left: frozenset[Column], right: frozenset[Column]
) -> list[Expr]:
    """Return bounds on `right` that rows must meet to match any row of `left` under which `parts` hold."""
    found = []
    for a, b in _column_pairs(condition):
        for one, other in ((a, b), (b, a)):
            if one in left and other in right:
                bounds = (p for p in parts if _bounded(p) == one)
                found += [replace_columns(p, {one: ColumnRef(other)}) for p in bounds]
    return found


class EqualColumns:
    """Columns that equalities make equal, as sets (union-find)."""

    def __init__(self, parts: Iterable[Expr]) -> None:
        self._sets: dict[Column, set[Column]] = {}
        for a, b in _column_pairs(parts):
            joined = self._sets.get(a, {a}) | self._sets.get(b, {b})
            for column in joined:
                self._sets[column] = joined

    def others(self, column: Column) -> list[Column]:
        """Return the columns equal to `column`, in a fixed order."""
        return sorted(self._sets.get(column, set()) - {column}, key=lambda c: c.id)


def _column_pairs(parts: Iterable[Expr]) -> Iterable[tuple[Column, Column]]:
    for part in parts:
        match part:
            case Call(function="eq", args=(ColumnRef(column=a), ColumnRef(column=b))):
                yield a, b


def _bounded(part: Expr) -> Column | None:
    """Return the column that a part compares with constants."""
    match part:
        case Call(function=function, args=(ColumnRef(column=column), Literal())):
            return column if SCALAR[function].bound else None
        case InList(operand=ColumnRef(column=column)):
            return column
    return None


def _from_ors(parts: list[Expr], inputs: list[tuple[Column, ...]]) -> Iterable[Expr]:
    """(a.x = 1 and b.y = 2) or (a.x = 3 and b.y = 4) implies a.x in (1, 3) and b.y in (2, 4)."""
    for part in parts:
        if not (isinstance(part, Call) and part.function == "or"):
            continue
        read = columns_of(part)
        touched = [frozenset(columns) for columns in inputs if not read.isdisjoint(columns)]
        if len(touched) < 2:
            continue
        branches = [list(terms("and", branch)) for branch in part.args]
        for columns in touched:
            chosen = [[t for t in branch if _says(t, columns)] for branch in branches]
            if all(chosen):
                yield from terms(
                    "and", simplified(combine("or", [conjunction(own) for own in chosen]))
                )


def _says(term: Expr, columns: frozenset[Column]) -> bool:
    return reads_only(term, columns) and bool(columns_of(term))

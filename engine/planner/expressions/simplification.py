"""Expressions that say the same with less, and predicates that follow from others: what is equal has the same bounds, and an OR says
something of each input.  Rule `simplify` and the rules that move predicates use it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Set as AbstractSet

from ...plan.all_values import never_raises
from ...plan.expr import (
    FALSE,
    TRUE,
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    ColumnRef,
    Expr,
    InList,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
)
from ...plan.functions import EQUALITIES, SCALAR
from ...plan.node import transform_up
from ...plan.types import BOOLEAN
from ..rewrite import reads_only, replace_columns
from .fold import folded, unwrapped
from .logic import combine, distinct_literals, negation, simplified_connective, terms
from .nullness import is_never_null

Known = AbstractSet[Column]

MAX_STEPS = 8  # rewritings of one node in a row; each makes it smaller or moves it toward one form


def simplified(expr: Expr, known: Known = frozenset()) -> Expr:
    """Return the simplest form of an expression; `known` are columns that are never NULL."""
    return transform_up(expr, lambda e: _settled(e, known)) if expr.CHILDREN else expr


def _settled(expr: Expr, known: Known) -> Expr | None:
    if not expr.CHILDREN:
        return None  # columns and literals are simple
    current = expr
    for _ in range(MAX_STEPS):
        new = _step(current, known)
        if new is None or new is current:
            break
        # What a step builds around the old parts may itself have a simpler form.
        current = transform_up(new, lambda e: _step(e, known)) if new.children else new
    return None if current is expr else current


def _step(expr: Expr, known: Known) -> Expr | None:
    match expr:
        case Literal() | AggregateCall():
            return None
        case Call(function="and" | "or"):
            return simplified_connective(expr)
        case Call(function="not", args=(arg,)):
            return folded(expr) or negation(arg)
        case Call(function="coalesce"):
            return _coalesced(expr, known)
        case Call(function="is_null" | "is_not_null", args=(arg,)) if is_never_null(
            arg, known
        ) and never_raises(arg):
            return FALSE if expr.function == "is_null" else TRUE
        case Call(function="is_distinct" | "is_not_distinct", args=(a, b)):
            if is_never_null(a, known) and is_never_null(b, known):
                return Call("ne" if expr.function == "is_distinct" else "eq", (a, b), BOOLEAN)
            return folded(expr) or _null_test(expr) or unwrapped(expr)
        case Call():
            return folded(expr) or unwrapped(expr)
        case Cast(operand=operand, type=target):
            return operand if operand.type == target else folded(expr)
        case InList():
            return _listed(expr)
        case Case():
            return _chosen(expr)
    return None


def _null_test(expr: Call) -> Expr | None:
    """X is [not] distinct from NULL."""
    name = "is_not_null" if expr.function == "is_distinct" else "is_null"
    for value, other in (expr.args, expr.args[::-1]):
        if isinstance(value, Literal) and value.is_null:
            return Call(name, (other,), BOOLEAN)
    return None


def _coalesced(expr: Call, known: Known) -> Expr | None:
    kept: list[Expr] = []
    for arg in expr.args:
        if isinstance(arg, Literal) and arg.is_null:
            continue
        kept.append(arg)
        if is_never_null(arg, known):
            break
    if not kept:
        return Literal(None, expr.type)
    if len(kept) == 1:
        return kept[0]
    return None if len(kept) == len(expr.args) else dataclasses.replace(expr, args=tuple(kept))


def _listed(expr: InList) -> Expr | None:
    value = folded(expr) or unwrapped(expr)
    if value is not None:
        return value
    values = distinct_literals(expr.values)
    if len(values) == 1:
        return Call("eq", (expr.operand, values[0]), BOOLEAN, expr.span)
    return None if len(values) == len(expr.values) else dataclasses.replace(expr, values=values)


def _chosen(expr: Case) -> Expr | None:
    """Drop the branches that are never taken and all after one that always is."""
    branches: list[tuple[Expr, Expr]] = []
    default = expr.default
    for condition, result in zip(expr.conditions, expr.results, strict=True):
        if condition == TRUE:
            default = result
            break
        if not (isinstance(condition, Literal) and condition.truth is not True):
            branches.append((condition, result))
    if not branches or all(r == default and isinstance(r, Literal) for _, r in branches):
        return default
    if len(branches) == len(expr.conditions):
        return None
    return Case(tuple(c for c, _ in branches), tuple(r for _, r in branches), default, expr.type)


def as_condition(predicate: Expr) -> Expr:
    """Only TRUE counts in a condition, so that a NULL part of an AND is as good as FALSE."""
    if isinstance(predicate, Literal):
        return TRUE if predicate.truth else FALSE
    if isinstance(predicate, Call) and predicate.function in ("and", "or"):
        parts = [as_condition(a) for a in predicate.args]
        if all(a is b for a, b in zip(parts, predicate.args, strict=True)):
            return predicate
        return simplified(combine(predicate.function, parts))
    return predicate


Pair = tuple[Expr, Expr]


def equalities(
    condition: Expr | None, left: frozenset[Column], right: frozenset[Column]
) -> tuple[list[Pair], list[Expr]]:
    """Split a condition into (left expression, right expression) of its equalities, and the rest."""
    pairs, rest = [], []
    for part in conjuncts(condition):
        pair = as_equality(part, left, right)
        if pair is None:
            rest.append(part)
        else:
            pairs.append(pair)
    return pairs, rest


def as_equality(part: Expr, left: frozenset[Column], right: frozenset[Column]) -> Pair | None:
    """Return the sides of an equality (or IS NOT DISTINCT FROM) between left and right, left first."""
    if not isinstance(part, Call) or part.function not in EQUALITIES:
        return None
    for a, b in _both_ways(part):
        read_a, read_b = columns_of(a), columns_of(b)
        if read_a <= left and read_b <= right and read_a and read_b:
            return a, b
    return None


def _both_ways(part: Call) -> Iterator[Pair]:
    a, b = part.args
    yield a, b
    yield b, a


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


def implied_of(parts: list[Expr], columns: frozenset[Column]) -> list[Expr]:
    """Return what follows for `columns` alone from ORs among `parts` that read others too."""
    others = frozenset().union(*map(columns_of, parts)) - columns
    facts = _from_ors(parts, [tuple(columns), tuple(others)]) if others else ()
    return [fact for fact in facts if reads_only(fact, columns)]


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
    """Whether a term of a branch can be asked alone: it may have a guard in what is left out."""
    return reads_only(term, columns) and bool(columns_of(term)) and never_raises(term)

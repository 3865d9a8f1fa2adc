"""Expressions that say the same with less, and predicates that follow from others: what is equal has the same bounds, and an OR says
something of each input.  Rule `simplify` and the rules that move predicates use it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Set as AbstractSet

from ...plan import expr as ex
from ...plan.all_values import never_raises
from ...plan.functions import EQUALITIES, SCALAR
from ...plan.node import transform_up
from ...plan.types import BOOLEAN
from ..rewrite import reads_only, replace_columns
from .fold import folded, unwrapped
from .logic import combine, distinct_literals, negation, simplified_connective, terms
from .nullness import is_never_null

Known = AbstractSet[ex.Column]

MAX_STEPS = 8  # rewritings of one node in a row; each makes it smaller or moves it toward one form


def simplified(expr: ex.Expr, known: Known = frozenset()) -> ex.Expr:
    """Return the simplest form of an expression; `known` are columns that are never NULL."""
    return transform_up(expr, lambda e: _settled(e, known)) if expr.CHILDREN else expr


def _settled(expr: ex.Expr, known: Known) -> ex.Expr | None:
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


def _step(expr: ex.Expr, known: Known) -> ex.Expr | None:
    match expr:
        case ex.Literal() | ex.AggregateCall():
            return None
        case ex.Call(function="and" | "or"):
            return simplified_connective(expr)
        case ex.Call(function="not", args=(arg,)):
            return folded(expr) or negation(arg)
        case ex.Call(function="coalesce"):
            return _coalesced(expr, known)
        case ex.Call(function="is_null" | "is_not_null", args=(arg,)) if is_never_null(
            arg, known
        ) and never_raises(arg):
            return ex.FALSE if expr.function == "is_null" else ex.TRUE
        case ex.Call(function="is_distinct" | "is_not_distinct", args=(a, b)):
            if is_never_null(a, known) and is_never_null(b, known):
                return ex.Call("ne" if expr.function == "is_distinct" else "eq", (a, b), BOOLEAN)
            return folded(expr) or _null_test(expr) or unwrapped(expr)
        case ex.Call():
            return folded(expr) or unwrapped(expr)
        case ex.Cast(operand=operand, type=target):
            return operand if operand.type == target else folded(expr)
        case ex.InList():
            return _listed(expr)
        case ex.Case():
            return _chosen(expr)
    return None


def _null_test(expr: ex.Call) -> ex.Expr | None:
    """X is [not] distinct from NULL."""
    name = "is_not_null" if expr.function == "is_distinct" else "is_null"
    for value, other in (expr.args, expr.args[::-1]):
        if isinstance(value, ex.Literal) and value.is_null:
            return ex.Call(name, (other,), BOOLEAN)
    return None


def _coalesced(expr: ex.Call, known: Known) -> ex.Expr | None:
    kept: list[ex.Expr] = []
    for arg in expr.args:
        if isinstance(arg, ex.Literal) and arg.is_null:
            continue
        kept.append(arg)
        if is_never_null(arg, known):
            break
    if not kept:
        return ex.Literal(None, expr.type)
    if len(kept) == 1:
        return kept[0]
    return None if len(kept) == len(expr.args) else dataclasses.replace(expr, args=tuple(kept))


def _listed(expr: ex.InList) -> ex.Expr | None:
    value = folded(expr) or unwrapped(expr)
    if value is not None:
        return value
    values = distinct_literals(expr.values)
    if len(values) == 1:
        return ex.Call("eq", (expr.operand, values[0]), BOOLEAN, expr.span)
    return None if len(values) == len(expr.values) else dataclasses.replace(expr, values=values)


def _chosen(expr: ex.Case) -> ex.Expr | None:
    """Drop the branches that are never taken and all after one that always is."""
    branches: list[tuple[ex.Expr, ex.Expr]] = []
    default = expr.default
    for condition, result in zip(expr.conditions, expr.results, strict=True):
        if condition == ex.TRUE:
            default = result
            break
        if not (isinstance(condition, ex.Literal) and condition.truth is not True):
            branches.append((condition, result))
    if not branches or all(r == default and isinstance(r, ex.Literal) for _, r in branches):
        return default
    if len(branches) == len(expr.conditions):
        return None
    return ex.Case(tuple(c for c, _ in branches), tuple(r for _, r in branches), default, expr.type)


def as_condition(predicate: ex.Expr) -> ex.Expr:
    """Only TRUE counts in a condition, so that a NULL part of an AND is as good as FALSE."""
    if isinstance(predicate, ex.Literal):
        return ex.TRUE if predicate.truth else ex.FALSE
    if isinstance(predicate, ex.Call) and predicate.function in ("and", "or"):
        parts = [as_condition(a) for a in predicate.args]
        if all(a is b for a, b in zip(parts, predicate.args, strict=True)):
            return predicate
        return simplified(combine(predicate.function, parts))
    return predicate


Pair = tuple[ex.Expr, ex.Expr]


def equalities(
    condition: ex.Expr | None, left: frozenset[ex.Column], right: frozenset[ex.Column]
) -> tuple[list[Pair], list[ex.Expr]]:
    """Split a condition into (left expression, right expression) of its equalities, and the rest."""
    pairs, rest = [], []
    for part in ex.conjuncts(condition):
        pair = as_equality(part, left, right)
        if pair is None:
            rest.append(part)
        else:
            pairs.append(pair)
    return pairs, rest


def as_equality(
    part: ex.Expr, left: frozenset[ex.Column], right: frozenset[ex.Column]
) -> Pair | None:
    """Return the sides of an equality (or IS NOT DISTINCT FROM) between left and right, left first."""
    if not isinstance(part, ex.Call) or part.function not in EQUALITIES:
        return None
    for a, b in _both_ways(part):
        read_a, read_b = ex.columns_of(a), ex.columns_of(b)
        if read_a <= left and read_b <= right and read_a and read_b:
            return a, b
    return None


def _both_ways(part: ex.Call) -> Iterator[Pair]:
    a, b = part.args
    yield a, b
    yield b, a


def implied(parts: list[ex.Expr], inputs: list[tuple[ex.Column, ...]]) -> list[ex.Expr]:
    """Return what follows from `parts`, which all hold, for single inputs, and is not among them."""
    known = dict.fromkeys(parts)
    new: dict[ex.Expr, None] = {}
    for fact in [*_from_ors(parts, inputs)]:
        if fact not in known:
            new[fact] = None
    classes = EqualColumns(parts)
    for part in [*parts, *new]:
        column = _bounded(part)
        if column is None:
            continue
        for other in classes.others(column):
            fact = replace_columns(part, {column: ex.ColumnRef(other)})
            if fact not in known:
                new[fact] = None
    return list(new)


def implied_of(parts: list[ex.Expr], columns: frozenset[ex.Column]) -> list[ex.Expr]:
    """Return what follows for `columns` alone from ORs among `parts` that read others too."""
    others = frozenset().union(*map(ex.columns_of, parts)) - columns
    facts = _from_ors(parts, [tuple(columns), tuple(others)]) if others else ()
    return [fact for fact in facts if reads_only(fact, columns)]


def implied_across(
    condition: list[ex.Expr],
    parts: list[ex.Expr],
    left: frozenset[ex.Column],
    right: frozenset[ex.Column],
) -> list[ex.Expr]:
    """Return bounds on `right` that rows must meet to match any row of `left` under which `parts` hold."""
    found = []
    for a, b in _column_pairs(condition):
        for one, other in ((a, b), (b, a)):
            if one in left and other in right:
                bounds = (p for p in parts if _bounded(p) == one)
                found += [replace_columns(p, {one: ex.ColumnRef(other)}) for p in bounds]
    return found


class EqualColumns:
    """Columns that equalities make equal, as sets (union-find)."""

    def __init__(self, parts: Iterable[ex.Expr]) -> None:
        self._sets: dict[ex.Column, set[ex.Column]] = {}
        for a, b in _column_pairs(parts):
            joined = self._sets.get(a, {a}) | self._sets.get(b, {b})
            for column in joined:
                self._sets[column] = joined

    def others(self, column: ex.Column) -> list[ex.Column]:
        """Return the columns equal to `column`, in a fixed order."""
        return sorted(self._sets.get(column, set()) - {column}, key=lambda c: c.id)


def _column_pairs(parts: Iterable[ex.Expr]) -> Iterable[tuple[ex.Column, ex.Column]]:
    for part in parts:
        match part:
            case ex.Call(function="eq", args=(ex.ColumnRef(column=a), ex.ColumnRef(column=b))):
                yield a, b


def _bounded(part: ex.Expr) -> ex.Column | None:
    """Return the column that a part compares with constants."""
    match part:
        case ex.Call(function=function, args=(ex.ColumnRef(column=column), ex.Literal())):
            return column if SCALAR[function].bound else None
        case ex.InList(operand=ex.ColumnRef(column=column)):
            return column
    return None


def _from_ors(parts: list[ex.Expr], inputs: list[tuple[ex.Column, ...]]) -> Iterable[ex.Expr]:
    """(a.x = 1 and b.y = 2) or (a.x = 3 and b.y = 4) implies a.x in (1, 3) and b.y in (2, 4)."""
    for part in parts:
        if not (isinstance(part, ex.Call) and part.function == "or"):
            continue
        read = ex.columns_of(part)
        touched = [frozenset(columns) for columns in inputs if not read.isdisjoint(columns)]
        if len(touched) < 2:
            continue
        branches = [list(terms("and", branch)) for branch in part.args]
        for columns in touched:
            chosen = [[t for t in branch if _says(t, columns)] for branch in branches]
            if all(chosen):
                yield from terms(
                    "and", simplified(combine("or", [ex.conjunction(own) for own in chosen]))
                )


def _says(term: ex.Expr, columns: frozenset[ex.Column]) -> bool:
    """Whether a term of a branch can be asked alone: it may have a guard in what is left out."""
    return reads_only(term, columns) and bool(ex.columns_of(term)) and never_raises(term)

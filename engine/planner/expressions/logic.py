"""AND, OR and NOT in three-valued logic: a distributive lattice with FALSE < NULL < TRUE, in which NOT turns the order round.

So associativity, absorption, distribution and De Morgan hold with NULLs; `x or not x` and `x and not x` do not fold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations, permutations

from ...plan.expr import FALSE, TRUE, Call, Column, ColumnRef, Expr, InList, Literal, Value
from ...plan.functions import NEGATED, SCALAR, STRICT
from ...plan.shapes.guards import decided
from ...plan.types import BOOLEAN
from .fold import folded

DUAL = {"and": "or", "or": "and"}
MOST_LISTED = 64  # constants of which each is compared with what else is said of a column


def combine(function: str, parts: list[Expr]) -> Expr:
    """Return the AND or OR of any number of parts."""
    if not parts:
        return TRUE if function == "and" else FALSE
    return parts[0] if len(parts) == 1 else Call(function, tuple(parts), BOOLEAN)


def terms(function: str, expr: Expr) -> Iterator[Expr]:
    """Yield the parts of nested ANDs or ORs."""
    if isinstance(expr, Call) and expr.function == function:
        for arg in expr.args:
            yield from terms(function, arg)
    else:
        yield expr


def simplified_connective(expr: Call) -> Expr | None:
    """Flatten, drop repeated and neutral parts, and let FALSE decide an AND and TRUE an OR."""
    function = expr.function
    neutral, deciding = (TRUE, FALSE) if function == "and" else (FALSE, TRUE)
    parts = list(dict.fromkeys(terms(function, expr)))
    kept = [p for p in parts if p != neutral]
    if deciding in kept:
        return deciding
    if function == "or":
        kept = _as_lists(kept)
        factored = _factored(kept)
        if factored is not None:
            return factored
    else:
        kept = _without_contradiction(_shortest_lists(_tightest(kept)))
    if len(kept) == len(expr.args) and all(a is b for a, b in zip(kept, expr.args, strict=True)):
        return None
    return combine(function, kept)


def negation(arg: Expr) -> Expr | None:
    """Return NOT `arg` with the NOT moved inward, or None when it stays."""
    match arg:
        case Literal(truth=bool(value)):
            return FALSE if value else TRUE
        case Call(function="not", args=(inner,)):
            return inner
        case Call(function=function, args=args) if function in NEGATED:
            return Call(NEGATED[function], args, BOOLEAN, arg.span)
        case Call(function="and" | "or", args=args):
            negated = tuple(negation(a) or Call("not", (a,), BOOLEAN) for a in args)
            return Call(DUAL[arg.function], negated, BOOLEAN)
    return None


def _factored(branches: list[Expr]) -> Expr | None:
    """(a and b) or (a and c) -> a and (b or c); a or (a and b) -> a.

    A join condition that each branch repeats (TPC-H Q19) becomes one that a hash join can use.
    """
    if len(branches) < 2:
        return None
    parts = [list(terms("and", b)) for b in branches]
    shared = [p for p in parts[0] if all(p in other for other in parts[1:])]
    if not shared:
        return None
    rests = [[p for p in branch if p not in shared] for branch in parts]
    if not all(rests):
        return combine("and", shared)
    return combine("and", [*shared, combine("or", [combine("and", r) for r in rests])])


def _as_lists(branches: list[Expr]) -> list[Expr]:
    """X = 1 or x = 2 or x in (3, 4) -> x in (1, 2, 3, 4)."""
    values: dict[Expr, list[Literal]] = {}
    members: dict[Expr, list[Expr]] = {}
    for branch in branches:
        match branch:
            case Call(function="eq", args=(operand, Literal() as value)):
                values.setdefault(operand, []).append(value)
                members.setdefault(operand, []).append(branch)
            case InList(operand=operand, values=listed):
                values.setdefault(operand, []).extend(listed)
                members.setdefault(operand, []).append(branch)
    joined = {
        id(branch): operand
        for operand, found in members.items()
        if len(found) > 1
        for branch in found
    }
    result: list[Expr] = []
    for branch in branches:
        shared = joined.get(id(branch))
        if shared is None:
            result.append(branch)
        elif members[shared][0] is branch:
            result.append(InList(shared, distinct_literals(values[shared])))
    return result


def _shortest_lists(parts: list[Expr]) -> list[Expr]:
    """X in (1, 2) and x in (2, 1, 3) -> x in (1, 2): the longer list says nothing more, and an estimate would count its share too."""
    lists = [part for part in parts if isinstance(part, InList)]
    dropped: set[int] = set()
    for one, other in combinations(lists, 2):
        if one.operand == other.operand and dropped.isdisjoint((id(one), id(other))):
            shorter, longer = sorted((one.values, other.values), key=len)
            if decided(_are_among, len(shorter), *shorter, *longer):
                dropped.add(id(other if longer is other.values else one))
    return [part for part in parts if id(part) not in dropped] if dropped else parts


def _without_contradiction(parts: list[Expr]) -> list[Expr]:
    """X = 1 and x in (2, 3), or x < 1 and x > 2 -> x is null and null, which no row meets."""
    told: dict[Column, list[tuple[Expr, str, tuple[Literal, ...]]]] = {}
    for part in parts:
        match part:
            case InList(operand=ColumnRef(column), values=values) if len(values) <= MOST_LISTED:
                told.setdefault(column, []).append((part, "both", values))
            case Call(function=name, args=(ColumnRef(column), Literal(is_null=False) as value)) if (
                name in STRICT and SCALAR[name].bound
            ):
                told.setdefault(column, []).append((part, SCALAR[name].bound, (value,)))
    for column, found in told.items():
        if any(
            _none_meets(values, part)
            for (_, one, values), (part, other, _) in permutations(found, 2)
            if one == "both" or other not in ("both", one)
        ):
            dropped = {id(part) for part, _, _ in found}
            none = Call("is_null", (ColumnRef(column),), BOOLEAN), Literal(None, BOOLEAN)
            return [*(part for part in parts if id(part) not in dropped), *none]
    return parts


def _none_meets(values: Sequence[Literal], condition: Expr) -> bool:
    """Whether a condition on a column is FALSE for each of some values, and so for what is beyond a bound."""
    _, *others = condition.children
    met = (folded(condition.with_children([value, *others])) for value in values)
    return all(truth is not None and truth.truth is False for truth in met)


def _are_among(count: int, *values: Value) -> bool:
    """Whether each of the first values is one of the others."""
    return {*map(_kind, values[:count])} <= {*map(_kind, values[count:])}


def distinct_literals(values: Sequence[Literal]) -> tuple[Literal, ...]:
    """Return the constants without those that are equal to one before."""
    kept = decided(_first_places, *values)
    return tuple(values[i] for i in kept)


def _first_places(*values: Value) -> tuple[int, ...]:
    """Return the places of values that none before is equal to."""
    first: dict[tuple[object, ...], int] = {}
    for i, value in enumerate(values):
        first.setdefault(_kind(value), i)
    return tuple(first.values())


def _kind(value: Value) -> tuple[object, ...]:
    """Return what equal values share; TRUE is not 1, and -0.0 not 0.0."""
    return type(value), repr(value) if isinstance(value, float | Decimal) else value


def _tightest(parts: list[Expr]) -> list[Expr]:
    """Keep, of several lower (or upper) bounds of one operand, the tightest."""
    best: dict[tuple[Expr, str], Call] = {}
    dropped: set[int] = set()
    for part in parts:
        match part:
            case Call(function=function, args=(operand, Literal(is_null=False))) if SCALAR[
                function
            ].orders:
                side = SCALAR[function].bound
                known = best.get((operand, side))
                if known is None:
                    best[operand, side] = part
                    continue
                loser = _looser(known, part, side)
                if loser is not None:
                    dropped.add(id(loser))
                    best[operand, side] = part if loser is known else known
    return [p for p in parts if id(p) not in dropped] if dropped else parts


def _looser(a: Call, b: Call, side: str) -> Call | None:
    smaller = folded(Call("lt", (a.args[1], b.args[1]), BOOLEAN))
    equal = folded(Call("eq", (a.args[1], b.args[1]), BOOLEAN))
    if smaller is None or equal is None:
        return None
    if equal.truth:
        return a if a.function in ("ge", "le") else b
    a_is_looser = bool(smaller.truth) == (side == "lower")
    return a if a_is_looser else b

"""The parts of a join condition that a hash table can answer."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.expr import Call, Column, Expr, columns_of, conjuncts
from ...plan.functions import EQUALITIES

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

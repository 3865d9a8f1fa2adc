"""Parts that several expressions of one node have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ...plan.expr import Call, Case, Column, ColumnRef, Expr

LAZY = frozenset(("coalesce",))  # later arguments are evaluated where the first ones are NULL


def shared_parts(exprs: list[Expr]) -> list[Expr]:
    """Return the largest calls that occur more than once, in the order in which they are met.

    A part of a CASE branch may be computed for all rows only where it is computed for all rows anyway: for others it might raise.
    """
    always: Counter[Expr] = Counter()
    everywhere: Counter[Expr] = Counter()
    for expr in exprs:
        for part, unconditional in _parts(expr, True):
            everywhere[part] += 1
            always[part] += unconditional
    repeated = {p for p, count in everywhere.items() if count > 1 and always[p]}
    found: dict[Expr, None] = {}

    def largest(expr: Expr) -> None:
        if expr in repeated:
            found[expr] = None
            return
        for child in expr.children:
            largest(child)

    if repeated:
        for expr in exprs:
            largest(expr)
    return list(found)


def replace_parts(expr: Expr, names: Mapping[Expr, Column]) -> Expr:
    """Read the columns of `names` instead of computing their expressions."""
    if isinstance(expr, Call) and expr in names:
        return ColumnRef(names[expr])
    return expr.with_children([replace_parts(c, names) for c in expr.children])


def _parts(expr: Expr, unconditional: bool) -> Iterator[tuple[Expr, bool]]:
    if isinstance(expr, Call):
        yield expr, unconditional
    lazy = isinstance(expr, Case) or (isinstance(expr, Call) and expr.function in LAZY)
    for i, child in enumerate(expr.children):
        yield from _parts(child, unconditional and not (lazy and i > 0))

"""date_trunc, date_part, date_diff and date_sub whose unit is a column: a CASE of the units that there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...errors import InvalidQuery, Span, TypeMismatch
from .. import infer
from ..expr import Expr, Literal
from ..types import NULL, VARCHAR


def by_unit(
    units: Mapping[str, str], unit: Expr, build: Callable[[Expr], Expr], span: Span | None
) -> Expr:
    """Return CASE WHEN lower(unit) IN ('year', 'years', 'y') THEN build('year') ... END, which raises for other texts.

    `units` maps each spelling to the name of its unit.  What `build` refuses for the arguments at hand, as years of a TIME, is another text.
    """
    lowered = infer.call("lower", [unit], span)
    conditions: list[Expr] = [infer.call("is_null", [unit], span)]
    results: list[Expr] = [Literal(None, NULL)]
    for name in dict.fromkeys(units.values()):
        try:
            result = build(Literal(name, VARCHAR, unit.span))
        except (InvalidQuery, TypeMismatch):
            continue
        spelled = [Literal(spelling, VARCHAR) for spelling, known in units.items() if known == name]
        conditions.append(infer.in_list(lowered, spelled, span))
        results.append(result)
    parts = [Literal('There is no unit "', VARCHAR), unit, Literal('" of this type', VARCHAR)]
    return infer.case(conditions, results, infer.call("error", [infer.call("concat", parts)]), span)

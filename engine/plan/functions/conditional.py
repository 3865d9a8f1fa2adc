"""Functions that choose among their arguments.  CASE, NULLIF and IF are `Case` expressions made by `infer`."""

from __future__ import annotations

from .row import FunctionRow
from .signatures import variadic

CONDITIONAL = (
    # n-ary, all of the result's type.  NULL arguments are skipped; NULL when all are.
    FunctionRow("greatest", variadic(1), "greatest(any, ...)", nulls="all", total=True),
    FunctionRow("least", variadic(1), "least(any, ...)", nulls="all", total=True),
    # The first that is not NULL; a later argument's error counts only where it is reached.
    FunctionRow("coalesce", variadic(1), "coalesce(any, ...)", nulls="all"),
)

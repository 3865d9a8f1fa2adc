"""Calls that give another value each time: random(), samples, nextval(), Python functions with side effects."""

from __future__ import annotations

from sqlglot import exp

from fuseline.catalog import Catalog
from fuseline.plan.changes.sequences import FUNCTIONS as SEQUENCE_FUNCTIONS
from fuseline.plan.udf.python_function import PythonFunction


def find_draw(node: exp.Expr, catalog: Catalog, *kinds: type[exp.Expr]) -> exp.Expr | None:
    """Return the first node of these kinds, or else call that asks a sequence or has side effects, within a tree."""
    found = node.find(*kinds)
    functions = catalog.session.functions
    if found is not None or not (functions or catalog.sequence_names()):
        return found

    def draws(call: exp.Anonymous) -> bool:
        if call.name.lower() in SEQUENCE_FUNCTIONS:
            return True
        function = functions.get(call.name.lower())
        return isinstance(function, PythonFunction) and function.side_effects

    return next(filter(draws, node.find_all(exp.Anonymous)), None)

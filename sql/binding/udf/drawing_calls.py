"""Calls that give another value each time: random(), samples, Python functions with side effects."""

from __future__ import annotations

from sqlglot import exp

from fuseline.plan.udf.python_function import PythonFunction

from ..binding_catalog import BindingCatalog


def find_draw(node: exp.Expr, catalog: BindingCatalog, *kinds: type[exp.Expr]) -> exp.Expr | None:
    """Return the first node of these kinds, or else call of a Python function with side effects, within a tree."""
    found = node.find(*kinds)
    functions = catalog.session.functions
    if found is not None or not functions:
        return found

    def draws(call: exp.Anonymous) -> bool:
        function = functions.get(call.name.lower())
        return isinstance(function, PythonFunction) and function.side_effects

    return next(filter(draws, node.find_all(exp.Anonymous)), None)

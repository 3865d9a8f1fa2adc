"""Calls of Python functions, which a connection knows by name, and which names they cannot have."""

from __future__ import annotations

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span
from fuseline.plan.derived import is_spelled
from fuseline.plan.expr import Expr, Literal
from fuseline.plan.functions import aggregate_name, window_name
from fuseline.plan.types import BIGINT
from fuseline.plan.udf.python_aggregate import PythonAggregate
from fuseline.plan.udf.python_function import PythonFunction, python_call

from ...parsing.known_calls import FUNCTIONS
from ..draws.volatile import row_number
from ..scope import Scope


def is_function(name: str) -> bool:
    """Whether SQL has a function or a form of this name."""
    folded = name.lower()
    known = (is_spelled(folded), aggregate_name(folded), window_name(folded))
    return any(known) or name.upper() in FUNCTIONS


def python_function(node: exp.Expr, scope: Scope) -> PythonFunction | None:
    """Return the function that a call of no known function names."""
    found = _named(node, scope)
    return found if isinstance(found, PythonFunction) else None


def python_aggregate(node: exp.Expr, scope: Scope) -> PythonAggregate | None:
    """Return the aggregate that a call of no known function names."""
    found = _named(node, scope)
    return found if isinstance(found, PythonAggregate) else None


def _named(node: exp.Expr, scope: Scope) -> PythonFunction | PythonAggregate | None:
    if not isinstance(node, exp.Anonymous):
        return None
    return scope.session.catalog.session.functions.get(node.name.lower())


def bind_python(function: PythonFunction, node: exp.Expr, place: Span | None, scope: Scope) -> Expr:
    """Bind a call; one of a function with side effects depends on the row and on its place in the text, as random() does."""
    nodes = node.expressions
    if any(isinstance(n, exp.Distinct | exp.Order | exp.Star) for n in nodes):
        raise InvalidQuery(
            f"DISTINCT, ORDER BY and * belong into aggregates, and {function.name} is none.", place
        )
    drawn: tuple[Expr, ...] = ()
    if function.side_effects:
        number = row_number(node, scope, f"{function.name}(), which has side effects,")
        drawn = (number, Literal(len(scope.session.passing), BIGINT))
        scope.session.passing.append(f"{function.name}()")
    return python_call(function, [scope.bind(n) for n in nodes], place, drawn)

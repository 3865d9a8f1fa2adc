"""Calls of Python functions, which a connection knows by name, and of sequences: nextval(), currval() and setval()."""

from __future__ import annotations

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, UnknownName, nearest
from fuseline.plan.changes.sequences import (
    FUNCTIONS as SEQUENCE_FUNCTIONS,
    Sequence,
    last_values,
    next_values,
    parts_of,
    set_values,
)
from fuseline.plan.derived import is_spelled
from fuseline.plan.expr import Expr, Literal
from fuseline.plan.functions import aggregate_name, window_name
from fuseline.plan.types import BIGINT, BOOLEAN
from fuseline.plan.udf.python_function import PythonAggregate, PythonFunction, python_call
from fuseline.sql.parsing.pieces import span_of

from ...parsing.known_calls import FUNCTIONS
from ..constants.known_values import known
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


SEQUENCE_CALLS = tuple(SEQUENCE_FUNCTIONS)


def bind_sequence_call(name: str, node: exp.Expr, place: Span | None, scope: Scope) -> Expr:
    """Bind a call, which gives another value in each row, and is called for these alone that get to it."""
    nodes = node.expressions
    sets = name == "setval"
    if len(nodes) not in ((2, 3) if sets else (1,)):
        takes = (
            "the name of a sequence, a value and whether it counts as given"
            if sets
            else "the name of a sequence"
        )
        raise InvalidQuery(f"{name}() takes {takes}.", place)
    asked = known(scope.bind(nodes[0]), scope)
    if isinstance(asked, Literal) and asked.value is None:
        return Literal(None, BIGINT, place)
    if not isinstance(asked, Literal) or not isinstance(asked.value, str):
        raise InvalidQuery(
            f"{name}() takes the name of a sequence as a constant text.", span_of(nodes[0])
        )
    sequence = _sequence(asked.value, span_of(nodes[0]), scope, writes=name != "currval")
    number = row_number(node, scope, f"{name}()")
    drawn = (number, Literal(len(scope.session.passing), BIGINT))
    scope.session.passing.append(f"{name}()")
    if not sets:
        function = next_values(sequence) if name == "nextval" else last_values(sequence)
        return python_call(function, [number], place, drawn)
    given = scope.bind(nodes[2]) if len(nodes) == 3 else Literal(True, BOOLEAN)
    return python_call(set_values(sequence), [scope.bind(nodes[1]), given], place, drawn)


def _sequence(name: str, place: Span | None, scope: Scope, *, writes: bool) -> Sequence:
    catalog, parts = scope.session.catalog, parts_of(name)
    found = catalog.sequence(parts, scope.session.home) if parts else None
    if found is None:
        hint = nearest(name, catalog.sequence_names())
        raise UnknownName(f'There is no sequence "{name}".{hint}', place)
    key, sequence = found
    if writes:
        catalog.check_writable(key.database)
    return sequence

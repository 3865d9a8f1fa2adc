"""nextval(), currval() and setval(): calls that ask a sequence for a value in each row."""

from __future__ import annotations

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, UnknownName, nearest
from fuseline.plan.changes.sequences import (
    FUNCTIONS,
    Sequence,
    last_values,
    next_values,
    parts_of,
    set_values,
)
from fuseline.plan.expr import Expr, Literal
from fuseline.plan.types import BIGINT, BOOLEAN
from fuseline.plan.udf.python_function import python_call
from fuseline.sql.parsing.pieces import span_of

from ..constants.known_values import known
from ..draws.volatile import row_number
from ..scope import Scope

SEQUENCE_CALLS = tuple(FUNCTIONS)


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

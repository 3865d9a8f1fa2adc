"""range() and generate_series() in FROM: numbers between constants count on their own, anything else is a list that is unnested."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span
from fuseline.plan import infer
from fuseline.plan.expr import Column, Expr, Interval, Literal, new_column
from fuseline.plan.functions.lists import element_type
from fuseline.plan.logical import Logical, Range, Unnest, Values
from fuseline.plan.types import BIGINT, Kind
from fuseline.sql.parsing.pieces import span_of

from ..constants.known_values import known, known_integer
from ..scope import Relation, Scope, Source

Named = Callable[[Logical, Sequence[tuple[str, Column]], exp.Expr, str], Source]


def bind_series(
    node: exp.Table, function: exp.GenerateSeries, around: Scope, named: Named
) -> Source:
    """Bind `range(stop)`, `range(start, stop[, step])`, of which generate_series includes its stop.

    Bounds may be moments a step apart, and columns of the tables before it.
    """
    name = "range" if function.args.get("is_end_exclusive") else "generate_series"
    scope = around.inside("a table function")
    written = [function.args.get(key) for key in ("start", "end", "step")]
    given = [known(scope.bind(value), scope) for value in written if value is not None]
    counts = not any(value.type.kind in _MOMENTS for value in given)
    if counts and all(isinstance(value, Literal) for value in given):
        made = new_column(node.alias or name, BIGINT)
        plan: Logical = _numbers(function, given, made, name, scope)
    else:
        if written[0] is not None and span_of(written[0]) is None:
            given = given[1:]  # the start that sqlglot adds
        _check_step(given, span_of(function))
        values = infer.call(f"list_of_{name}", given, span_of(function))
        element = element_type(values.type)
        assert element is not None
        made = new_column(node.alias or name, element)
        plan = Unnest(Values((), ((),)), ((made, values),))
    source = named(plan, [(made.name, made)], node, name)
    if node.alias_column_names:
        return source
    # Under an alias the column goes by both names, and * shows the alias.
    both = Relation(source.relations[0].name, ((made.name, made),), also=((name, made),))
    return dataclasses.replace(source, relations=(both,)) if made.name != name else source


_MOMENTS = frozenset(
    {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_S, Kind.TIMESTAMP_MS, Kind.TIMESTAMP_NS}
    | {Kind.TIMESTAMPTZ, Kind.INTERVAL}
)


def _numbers(
    function: exp.GenerateSeries, given: Sequence[Expr], made: Column, name: str, scope: Scope
) -> Logical:
    bounds = [known_integer(value, "A bound of range()", scope) for value in given]
    start, stop, step = 0, 0, 1
    if None not in bounds:  # NULL gives no rows
        known = [b for b in bounds if b is not None]
        start, stop = (0, known[0]) if len(known) == 1 else (known[0], known[1])
        step = known[2] if len(known) == 3 else 1
        if step == 0:
            raise InvalidQuery("The step of range() cannot be 0.", span_of(function))
        if name != "range":
            stop += 1 if step > 0 else -1
    return Range(made, start, stop, step)


def _check_step(given: Sequence[Expr], place: Span | None) -> None:
    """Raise where a series would stay where it is; a list of such bounds is empty in DuckDB, a table is refused."""
    if len(given) == 3 and isinstance(given[2], Literal):
        step = given[2].value
        if step == 0 or (isinstance(step, Interval) and step == Interval(0, 0, 0)):
            raise InvalidQuery("The step of range() cannot be 0.", place)

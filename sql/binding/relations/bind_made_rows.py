"""Calls in FROM whose rows are made: repeat(), repeat_row(), range(), generate_series(), json_each() and json_tree(), and of constant
texts query() and query_table().
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from ....errors import InvalidQuery, ParseError, Span
from ....plan import infer
from ....plan.composed.json_calls import ENTRY_TABLES, entries
from ....plan.composed.nested_values import field
from ....plan.expr import Column, ColumnRef, Expr, Interval, Literal, columns_of, new_column
from ....plan.functions.lists import element_type
from ....plan.logical import Logical, Project, Range, Unnest, Values
from ....plan.types import BIGINT, VARCHAR, Kind
from ...parsing.pieces import first_word, span_of, split
from ...parsing.unread import use
from ..constants.known_values import known, known_integer, known_or_listed, known_value
from ..scope import Relation, Scope, Source
from .about_tables import bind_text

_NAME = re.compile(r'(\w+|"(?:[^"]|"")+")(\.(\w+|"(?:[^"]|"")+"))*')
_QUERIES = (
    "SELECT",
    "FROM",
    "VALUES",
    "WITH",
    "TABLE",
    "PIVOT",
    "UNPIVOT",
    "DESCRIBE",
    "SUMMARIZE",
    "",
)


def bind_made_rows(name: str, function: exp.Expr, around: Scope) -> Logical | None:
    """Return the rows of one of these functions, None for one of another name."""
    maker = MADE_ROWS.get(name.lower())
    if maker is None:
        return None
    repeats = isinstance(function, exp.Repeat)
    nodes = [function.this, function.args["times"]] if repeats else function.expressions
    positional, named = (
        [n for n in nodes if _option(n) is None],
        dict(filter(None, map(_option, nodes))),
    )
    scope = around.inside("a table function")
    values = [scope.bind(node) for node in positional]
    options = {key: scope.bind(node) for key, node in named.items()}
    for value in (*values, *options.values()):
        if columns_of(value):
            raise InvalidQuery(
                f"{name.lower()}() takes constants.", value.span or span_of(function)
            )
    return maker(values, options, span_of(function), around)


def _option(node: exp.Expr) -> tuple[str, exp.Expr] | None:
    """Return the name and value of an argument `name = value` or `name := value`."""
    if isinstance(node, exp.PropertyEQ | exp.Kwarg | exp.EQ) and isinstance(
        node.this, exp.Column | exp.Identifier | exp.Var
    ):
        use(node, *node.this.walk())
        return node.this.name.lower(), node.expression
    return None


def _repeat(
    values: Sequence[Expr], options: dict[str, Expr], place: Span | None, scope: Scope
) -> Logical:
    """repeat(value, n): n rows; the column is called as the value's text."""
    if len(values) != 2 or options:
        raise InvalidQuery("repeat() in FROM takes a value and how many rows have it.", place)
    return _rows([(_shown(values[0], scope), values[0])], values[1], place, scope)


def _repeat_row(
    values: Sequence[Expr], options: dict[str, Expr], place: Span | None, scope: Scope
) -> Logical:
    """repeat_row(a, b, num_rows = n): n rows of these values."""
    if not values or {*options} != {"num_rows"}:
        raise InvalidQuery(
            "repeat_row() takes values and how many rows have them: repeat_row(1, 'a', num_rows = 3).",
            place,
        )
    named = [(f"column{i}", value) for i, value in enumerate(values)]
    return _rows(named, options["num_rows"], place, scope)


def _rows(
    items: Sequence[tuple[str, Expr]], count: Expr, place: Span | None, scope: Scope
) -> Logical:
    number = known_value(infer.cast(count, BIGINT), "The number of rows", scope)
    if not isinstance(number, int) or number < 0:
        raise InvalidQuery("The number of rows is 0 or more.", count.span or place)
    each = Range(new_column("row", BIGINT), 0, number, 1)
    return Project(each, tuple((new_column(name, value.type), value) for name, value in items))


def _shown(value: Expr, scope: Scope) -> str:
    """Return the text of a constant."""
    found = known_value(infer.cast(value, VARCHAR), "A value", scope)
    return "NULL" if found is None else str(found)


def _query(
    values: Sequence[Expr], options: dict[str, Expr], place: Span | None, scope: Scope
) -> Logical:
    """query('SELECT ...'): the rows of a text."""
    text = known_value(values[0], "The query", scope) if len(values) == 1 else None
    if not isinstance(text, str) or options:
        raise InvalidQuery("query() takes the text of one query.", place)
    pieces = list(split(text))
    if len(pieces) != 1 or first_word(pieces[0]) not in _QUERIES:
        raise ParseError(
            "query() takes the text of one query: SELECT ..., FROM ... or VALUES ...", place
        )
    return bind_text("query", pieces[0].sql, scope, reads_entries=True)


def _query_table(
    values: Sequence[Expr], options: dict[str, Expr], place: Span | None, scope: Scope
) -> Logical:
    """query_table('t') and query_table(['t', 'u'][, by_name]): the rows of tables, one behind the other."""
    given = [known_or_listed(value, "The name of a table", scope) for value in values]
    names = [given[0]] if given and isinstance(given[0], str) else given[0] if given else None
    by_name = given[1] if len(given) == 2 else False
    if not isinstance(names, list) or not names or options or not isinstance(by_name, bool):
        raise InvalidQuery(
            "query_table() takes the name of a table or a list of them, and perhaps whether columns are taken by name.",
            place,
        )
    for name in names:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise InvalidQuery(
                f"\"{name}\" is no name of a table: query_table('schema.table').", place
            )
    glue = " UNION ALL BY NAME " if by_name else " UNION ALL "
    text = glue.join(f"FROM {name}" for name in names)
    return bind_text("query_table", text, scope, reads_entries=True)


MADE_ROWS = {
    "repeat": _repeat,
    "repeat_row": _repeat_row,
    "query": _query,
    "query_table": _query_table,
}


def bind_entries(
    name: str, function: exp.Expr, around: Scope
) -> tuple[Logical, list[tuple[str, Column]]] | None:
    """Return the rows and columns of the table function, None for one of another name."""
    if name.lower() not in ENTRY_TABLES:
        return None
    given = [around.bind(argument) for argument in function.expressions]
    found = entries(name.lower(), given, span_of(function))
    (element,) = found.type.children
    entry = new_column("entry", element)
    items = tuple(
        (new_column(part, kind), field(ColumnRef(entry), part, None))
        for part, kind in zip(element.names, element.children, strict=True)
    )
    plan = Project(Unnest(Values((), ((),)), ((entry, found),)), items)
    return plan, [(column.name, column) for column in plan.columns]


Named = Callable[[Logical, Sequence[tuple[str, Column]], exp.Expr, str], Source]


def bind_series(
    node: exp.Table | exp.Lateral, function: exp.GenerateSeries, around: Scope, named: Named
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

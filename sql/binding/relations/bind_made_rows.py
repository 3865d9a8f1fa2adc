"""repeat() and repeat_row() in FROM, and query() and query_table(), whose text or names are constants."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, ParseError, Span
from fuseline.plan import infer
from fuseline.plan.expr import Expr, columns_of, new_column
from fuseline.plan.logical import Logical, Project, Range
from fuseline.plan.types import BIGINT, VARCHAR
from fuseline.sql.parsing.pieces import span_of

from ...parsing.pieces import first_word, split
from ...parsing.unread import use
from ..constants.known_values import known_or_listed, known_value
from ..scope import Scope
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
    return bind_text("query", pieces[0].sql, scope)


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
    return bind_text("query_table", glue.join(f"FROM {name}" for name in names), scope)


MADE_ROWS = {
    "repeat": _repeat,
    "repeat_row": _repeat_row,
    "query": _query,
    "query_table": _query_table,
}

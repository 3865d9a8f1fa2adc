"""COPY, read from its tokens: what sqlglot makes of its options does not tell them apart."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType, exp

from fuseline.errors import InvalidQuery, ParseError, Span, Unsupported
from fuseline.plan.expr import new_column
from fuseline.plan.files.read_options import COPY_FROM_OPTIONS
from fuseline.plan.files.write_options import WRITE_OPTIONS, format_of
from fuseline.plan.logical import CatalogTable, Scan
from fuseline.plan.statements import CopyTo, Insert, Query, Statement

from ..binding.scope import Scope
from ..parsing.pieces import Piece, span_of
from ..parsing.tokens import tokenize
from ..parsing.unread import use
from .assignments import target_table
from .bind_changes import as_rows, target_columns, written_rows
from .copy_options import at, copy_options, place, step, table_and_columns


def copy_statement(piece: Piece, scope: Scope) -> Statement:
    """Bind COPY table TO, COPY (query) TO, COPY table FROM, and their options."""
    tokens = tokenize(piece)
    behind = _behind_source(tokens, piece)
    path = tokens[behind + 1 : behind + 2]
    word = tokens[behind].text.upper()
    if not path or path[0].token_type is not TokenType.STRING:
        raise ParseError(
            f"Syntax error: COPY ... {word} takes a path in quotes.", place(piece, path)
        )
    source, rest = tokens[: behind + 1], tokens[behind + 2 :]
    if word == "FROM":
        return _copy_from(piece, source, path[0], rest, scope)
    query = _query(piece, source, scope)
    form, options = copy_options(rest, piece, scope, format_of(path[0].text), WRITE_OPTIONS)
    return CopyTo(query, path[0].text, form, options)


def _behind_source(tokens: Sequence[Token], piece: Piece) -> int:
    """Return the number of the token TO or FROM."""
    depth = 0
    for number, token in enumerate(tokens[1:], 1):
        depth += step(token)
        word = "" if token.token_type is TokenType.IDENTIFIER else token.text.upper()
        if depth == 0 and word in ("TO", "FROM") and number > 1:
            return number
    raise ParseError(
        "Syntax error: COPY is written COPY table TO 'path', COPY (query) TO 'path', or COPY table FROM 'path'.",
        Span(piece.start, piece.end),
    )


def _query(piece: Piece, tokens: Sequence[Token], scope: Scope) -> Query:
    """Bind a query in parentheses, or a table with the columns behind it as the query that it stands for."""
    if tokens[1].token_type is TokenType.L_PAREN:
        first, end = tokens[1].start, tokens[-1].start
        node = scope.session.parse(Piece(piece.text, piece.start + first, piece.start + end))
        return Query(scope.bind_query(node))
    node, chosen = table_and_columns(piece, tokens, scope)
    if chosen is not None:
        use(*node.expressions)
        node.set("expressions", chosen)
    return Query(scope.bind_query(node))


def _copy_from(
    piece: Piece, source: Sequence[Token], path: Token, options: Sequence[Token], scope: Scope
) -> Insert:
    """Bind COPY table [(columns)] FROM as the INSERT of a file's columns, which are the table's in their order."""
    if source[1].token_type is TokenType.L_PAREN:
        raise ParseError(
            "Syntax error: COPY ... FROM fills a table, no query.", place(piece, source[1:2])
        )
    node, chosen = table_and_columns(piece, source, scope)
    use(node, node.args["from_"], *node.expressions)
    target = node.args["from_"].this
    table = target_table(target, scope)
    columns = target_columns(table, _names(chosen), target)
    with at(piece, path):
        form, given = copy_options(options, piece, scope, format_of(path.text), COPY_FROM_OPTIONS)
        if form in ("csv", "json"):
            given["columns"] = dict(columns)
        if form != "arrow":
            given["hive_partitioning"] = (
                False  # the columns are the table's, whatever folders are called
            )
        file = scope.session.catalog.read_files(form, [path.text], given)
        rows = _scan(file, path.text)
        if len(rows.columns) != len(columns):
            raise InvalidQuery(
                f'The table "{table.name}" takes {len(columns)} columns here, and the file has {len(rows.columns)}: '
                "choose columns with INSERT INTO table SELECT ... FROM 'file'."
            )
    written = written_rows(node, table, None, scope, checked=True)
    filled = tuple(name for name, _ in table.fields)
    return Insert(table.name, filled, Query(as_rows(rows, columns, table, scope)), written)


def _names(chosen: list[exp.Expr] | None) -> list[str] | None:
    for column in chosen or ():
        if not isinstance(column, exp.Column) or len(column.parts) > 1:
            raise InvalidQuery("Names of columns alone can stand here.", span_of(column))
        use(column, column.this)
    return None if chosen is None else [column.name for column in chosen]


def _scan(file: CatalogTable, path: str) -> Scan:
    unsupported = getattr(file, "unsupported", None)
    if unsupported:
        name, kind = next(iter(unsupported.items()))
        raise Unsupported(f'The column "{name}" of "{path}" is {kind}, which cannot be read.')
    made = tuple(new_column(name, kind) for name, kind in file.fields)
    return Scan(file, made, tuple(name for name, _ in file.fields))

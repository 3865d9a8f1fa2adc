"""COPY, read from its tokens, since what sqlglot makes of its options does not tell them apart: its places, the columns that it lists, and its options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlglot import Token, TokenType, exp

from fuseline.errors import FuselineError, InvalidQuery, ParseError, Span, Unsupported
from fuseline.plan.expr import new_column
from fuseline.plan.files.read_options import COPY_FROM_OPTIONS
from fuseline.plan.files.write_options import WRITE_OPTIONS, OptionTable, format_named, format_of
from fuseline.plan.logical import CatalogTable, Scan
from fuseline.plan.statements import CopyTo, Insert, Query, Statement

from ..binding.bind_files import option_value
from ..binding.scope import Scope
from ..parsing.pieces import Piece, span_of
from ..parsing.tokens import tokenize
from ..parsing.unread import use
from .assignments import target_table
from .bind_changes import as_rows, target_columns, written_rows

_BARE_TEXTS = ("delimiter", "null", "quote", "escape", "encoding")
_OPENING, _CLOSING = "([{", ")]}"


def table_and_columns(
    piece: Piece, tokens: Sequence[Token], scope: Scope
) -> tuple[exp.Expr, list[exp.Expr] | None]:
    """Return `FROM table` for the tokens up to TO or FROM, and the columns in parentheses behind the table."""
    end = tokens[-1].start
    listed = next((t.start for t in tokens if t.token_type is TokenType.L_PAREN), end)
    # Read as `FROM table`, at the same places
    start = piece.start + tokens[0].start
    text = piece.text[:start] + "FROM" + piece.text[start + len("COPY") :]
    node = scope.session.parse(Piece(text, start, piece.start + listed))
    if listed == end:
        return node, None
    names = scope.session.parse(Piece(piece.text, piece.start + listed, piece.start + end))
    use(names)
    return node, names.expressions if isinstance(names, exp.Tuple) else [names.unnest()]


def copy_options(
    tokens: Sequence[Token],
    piece: Piece,
    scope: Scope,
    form: str,
    known: Mapping[str, OptionTable],
) -> tuple[str, dict[str, object]]:
    """Return the format, which is `form` unless an option says another, and the options that it knows."""
    written: list[tuple[Token, object]] = []
    for name, value in _pairs(tokens, piece):
        read = _value(value, piece, scope)
        if name.text.lower() == "format":
            with at(piece, name):
                form = format_named(read)
        else:
            written.append((name, read))
    if form not in known:
        raise Unsupported(f"COPY ... FROM does not read {form}: it reads {', '.join(known)}.")
    options: dict[str, object] = {}
    for name, read in written:
        with at(piece, name):
            key, checked = known[form].read(name.text, read)
            if key in options:
                raise InvalidQuery(f"The option {key} is given twice.")
            options[key] = checked
    return form, options


def _pairs(tokens: Sequence[Token], piece: Piece) -> Iterator[tuple[Token, Sequence[Token]]]:
    """Yield the name of each option and the tokens of its value."""
    if tokens and tokens[0].text.upper() == "WITH":
        tokens = tokens[1:]
    if not tokens:
        return
    if tokens[0].token_type is not TokenType.L_PAREN:
        yield from _bare_pairs(tokens, piece)
        return
    if _end(tokens) != len(tokens) - 1:
        raise _no_options(tokens, piece)
    start, depth = 1, 0
    for number, token in enumerate(tokens[1:], 1):
        if depth == 0 and (token.token_type is TokenType.COMMA or number == len(tokens) - 1):
            if start == number:
                raise ParseError("Syntax error: an option is missing.", place(piece, [token]))
            yield tokens[start], tokens[start + 1 : number]
            start = number + 1
        depth += step(token)


def _bare_pairs(tokens: Sequence[Token], piece: Piece) -> Iterator[tuple[Token, Sequence[Token]]]:
    """Yield options without parentheses, as older scripts have them: CSV HEADER DELIMITER ';'."""
    rest = list(tokens)
    while rest:
        token = rest.pop(0)
        word = token.text.lower()
        if word == "csv":
            yield _called("format", token), [token]
        elif word == "header":
            yield token, []
        elif word in _BARE_TEXTS:
            if rest and rest[0].token_type is TokenType.ALIAS:
                rest.pop(0)
            if not rest or rest[0].token_type is not TokenType.STRING:
                raise _no_options(tokens, piece)
            yield _called(word, token), [rest.pop(0)]
        else:
            raise _no_options(tokens, piece)


def _called(name: str, token: Token) -> Token:
    return Token(TokenType.VAR, name, token.line, token.col, token.start, token.end)


def _no_options(tokens: Sequence[Token], piece: Piece) -> ParseError:
    return ParseError(
        "Syntax error: options of COPY stand in parentheses: (FORMAT csv, HEADER false).",
        place(piece, tokens),
    )


def _end(tokens: Sequence[Token]) -> int:
    """Return the number of the token that closes what the first opens."""
    depth = 0
    for number, token in enumerate(tokens):
        depth += step(token)
        if depth == 0:
            return number
    return len(tokens)


def step(token: Token) -> int:
    """Return by how much a token changes the depth of parentheses."""
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or not token.text:
        return 0
    return (token.text in _OPENING) - (token.text in _CLOSING)


def _value(tokens: Sequence[Token], piece: Piece, scope: Scope) -> object:
    if not tokens:
        return True
    first = tokens[0]
    if len(tokens) == 1 and first.token_type is not TokenType.NUMBER:
        return first.text  # a word, a text, or *
    span = place(piece, tokens)
    return option_value(scope.session.parse(Piece(piece.text, span.start, span.end)), scope)


@contextmanager
def at(piece: Piece, token: Token) -> Iterator[None]:
    """Give errors that have no place yet that of a token."""
    try:
        yield
    except FuselineError as error:
        error.at(place(piece, [token]))
        raise


def place(piece: Piece, tokens: Sequence[Token]) -> Span:
    """Return where some tokens stand in the text; the end of the statement for none."""
    if not tokens:
        return Span(piece.end, piece.end)
    return Span(piece.start + tokens[0].start, piece.start + tokens[-1].end + 1)


def copy_statement(piece: Piece, scope: Scope) -> Statement:
    """Bind COPY table TO, COPY (query) TO, COPY table FROM, and their options."""
    tokens = tokenize(piece)
    behind = _behind_source(tokens, piece)
    source, written = tokens[: behind + 1], tokens[behind + 1 :]
    end = 1 + _end(written) if written else 0
    path, rest = _path(piece, source[-1], written[:end], scope), written[end:]
    if source[-1].text.upper() == "FROM":
        return _copy_from(piece, source, path, rest, scope)
    query = _query(piece, source, scope)
    form, options = copy_options(rest, piece, scope, format_of(path.text), WRITE_OPTIONS)
    return CopyTo(query, path.text, form, options)


def _path(piece: Piece, word: Token, written: Sequence[Token], scope: Scope) -> Token:
    """Return a path: a text, or a constant expression in parentheses, as a text in its place."""
    if written and written[0].token_type is TokenType.STRING:
        return written[0]
    if len(written) > len(_OPENING[:1] + _CLOSING[:1]) and written[0].text == "(":
        path = _value(written[1:-1], piece, scope)
        if isinstance(path, str):
            first = written[0]
            return Token(TokenType.STRING, path, first.line, first.col, first.start, first.end)
    raise ParseError(
        f"Syntax error: COPY ... {word.text.upper()} takes a path in quotes, or an expression in parentheses.",
        place(piece, written),
    )


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

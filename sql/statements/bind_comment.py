"""COMMENT ON."""

from __future__ import annotations

from sqlglot import exp

from fuseline.errors import ParseError, UnknownName, Unsupported, nearest
from fuseline.plan.statements import Commented, CommentOn

from ..binding.scope import Scope
from ..parsing.pieces import Piece
from ..parsing.statement_words import StatementWords

_KINDS: dict[str, Commented] = {
    "TABLE": "relation",
    "VIEW": "relation",
    "COLUMN": "relation",
    "MACRO": "macro",
    "FUNCTION": "macro",
    "TYPE": "type",
}
_FORM = "COMMENT ON TABLE, VIEW, COLUMN, MACRO or TYPE name IS 'text' or NULL"


def comment(piece: Piece, scope: Scope) -> CommentOn:
    """Bind COMMENT ON kind name IS text; the last part of the name of a COLUMN is the column's."""
    words = StatementWords(piece, _FORM)
    words.expect("COMMENT", "ON")
    word = words.name().upper()
    if word not in _KINDS:
        raise Unsupported(
            f"COMMENT ON {word} is not supported: there are {', '.join(_KINDS)}.", words.place()
        )
    kind = _KINDS[word]
    if kind == "macro":
        words.accepts("TABLE")
    parts = words.dotted_name()
    place = words.place()
    words.expect("IS")
    text = None if words.accepts("NULL") else words.text()
    words.end()
    column = None
    if word == "COLUMN":
        *around, column = parts
        if not around:
            raise ParseError(
                "COMMENT ON COLUMN takes the name of a table before that of the column: t.a.", place
            )
        parts = tuple(around)
    catalog = scope.session.catalog
    if kind == "relation" and catalog.located(parts) is None:
        name = ".".join(parts)
        raise UnknownName(
            f'There is no table or view "{name}".{nearest(name, catalog.names())}', place
        )
    located = catalog.located(parts) if kind == "relation" else None
    if column is not None and located is not None and catalog.view(located) is not None:
        column = _of_view(parts, column, scope)
    return CommentOn(kind, parts, column, text)


def _of_view(parts: tuple[str, ...], column: str, scope: Scope) -> str:
    """Return a column of a view as the view spells it."""
    schema, name = (None, *parts)[-2:]
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    if schema is not None:
        table.set("db", exp.to_identifier(schema, quoted=True))
    if len(parts) > 2:
        table.set("catalog", exp.to_identifier(parts[0], quoted=True))
    query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))
    names = [column.name for column in scope.bind_query(query).columns]
    found = next((name for name in names if name.lower() == column.lower()), None)
    if found is None:
        hint = nearest(column, names)
        raise UnknownName(f'The view "{parts[-1]}" has no column "{column}".{hint}')
    return found

"""ALTER TABLE of fields of a STRUCT: ADD, DROP and RENAME of column.field, also within lists and maps.

A change of a field is one of the column's type, whose values are made anew: `a.x` dropped of STRUCT(x, y) is struct_pack(y := a.y).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal as OneOf

from sqlglot import exp

from fuseline.errors import (
    CatalogError,
    FuselineError,
    ParseError,
    Span,
    UnknownColumn,
    Unsupported,
    nearest,
)
from fuseline.plan.text.quoted_name import quoted_name
from fuseline.plan.types import DataType, Kind, list_of, map_of, struct_of

from ...records import dataclass
from ..binding.constants.known_values import known
from ..binding.scope import Scope
from ..parsing.pieces import Piece
from ..parsing.statement_words import StatementWords
from ..parsing.unread import use
from .bind_macro import written_type

_FORM = "ALTER TABLE name ADD, DROP or RENAME [COLUMN] column.field"
_HOW: tuple[OneOf["ADD", "DROP", "RENAME"], ...] = ("ADD", "DROP", "RENAME")
_CONSTRAINTS = ("NOT", "CHECK", "UNIQUE", "PRIMARY", "CONSTRAINT", "REFERENCES", "COLLATE", "AS", "GENERATED")  # fmt: skip


@dataclass(frozen=True)
class FieldChange:
    """What a statement does to the field at the end of a path, which begins with a column."""

    table: exp.Table
    exists: bool  # nothing is done where there is no such table
    how: OneOf["ADD", "DROP", "RENAME"]
    lenient: bool  # nor where the field is there, or is not
    path: tuple[str, ...]
    place: Span
    type: DataType | None = None  # of a new field, with the text of its value
    value: str = ""
    new_name: str = ""

    def remade(self, value: str, kind: DataType, depth: int = 0) -> tuple[str, DataType] | None:
        """Return how a value of the column is made anew, and its new type; None where the change has nothing to do.

        Raises `CatalogError` and `UnknownColumn` where it cannot be made.
        """
        try:
            return self._remade(value, kind, self.path[1:], depth)
        except FuselineError as error:
            error.at(self.place)
            raise
        except _NothingToDo:
            return None

    def _remade(
        self, value: str, kind: DataType, path: Sequence[str], depth: int
    ) -> tuple[str, DataType]:
        name, inner = path[0].lower(), path[1:]
        if kind.kind is Kind.STRUCT and not kind.is_tuple:
            return self._of_struct(value, kind, path, depth)
        each = f"x{depth}"
        if kind.kind is Kind.LIST and not kind.is_array and inner and name == "element":
            text, child = self._remade(each, kind.children[0], inner, depth + 1)
            return f"list_transform({value}, lambda {each}: {text})", list_of(child)
        if kind.kind is Kind.MAP and inner and name in ("key", "value"):
            place = ("key", "value").index(name)
            kinds = [*kind.children[0].children]
            text, kinds[place] = self._remade(each, kinds[place], inner, depth + 1)
            lists = [f"map_keys({value})", f"map_values({value})"]
            lists[place] = f"list_transform({lists[place]}, lambda {each}: {text})"
            return _unless_null(value, f"map({', '.join(lists)})"), map_of(*kinds)
        hint = {Kind.LIST: "element", Kind.MAP: "value"}.get(kind.kind)
        said = f": name those of its values behind {hint}" if hint and not inner else ""
        raise CatalogError(f"{kind} has no fields{said}.")

    def _of_struct(
        self, value: str, kind: DataType, path: Sequence[str], depth: int
    ) -> tuple[str, DataType]:
        name, inner = path[0], path[1:]
        fields = {
            own: (f"struct_extract({value}, '{own.replace(chr(39), chr(39) * 2)}')", child)
            for own, child in zip(kind.names, kind.children, strict=True)
        }
        own = next((known for known in fields if known.lower() == name.lower()), None)
        if inner or self.how != "ADD":
            if own is None and self.lenient and self.how == "DROP":
                raise _NothingToDo
            if own is None:
                hint = nearest(name, list(fields))
                raise UnknownColumn(f'{kind} has no field "{name}".{hint}')
        if inner:
            assert own is not None
            fields[own] = self._remade(*fields[own], inner, depth)
        elif self.how == "ADD":
            if own is not None and self.lenient:
                raise _NothingToDo
            assert self.type is not None
            fields = {**fields, _new(name, fields): (self.value, self.type)}
        elif self.how == "DROP":
            if len(fields) == 1:
                raise CatalogError(f'"{own}" is the last field: a STRUCT keeps at least one.')
            fields.pop(own or "")
        else:
            new = _new(self.new_name, fields)
            fields = {new if known == own else known: field for known, field in fields.items()}
        made = ", ".join(f"{quoted_name(own)} := {text}" for own, (text, _) in fields.items())
        kinds = struct_of((own, child) for own, (_, child) in fields.items())
        return _unless_null(value, f"struct_pack({made})"), kinds


class _NothingToDo(Exception):
    """Raised at the field that is there already, or is not."""


def _new(name: str, fields: dict[str, tuple[str, DataType]]) -> str:
    if name.lower() in (known.lower() for known in fields):
        raise CatalogError(f'There is a field "{name}" already.')
    return name


def _unless_null(value: str, made: str) -> str:
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE {made} END"


def field_change(piece: Piece, scope: Scope) -> FieldChange | None:
    """Return the change of a field that a statement makes, None for other statements."""
    words = StatementWords(piece, _FORM)
    if not words.accepts("ALTER", "TABLE"):
        return None
    exists = words.accepts("IF", "EXISTS")
    try:
        first = words.read
        parts = words.dotted_name()
        table = _table(parts, words, first)
        how = next((word for word in _HOW if words.accepts(word)), None)
        words.accepts("COLUMN")
        lenient = words.accepts("IF", "NOT", "EXISTS") or words.accepts("IF", "EXISTS")
        first = words.read
        path = words.dotted_name()
    except ParseError:
        return None
    if how is None or len(path) < 2:
        return None
    place = Span(piece.start + words.tokens[first].start, words.place().end)
    kind, value, new_name = None, "", ""
    if how == "ADD":
        kind, value = _type_and_default(words, scope)
    elif how == "RENAME":
        words.expect("TO")
        new_name = words.name()
    else:
        words.accepts("CASCADE") or words.accepts("RESTRICT")
    if how != "ADD":
        words.end()
    return FieldChange(table, exists, how, lenient, path, place, kind, value, new_name)


def _table(parts: Sequence[str], words: StatementWords, first: int) -> exp.Table:
    names = [exp.to_identifier(part, quoted=True) for part in parts]
    start = words.piece.start
    for name, token in zip(names, words.tokens[first::2], strict=False):
        name.meta.update(first=start + token.start, last=start + token.end + 1, view=None)
    return exp.Table(**dict(zip(("this", "db", "catalog"), reversed(names), strict=False)))


def _type_and_default(words: StatementWords, scope: Scope) -> tuple[DataType, str]:
    """Read the type of a new field, and the text of its value: that behind DEFAULT, which is a constant, or NULL."""
    piece, tokens = words.piece, words.tokens[words.read :]
    if not tokens:
        raise words.error()
    starts = [token.text.upper().split()[0] for token in tokens]
    for token, word in zip(tokens, starts, strict=True):
        if word in _CONSTRAINTS:
            place = Span(piece.start + token.start, piece.start + token.end + 1)
            raise Unsupported("A field of a STRUCT has a type and a DEFAULT alone.", place)
    end = starts.index("DEFAULT") if "DEFAULT" in starts else len(tokens)
    kind = written_type(tokens[:end], piece, scope, _FORM)
    if end == len(tokens):
        return kind, f"CAST(NULL AS {kind})"
    start = tokens[end].end + 1
    text = "SELECT".ljust(start) + piece.sql[start:]
    tree = scope.session.parse(
        Piece(piece.text[: piece.start] + text, piece.start, piece.start + len(text))
    )
    use(tree)
    value = known(Scope(scope.session).inside("DEFAULT").bind(tree.expressions[0]), scope)
    if value.reads or any(part.reads for part in value.children):
        raise Unsupported("The DEFAULT of a field is a constant.", value.span)
    return kind, f"CAST(({piece.sql[start:]}) AS {kind})"

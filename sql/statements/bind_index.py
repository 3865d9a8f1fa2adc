"""CREATE INDEX and DROP INDEX.  An index changes no answer but by UNIQUE, which statements that write rows keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from fuseline.errors import (
    CatalogError,
    InvalidQuery,
    ParseError,
    UnknownName,
    Unsupported,
    nearest,
)
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.changes.table_rules import TableIndex, rules_of
from fuseline.plan.logical import CatalogTable
from fuseline.plan.statements import AlteredColumn, AlterTable, CreateIndex, DropIndex

from ..binding.scope import Scope
from ..parsing.pieces import Piece, span_of
from ..parsing.tokens import tokenize
from ..parsing.unread import use, use_all
from .assignments import target_table
from .bind_table_rules import source_of, stored_text
from .table_names import what_if_there


def create_index(node: exp.Create, piece: Piece, scope: Scope) -> CreateIndex:
    """Bind CREATE [UNIQUE] INDEX name ON table (column, ...); expressions are checked, and take no part in UNIQUE."""
    index = node.this
    table = index.args.get("table")
    if table is None or index.this is None:
        raise ParseError(
            "CREATE INDEX takes a name and a table: CREATE INDEX name ON table (column).",
            span_of(index),
        )
    target = target_table(table, scope)
    use(index, index.this)
    params = index.args.get("params")
    items = () if params is None else params.args.get("columns") or ()
    if not items:
        raise ParseError("CREATE INDEX takes columns: ON table (column).", span_of(index))
    use(params)
    if (method := params.args.get("using")) is not None:
        _check_method(method)
    is_unique = bool(node.args.get("unique"))
    columns, shown = _columns(items, _texts(piece), target, is_unique, scope)
    made = TableIndex(index.name, tuple(columns), is_unique, tuple(shown))
    rules = rules_of(target)
    rules = replace(rules, indexes=(*rules.indexes, made))
    kept = tuple(AlteredColumn(name, kind, name) for name, kind in target.fields)
    rows = StandIn(target.name, target.fields)
    change = AlterTable(target.name, target.name, kept, rules, rows)
    return CreateIndex(
        change, index.name, what_if_there(None, node.args.get("exists"), span_of(node))
    )


def _check_method(method: exp.Expr) -> None:
    if method.name.lower() != "art":
        raise Unsupported(
            f"There are no indexes of the method {method.name.upper()}: leave USING out.",
            span_of(method),
        )
    use(method)


def _texts(piece: Piece) -> list[str]:
    """Return what stands in the last parentheses of a statement, apart at their commas."""
    tokens = tokenize(piece)
    depth, end, found = 0, tokens[-1].start, list[str]()
    for token in reversed(tokens):
        depth += (token.text in (")", "]", "}")) - (token.text in ("(", "[", "{"))
        if depth == 0 or (depth == 1 and token.text == ","):
            found.append(piece.sql[token.end + 1 : end].strip())
            end = token.start
        if depth == 0:
            break
    return found[::-1]


def _columns(
    items: Sequence[exp.Expr],
    texts: Sequence[str],
    table: CatalogTable,
    is_unique: bool,
    scope: Scope,
) -> tuple[list[str], list[str]]:
    """Return the columns of an index, and how its expressions are shown; raises for what the table does not have."""
    spelled = {name.lower(): name for name, _ in table.fields}
    inside = scope.over(source_of(StandIn(table.name, table.fields))).inside("CREATE INDEX")
    columns, shown = list[str](), list[str]()
    for item, text in zip(items, texts, strict=True):
        inner = item.this if isinstance(item, exp.Ordered) else item
        for column in inner.find_all(exp.Column):
            if column.name.lower() not in spelled:
                hint = nearest(column.name, list(spelled.values()))
                raise UnknownName(
                    f'The table "{table.name}" has no column "{column.name}".{hint}',
                    span_of(column),
                )
        if isinstance(inner, exp.Column):
            columns.append(spelled[inner.name.lower()])
            shown.append(columns[-1])
        elif is_unique:
            raise Unsupported(
                "A UNIQUE INDEX is over columns: add a generated column with the expression.",
                span_of(inner),
            )
        else:
            inside.bind(inner)
            shown.append(stored_text(text).shown)
        use_all(item)
    if len(set(columns)) < len(columns):
        raise InvalidQuery("An index has each column once.", span_of(items[0]))
    if is_unique and any(rules_of(table).is_generated(name) for name in columns):
        raise CatalogError("A generated column takes no key.", span_of(items[0]))
    return columns, shown


def drop_index(node: exp.Drop) -> DropIndex:
    """Bind DROP INDEX [IF EXISTS] [schema.]name."""
    named = (node.args.get("tables") or [node.this])[0]
    use_all(node)
    return DropIndex(tuple(part.name for part in named.parts), bool(node.args.get("exists")))

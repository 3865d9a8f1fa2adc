"""CREATE and DROP of tables, views and indexes, and COMMENT ON.

An index changes no answer but by UNIQUE, which statements that write rows keep.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from fuseline import errors as err
from fuseline.plan import statements as st
from fuseline.plan.changes.catalog_objects import ObjectName, TableIndex, rules_of
from fuseline.plan.changes.stand_in import StandIn
from fuseline.plan.expr import ColumnRef, new_column
from fuseline.plan.logical import CatalogTable, Limit, Logical, Project
from fuseline.plan.text.quoted_name import distinct_names, quoted_name

from ..binding.scope import Scope
from ..parsing.pieces import Piece, mark, span_of
from ..parsing.statement_words import StatementWords
from ..parsing.tokens import tokenize
from ..parsing.unread import use, use_all
from .assignments import identifiers, new_name, table_name, target_table, what_if_there
from .bind_table_rules import RulesReader, source_of, stored_text
from .generated_columns import generated_columns

_RECURSIVE_VIEW = re.compile(
    r"\s*create\s+(?:or\s+replace\s+)?(?:temp\s+|temporary\s+)?(?P<word>recursive)\s+view\b",
    re.IGNORECASE,
)


def create(piece: Piece, scope: Scope) -> st.Statement:
    recursive = _RECURSIVE_VIEW.match(piece.sql)
    if recursive is not None:
        start, end = (piece.start + recursive.start("word"), piece.start + recursive.end("word"))
        without = piece.text[:start] + " " * (end - start) + piece.text[end:]
        piece = Piece(without, piece.start, piece.end)
    node = scope.session.parse(piece)
    if not isinstance(node, exp.Create):
        raise err.Unsupported("This form of CREATE is not supported.", span_of(node))
    use(node)
    match (node.kind or "").upper():
        case "TABLE":
            return _create_table(node, scope)
        case "VIEW":
            return _create_view(node, piece, scope, recursive is not None)
        case "INDEX":
            return create_index(node, piece, scope)
        case kind:
            raise err.Unsupported(
                f"CREATE {kind} is not supported; there are TABLE, VIEW and INDEX.",
                span_of(node.this),
            )


def _create_table(node: exp.Create, scope: Scope) -> st.CreateTable:
    if_there = what_if_there(node.args.get("replace"), node.args.get("exists"), span_of(node))
    empty, temporary = _properties(node)
    name, elements = _target_name(node.this, scope, temporary)
    query = node.args.get("expression")
    if query is not None:
        plan = _renamed(scope.bind_query(query), identifiers(elements), node)
        if empty:
            plan = Limit(plan, 0, 0)
        columns = tuple((c.name, c.type) for c in plan.columns)
        return st.CreateTable(name, columns, st.Query(plan), if_there)
    reader = RulesReader(name, scope)
    columns = tuple(reader.column(e) for e in elements if isinstance(e, exp.ColumnDef))
    for element in elements:
        if not isinstance(element, exp.ColumnDef):
            reader.of_table(element)
    if not columns:
        raise err.ParseError(
            f'The table "{name}" needs columns in parentheses or a query behind AS.',
            span_of(node.this),
        )
    seen: set[str] = set()
    for column_name, _ in columns:
        if column_name.lower() in seen:
            raise err.InvalidQuery(
                f'The table "{name}" has two columns "{column_name}".', span_of(node.this)
            )
        seen.add(column_name.lower())
    columns, generated = generated_columns(reader.generated, columns, name, scope)
    rules = dataclasses.replace(reader.rules(columns), generated=generated)
    return st.CreateTable(name, columns, None, if_there, rules)


def _target_name(
    node: exp.Expr, scope: Scope, temporary: bool
) -> tuple[ObjectName, list[exp.Expr]]:
    """Return the name of `main.t (a, b)` and what stands in the parentheses."""
    if not isinstance(node, exp.Schema):
        return new_name(node, scope, temporary), []
    use(node)
    return new_name(node.this, scope, temporary), node.expressions


def _properties(node: exp.Create) -> tuple[bool, bool]:
    """Read WITH [NO] DATA and TEMP; returns whether the data are to be left out, and whether the object ends with the connection."""
    clause = node.args.get("properties")
    if clause is None:
        return False, False
    use(clause)
    empty = temporary = False
    for item in clause.expressions:
        if isinstance(item, exp.TemporaryProperty | exp.WithDataProperty):
            use(item)
        temporary = temporary or isinstance(item, exp.TemporaryProperty)
        empty = empty or bool(isinstance(item, exp.WithDataProperty) and item.args.get("no"))
    return empty, temporary


def _renamed(plan: Logical, names: list[str], node: exp.Expr) -> Logical:
    """Return `plan` with `names` for its first columns, and no name twice."""
    if len(names) > len(plan.columns):
        raise err.InvalidQuery(
            f"The query has {len(plan.columns)} columns and {len(names)} names are given.",
            span_of(node.this),
        )
    new = distinct_names([*names, *(c.name for c in plan.columns[len(names) :])])
    if new == [c.name for c in plan.columns]:
        return plan
    items = tuple(
        (c if c.name == name else new_column(name, c.type), ColumnRef(c))
        for name, c in zip(new, plan.columns, strict=True)
    )
    return Project(plan, items)


def _create_view(node: exp.Create, piece: Piece, scope: Scope, recursive: bool) -> st.CreateView:
    """Keep the text behind AS; it is bound here as well, so that its errors show at once."""
    empty, temporary = _properties(node)
    name, elements = _target_name(node.this, scope, temporary)
    columns = tuple(identifiers(elements))
    if empty:
        raise err.ParseError("WITH NO DATA belongs to CREATE TABLE.", span_of(node.this))
    query = node.args.get("expression")
    if query is None:
        raise err.ParseError("CREATE VIEW needs a query behind AS.", span_of(node.this))
    if query.find(exp.Placeholder) is not None:
        raise err.Unsupported("A view cannot have parameters.", span_of(query))
    target = span_of(node.this)
    assert target is not None
    behind = re.compile(r".*?\bas\b\s*", re.IGNORECASE | re.DOTALL).match(piece.text, target.end)
    assert behind is not None
    text = piece.text[behind.end() : piece.end].strip()
    if recursive and not columns:
        raise err.ParseError("CREATE RECURSIVE VIEW needs names of its columns: v (n) AS.", target)
    if recursive:
        own, shown = quoted_name(name), ", ".join(map(quoted_name, columns))
        text = f"WITH RECURSIVE {own} ({shown}) AS ({text}) SELECT {shown} FROM {own}"
        use_all(query)
        query = scope.session.parse(Piece(text, 0, len(text)))
        mark(query, err.ViewText(str(name), text))
    _renamed(scope.bind_query(query), list(columns), node)
    if_there = what_if_there(node.args.get("replace"), node.args.get("exists"), target)
    return st.CreateView(name, text, columns, if_there)


def drop(piece: Piece, scope: Scope) -> st.Statement:
    node = scope.session.parse(piece)
    assert isinstance(node, exp.Drop)
    use(node)
    kind = str(node.args["kind"]).upper()
    if kind == "INDEX":
        return drop_index(node)
    if kind not in ("TABLE", "VIEW"):
        raise err.Unsupported(f"DROP {kind} is not supported; there are TABLE and VIEW.", None)
    tables = node.args.get("tables") or [node.this]
    if len(tables) > 1:
        raise err.Unsupported("DROP takes one name.", span_of(tables[1]))
    name = table_name(tables[0], scope)
    exists = bool(node.args.get("exists"))
    return st.Drop("table" if kind == "TABLE" else "view", name, exists)


def create_index(node: exp.Create, piece: Piece, scope: Scope) -> st.CreateIndex:
    """Bind CREATE [UNIQUE] INDEX name ON table (column, ...); expressions are checked, and take no part in UNIQUE."""
    index = node.this
    table = index.args.get("table")
    if table is None or index.this is None:
        raise err.ParseError(
            "CREATE INDEX takes a name and a table: CREATE INDEX name ON table (column).",
            span_of(index),
        )
    target = target_table(table, scope)
    use(index, index.this)
    params = index.args.get("params")
    items = () if params is None else params.args.get("columns") or ()
    if not items:
        raise err.ParseError("CREATE INDEX takes columns: ON table (column).", span_of(index))
    use(params)
    if (method := params.args.get("using")) is not None:
        _check_method(method)
    is_unique = bool(node.args.get("unique"))
    columns, shown = _columns(items, _texts(piece), target, is_unique, scope)
    made = TableIndex(index.name, tuple(columns), is_unique, tuple(shown))
    rules = rules_of(target)
    rules = replace(rules, indexes=(*rules.indexes, made))
    kept = tuple(st.AlteredColumn(name, kind, name) for name, kind in target.fields)
    rows = StandIn(target.name, target.fields)
    change = st.AlterTable(target.name, target.name, kept, rules, rows)
    return st.CreateIndex(
        change, index.name, what_if_there(None, node.args.get("exists"), span_of(node))
    )


def _check_method(method: exp.Expr) -> None:
    if method.name.lower() != "art":
        raise err.Unsupported(
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
                hint = err.nearest(column.name, list(spelled.values()))
                raise err.UnknownColumn(
                    f'The table "{table.name}" has no column "{column.name}".{hint}',
                    span_of(column),
                )
        if isinstance(inner, exp.Column):
            columns.append(spelled[inner.name.lower()])
            shown.append(columns[-1])
        elif is_unique:
            raise err.Unsupported(
                "A UNIQUE INDEX is over columns: add a generated column with the expression.",
                span_of(inner),
            )
        else:
            inside.bind(inner)
            shown.append(stored_text(text).shown)
        use_all(item)
    if len(set(columns)) < len(columns):
        raise err.InvalidQuery("An index has each column once.", span_of(items[0]))
    if is_unique and any(rules_of(table).is_generated(name) for name in columns):
        raise err.CatalogError("A generated column takes no key.", span_of(items[0]))
    return columns, shown


def drop_index(node: exp.Drop) -> st.DropIndex:
    """Bind DROP INDEX [IF EXISTS] [schema.]name."""
    named = (node.args.get("tables") or [node.this])[0]
    use_all(node)
    return st.DropIndex(tuple(part.name for part in named.parts), bool(node.args.get("exists")))


_KINDS: dict[str, st.Commented] = {
    "TABLE": "relation",
    "VIEW": "relation",
    "COLUMN": "relation",
    "MACRO": "macro",
    "FUNCTION": "macro",
    "TYPE": "type",
}
_FORM = "COMMENT ON TABLE, VIEW, COLUMN, MACRO or TYPE name IS 'text' or NULL"


def comment(piece: Piece, scope: Scope) -> st.CommentOn:
    """Bind COMMENT ON kind name IS text; the last part of the name of a COLUMN is the column's."""
    words = StatementWords(piece, _FORM)
    words.expect("COMMENT", "ON")
    word = words.name().upper()
    if word not in _KINDS:
        raise err.Unsupported(
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
            raise err.ParseError(
                "COMMENT ON COLUMN takes the name of a table before that of the column: t.a.", place
            )
        parts = tuple(around)
    catalog = scope.session.catalog
    if kind == "relation" and catalog.located(parts) is None:
        name = ".".join(parts)
        raise err.UnknownName(
            f'There is no table or view "{name}".{err.nearest(name, catalog.names())}', place
        )
    located = catalog.located(parts) if kind == "relation" else None
    if column is not None and located is not None and catalog.view(located) is not None:
        column = _of_view(parts, column, scope)
    return st.CommentOn(kind, parts, column, text)


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
        hint = err.nearest(column, names)
        raise err.UnknownColumn(f'The view "{parts[-1]}" has no column "{column}".{hint}')
    return found

"""CREATE, INSERT and DROP."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from fuseline.errors import (
    CatalogError,
    FuselineError,
    InvalidQuery,
    ParseError,
    UnknownName,
    Unsupported,
    nearest,
)
from fuseline.plan import infer
from fuseline.plan.expr import Column, ColumnRef, Expr, Literal, new_column
from fuseline.plan.logical import CatalogTable, Limit, Logical, Project
from fuseline.plan.statements import (
    CreateTable,
    CreateView,
    Drop,
    Insert,
    NoOperation,
    Query,
    Statement,
)
from fuseline.plan.types import DataType
from fuseline.sql.binding.bind_query import bind_values
from fuseline.sql.binding.function_names import data_type
from fuseline.sql.parsing.pieces import span_of

from ..binding.bind_table import unique_names
from ..binding.scope import SCHEMAS, Scope
from ..parsing.pieces import Piece
from ..parsing.unread import use, use_all


def create(piece: Piece, scope: Scope) -> Statement:
    node = scope.session.parse(piece)
    if not isinstance(node, exp.Create):
        raise Unsupported("This form of CREATE is not supported.", span_of(node))
    use(node)
    match (node.kind or "").upper():
        case "TABLE":
            return _create_table(node, scope)
        case "VIEW":
            return _create_view(node, piece, scope)
        case "INDEX":
            return _create_index(node, scope)
        case kind:
            raise Unsupported(
                f"CREATE {kind} is not supported; there are TABLE, VIEW and INDEX.",
                span_of(node.this),
            )


def _create_index(node: exp.Create, scope: Scope) -> NoOperation:
    """Check the names of an index, which changes no answer."""
    index = node.this
    table = index.args.get("table")
    if table is None:
        raise ParseError("CREATE INDEX takes a table: ... ON table (column).", span_of(index))
    fields = {name.lower() for name, _ in _target(table, scope).fields}
    for column in index.find_all(exp.Column):
        if column.name.lower() not in fields:
            raise UnknownName(
                f'The table "{table.name}" has no column "{column.name}".', span_of(column)
            )
    use(index)
    if index.this is not None:
        use(index.this)
    params = index.args.get("params")
    if params is not None:
        use(params)
        for column in params.args.get("columns") or ():
            use_all(column)
    return NoOperation()


def _create_table(node: exp.Create, scope: Scope) -> CreateTable:
    replace, if_not_exists = bool(node.args.get("replace")), bool(node.args.get("exists"))
    name, elements = _target_name(node.this)
    empty = _properties(node)
    query = node.args.get("expression")
    if query is not None:
        plan = _renamed(scope.bind_query(query), _identifiers(elements), node)
        if empty:
            plan = Limit(plan, 0, 0)
        columns = tuple((c.name, c.type) for c in plan.columns)
        return CreateTable(name, columns, Query(plan), replace, if_not_exists)
    columns = tuple(_column_definition(e) for e in elements if isinstance(e, exp.ColumnDef))
    for element in elements:
        if not isinstance(element, exp.ColumnDef | exp.PrimaryKey | exp.UniqueColumnConstraint):
            raise Unsupported("This table constraint is not supported.", span_of(element))
        if not isinstance(element, exp.ColumnDef):
            _check_key(element, columns)
    if not columns:
        raise ParseError(
            f'The table "{name}" needs columns in parentheses or a query behind AS.',
            span_of(node.this),
        )
    if sum(1 for _ in node.this.find_all(exp.PrimaryKey, exp.PrimaryKeyColumnConstraint)) > 1:
        raise InvalidQuery(f'The table "{name}" has two primary keys.', span_of(node.this))
    seen: set[str] = set()
    for column_name, _ in columns:
        if column_name.lower() in seen:
            raise InvalidQuery(
                f'The table "{name}" has two columns "{column_name}".', span_of(node.this)
            )
        seen.add(column_name.lower())
    return CreateTable(name, columns, None, replace, if_not_exists)


def _check_key(node: exp.Expr, columns: Sequence[tuple[str, DataType]]) -> None:
    """Check the names in PRIMARY KEY (a, b) and UNIQUE (a, b), which are not enforced."""
    names = {name.lower() for name, _ in columns}
    for column in node.find_all(exp.Identifier):
        if column.name.lower() not in names:
            raise UnknownName(f'There is no column "{column.name}" here.', span_of(column))
    use(node)
    if isinstance(node, exp.PrimaryKey):
        for column in node.expressions:
            use_all(column)
        if node.args.get("include") is not None:  # sqlglot sets an empty one for each key
            use(node.args["include"])
    elif node.this is not None:
        use_all(node.this)


def _target_name(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    """Return the name of `main.t (a, b)` and what stands in the parentheses."""
    if not isinstance(node, exp.Schema):
        return _table_name(node), []
    use(node)
    return _table_name(node.this), node.expressions


def _identifiers(elements: Sequence[exp.Expr]) -> list[str]:
    """Return a list of column names, in which nothing else may stand."""
    for element in elements:
        if not isinstance(element, exp.Identifier):
            raise InvalidQuery("Names of columns alone can stand here.", span_of(element))
        use(element)
    return [element.name for element in elements]


def _properties(node: exp.Create) -> bool:
    """Read TEMP, which is what all tables are, and WITH [NO] DATA; returns whether the data are to be left out."""
    clause = node.args.get("properties")
    if clause is None:
        return False
    use(clause)
    empty = False
    for item in clause.expressions:
        if isinstance(item, exp.TemporaryProperty | exp.WithDataProperty):
            use(item)
        empty = empty or bool(isinstance(item, exp.WithDataProperty) and item.args.get("no"))
    return empty


def _column_definition(node: exp.ColumnDef) -> tuple[str, DataType]:
    """Return name and type; constraints are accepted where no data can break them, and keys, which nothing reads."""
    use(node, node.this)
    for constraint in node.args.get("constraints") or ():
        if not isinstance(constraint, exp.ColumnConstraint):
            raise Unsupported("This is no constraint.", span_of(constraint))
        kind = constraint.kind
        harmless = isinstance(
            kind,
            exp.PrimaryKeyColumnConstraint
            | exp.NotNullColumnConstraint
            | exp.UniqueColumnConstraint,
        )
        no_default = isinstance(kind, exp.DefaultColumnConstraint) and isinstance(
            kind.this, exp.Null
        )
        if not harmless and not no_default:
            raise Unsupported(
                f'This constraint on the column "{node.name}" is not supported.', span_of(node)
            )
        use(constraint, kind)
        if no_default:
            use(kind.this)
    if node.kind is None:
        raise ParseError(f'The column "{node.name}" needs a type.', span_of(node))
    try:
        return node.name, data_type(node.kind)
    except FuselineError as error:
        error.span = error.span or span_of(node)
        raise


def _renamed(plan: Logical, names: list[str], node: exp.Expr) -> Logical:
    """Return `plan` with `names` for its first columns, and no name twice."""
    if len(names) > len(plan.columns):
        raise InvalidQuery(
            f"The query has {len(plan.columns)} columns and {len(names)} names are given.",
            span_of(node.this),
        )
    new = unique_names([*names, *(c.name for c in plan.columns[len(names) :])])
    if new == [c.name for c in plan.columns]:
        return plan
    items = tuple(
        (c if c.name == name else new_column(name, c.type), ColumnRef(c))
        for name, c in zip(new, plan.columns, strict=True)
    )
    return Project(plan, items)


def _table_name(node: exp.Expr) -> str:
    assert isinstance(node, exp.Table)
    schema = tuple(part.name.lower() for part in node.parts[:-1])
    if schema and schema not in SCHEMAS:
        shown = ".".join(part.name for part in node.parts[:-1])
        raise UnknownName(f'There is no schema "{shown}": all tables are in main.', span_of(node))
    use(node, *node.parts)
    return node.name


def _create_view(node: exp.Create, piece: Piece, scope: Scope) -> CreateView:
    """Keep the text behind AS; it is bound here as well, so that its errors show at once."""
    name, elements = _target_name(node.this)
    columns = tuple(_identifiers(elements))
    if _properties(node):
        raise ParseError("WITH NO DATA belongs to CREATE TABLE.", span_of(node.this))
    query = node.args.get("expression")
    if query is None:
        raise ParseError("CREATE VIEW needs a query behind AS.", span_of(node.this))
    if query.find(exp.Placeholder) is not None:
        raise Unsupported("A view cannot have parameters.", span_of(query))
    _renamed(scope.bind_query(query), list(columns), node)
    target = span_of(node.this)
    assert target is not None
    behind = re.compile(r".*?\bas\b\s*", re.IGNORECASE | re.DOTALL).match(piece.text, target.end)
    assert behind is not None
    text = piece.text[behind.end() : piece.end].strip()
    replace, if_not_exists = bool(node.args.get("replace")), bool(node.args.get("exists"))
    return CreateView(name, text, columns, replace, if_not_exists)


def insert(piece: Piece, scope: Scope) -> Insert:
    node = scope.session.parse(piece)
    assert isinstance(node, exp.Insert)
    use(node)
    for key, what in (("conflict", "ON CONFLICT"), ("returning", "RETURNING")):
        if node.args.get(key):
            raise Unsupported(f"INSERT with {what} is not supported.", span_of(node.args[key]))
    if node.args.get("alternative") or node.args.get("overwrite"):
        raise Unsupported("INSERT OR REPLACE is not supported.", span_of(node.this))
    schema = node.this if isinstance(node.this, exp.Schema) else None
    target = node.this.this if schema else node.this
    table = _target(target, scope)
    if schema is not None:
        use(schema)
    query = node.expression
    if query is None or isinstance(query, exp.Null):
        raise Unsupported("INSERT needs VALUES or a query.", span_of(target))
    with_ = node.args.get("with_")
    if with_ is not None:
        query.set("with_", with_)
    names = _identifiers(schema.expressions) if schema else None
    if isinstance(query, exp.Values) and not node.args.get("by_name"):
        columns = _target_columns(table, names, node)
        plan = bind_values(query, scope, [data_type for _, data_type in columns])
    else:
        plan = scope.bind_query(query)
        names = [c.name for c in plan.columns] if node.args.get("by_name") else names
        columns = _target_columns(table, names, node)
    if len(plan.columns) != len(columns):
        raise InvalidQuery(
            f'The table "{table.name}" takes {len(columns)} columns here and is given {len(plan.columns)}.',
            span_of(query),
        )
    return Insert(
        table.name, tuple(n for n, _ in table.fields), Query(_as_rows(plan, columns, table))
    )


def _target(node: exp.Expr, scope: Scope) -> CatalogTable:
    name = _table_name(node)
    table = scope.session.catalog.table(name)
    if table is None and scope.session.catalog.view(name) is not None:
        raise CatalogError(f'"{name}" is a view: insert into its tables.', span_of(node))
    if table is None:
        hint = nearest(name, scope.session.catalog.names())
        raise UnknownName(f'There is no table "{name}".{hint}', span_of(node))
    return table


def _target_columns(
    table: CatalogTable, names: list[str] | None, node: exp.Insert
) -> list[tuple[str, DataType]]:
    """Return the columns of the table that are given values, in the order of the query."""
    if names is None:
        return list(table.fields)
    fields = {name.lower(): (name, data_type) for name, data_type in table.fields}
    columns = []
    for name in names:
        if name.lower() not in fields:
            hint = nearest(name, [n for n, _ in table.fields])
            raise UnknownName(
                f'The table "{table.name}" has no column "{name}".{hint}', span_of(node.this)
            )
        columns.append(fields[name.lower()])
    if len(set(columns)) < len(columns):
        raise InvalidQuery("INSERT names a column twice.", span_of(node.this))
    return columns


def _as_rows(plan: Logical, columns: list[tuple[str, DataType]], table: CatalogTable) -> Logical:
    """Return rows of the table: each value cast, NULL in the columns that are given none."""
    given: Mapping[str, Column] = {
        name: column for (name, _), column in zip(columns, plan.columns, strict=True)
    }
    items: list[tuple[Column, Expr]] = []
    for name, target in table.fields:
        column = given.get(name)
        value: Expr = Literal(None, target) if column is None else ColumnRef(column)
        items.append((new_column(name, target), infer.cast(value, target)))
    return Project(plan, tuple(items))


def drop(piece: Piece, scope: Scope) -> Statement:
    node = scope.session.parse(piece)
    assert isinstance(node, exp.Drop)
    use(node)
    kind = str(node.args["kind"]).upper()
    if kind == "INDEX":
        use_all(node)
        return NoOperation()
    if kind not in ("TABLE", "VIEW"):
        raise Unsupported(f"DROP {kind} is not supported; there are TABLE and VIEW.", None)
    tables = node.args.get("tables") or [node.this]
    if len(tables) > 1:
        raise Unsupported("DROP takes one name.", span_of(tables[1]))
    name = _table_name(tables[0])
    exists = bool(node.args.get("exists"))
    return Drop("table" if kind == "TABLE" else "view", name, exists)

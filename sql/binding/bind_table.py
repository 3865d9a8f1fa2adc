"""One item of FROM: a table, view, CTE, file, table function, VALUES list or subquery."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial

from sqlglot import exp

from fuseline import errors as err
from fuseline.catalog import TableFunction, View
from fuseline.plan.changes.catalog_objects import MEMORY, ObjectName, SchemaPlace
from fuseline.plan.composed.json_calls import ENTRY_TABLES
from fuseline.plan.composed.sampling import ROW_ID, with_ordinality, with_row_ids
from fuseline.plan.copies import fresh
from fuseline.plan.expr import Column, ColumnRef, new_column
from fuseline.plan.files.read_options import TABLE_FUNCTIONS
from fuseline.plan.logical import Aggregate, CatalogTable, CommonScan, Logical, Project, Scan
from fuseline.plan.text.quoted_name import distinct_names
from fuseline.plan.types import DataType
from fuseline.sql.parsing.pieces import mark, span_of

from ..parsing.known_calls import MAIN
from ..parsing.pieces import split
from ..parsing.unread import use, use_all
from .bind_files import FILES_BY_NAME, file_function, file_of_path, option_value
from .bind_unnest import bind_unnested
from .columns_chosen import copied
from .constants.parameters import Parameters
from .draws.volatile import sampled
from .macros import expanded, macro_of
from .named_queries import RECURRING, BoundQuery, named_plan
from .relations.about_tables import bind_about
from .relations.bind_made_rows import MADE_ROWS, bind_entries, bind_made_rows, bind_series
from .relations.bind_pivot import bind_pivot
from .relations.bind_recursive import bind_recursive
from .relations.bind_unpivot import bind_unpivot
from .scope import Cte, Relation, Scope, Session, Source

_MAX_VIEW_DEPTH = 100


def bind_table(node: exp.Expr, around: Scope) -> Source:
    """Bind an item of FROM; `around` has the tables before it, for LATERAL."""
    if node.args.get("when"):
        raise err.Unsupported("AT is not supported.", span_of(node))
    source = _bind_rows(node, around)
    sample = node.args.get("sample")
    if sample is None:
        return source
    return dataclasses.replace(source, plan=sampled(source.plan, sample, around))


def _bind_rows(node: exp.Expr, around: Scope) -> Source:
    if node.args.get("pivots"):
        return _bind_pivots(node, around)
    use(node)
    match node:
        case exp.Subquery(this=exp.Describe() | exp.Summarize() as about):
            plan = bind_about(about, around)
        case exp.Unnest() | exp.Lateral(this=exp.Unnest()):
            return bind_unnested(node, around)
        case exp.Lateral(this=exp.Subquery() as query):
            plan = around.bind_query(query)
        case exp.Subquery() | exp.Values():
            plan = around.bind_query(node)
        case exp.Table(this=exp.Identifier()):
            return _bind_name(node, around)
        case exp.Table(this=exp.Values() as values):  # within a parenthesised join
            plan = around.bind_query(values)
        case exp.Table(this=exp.Expr() as function) | exp.Lateral(this=exp.Func() as function):
            return _bind_function(node, function, around)
        case _:
            raise err.Unsupported(f"{node.key.upper()} in FROM is not supported.", span_of(node))
    return named(plan, _unique_names(plan.columns), node, None)


def _bind_pivots(node: exp.Expr, around: Scope) -> Source:
    """Bind `table PIVOT (...)` or `table UNPIVOT (...)`, which an alias of its own may follow."""
    match node.args["pivots"]:
        case [*before, exp.Pivot() as pivot]:
            table = copied(node)
        case _:
            raise err.Unsupported("PIVOT is not supported here.", span_of(node))
    table.set("pivots", table.args["pivots"][:-1] or None)
    if before:
        use_all(*before)
        table = exp.Subquery(this=exp.Select(expressions=[exp.Star()], from_=exp.From(this=table)))
    use(node)
    for part in node.iter_expressions():
        if part is not pivot:
            use_all(part)  # the copy is bound
    binder = bind_unpivot if pivot.args.get("unpivot") else bind_pivot
    plan = binder(pivot, table, around)
    return named(plan, _unique_names(plan.columns), pivot, None)


def named(
    plan: Logical,
    columns: Sequence[tuple[str, Column]],
    node: exp.Expr,
    default: str | None,
    *,
    place: SchemaPlace | None = None,
) -> Source:
    """Return `plan` as one relation under the alias of `node`, its columns renamed by the alias's list; WITH ORDINALITY numbers its rows."""
    if node.args.get("ordinality"):
        plan, number = with_ordinality(plan)
        columns = [*columns, (number.name, number)]
    alias = node.args.get("alias")
    name = alias.name if alias is not None and alias.this is not None else default
    renamed: list[exp.Identifier] = (alias.args.get("columns") if alias is not None else None) or []
    if alias is not None:
        use(alias, *renamed, *([alias.this] if alias.this is not None else []))
    if len(renamed) > len(columns):
        raise err.InvalidQuery(
            f'The table "{name}" has {len(columns)} columns and is given {len(renamed)} names.',
            span_of(alias),
        )
    star = tuple(columns)
    if renamed:
        names = [identifier.name for identifier in renamed]
        plan, columns = _renamed(plan, columns, names)
        names += [column_name for column_name, _ in columns[len(names) :]]
        star = tuple((new, column) for new, (_, column) in zip(names, columns, strict=True))
    own = place if alias is None or alias.this is None else None
    return Source(plan, (Relation(name, star, place=own),), {}, star)


def _renamed(
    plan: Logical, columns: Sequence[tuple[str, Column]], names: Sequence[str]
) -> tuple[Logical, Sequence[tuple[str, Column]]]:
    """Give the columns that the root of `plan` makes their new names at once, so that plans and errors show those."""
    new = {
        column: dataclasses.replace(column, name=name)
        for name, (_, column) in zip(names, columns, strict=False)
    }
    renamed: Logical
    match plan:
        case Project(items=items):
            changed = tuple((c if e == ColumnRef(c) else new.get(c, c), e) for c, e in items)
            renamed = dataclasses.replace(plan, items=changed)
        case Aggregate(keys=keys, aggregates=aggregates):
            changed = tuple((c if e == ColumnRef(c) else new.get(c, c), e) for c, e in keys)
            calls = tuple((new.get(c, c), call) for c, call in aggregates)
            renamed = dataclasses.replace(plan, keys=changed, aggregates=calls)
        case CommonScan(made=own):
            renamed = dataclasses.replace(plan, made=tuple(new.get(c, c) for c in own))
        case _:
            return plan, columns
    made = {c: c for c in renamed.columns}
    return renamed, [(made[c].name, made[c]) for _, c in columns]


def _unique_names(columns: Sequence[Column]) -> list[tuple[str, Column]]:
    return list(zip(distinct_names([c.name for c in columns]), columns, strict=True))


def _bind_name(node: exp.Table, around: Scope) -> Source:
    name, parts = node.name, [part.name for part in node.parts]
    schema = tuple(part.lower() for part in parts[:-1])
    use(*node.parts)
    recurring = len(schema) == 1 and schema[0] == RECURRING
    cte = around.ctes.get(f"{RECURRING}\0{name.lower()}" if recurring else name.lower())
    if cte is not None and (recurring or not schema):
        return _bind_cte(cte, node)
    catalog, objects = around.session.catalog, around.session.objects
    if not schema and objects is not None and (given := objects.given(name)) is not None:
        return named(given, _unique_names(given.columns), node, name)
    located = catalog.located(parts, around.session.home)
    if located is not None:
        table = catalog.table(located)
        if table is not None:
            return _of_table(table, node, name, around, place=located.place)
        view = catalog.view(located)
        if view is not None:
            return _bind_view(view, node, around, located)
    within = schema[1:] if schema[:1] in (("memory",), ("system",)) and len(schema) > 1 else schema
    if len(within) < 2:
        view = catalog.system_view(name, within[0] if within else None)
        if view is not None:
            return _bind_view(view, node, around, ObjectName(view.name, SchemaPlace(MEMORY)))
    found = None if schema else _variable(name, node, around)
    if isinstance(found, Logical):
        return named(found, _unique_names(found.columns), node, name)
    if found is not None:
        return _of_table(found, node, name, around)
    path = ".".join(part.name for part in node.parts)
    files = file_of_path(path, around, node)
    if files is not None:
        default = path.rstrip("/").rpartition("/")[2].partition(".")[0]
        return _of_table(files.table, node, default, around, told=files.told)
    raise _unknown_table(path, node, around)


def _of_table(
    table: CatalogTable,
    node: exp.Expr,
    default: str,
    around: Scope,
    *,
    place: SchemaPlace | None = None,
    told: Sequence[str] = (),
) -> Source:
    """Scan a table, of which * does not show the columns `told`, and whose `unsupported` columns, if any, fail only where a query names them; DESCRIBE runs none and has them all."""
    unsupported: Mapping[str, DataType] = getattr(table, "unsupported", {})
    if around.session.describes and unsupported:
        fields = getattr(table, "all_fields")  # noqa: B009 - it has both
        return named(*_scan(table, fields), node, default, place=place)
    plan, columns = _scan(table, table.fields)
    also = tuple(each for each in columns if each[0] in told)
    source = named(plan, columns[: len(columns) - len(also)], node, default, place=place)
    if also:
        relations = tuple(dataclasses.replace(r, also=also) for r in source.relations)
        source = dataclasses.replace(source, relations=relations)
    if place is not None and ROW_ID in around.session.text.lower():
        source = _with_row_ids(source)
    if not unsupported:
        return source
    refused = {name.lower(): (name, data_type) for name, data_type in unsupported.items()}
    relations = tuple(dataclasses.replace(r, refused=refused) for r in source.relations)
    return dataclasses.replace(source, relations=relations)


def _with_row_ids(source: Source) -> Source:
    """Number the rows of a table from 0 on, as `rowid`, which * does not show; a column of that name goes before."""
    relation = source.relations[0]
    if ROW_ID in relation.by_name:
        return source
    plan, made = with_row_ids(source.plan)
    known = dataclasses.replace(relation, also=((ROW_ID, made),))
    return dataclasses.replace(source, plan=plan, relations=(known,))


def _scan(
    table: CatalogTable, fields: Sequence[tuple[str, DataType]]
) -> tuple[Scan, list[tuple[str, Column]]]:
    sources = tuple(name for name, _ in fields)
    made = tuple(new_column(name, data_type) for name, data_type in fields)
    return Scan(table, made, sources), list(zip(sources, made, strict=True))


def _bind_cte(cte: Cte, node: exp.Table) -> Source:
    cte.use()
    again = cte.scope.session.named.again(node)
    bind = (
        partial(bind_recursive, cte)
        if cte.reads_itself
        else partial(cte.scope.bind_query, cte.query)
    )
    plan = named_plan(cte.name, cte.bound, bind, again=again)
    columns = _unique_names(plan.columns)
    if len(cte.columns) > len(columns):
        raise err.InvalidQuery(
            f'The table "{cte.name}" has {len(columns)} columns and is given {len(cte.columns)} names.',
            span_of(cte.query),
        )
    return _given_names(plan, columns, cte.columns, node)


def _bind_view(view: View, node: exp.Table, around: Scope, located: ObjectName) -> Source:
    """Bind a view's own text, where no name of the query around it is visible."""
    name, text, outer = str(view.name), view.text, around.session
    if view.plan is not None:
        plan, _ = fresh(view.plan)
        return named(plan, _unique_names(plan.columns), node, node.name, place=located.place)
    key = ".".join((*located.place, name.lower()))
    if key in outer.views or len(outer.views) > _MAX_VIEW_DEPTH:
        raise err.InvalidQuery(f'The view "{name}" reads itself.', span_of(node))
    session = dataclasses.replace(
        outer,
        parameters=Parameters(()),
        text=text,
        views=(*outer.views, key),
        home=located.place,
    )

    def bind() -> Logical:
        return Scope(session).bind_query(view.tree(partial(_parse_view, view.name, session)))

    bound = outer.named.views.setdefault(key, BoundQuery())
    try:
        plan = named_plan(name, bound, bind, again=outer.named.again(node))
    except err.FuselineError as error:
        if error.span is None or error.span.view is None:
            error.message += f' (in the view "{name}")'
        error.with_text(text)
        raise
    columns = _unique_names(plan.columns)
    return _given_names(plan, columns, view.columns, node, place=located.place)


def _parse_view(name: str, session: Session, text: str) -> exp.Expr:
    tree = session.parse(next(split(text)))
    mark(tree, err.ViewText(name, text))
    return tree


def _given_names(
    plan: Logical,
    columns: list[tuple[str, Column]],
    names: Sequence[str],
    node: exp.Table,
    *,
    place: SchemaPlace | None = None,
) -> Source:
    """Apply the column list of a WITH entry or view, then that of the alias."""
    if names:
        plan, renamed = _renamed(plan, columns, names)
        given = [(new, column) for new, (_, column) in zip(names, renamed, strict=False)]
        columns = [*given, *renamed[len(given) :]]
    return named(plan, columns, node, node.name, place=place)


def _variable(name: str, node: exp.Table, around: Scope) -> CatalogTable | Logical | None:
    objects = around.session.objects
    if objects is None:
        return None
    try:
        return objects.find(name)
    except err.FuselineError as error:
        error.at(span_of(node.this))
        raise


def _unknown_table(name: str, node: exp.Table, around: Scope) -> err.UnknownName:
    objects = around.session.objects
    known = [*around.session.catalog.names(), *(cte.name for cte in around.ctes.values())]
    known += [] if objects is None else objects.names()
    near = err.nearest(name, known) if "." in name else err.suggestion(name, known)
    hint = near or f" {FILES_BY_NAME}" if "." in name else near
    return err.UnknownName(f'There is no table "{name}".{hint}', span_of(node.this))


def _bind_function(node: exp.Table | exp.Lateral, function: exp.Expr, around: Scope) -> Source:
    use(function, *([function.this] if isinstance(function.this, exp.Identifier) else ()))
    path = [part for key in ("catalog", "db") if (part := node.args.get(key)) is not None]
    schema = [part.name for part in path]
    macro = macro_of(function, around, True, schema)
    if macro is not None or [name.lower() for name in schema] in MAIN:
        use(*path)
    elif schema:
        raise err.UnknownName(
            f'There is no such table function in "{".".join(schema)}".', span_of(function)
        )
    if isinstance(function, exp.GenerateSeries):
        return bind_series(node, function, around, named)
    if macro is not None:
        plan = around.bind_query(expanded(macro, function, around))
        return named(plan, _unique_names(plan.columns), node, macro.name)
    name = function.sql_name() if isinstance(function, exp.Func) else function.key
    name = function.name if isinstance(function, exp.Anonymous) else name
    files = file_function(name, function, around)
    if files is not None:
        return _of_table(files.table, node, name, around, told=files.told)
    entries = bind_entries(name, function, around)
    if entries is not None:
        return named(*entries, node, name.lower())
    rows = bind_made_rows(name, function, around)
    if rows is not None:
        return named(rows, _unique_names(rows.columns), node, name.lower())
    catalog = around.session.catalog
    made = catalog.table_function(name)
    if made is None:
        known = [
            *TABLE_FUNCTIONS,
            "range",
            "generate_series",
            *ENTRY_TABLES,
            *MADE_ROWS,
            *catalog.table_functions(),
        ]
        raise err.Unsupported(
            f'There is no table function "{name}".{err.suggestion(name, known)}', span_of(function)
        )
    given = _argument(made, name, function, around)
    try:
        table = made.make(*given)
    except err.FuselineError as error:
        error.span = error.span or span_of(function)
        raise
    return _of_table(table, node, name, around)


def _argument(made: TableFunction, name: str, function: exp.Expr, around: Scope) -> list[str]:
    """Return the text in the parentheses of a table function, if it takes one."""
    scope = around.inside("a table function")
    given = [option_value(a, scope) for a in function.expressions]
    if not made.argument:
        if given:
            raise err.InvalidQuery(f"{name.lower()}() takes no arguments.", span_of(function))
        return []
    listed = given[0] if len(given) == 1 and isinstance(given[0], list) and made.several else given
    texts = [value for value in listed if isinstance(value, str)]
    if not texts or len(given) != 1 or len(texts) != len(listed):
        raise err.InvalidQuery(
            f"{name.lower()}() takes {made.argument}, as text.", span_of(function)
        )
    return texts

"""A query of any form to a logical plan: WITH, SELECT, VALUES, set operations, and their ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, NotByRows, ParseError, Unsupported
from fuseline.plan import infer
from fuseline.plan.expr import Expr, columns_of, new_column
from fuseline.plan.logical import Logical, Project, SetOperation, Values
from fuseline.plan.types import DataType
from fuseline.sql.binding.bind_literal import parameter_key
from fuseline.sql.binding.bind_order import bind_limit, bind_order, order_rows
from fuseline.sql.binding.bind_select import bind_select
from fuseline.sql.binding.bind_set_operation import bind_set_operation
from fuseline.sql.binding.relations.about_tables import bind_about
from fuseline.sql.binding.relations.bind_pivot import bind_pivot
from fuseline.sql.binding.relations.bind_recursive import reads
from fuseline.sql.binding.relations.bind_unpivot import bind_unpivot
from fuseline.sql.binding.scope import Cte, Relation, Scope, Source
from fuseline.sql.binding.udf.drawing_calls import find_draw
from fuseline.sql.parsing.pieces import span_of
from fuseline.sql.parsing.unread import use, use_all

CHANGES = (exp.Insert, exp.Update, exp.Delete)
WRITE = "write"  # in the `meta` of a WITH whose entries may change tables, what binds these


def bind_query(node: exp.Expr, around: Scope) -> Logical:
    """Return the plan of a query whose enclosing scope is `around`; its columns have the names of the result."""
    use(node)
    scope = with_entries(node, around.nested())
    match node:
        case exp.Select():
            return bind_select(node, scope)
        case exp.SetOperation():
            plan, names = bind_set_operation(node, scope)
            return _order(node, plan, names, scope)
        case exp.Values():
            plan = bind_values(node, scope)
        case exp.Pivot(this=exp.Expr() as table):
            binder = bind_unpivot if node.args.get("unpivot") else bind_pivot
            plan = binder(node, table, scope)
        case exp.Describe() | exp.Summarize():
            return bind_about(node, scope)
        case exp.Subquery(this=exp.Table()):
            raise ParseError("A query starts with SELECT, FROM or VALUES.", span_of(node))
        case exp.Subquery():
            if isinstance(node.this, exp.Describe | exp.Summarize):
                _check_whole(node)
            plan = bind_query(node.this, scope)
        case _:
            raise ParseError("A query starts with SELECT, FROM or VALUES.", span_of(node))
    return _order(node, plan, {}, scope)


def _check_whole(about: exp.Subquery) -> None:
    """DuckDB neither orders nor cuts `(describe t)`."""
    if any(about.args.get(clause) for clause in ("order", "limit", "offset")):
        raise ParseError(
            "DESCRIBE, SHOW and SUMMARIZE take no ORDER BY, LIMIT or OFFSET: put FROM before their parentheses.",
            span_of(about),
        )


def with_entries(node: exp.Expr, scope: Scope) -> Scope:
    """Return `scope` with the WITH entries of a query; each sees those before it, and hides tables of its name."""
    clause = node.args.get("with_")
    if clause is None:
        return scope
    use(clause)
    names: set[str] = set()
    for entry in clause.expressions:
        name = entry.alias
        if name.lower() in names:
            raise InvalidQuery(f'WITH names "{name}" twice.', span_of(entry.args["alias"]))
        names.add(name.lower())
        columns = tuple(column.name for column in entry.args["alias"].args.get("columns") or ())
        if scope.parameters.given:  # those of an entry that nobody reads count too
            found = entry.this.find_all(exp.Parameter, exp.Placeholder)
            scope.parameters.used.update(parameter_key(parameter) for parameter in found)
        recursive = bool(clause.args.get("recursive")) and reads(entry.this, name)
        keys = entry.args.get("key_expressions")
        if keys and not recursive:
            raise Unsupported(
                "USING KEY is supported in WITH RECURSIVE alone, of a query that reads itself.",
                span_of(entry.args["alias"]),
            )
        inside = with_entries(entry.this, scope) if recursive else scope
        cte = Cte(name, entry.this, columns, inside, reads_itself=recursive, keys=tuple(keys or ()))
        if isinstance(entry.this, CHANGES):
            if WRITE not in clause.meta:
                raise InvalidQuery(
                    "WITH changes tables only where it begins a query, INSERT, UPDATE or DELETE that is a statement of its own.",
                    span_of(entry.this) or span_of(entry.args["alias"]),
                )
            cte.use()
            cte.bound.plan = clause.meta[WRITE](entry.this, name, scope)
        scope = scope.changed(ctes={**scope.ctes, name.lower(): cte})
    return scope


def _order(node: exp.Expr, plan: Logical, names: dict[str, int], scope: Scope) -> Logical:
    """Apply ORDER BY and LIMIT of a query whose columns are all that they can read.

    `names` holds further names for the columns: ORDER BY of a set operation may use those of any branch.
    """
    order, limit = node.args.get("order"), bind_limit(node, scope)
    if order is not None:
        columns = tuple((column.name, column) for column in plan.columns)
        extra = tuple((name, plan.columns[i]) for name, i in names.items())
        source = Source(plan, (Relation(None, columns + extra),), {}, columns)
        places = {name.lower(): i for i, (name, _) in reversed(list(enumerate(columns)))}
        inside = scope.over(source).inside("ORDER BY")
        keys = bind_order(order, inside, plan.columns, places)
        return order_rows(plan, keys, limit)
    return order_rows(plan, (), limit)


def bind_values(
    node: exp.Values,
    scope: Scope,
    targets: Sequence[DataType] | None = None,
    defaults: Sequence[Callable[[], Expr]] = (),
) -> Logical:
    """Bind a list of rows, each column in the common type of its values, or cast to the types of a table's columns.

    `defaults` bind what DEFAULT stands for in each column.
    """
    use(node)
    place = scope.inside("VALUES")
    if targets is not None and scope.parameters.rows is not None:
        return _rows_of_parameters(node, place, targets)
    rows = [_bound_row(_row(row), place, defaults) for row in node.expressions]
    for row, tree in zip(rows, node.expressions, strict=True):
        if len(row) != len(rows[0]):
            raise InvalidQuery(
                f"This row of VALUES has {len(row)} columns and the first has {len(rows[0])}.",
                span_of(tree),
            )
    columns = list(zip(*rows, strict=True))
    if targets is None or len(targets) != len(columns):
        typed = [infer.unify(column) for column in columns]
    else:
        typed = [
            [infer.cast(value, target) for value in column]
            for column, target in zip(columns, targets, strict=True)
        ]
    made = tuple(new_column(f"col{i}", column[0].type) for i, column in enumerate(typed))
    new_rows = tuple(zip(*typed, strict=True))
    if all(_is_constant(value) for row in new_rows for value in row):
        return Values(made, new_rows)
    return _union_of_rows([c.name for c in made], new_rows)


def _rows_of_parameters(node: exp.Values, place: Scope, targets: Sequence[DataType]) -> Logical:
    """Bind one row of VALUES for all rows of parameters; raises `NotByRows` for several, for expressions over parameters and for draws.

    What an expression gives depends on the types of its values, which are the narrowest for each.
    """
    row = _row(node.expressions[0])
    if len(node.expressions) > 1 or any(
        value.find(exp.Parameter, exp.Placeholder) not in (None, value)
        or find_draw(value, place.session.catalog, exp.Rand) is not None
        or is_default(value)
        for value in row
    ):
        raise NotByRows
    with place.parameters.reading_rows() as scan:
        values = [place.bind(value) for value in row]
    if len(values) == len(targets):
        values = [infer.cast(v, target) for v, target in zip(values, targets, strict=True)]
    return Project(scan, tuple((new_column(f"col{i}", v.type), v) for i, v in enumerate(values)))


def _row(node: exp.Expr) -> list[exp.Expr]:
    if not isinstance(node, exp.Tuple):
        return [node]
    use(node)
    if not node.expressions:
        raise ParseError("Syntax error: a row of VALUES needs values.", span_of(node.parent))
    return node.expressions


def _bound_row(
    row: Sequence[exp.Expr], place: Scope, defaults: Sequence[Callable[[], Expr]]
) -> list[Expr]:
    found = []
    for i, value in enumerate(row):
        if i < len(defaults) and is_default(value):
            use_all(value)
            found.append(defaults[i]())
        else:
            found.append(place.bind(value))
    return found


def is_default(node: exp.Expr) -> bool:
    """Whether a value is the word DEFAULT, a variable or a column to sqlglot."""
    if isinstance(node, exp.Column):
        name = node.this
        return (
            len(node.parts) == 1 and name.name.lower() == "default" and not name.args.get("quoted")
        )
    return isinstance(node, exp.Var) and node.name.lower() == "default"


def _is_constant(value: Expr) -> bool:
    return not columns_of(value) and not value.subqueries


def _union_of_rows(names: list[str], rows: tuple[tuple[Expr, ...], ...]) -> Logical:
    """Return rows that read columns of an outer query or hold subqueries, which `Values` cannot."""
    plan: Logical | None = None
    for row in rows:
        items = tuple(
            (new_column(name, value.type), value) for name, value in zip(names, row, strict=True)
        )
        one: Logical = Project(Values((), ((),)), items)
        made = tuple(new_column(name, value.type) for name, value in zip(names, row, strict=True))
        plan = one if plan is None else SetOperation(plan, one, "union", True, made)
    assert plan is not None
    return plan

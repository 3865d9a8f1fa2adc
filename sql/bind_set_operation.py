"""UNION, INTERSECT and EXCEPT: branches cast to common types."""

from __future__ import annotations

from typing import Literal as OneOf

from sqlglot import exp

from fuseline.errors import InvalidQuery, TypeMismatch, Unsupported
from fuseline.plan import infer
from fuseline.plan.coercion import common_pair
from fuseline.plan.expr import Column, ColumnRef, Expr, Literal, new_column
from fuseline.plan.logical import Logical, Project, SetOperation
from fuseline.plan.types import NULL, VARCHAR, DataType

from .scope import Scope
from .spans import span_of
from .unread import use

_KINDS: dict[type[exp.SetOperation], OneOf["union", "intersect", "except"]] = {
    exp.Union: "union",
    exp.Intersect: "intersect",
    exp.Except: "except",
}


def bind_set_operation(node: exp.SetOperation, scope: Scope) -> tuple[Logical, dict[str, int]]:
    """Return the plan, and the lower-case names of the right branches' columns with their positions."""
    use(node)
    left, names = _branch(node.this, scope)
    right, more = _branch(node.expression, scope)
    if node.args.get("by_name"):
        if not isinstance(node, exp.Union):
            raise Unsupported("BY NAME is supported for UNION alone.", span_of(node))
        left, right = _by_name(left, right)
    if len(left.columns) != len(right.columns):
        raise InvalidQuery(
            f"The two sides of {node.key.upper()} have {len(left.columns)} and {len(right.columns)} columns: "
            "select the same number on both.",
            span_of(node.expression),
        )
    types = [
        _common(mine, theirs, _branch_item(node, i))
        for i, (mine, theirs) in enumerate(zip(left.columns, right.columns, strict=True))
    ]
    made = tuple(new_column(c.name, t) for c, t in zip(left.columns, types, strict=True))
    plan = SetOperation(
        _cast(left, types), _cast(right, types), _KINDS[type(node)], not node.args["distinct"], made
    )
    own = {column.name.lower() for column in made}
    for i, column in enumerate(right.columns):
        more.setdefault(column.name.lower(), i)
    names = {**more, **names}
    return plan, {name: i for name, i in names.items() if name not in own}


def _branch(node: exp.Expr, scope: Scope) -> tuple[Logical, dict[str, int]]:
    """Bind one side; a set operation without ORDER BY of its own also tells its branches' names."""
    bare = not any(node.args.get(key) for key in ("with_", "order", "limit", "offset"))
    if isinstance(node, exp.SetOperation) and bare:
        return bind_set_operation(node, scope)
    return scope.bind_query(node), {}


def _branch_item(node: exp.SetOperation, place: int) -> exp.Expr:
    """Return what makes column `place` of the right side, or that side when stars hide it."""
    branch = node.expression
    items = branch.expressions if isinstance(branch, exp.Select) else []
    return branch if place >= len(items) or branch.is_star else items[place]


def _common(left: Column, right: Column, node: exp.Expr) -> DataType:
    common = common_pair(left.type, right.type)
    if common is None and VARCHAR in (left.type, right.type):
        common = VARCHAR  # as in DuckDB, where every type can be shown as text
    if common is None:
        raise TypeMismatch(
            f'A set operation cannot combine "{left.name}" of type {left.type} with "{right.name}" of type {right.type}: '
            "add a CAST.",
            span_of(node),
        )
    return common


def _cast(plan: Logical, types: list[DataType]) -> Logical:
    if all(column.type == t for column, t in zip(plan.columns, types, strict=True)):
        return plan
    items = []
    for column, data_type in zip(plan.columns, types, strict=True):
        value: Expr = ColumnRef(column)
        if column.type == data_type:
            items.append((column, value))
        else:
            items.append((new_column(column.name, data_type), infer.cast(value, data_type)))
    return Project(plan, tuple(items))


def _by_name(left: Logical, right: Logical) -> tuple[Logical, Logical]:
    """Give both sides the columns of either, NULL where a side has none of that name."""
    names = {c.name.lower(): c.name for c in (*right.columns, *left.columns)}
    order = dict.fromkeys(c.name.lower() for c in (*left.columns, *right.columns))
    return tuple(  # type: ignore[return-value]
        _with_columns(side, [names[key] for key in order]) for side in (left, right)
    )


def _with_columns(plan: Logical, names: list[str]) -> Logical:
    own = {column.name.lower(): column for column in plan.columns}
    items: list[tuple[Column, Expr]] = []
    for name in names:
        column = own.get(name.lower())
        if column is None:
            items.append((new_column(name, NULL), Literal(None, NULL)))
        else:
            items.append((column, ColumnRef(column)))
    return Project(plan, tuple(items))

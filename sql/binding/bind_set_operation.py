"""UNION, INTERSECT and EXCEPT: branches cast to common types."""

from __future__ import annotations

from typing import Literal as OneOf

from sqlglot import exp

from fuseline.errors import InvalidQuery, ParseError, TypeMismatch, Unsupported
from fuseline.plan.casts import forced
from fuseline.plan.coercion import united_pair
from fuseline.plan.expr import Column, ColumnRef, Expr, Literal, new_column
from fuseline.plan.logical import Logical, Project, SetOperation
from fuseline.plan.types import NULL, DataType
from fuseline.sql.parsing.pieces import span_of

from ..parsing.unread import use
from .scope import Scope

_KINDS: dict[type[exp.SetOperation], OneOf["union", "intersect", "except"]] = {
    exp.Union: "union",
    exp.Intersect: "intersect",
    exp.Except: "except",
}


def bind_set_operation(node: exp.SetOperation, scope: Scope) -> tuple[Logical, dict[str, int]]:
    """Return the plan, and the lower-case names of the right branches' columns with their positions.

    A chain of equal operations leans to the left, by its length deep: it is walked by a loop, and a UNION of many becomes a balanced
    tree, which no later step finds deep.
    """
    chain, first = _chain(node)
    if isinstance(first, exp.Select) and not _is_bare(first) and not first.args.get("with_"):
        raise ParseError(
            "Syntax error: ORDER BY and LIMIT of one side of a set operation need parentheses.",
            span_of(node.expression),
        )
    union = _Union(*_branch(first, scope))
    for operation in reversed(chain):
        use(operation)
        union.add(operation, *_branch(operation.expression, scope))
    plan = union.plan()
    own = {column.name.lower() for column in plan.columns}
    return plan, {name: i for name, i in union.names.items() if name not in own}


def _chain(node: exp.SetOperation) -> tuple[list[exp.SetOperation], exp.Expr]:
    """Return the operations whose left sides are each other, the last first, and the leftmost branch."""
    chain, left = [node], node.this
    while isinstance(left, exp.SetOperation) and _is_bare(left):
        chain.append(left)
        left = left.this
    return chain, left


def _is_bare(node: exp.Expr) -> bool:
    return not any(node.args.get(key) for key in ("with_", "order", "limit", "offset"))


def _branch(node: exp.Expr, scope: Scope) -> tuple[Logical, dict[str, int]]:
    """Bind one side; a set operation without ORDER BY of its own also tells its branches' names."""
    if isinstance(node, exp.SetOperation) and _is_bare(node):
        return bind_set_operation(node, scope)
    return scope.bind_query(node), {}


class _Union:
    """What a chain makes so far: branches of one kind of UNION wait until another kind comes, and are cast to the types of all."""

    def __init__(self, first: Logical, names: dict[str, int]) -> None:
        self.names = names
        self._waiting = [first]
        self._types = first.columns  # with the names of the first
        self._kind: tuple[OneOf["union", "intersect", "except"], bool, bool] = (
            "union",
            True,
            False,
        )

    def add(self, node: exp.SetOperation, right: Logical, more: dict[str, int]) -> None:
        """Take the next operation and its right side."""
        by_name = bool(node.args.get("by_name"))
        if by_name and not isinstance(node, exp.Union):
            raise Unsupported("BY NAME is supported for UNION alone.", span_of(node))
        kind = _KINDS[type(node)], not node.args["distinct"], by_name
        if len(self._waiting) > 1 and (kind != self._kind or kind[0] != "union"):
            self.plan()
        if by_name:
            known = {column.name.lower(): column for column in self._types}
            for side in (*self._waiting, right):
                _refuse_two_of_a_name(side, node)
            *self._waiting, right = _by_name([*self._waiting, right])
            self._types = tuple(
                known.get(c.name.lower()) or new_column(c.name, NULL) for c in right.columns
            )
        if len(self._types) != len(right.columns):
            raise InvalidQuery(
                f"The two sides of {node.key.upper()} have {len(self._types)} and {len(right.columns)} columns: "
                "select the same number on both.",
                span_of(node.expression),
            )
        self._types = tuple(
            new_column(mine.name, _common(mine, theirs, _branch_item(node, i)))
            for i, (mine, theirs) in enumerate(zip(self._types, right.columns, strict=True))
        )
        self._waiting.append(right)
        self._kind = kind
        for i, column in enumerate(right.columns):
            more.setdefault(column.name.lower(), i)
        self.names = {**more, **self.names} if more.keys() - self.names.keys() else self.names

    def plan(self) -> Logical:
        """Combine what waits."""
        types = [column.type for column in self._types]
        parts = [_cast(part, types) for part in self._waiting]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [self._pair(*pair) for pair in pairs] + parts[len(parts) // 2 * 2 :]
        self._waiting, self._types = parts, parts[0].columns
        return parts[0]

    def _pair(self, left: Logical, right: Logical) -> Logical:
        made = tuple(new_column(c.name, c.type) for c in left.columns)
        return SetOperation(left, right, *self._kind[:2], made)


def _branch_item(node: exp.SetOperation, place: int) -> exp.Expr:
    """Return what makes column `place` of the right side, or that side when stars hide it."""
    branch = node.expression
    items = branch.expressions if isinstance(branch, exp.Select) else []
    return branch if place >= len(items) or branch.is_star else items[place]


def _common(left: Column, right: Column, node: exp.Expr) -> DataType:
    common = united_pair(left.type, right.type)
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
            items.append((new_column(column.name, data_type), forced(value, data_type)))
    return Project(plan, tuple(items))


def _by_name(sides: list[Logical]) -> list[Logical]:
    """Give all sides the columns of each, NULL where a side has none of that name; the first that has it spells it."""
    names: dict[str, str] = {}
    for side in sides:
        for column in side.columns:
            names.setdefault(column.name.lower(), column.name)
    return [_with_columns(side, list(names.values())) for side in sides]


def _refuse_two_of_a_name(side: Logical, node: exp.Expr) -> None:
    names: set[str] = set()
    for column in side.columns:
        if column.name.lower() in names:
            raise InvalidQuery(
                f'UNION BY NAME takes columns of different names, and "{column.name}" stands more than once.',
                span_of(node),
            )
        names.add(column.name.lower())


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

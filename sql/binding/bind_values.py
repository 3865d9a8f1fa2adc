"""VALUES: as a query, in FROM, and in INSERT."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fuseline.errors import InvalidQuery, ParseError
from fuseline.plan import infer
from fuseline.plan.expr import Expr, Subquery, columns_of, new_column
from fuseline.plan.logical import Logical, Project, SetOperation, Values
from fuseline.plan.node import walk
from fuseline.plan.types import DataType

from ..parsing.spans import span_of
from ..parsing.unread import use
from .scope import Scope


def bind_values(
    node: exp.Values, scope: Scope, targets: Sequence[DataType] | None = None
) -> Logical:
    """Bind a list of rows, each column in the common type of its values, or cast to the types of a table's columns."""
    use(node)
    place = scope.inside("VALUES")
    rows = [[place.bind(value) for value in _row(row)] for row in node.expressions]
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


def _row(node: exp.Expr) -> list[exp.Expr]:
    if not isinstance(node, exp.Tuple):
        return [node]
    use(node)
    if not node.expressions:
        raise ParseError("Syntax error: a row of VALUES needs values.", span_of(node.parent))
    return node.expressions


def _is_constant(value: Expr) -> bool:
    return not columns_of(value) and not any(isinstance(e, Subquery) for e in walk(value))


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

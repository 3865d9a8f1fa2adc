"""ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from fuseline.errors import InvalidQuery, Unsupported
from fuseline.plan.expr import Column, ColumnRef, Expr, SortKey
from fuseline.plan.logical import Limit, Logical, Sort
from fuseline.sql.binding.bind_literal import row_count
from fuseline.sql.parsing.pieces import span_of

from ..parsing.unread import use
from .columns_chosen import bound_column
from .scope import Scope
from .select_list import expressions_of


@dataclass(frozen=True, slots=True)
class RowLimit:
    """LIMIT `count` OFFSET `offset`; count None is no limit."""

    count: int | None
    offset: int


def bind_limit(node: exp.Expr, scope: Scope) -> RowLimit | None:
    """Return what LIMIT, OFFSET or FETCH FIRST say, None where there is none of them."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return None
    place = Scope(scope.session)  # constants read no columns
    count = skip = None
    if limit is not None:
        use(limit)
        options = limit.args.get("limit_options")
        value = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            raise Unsupported(
                "LIMIT takes a number of rows; percentages and WITH TIES are not supported.",
                span_of(value),
            )
        if options is not None:
            use(options)
        count = row_count(place.inside("LIMIT").bind(value), "LIMIT") if value is not None else 1
    if offset is not None:
        use(offset)
        skip = row_count(place.inside("OFFSET").bind(offset.expression), "OFFSET")
    return RowLimit(count, skip or 0)


def bind_order(
    node: exp.Order, scope: Scope, outputs: Sequence[Column | Expr], places: Mapping[str, int]
) -> tuple[SortKey, ...]:
    """Return sort keys over what the outputs are made from.

    A key that is an ordinal, a bare output name, or ALL stands for outputs; anything else is an expression in `scope`.
    `places` holds the positions of the outputs by their names in lower case.
    """
    values = [ColumnRef(v) if isinstance(v, Column) else v for v in outputs]
    keys: list[SortKey] = []
    use(node)
    for item in node.expressions:
        if not isinstance(item, exp.Ordered):
            raise Unsupported("ORDER BY takes expressions with ASC, DESC and NULLS.", span_of(item))
        use(item)
        descending = bool(item.args.get("desc"))
        nulls_first = bool(item.args.get("nulls_first"))
        if isinstance(item.this, exp.Var) and item.this.name.upper() == "ALL":
            use(item.this)
            found: Sequence[Expr] = values
        else:
            parts = expressions_of(item.this, scope)
            found = [_key(part, scope, values, places) for part in parts]
        keys += [SortKey(value, descending, nulls_first, value.span) for value in found]
    return tuple(keys)


def _key(node: exp.Expr, scope: Scope, values: Sequence[Expr], places: Mapping[str, int]) -> Expr:
    match node:
        case exp.Literal(is_string=False) if node.name.isdigit():
            return values[ordinal(node, len(values), "ORDER BY")]
        case exp.Literal():
            raise InvalidQuery(
                "A constant in ORDER BY orders nothing: name a column, its number, or an expression.",
                span_of(node),
            )
        case exp.Placeholder() | exp.Parameter():
            raise InvalidQuery(
                "A parameter in ORDER BY orders nothing: name a column, its number, or an expression.",
                span_of(node),
            )
        case exp.Column(this=exp.Identifier()) if (
            node.args.get("table") is None and bound_column(node) is None
        ):
            place = places.get(node.name.lower())
            if place is not None:
                use(node, node.this)
                return dataclasses.replace(values[place], span=span_of(node))  # type: ignore[type-var]
    return scope.bind(node)


def ordinal(node: exp.Expr, count: int, clause: str) -> int:
    """Return the position that the literal `node` names, from 0."""
    use(node)
    number = int(node.name)
    if not 1 <= number <= count:
        raise InvalidQuery(
            f"{clause} {number} names no column: the SELECT list has {count}.", span_of(node)
        )
    return number - 1


def order_rows(plan: Logical, keys: tuple[SortKey, ...], limit: RowLimit | None) -> Logical:
    """Sort, then cut; each only where asked for."""
    if keys:
        plan = Sort(plan, keys)
    if limit is not None and (limit.count is not None or limit.offset):
        plan = Limit(plan, limit.count, limit.offset)
    return plan

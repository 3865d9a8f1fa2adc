"""ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from decimal import Decimal

from sqlglot import exp

from fuseline.errors import InvalidQuery, Unsupported
from fuseline.plan import infer
from fuseline.plan.expr import Column, ColumnRef, Expr, Literal, SortKey, new_column
from fuseline.plan.logical import Filter, Limit, Logical, Project, Sort
from fuseline.plan.types import BIGINT, DOUBLE, VARCHAR, DataType
from fuseline.plan.window.window_call import WHOLE, Window, WindowCall
from fuseline.sql.parsing.pieces import span_of

from ...records import dataclass
from ..parsing.unread import use
from .bind_expr_subquery import bind_sorted, sort_direction
from .columns_chosen import bound_column
from .constants.known_values import answered, known, known_count, known_value
from .scope import Scope
from .select_list import expressions_of


@dataclass(frozen=True, slots=True)
class RowLimit:
    """LIMIT `count` OFFSET `offset`; count None is no limit, `share` the part of all rows instead of a count."""

    count: int | None
    offset: int
    share: float | None = None


def bind_limit(node: exp.Expr, scope: Scope) -> RowLimit | None:
    """Return what LIMIT, OFFSET or FETCH FIRST say, None where there is none of them."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return None
    place = Scope(scope.session, ctes=scope.ctes)  # that read no columns
    count = skip = share = None
    if limit is not None:
        use(limit)
        options = limit.args.get("limit_options")
        value = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
        if options is not None and options.args.get("with_ties"):
            raise Unsupported("WITH TIES is not supported: use rank() in QUALIFY.", span_of(value))
        if options is not None:
            use(options)
        if isinstance(value, exp.Var) and value.name.upper() == "ALL":
            use(value)
        elif value is not None and options is not None and options.args.get("percent"):
            share = _share(value, place.inside("LIMIT"))
        else:
            count = _rows(value, place.inside("LIMIT")) if value is not None else 1
    if offset is not None:
        use(offset)
        skip = _rows(offset.expression, place.inside("OFFSET"))
    return RowLimit(count, skip or 0, share)


def _rows(node: exp.Expr, scope: Scope) -> int | None:
    """Return the number of rows that LIMIT or OFFSET asks for; None for NULL."""
    return known_count(_now(node, BIGINT, scope), scope.clause, scope)


def _share(node: exp.Expr, scope: Scope) -> float | None:
    """Return the part of the rows that LIMIT asks for in percent; None for NULL."""
    value = known_value(_now(node, DOUBLE, scope), "LIMIT", scope)
    if value is None:
        return None
    assert isinstance(value, int | float | Decimal)
    if not 0 <= value <= 100:
        raise InvalidQuery("LIMIT in percent is at least 0% and at most 100%.", span_of(node))
    return float(value) / 100


def _now(node: exp.Expr, target: DataType, scope: Scope) -> Expr:
    """Return the value of LIMIT, a subquery's too, which is run now."""
    bound = scope.bind(node)
    found = known(infer.cast(bound, target) if bound.type == VARCHAR else bound, scope)
    if isinstance(found, Literal):
        return found
    scope.session.passing.append(scope.clause)
    return answered(infer.cast(found, target), scope)


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
        descending, nulls_first = sort_direction(item, scope)
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
        case _ if is_ordinal(node):
            return values[ordinal(node, len(values), "ORDER BY")]
        case exp.PositionalColumn(
            this=exp.Literal()
        ):  # alone it counts the SELECT list, within expressions columns
            use(node)
            return values[ordinal(node.this, len(values), "ORDER BY")]
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
    return bind_sorted(node, scope)


def is_ordinal(node: exp.Expr) -> bool:
    """Whether a key is a whole number, which stands for an output; one below 0 stands for none."""
    literal = node.this if isinstance(node, exp.Neg) else node
    return isinstance(literal, exp.Literal) and not literal.is_string and literal.name.isdigit()


def ordinal(node: exp.Expr, count: int, clause: str) -> int:
    """Return the position that the literal `node` names, from 0."""
    use(node)
    number = -int(node.this.name) if isinstance(node, exp.Neg) else int(node.name)
    if not 1 <= number <= count:
        raise InvalidQuery(
            f"{clause} {number} names no column: the SELECT list has {count}.", span_of(node)
        )
    return number - 1


def order_rows(plan: Logical, keys: tuple[SortKey, ...], limit: RowLimit | None) -> Logical:
    """Sort, then cut; each only where asked for."""
    if limit is not None and limit.share is not None:
        return _first_share(plan, keys, limit.share, limit.offset)
    if keys:
        plan = Sort(plan, keys)
    if limit is not None and (limit.count is not None or limit.offset):
        plan = Limit(plan, limit.count, limit.offset)
    return plan


def _first_share(plan: Logical, keys: tuple[SortKey, ...], share: float, offset: int) -> Logical:
    """Keep the first rows in an order: as many as `share` of all of them, behind the `offset` first."""
    number, total = new_column("row_number", BIGINT), new_column("count", BIGINT)
    counted = Window(plan, (), (), ((total, WindowCall("count_star", (), BIGINT, WHOLE)),))
    numbered = Window(counted, (), keys, ((number, WindowCall("row_number", (), BIGINT)),))
    rows = infer.cast(ColumnRef(total), DOUBLE)
    most = infer.call("floor", [infer.call("mul", [rows, Literal(share, DOUBLE)])])
    last = infer.call("add", [infer.cast(most, BIGINT), Literal(offset, BIGINT)])
    tests = [
        infer.compare("gt", ColumnRef(number), Literal(offset, BIGINT)),
        infer.compare("le", ColumnRef(number), last),
    ]
    kept: Logical = Filter(numbered, infer.call("and", tests))
    kept = Sort(kept, keys) if keys else kept
    return Project(kept, tuple((column, ColumnRef(column)) for column in plan.columns))

"""Subqueries within expressions, and the comparisons that take them or row values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal as OneOf

from sqlglot import exp

from fuseline.errors import InvalidQuery, Span, TypeMismatch, Unsupported
from fuseline.plan import derived, expr as ex, infer
from fuseline.plan.coercion import compared_pair
from fuseline.plan.composed.nested_values import list_value, row_value, values_of_row
from fuseline.plan.dialect import dialect
from fuseline.plan.functions import EQUALITIES, NEGATED, SCALAR, STRICT
from fuseline.plan.logical import Aggregate, Limit, Logical, Project
from fuseline.plan.types import BOOLEAN, DataType, Kind
from fuseline.sql.parsing.pieces import span_of

from ..parsing.unread import use
from .scope import Scope

# Words that sqlglot takes for the names of functions where a list is behind them
_QUANTIFIERS: dict[str, OneOf["any", "all"]] = {"any": "any", "some": "any", "all": "all"}
_COLLATIONS = {
    "nocase": "lower",
    "noaccent": "strip_accents",
    "nfc": "nfc_normalize",
    **dict.fromkeys(("c", "posix", "binary"), ""),
}


def bind_scalar_subquery(node: exp.Expr, scope: Scope) -> ex.Expr:
    """(SELECT ...) as a value."""
    plan = scope.bind_query(node)
    _check_width(plan, 1, node)
    if not dialect().rows_fail:
        plan = Limit(plan, 1)
    return ex.ScalarSubquery(plan, plan.columns[0].type, span_of(node))


def bind_array(query: exp.Query | exp.Values, scope: Scope, place: Span | None) -> ex.Expr:
    """ARRAY(SELECT ...) -> (SELECT coalesce(list(x), []) FROM (SELECT ...) AS t(x))."""
    plan = scope.bind_query(query)
    _check_width(plan, 1, query)
    listed = infer.aggregate("list", [ex.ColumnRef(plan.columns[0])])
    assert isinstance(listed, ex.AggregateCall)
    found = ex.new_column("list", listed.type)
    value = infer.call("coalesce", [ex.ColumnRef(found), list_value((), None)], place)
    column = ex.new_column("array", value.type)
    grouped = Aggregate(plan, (), ((found, listed),))
    return ex.ScalarSubquery(Project(grouped, ((column, value),)), value.type, place)


def bind_exists(node: exp.Expr, scope: Scope) -> ex.Expr:
    return ex.Exists(scope.bind_query(node.this), span=span_of(node))


def _check_width(plan: Logical, expected: int, node: exp.Expr) -> None:
    width = len(plan.columns)
    if width != expected:
        raise InvalidQuery(
            f"This subquery has {width} columns and {expected} {'is' if expected == 1 else 'are'} expected.",
            span_of(node),
        )


def bind_in(node: exp.Expr, scope: Scope) -> ex.Expr:
    """X IN (list) or IN (subquery); x may be a row of values."""
    query = node.args.get("query")
    values = node.expressions
    if query is None and len(values) == 1 and isinstance(values[0], exp.Values):
        query = values[0]
    if query is not None:
        return _quantified("eq", "any", node.this, query, scope, span_of(node))
    if node.args.get("field") is not None:
        inside, sought = scope.bind(node.args["field"]), scope.bind(node.this)
        return derived.function("contains", [inside, sought], span_of(node))
    if node.args.get("unnest") is not None:
        raise Unsupported("IN takes values in parentheses or a subquery.", span_of(node))
    operand = node.this
    if isinstance(operand, exp.Tuple) and all(_are_rows(operand, v) for v in values):
        use(operand)
        rows = [_compare_rows("eq", operand, v, scope, span_of(node)) for v in values]
        return infer.call("or", rows, span_of(node)) if rows else infer.literal(False)
    bound, *listed = bind_compared([operand, *values], scope)
    return infer.in_list(bound, listed, span_of(node))


def bind_comparison(node: exp.Expr, scope: Scope, name: str) -> ex.Expr:
    """A comparison: of values, of row values, or of a value with ANY or ALL of a subquery."""
    left, right = node.this, node.expression
    place = span_of(node)
    if isinstance(right, exp.Any | exp.All):
        use(right)
        quantifier: OneOf["any", "all"] = "any" if isinstance(right, exp.Any) else "all"
        return _quantified(name, quantifier, left, right.this, scope, place)
    if isinstance(right, exp.Anonymous) and (found := _QUANTIFIERS.get(right.name.lower())):
        use(right)
        return _quantified(name, found, left, right.expressions[0], scope, place)
    if _are_rows(left, right):
        return _compare_rows(name, left, right, scope, place)
    first, second = bind_compared([left, right], scope)
    return infer.compare(name, first, second, place)


def bind_compared(nodes: Sequence[exp.Expr], scope: Scope) -> list[ex.Expr]:
    """Bind what is compared with one another; the COLLATE of one of them is that of all."""
    collations = {_collation(node): node for node in nodes if isinstance(node, exp.Collate)}
    if len(collations) > 1:
        raise InvalidQuery(
            "What is compared has different collations.", span_of([*collations.values()][1])
        )
    values = [_without_collation(node, scope) for node in nodes]
    for functions in collations:
        values = [_folded(value, functions) for value in values]
    return values


def sort_direction(item: exp.Ordered, scope: Scope) -> tuple[bool, bool]:
    """Return whether a key of ORDER BY is descending, and whether NULLs come first."""
    defaults, said = scope.session.catalog.sort_defaults, item.args.get("desc")
    descending = defaults.descending(None if said is None else bool(said))
    if item.meta.get("places_nulls"):
        return descending, bool(item.args.get("nulls_first"))
    return descending, defaults.nulls_first(descending)


def bind_sorted(node: exp.Expr, scope: Scope) -> ex.Expr:
    """Bind a key of ORDER BY, which may have a COLLATE."""
    return bind_compared([node], scope)[0]


def _without_collation(node: exp.Expr, scope: Scope) -> ex.Expr:
    if not isinstance(node, exp.Collate):
        return scope.bind(node)
    use(node)
    value = scope.bind(node.this)
    if value.type.kind not in (Kind.VARCHAR, Kind.NULL):
        raise TypeMismatch(f"COLLATE takes a VARCHAR, and this is {value.type}.", span_of(node))
    return value


def _collation(node: exp.Collate) -> tuple[str, ...]:
    """Return the functions of texts by which a collation compares."""
    named = node.expression
    parts = named.parts if isinstance(named, exp.Column) else [named]
    use(named, *parts)
    names = [name for part in parts for name in part.name.lower().split(".")]
    for name in names:
        if name not in _COLLATIONS:
            raise Unsupported(
                f'The collation "{name}" is not supported: there are NOCASE, NOACCENT, NFC and C.',
                span_of(node),
            )
    return tuple(_COLLATIONS[name] for name in names if _COLLATIONS[name])


def _folded(value: ex.Expr, functions: Sequence[str]) -> ex.Expr:
    for function in functions:
        value = infer.call(function, [value], value.span)
    return value


def _are_rows(left: exp.Expr, right: exp.Expr) -> bool:
    """Whether both sides are written as rows, whose values are compared then, and no rows are made."""
    return isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)


def _compare_rows(
    name: str, left: exp.Expr, right: exp.Expr, scope: Scope, place: Span | None
) -> ex.Expr:
    """Compare rows field by field, NULL being a value equal to itself as in DuckDB; the result is never NULL."""
    if len(left.expressions) != len(right.expressions):
        raise TypeMismatch(
            f"A row of {len(left.expressions)} values cannot be compared with one of {len(right.expressions)}.",
            place,
        )
    use(left, right)
    if not left.expressions:
        return infer.literal(name in EQUALITIES or name in ("le", "ge"))
    pairs = [
        (scope.bind(a), scope.bind(b))
        for a, b in zip(left.expressions, right.expressions, strict=True)
    ]
    if name in EQUALITIES:
        return infer.call("and", _fields("is_not_distinct", pairs, place), place)
    if NEGATED[name] in EQUALITIES:
        return infer.call("or", _fields("is_distinct", pairs, place), place)
    if name in ("le", "ge"):
        return infer.call("not", [_order_rows(NEGATED[name], pairs, place)], place)
    return _order_rows(name, pairs, place)


def _fields(
    name: str, pairs: Sequence[tuple[ex.Expr, ex.Expr]], place: Span | None
) -> list[ex.Expr]:
    return [infer.compare(name, a, b, place) for a, b in pairs]


def _order_rows(name: str, pairs: Sequence[tuple[ex.Expr, ex.Expr]], place: Span | None) -> ex.Expr:
    """(a, b) < (c, d) -> a < c OR (a IS NOT DISTINCT FROM c AND b < d), with NULL above every value."""
    (a, b), *rest = pairs
    low, high = (a, b) if name == "lt" else (b, a)
    only_high_is_null = infer.call(
        "and",
        [infer.call("is_not_null", [low], place), infer.call("is_null", [high], place)],
        place,
    )
    first = infer.call("coalesce", [infer.compare(name, a, b, place), only_high_is_null], place)
    if not rest:
        return first
    same = infer.compare("is_not_distinct", a, b, place)
    later = infer.call("and", [same, _order_rows(name, rest, place)], place)
    return infer.call("or", [first, later], place)


def _quantified(
    name: str,
    quantifier: OneOf["any", "all"],
    left: exp.Expr,
    query: exp.Expr,
    scope: Scope,
    place: Span | None,
) -> ex.Expr:
    """Compare a value or row with the rows of a subquery, both sides cast to the types that they share."""
    if not isinstance(query, exp.Query | exp.Values | exp.Subquery):
        elements = exp.alias_(exp.Explode(this=query), "element", copy=False)
        query = exp.Select(expressions=[elements])
    plan = scope.bind_query(query)
    operands = [scope.bind(left)]
    if operands[0].type.is_tuple and len(plan.columns) > 1:
        values = None if SCALAR[name].orders else values_of_row(operands[0])
        operands, plan = (operands, _as_rows(plan)) if values is None else (values, plan)
    _check_width(plan, len(operands), query)
    if name not in STRICT:
        raise Unsupported("IS DISTINCT FROM does not take ANY or ALL.", place)
    types = [
        _shared(operand, column.type)
        for operand, column in zip(operands, plan.columns, strict=True)
    ]
    typed = tuple(infer.coerce(o, t) for o, t in zip(operands, types, strict=True))
    return ex.Quantified(name, quantifier, typed, _cast_columns(plan, types), BOOLEAN, place)


def _as_rows(plan: Logical) -> Logical:
    """Make one row value of the columns of a subquery."""
    row = row_value([ex.ColumnRef(column) for column in plan.columns], None)
    return Project(plan, ((ex.new_column("row", row.type), row),))


def _shared(operand: ex.Expr, inner: DataType) -> DataType:
    """Return the common type of an operand and a subquery's column; a constant string takes the column's type."""
    text = isinstance(operand, ex.Literal) and operand.type.kind is Kind.VARCHAR
    shared = inner if text else compared_pair(operand.type, inner)
    if shared is None:
        raise TypeMismatch(
            f"{operand.type} cannot be looked up in a subquery of {inner}: cast one side.",
            operand.span,
        )
    return shared


def _cast_columns(plan: Logical, types: Sequence[DataType]) -> Logical:
    if all(c.type == t for c, t in zip(plan.columns, types, strict=True)):
        return plan
    return Project(
        plan,
        tuple(
            (c, ex.ColumnRef(c))
            if c.type == t
            else (ex.new_column(c.name, t), infer.coerce(ex.ColumnRef(c), t))
            for c, t in zip(plan.columns, types, strict=True)
        ),
    )

"""Scalar expressions: sqlglot's tree to typed expressions.

One function for each kind of node, found by the node's class in `HANDLERS`; functions are in `bind_expr_call`, subqueries
and row values in `bind_expr_subquery`.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from fuseline.errors import InvalidQuery, TypeMismatch, UnknownName, Unsupported
from fuseline.plan import derived, infer
from fuseline.plan.composed.defined_functions import USERS
from fuseline.plan.composed.nested_values import joined, row_value
from fuseline.plan.expr import Call, Cast, ColumnRef, Expr, Literal
from fuseline.plan.functions.dates import PARTS
from fuseline.plan.types import BIGINT, BLOB, BOOLEAN, NULL, TIMESTAMP, VARCHAR, Kind
from fuseline.sql.binding.function_names import data_type
from fuseline.sql.parsing.pieces import span_of

from ..parsing.text_shape import SlotNode
from ..parsing.unread import use
from . import bind_lambda, bind_literal, bind_nested, function_names
from .bind_expr_call import bind_aggregate, bind_call, bind_grouping, call_span
from .bind_expr_subquery import (
    bind_compared,
    bind_comparison,
    bind_exists,
    bind_in,
    bind_scalar_subquery,
)
from .bind_unnest import bind_unnest
from .bind_window import bind_over
from .columns_chosen import bound_column
from .constants.known_values import known
from .draws import volatile
from .scope import Scope

Handler = Callable[[exp.Expr, Scope], Expr]


def bind(node: exp.Expr, scope: Scope) -> Expr:
    """Return the typed expression of `node` with the names of `scope`.

    Aggregates come back as `AggregateCall`, subqueries with their plans inside.  Raises the errors of `errors`, with their
    place in the text; what this version does not have is refused here as `Unsupported`.
    """
    node.meta["used"] = True  # as `use`, without a call
    handler = HANDLERS.get(type(node))
    if handler is not None:
        bound = handler(node, scope)
    elif isinstance(node, exp.Query):
        bound = bind_scalar_subquery(node, scope)
    else:
        bound = bind_call(node, scope)
    # `s NOT LIKE p` is a LIKE that says so.
    return infer.call("not", [bound], bound.span) if node.args.get("negate") else bound


def _column(node: exp.Expr, scope: Scope) -> Expr:
    assert isinstance(node, exp.Column)
    if isinstance(node.this, exp.Star):
        return _star(node, scope)
    if (column := bound_column(node)) is not None:
        use(node.this)
        return ColumnRef(column, span_of(node))
    try:
        return (node.meta.get("scope") or scope).resolve(node.parts)
    except UnknownName as error:
        told = _told(node, scope)
        if told is None:
            if len(node.parts) == 1 and node.name.lower() in PARTS:
                error.message += f" A unit of dates is a text: '{node.name}'."
            elif len(node.parts) == 1 and node.this.args.get("quoted"):
                error.message += f" A text is put in single quotes: '{node.name}'."
            raise
        use(node.this)
        return told


def _word(function: Handler) -> Handler:
    """A word that is a function without parentheses, where no column or select item of this query has its name."""

    def bound(node: exp.Expr, scope: Scope) -> Expr:
        assert isinstance(node, exp.Func)
        name, place = node.sql_names()[0].lower(), span_of(node)
        if "is_word" not in node.meta:
            return function(node, scope)
        item = scope.aliases.get(name)
        if item is not None and any(part is node for part in item.walk()):
            raise UnknownName(
                f'"{name}" is read by the item of that name: call it otherwise.', place
            )
        found = scope.changed(outer=None).find([name], place)
        return function(node, scope) if found is None else found

    return bound


def _told(node: exp.Column, scope: Scope) -> Expr | None:
    """Return what CURRENT_SCHEMA or USER is, which sqlglot takes for columns; None for other names."""
    name = node.name.lower()
    if len(node.parts) > 1 or name not in (*USERS, "current_schema") or name in scope.aliases:
        return None
    if name == "current_schema":
        return _place(node, scope, 1)
    return derived.function(name, (), span_of(node))


def _star(node: exp.Expr, scope: Scope) -> Expr:
    raise InvalidQuery(f"* stands for columns and has no place in {scope.clause}.", span_of(node))


def _inner(node: exp.Expr, scope: Scope) -> Expr:
    return bind(node.this, scope)


def _place(node: exp.Expr, scope: Scope, part: int) -> Expr:
    """Return the name of the database or schema in which names without one are looked up."""
    return Literal(scope.session.catalog.here()[part], VARCHAR, span_of(node))


def _logic(name: str) -> Handler:
    """AND and OR; sqlglot nests them to the left, and long ones deeper than Python recurses."""

    def handler(node: exp.Expr, scope: Scope) -> Expr:
        assert isinstance(node, exp.Connector)
        parts, kind = [node], type(node)
        while type(parts[0]) is kind:
            use(parts[0])
            parts[:1] = parts[0].this, parts[0].expression
        return infer.call(name, [bind(part, scope) for part in parts])

    return handler


def _binary(name: str) -> Handler:
    def handler(node: exp.Expr, scope: Scope) -> Expr:
        left, right = bind(node.this, scope), bind(node.expression, scope)
        return infer.call(name, [left, right], span_of(node))

    return handler


def _contained(node: exp.Expr, scope: Scope) -> Expr:
    """A <@ b -> list_has_all(b, a)."""
    part, whole = bind(node.this, scope), bind(node.expression, scope)
    return infer.call("list_has_all", [whole, part], span_of(node))


def _unary(name: str) -> Handler:
    def handler(node: exp.Expr, scope: Scope) -> Expr:
        return infer.call(name, [bind(node.this, scope)], span_of(node))

    return handler


def _plus(node: exp.Expr, scope: Scope) -> Expr:
    bound = bind(node.this, scope)
    if bound.type == NULL:
        return infer.cast(bound, BIGINT)
    if not bound.type.is_numeric:
        raise TypeMismatch(f"+ takes a number, and this is {bound.type}.", span_of(node))
    return bound


def _concatenation(node: exp.Expr, scope: Scope) -> Expr:
    """A || b || c, in one call."""
    parts: list[Expr] = []
    for side in (node.this, node.expression):
        bound = bind(side, scope)
        nested = isinstance(side, exp.DPipe) and isinstance(bound, Call)
        parts.extend(bound.children if nested else (bound,))
    if any(part.type == NULL for part in parts):
        return Literal(None, NULL, span_of(node))
    if any(part.type.kind is Kind.LIST for part in parts):
        return joined(parts, span_of(node))
    parts = [infer.to_text(part) if part.type.is_nested else part for part in parts]
    of_bytes = all(part.type == BLOB for part in parts)
    return infer.call("blob_concat" if of_bytes else "concat", parts, span_of(node))


def _is(node: exp.Expr, scope: Scope) -> Expr:
    """IS NULL, IS TRUE and IS FALSE, which are never NULL; IS UNKNOWN is IS NULL."""
    operand, what = bind(node.this, scope), node.expression
    place = span_of(node)
    if isinstance(what, exp.Null):
        use(what)
        return infer.call("is_null", [operand], place)
    if isinstance(what, exp.Boolean):
        use(what)
        truth = infer.condition(operand)
        return infer.compare("is_not_distinct", truth, Literal(bool(what.this), BOOLEAN), place)
    return infer.compare("is_not_distinct", operand, bind(what, scope), place)


def _between(node: exp.Expr, scope: Scope) -> Expr:
    if node.args.get("symmetric"):
        raise Unsupported("BETWEEN SYMMETRIC is not supported: order the bounds.", span_of(node))
    operand, low, high = bind_compared([node.args[key] for key in ("this", "low", "high")], scope)
    return infer.between(operand, low, high, span_of(node))


def _like(name: str) -> Handler:
    def handler(node: exp.Expr, scope: Scope) -> Expr:
        if isinstance(node.expression, exp.Any | exp.All):
            raise Unsupported("LIKE ANY and LIKE ALL are not supported: use OR.", span_of(node))
        return infer.call(
            name, [bind(node.this, scope), bind(node.expression, scope)], span_of(node)
        )

    return handler


def _escape(node: exp.Expr, scope: Scope) -> Expr:
    """X LIKE p ESCAPE e: the escape character becomes the third argument."""
    matched = bind(node.this, scope)
    negated = isinstance(matched, Call) and matched.function == "not"
    like = matched.children[0] if negated else matched
    if not isinstance(like, Call) or like.function not in ("like", "ilike"):
        raise Unsupported("ESCAPE is supported after LIKE and ILIKE alone.", span_of(node))
    character = known(bind(node.expression, scope), scope)
    if isinstance(character, Literal) and character.value is None:
        return Literal(None, BOOLEAN, span_of(node))
    if isinstance(character, Literal) and len(str(character.value)) > 1:
        raise InvalidQuery("ESCAPE takes one character or none.", character.span)
    escaped = infer.call(like.function, [*like.args, character], span_of(node))
    return infer.call("not", [escaped], span_of(node)) if negated else escaped


def _insensitive_match(node: exp.Expr, scope: Scope) -> Expr:
    """S ~* p -> regexp_matches(s, p, 'i')."""
    args = [bind(node.this, scope), bind(node.expression, scope), Literal("i", VARCHAR)]
    return infer.call("regexp_matches", args, span_of(node))


def _cast(safe: bool) -> Handler:
    def handler(node: exp.Expr, scope: Scope) -> Expr:
        target = data_type(node.args["to"], scope.session.catalog.user_types)
        value = bind(node.this, scope)
        if isinstance(value, Literal) and value.type == target and target.is_integer:
            return Cast(value, target, safe, span_of(node))  # 1::INTEGER fits less than 1 does
        return infer.cast(value, target, safe=safe, span=span_of(node))

    return handler


def _case(node: exp.Expr, scope: Scope) -> Expr:
    """CASE, with the operand of its simple form compared to each WHEN."""
    operand = None if node.this is None else bind(node.this, scope)
    use(*node.args["ifs"])
    branches = [(bind(b.this, scope), bind(b.args["true"], scope)) for b in node.args["ifs"]]
    conditions = [c if operand is None else infer.compare("eq", operand, c) for c, _ in branches]
    default = node.args.get("default")
    last = None if default is None else bind(default, scope)
    return infer.case(conditions, [r for _, r in branches], last, span_of(node))


def _part(node: exp.Expr, scope: Scope) -> Expr:
    """EXTRACT(year FROM x): the part is a bare word or a string."""
    part = node.this
    use(part)
    if not isinstance(part, exp.Var | exp.Literal):
        raise InvalidQuery("EXTRACT takes a part, as in EXTRACT(year FROM x).", span_of(part))
    word = Literal(part.name.lower(), VARCHAR, span_of(part))
    return derived.function(
        "date_part", [word, bind(node.expression, scope)], call_span(node, scope)
    )


def _from_number(node: exp.Expr, scope: Scope) -> Expr:
    """make_timestamp(x) counts microseconds, epoch_ms(x) milliseconds and to_timestamp(x) seconds."""
    scale = node.args.get("scale")
    known = {"6": "make_timestamp", "3": "epoch_ms"}
    if isinstance(scale, exp.Literal) and scale.name in known:
        use(scale)
        return derived.function(known[scale.name], [bind(node.this, scope)], call_span(node, scope))
    nodes = [node.this] if scale is None else [node.this, scale]
    return derived.function("to_timestamp", [bind(n, scope) for n in nodes], call_span(node, scope))


def _at_time_zone(node: exp.Expr, scope: Scope) -> Expr:
    """X AT TIME ZONE z -> timezone(z, x); a date or a text is a TIMESTAMP there."""
    value, zone = bind(node.this, scope), bind(node.args["zone"], scope)
    if value.type.kind is not Kind.TIMESTAMPTZ:
        value = infer.cast(value, TIMESTAMP)
    return infer.call("timezone", [zone, value], span_of(node))


def _numbered(node: exp.Expr, scope: Scope) -> Expr:
    """#1, the first of the columns that * would give."""
    number = node.this.name
    use(node.this)
    if not number.isdigit() or not 1 <= int(number) <= len(scope.star):
        raise InvalidQuery(
            f"#{number} names no column: there are {len(scope.star)}.", span_of(node.this)
        )
    return ColumnRef(scope.star[int(number) - 1][1], span_of(node.this))


def _columns(node: exp.Expr, scope: Scope) -> Expr:
    raise Unsupported(
        f"COLUMNS() is not supported in {scope.clause}: it stands in SELECT, WHERE and ORDER BY.",
        span_of(node),
    )


def _refused(what: str) -> Handler:
    def handler(node: exp.Expr, scope: Scope) -> Expr:
        raise Unsupported(f"{what} not supported.", span_of(node))

    return handler


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Column: _column,
    exp.Star: _star,
    exp.Paren: _inner,
    exp.Unary: _plus,
    exp.Alias: _inner,
    **dict.fromkeys((exp.Literal, SlotNode), lambda node, _: bind_literal.bind_literal(node)),  # type: ignore[arg-type]
    exp.RawString: lambda node, _: bind_literal.bind_text(node),
    exp.ByteString: lambda node, _: bind_literal.bind_text(node),
    exp.HexString: lambda node, _: bind_literal.bind_digits(node),  # type: ignore[arg-type]
    exp.BitString: lambda node, _: bind_literal.bind_bits(node),  # type: ignore[arg-type]
    exp.Boolean: lambda node, _: bind_literal.bind_boolean(node),  # type: ignore[arg-type]
    exp.Null: lambda node, _: Literal(None, NULL, span_of(node)),
    exp.Interval: bind_literal.bind_interval,  # type: ignore[dict-item]
    exp.Placeholder: bind_literal.bind_parameter,
    exp.Parameter: bind_literal.bind_parameter,
    exp.CurrentDatabase: lambda node, scope: _place(node, scope, 0),
    exp.CurrentCatalog: _word(lambda node, scope: _place(node, scope, 0)),
    exp.CurrentSchema: lambda node, scope: _place(node, scope, 1),
    **dict.fromkeys(
        (exp.CurrentUser, exp.SessionUser, exp.CurrentRole),
        _word(lambda node, _: derived.function("current_user", (), span_of(node))),
    ),
    **{
        kind: _word(lambda node, _, name=name: derived.function(name, (), span_of(node)))  # type: ignore[misc]
        for kind, name in function_names.MOMENTS.items()
    },
    exp.And: _logic("and"),
    exp.Or: _logic("or"),
    exp.Not: _unary("not"),
    exp.Neg: _unary("neg"),
    exp.BitwiseNot: _unary("bit_not"),
    **{kind: _binary(name) for kind, name in function_names.BINARY.items()},
    exp.DPipe: _concatenation,
    exp.ArrayContainedBy: _contained,
    **{
        kind: lambda node, scope, name=name: bind_comparison(node, scope, name)  # type: ignore[misc]
        for kind, name in function_names.COMPARISONS.items()
    },
    exp.Is: _is,
    exp.Between: _between,
    exp.PositionalColumn: _numbered,
    exp.Like: _like("like"),
    exp.ILike: _like("ilike"),
    exp.Escape: _escape,
    exp.RegexpILike: _insensitive_match,
    exp.Cast: _cast(safe=False),
    exp.TryCast: _cast(safe=True),
    exp.Case: _case,
    exp.UnixToTime: _from_number,
    exp.Extract: _part,
    exp.In: bind_in,
    exp.Exists: bind_exists,
    exp.Subquery: bind_scalar_subquery,
    exp.Filter: bind_aggregate,
    exp.WithinGroup: bind_aggregate,
    exp.IgnoreNulls: bind_aggregate,
    exp.RespectNulls: bind_aggregate,
    exp.Grouping: bind_grouping,
    exp.GroupingId: bind_grouping,
    exp.Window: bind_over,
    exp.Explode: bind_unnest,
    **bind_nested.HANDLERS,
    exp.Tuple: lambda node, scope: row_value(
        [scope.bind(value) for value in node.expressions], span_of(node)
    ),
    exp.Any: _refused("ANY without a comparison and lists in ANY are"),
    exp.All: _refused("ALL without a comparison and lists in ALL are"),
    exp.Lambda: bind_lambda.refused,
    exp.Columns: _columns,
    exp.Collate: _refused("COLLATE outside of ORDER BY and comparisons is"),
    exp.AtTimeZone: _at_time_zone,
    exp.CurrentTime: _word(
        _refused("TIME WITH TIME ZONE, as CURRENT_TIME and unlike LOCALTIME, is")
    ),
    exp.Try: bind_lambda.bind_try,
    **volatile.HANDLERS,
}

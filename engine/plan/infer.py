"""Building typed expressions: overloads, implicit casts and result types, with DuckDB 2.0's rules.

Every expression of a plan is made here (or by a rule that keeps types), so backends meet no coercion.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache, partial

from ..errors import Span, TypeMismatch, Unsupported
from . import types as ty
from .casts import (
    among_enum,
    as_enum,
    as_list,
    cast as cast,
    coerce as coerce,
    coerce_late,
    common_type as common_type,
    condition as condition,
    is_text_literal,
    literal_types,
    negated,
    shared_type,
    span_over,
    to_text as to_text,
    unify as unify,
)
from .coercion import parse_type as parse_type
from .composed.nanoseconds import of_nanoseconds
from .composed.other_aggregates import AggregateClauses, by_others
from .composed.zoned_moments import Make, in_the_sessions_zone
from .expr import AggregateCall, Call, Case, Cast, Expr, InList, Literal, SortKey
from .functions import (
    AGGREGATE,
    CHOICES,
    COMPARISONS,
    SCALAR,
    aggregate_name,
    scalar_name,
    unknown_function as unknown_function,
)
from .functions.constant_arguments import check_constants, checked, rounded, signed_of
from .functions.row import FunctionRow, Resolve, Resolved, compared
from .functions.temporal_arithmetic import arithmetic, divided
from .literals import fits, literal as literal
from .shapes.guards import decided


def call(name: str, args: Sequence[Expr], span: Span | None = None) -> Expr:
    """Return the call of a scalar function by its plan or SQL name, with its arguments cast.

    Arithmetic on dates and intervals becomes the function of that meaning (`add` of DATE and INTERVAL is `add_interval`).
    Raises `UnknownName` and `TypeMismatch`.
    """
    known = name if name in SCALAR else scalar_name(name)
    if known is None:
        raise unknown_function(name, span)
    span = span or span_over(args)
    known, args = _of_their_types(known, args)
    if known in ("and", "or"):
        return _logic(known, args, span)
    if known in COMPARISONS:
        left, right = _pair(args, SCALAR[known], span)
        return compare(known, left, right, span)
    if known in CHOICES:
        return _with_common_type(known, args, span)
    if known == "concat_ws" and args and args[0].type.kind not in (ty.Kind.VARCHAR, ty.Kind.NULL):
        raise TypeMismatch(f"The separator of concat_ws is text and not {args[0].type}.", span)
    if known in ("concat", "concat_ws"):
        args = [to_text(a) for a in args]
    if known == "not":
        args = [condition(a) for a in args]
    if (made := _of_moments(known, args, span)) is not None:
        return made
    if len(args) == 2:
        known, args = arithmetic(known, args[0], args[1])
    if known == "neg" and len(args) == 1:
        if args[0].type.kind is ty.Kind.INTERVAL:
            known = "neg_interval"
        elif isinstance(args[0], Literal) and not args[0].is_null and args[0].type.is_numeric:
            return negated(args[0], span)
        elif (wider := _wider_than_least(args[0])) is not None:
            return cast(negated(args[0].children[0], span), wider, span=span)
    if known in ("round", "round_even", "trunc", "ceil", "floor"):
        return _rounded(known, args, span)
    row = SCALAR[known]
    args = list(map(as_list, args)) if row.takes_lists else args
    targets, result = _signature(row, args, span)
    return checked(Call(row.name, divided(row, _coerced(args, targets)), result, span))


def _of_their_types(name: str, args: Sequence[Expr]) -> tuple[str, Sequence[Expr]]:
    """Return what a name stands for over lists, and over BIT, beside which texts are bits."""
    row = SCALAR[name]
    if row.of_lists and any(a.type.is_nested for a in args):
        return row.of_lists, args
    if row.of_bits and any(a.type == ty.BIT for a in args):
        return row.of_bits, [cast(a, ty.BIT) if is_text_literal(a) else a for a in args]
    return name, args


def _of_moments(name: str, args: Sequence[Expr], span: Span | None) -> Expr | None:
    """Return what a function of moments with a zone, or of nanoseconds, is made of; None for others."""
    kinds = {arg.type.kind for arg in args}
    if ty.Kind.TIMESTAMPTZ in kinds:
        return in_the_sessions_zone(MAKE, name, args, span)
    return of_nanoseconds(MAKE, name, args, span) if ty.Kind.TIMESTAMP_NS in kinds else None


def _signature(
    row: FunctionRow, args: Sequence[Expr], span: Span | None
) -> tuple[tuple[ty.DataType, ...], ty.DataType]:
    """Choose the types of a call; where no overload takes VARCHAR, string literals count as untyped."""
    types = literal_types(args) if row.kind == "operator" else [a.type for a in args]
    found = _types(row.resolve, tuple(types))
    if found is None and row.kind != "operator":
        # -2147483648 is BIGINT, and an INTEGER where one is wanted
        types = [
            ty.INTEGER if _is_least_integer(a) else t for a, t in zip(args, types, strict=True)
        ]
        found = _types(row.resolve, tuple(types))
    if found is None and row.kind != "operator":
        untyped = [ty.NULL if is_text_literal(a) else t for a, t in zip(args, types, strict=True)]
        found = _types(row.resolve, tuple(untyped))
        if untyped != types and _is_guess(row.resolve, args, untyped):
            found = None
    if found is None:
        given = ", ".join(map(str, types))
        raise TypeMismatch(
            f"{row.signature} does not take ({given}): cast the arguments to types that it takes.",
            span,
        )
    return found


def _is_least_integer(arg: Expr) -> bool:
    return (
        isinstance(arg, Literal)
        and arg.type == ty.BIGINT
        and decided(operator.eq, arg, ty.INTEGER.integer_range[0])
    )


def _wider_than_least(arg: Expr) -> ty.DataType | None:
    """Return the type next to that of a constant that is cast to the least integer of its type, and of which the negative so is."""
    if not (isinstance(arg, Cast) and arg.type in _SIGNED and isinstance(arg.operand, Literal)):
        return None
    least = decided(operator.eq, arg.operand, arg.type.integer_range[0])
    return _SIGNED[arg.type] if least else None


_SIGNED = {
    ty.TINYINT: ty.SMALLINT,
    ty.SMALLINT: ty.INTEGER,
    ty.INTEGER: ty.BIGINT,
    ty.BIGINT: ty.HUGEINT,
}


def _is_guess(resolve: Resolve, args: Sequence[Expr], types: Sequence[ty.DataType]) -> bool:
    """Whether a string literal would have no type here, or be a number of several."""
    texts = [is_text_literal(a) and t == ty.NULL for a, t in zip(args, types, strict=True)]
    if (found := _types(resolve, tuple(types))) is None:
        return True
    if any(text and t.holds(ty.Kind.NULL) for text, t in zip(texts, found[0], strict=True)):
        return True
    guesses = (ty.BIGINT, ty.DOUBLE, ty.decimal(18, 3))
    tried = [[g if text else t for text, t in zip(texts, types, strict=True)] for g in guesses]
    return len({_types(resolve, tuple(row)) for row in tried} - {None}) > 1


@lru_cache(maxsize=1024)
def _types(resolve: Resolve, types: tuple[ty.DataType, ...]) -> Resolved:
    """Remembered, since queries call the same few functions with the same few types."""
    return resolve(types)


def _coerced(args: Sequence[Expr], targets: Sequence[ty.DataType]) -> tuple[Expr, ...]:
    return tuple(coerce(a, t) for a, t in zip(args, targets, strict=True))


def _read(
    args: Sequence[Expr], targets: Sequence[ty.DataType], span: Span | None
) -> tuple[Expr, ...]:
    """Return arguments in their types; a text that is no number is an error also where it is left out later."""
    found = [
        cast(a, t, span=span) if isinstance(a, Literal) and a.type == ty.VARCHAR else a
        for a, t in zip(args, targets, strict=True)
    ]
    return _coerced(found, targets)


def _logic(name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    """AND and OR over all their parts at once: (a and b) and c has three."""
    parts: list[Expr] = []
    for arg in args:
        nested = isinstance(arg, Call) and arg.function == name
        parts.extend(arg.children if nested else (condition(arg),))
    return parts[0] if len(parts) == 1 else Call(name, tuple(parts), ty.BOOLEAN, span)


def compare(name: str, left: Expr, right: Expr, span: Span | None = None) -> Call:
    """Return a comparison of two values in the type that both have or take; VARCHAR takes the other side's."""
    span = span or span_over((left, right))
    if not SCALAR[name].orders:
        left, right = as_enum(left, right), as_enum(right, left)
    shared = _compared_type((left, right))
    mixed = shared is not None and shared.kind is not ty.Kind.VARCHAR
    if shared is None or (SCALAR[name].orders and mixed and _has_text_column((left, right))):
        raise TypeMismatch(f"{left.type} and {right.type} cannot be compared: cast one side.", span)
    return Call(name, (coerce(left, shared), coerce(right, shared)), ty.BOOLEAN, span)


def _compared_type(args: Sequence[Expr]) -> ty.DataType | None:
    """Return the type for comparing `args`: without casting columns when the literals fit their type exactly."""
    types = {a.type for a in args}
    if len(types) == 1:
        return types.pop()
    if any(t.is_enum for t in types) and ty.VARCHAR in types:
        return ty.VARCHAR
    rest = {a.type for a in args if not isinstance(a, Literal)}
    if len(rest) == 1:
        only = next(iter(rest))
        literals = [a for a in args if isinstance(a, Literal)]
        if (only.is_integer or only.is_decimal) and all(decided(fits, a, only) for a in literals):
            return only
    return compared(literal_types(args, text=True))


def case(
    conditions: Sequence[Expr],
    results: Sequence[Expr],
    default: Expr | None,
    span: Span | None = None,
) -> Case:
    """Return CASE WHEN ... END over conditions; a missing ELSE is NULL."""
    last = default if default is not None else Literal(None, ty.NULL)
    shared = shared_type([last, *results], span)
    return Case(
        tuple(condition(c) for c in conditions),
        tuple(coerce_late(r, shared) for r in results),
        coerce_late(last, shared),
        shared,
        span,
    )


MAKE = Make(call, case, compare)


def _with_common_type(name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    if not args:
        raise TypeMismatch(f"{SCALAR[name].signature} needs at least one argument.", span)
    shared = shared_type(args, span)
    if len(args) == 1:
        return args[0]
    late = coerce_late if name == "coalesce" else coerce
    return Call(name, tuple(late(a, shared) for a in args), shared, span)


def in_list(operand: Expr, values: Sequence[Expr], span: Span | None = None) -> Expr:
    """Return operand IN (values): an `InList` for constants, an OR of equalities for what has columns."""
    span = span or span_over((operand, *values))
    if not values:  # NULL for NULL even so
        unknown = call("is_null", [operand], span)
        return case([unknown], [Literal(None, ty.BOOLEAN)], Literal(False, ty.BOOLEAN), span)
    values = among_enum(operand, values)
    shared = _compared_type((operand, *values))
    if shared is None:
        given = ", ".join(dict.fromkeys(str(v.type) for v in values))
        raise TypeMismatch(
            f"{operand.type} cannot be looked up among {given}: cast one side.", span
        )
    operand = coerce(operand, shared)
    typed = [coerce(v, shared) for v in values]
    constants = tuple(v for v in typed if isinstance(v, Literal))
    others = [compare("eq", operand, v, span) for v in typed if not isinstance(v, Literal)]
    if not others:
        return InList(operand, constants, span=span)
    found = [InList(operand, constants, span=span)] if constants else []
    return _logic("or", [*found, *others], span)


def between(operand: Expr, low: Expr, high: Expr, span: Span | None = None) -> Expr:
    """Return operand BETWEEN low AND high, compared in one type."""
    span = span or span_over((operand, low, high))
    shared = _compared_type((operand, low, high))
    if shared is None or (
        shared.kind is not ty.Kind.VARCHAR and _has_text_column((operand, low, high))
    ):
        raise TypeMismatch(
            f"{operand.type} cannot be BETWEEN {low.type} AND {high.type}: cast to one type.", span
        )
    operand, low, high = (coerce(e, shared) for e in (operand, low, high))
    above = Call("ge", (operand, low), ty.BOOLEAN, span)
    below = Call("le", (operand, high), ty.BOOLEAN, span)
    return Call("and", (above, below), ty.BOOLEAN, span)


def _has_text_column(args: Sequence[Expr]) -> bool:
    return any(a.type == ty.VARCHAR and not isinstance(a, Literal) for a in args)


def _rounded(name: str, args: Sequence[Expr], span: Span | None) -> Expr:
    """Round, trunc, ceil, floor: what has no such digits stays as it is; decimals take their new scale."""
    row = SCALAR[name]
    if name.startswith("round") and args and args[0].type.is_integer:
        args = [coerce(args[0], signed_of(args[0].type)), *args[1:]]
    targets, result = _signature(row, args, span)
    if (
        args[0].type.is_decimal
        and not args[0].type.is_whole
        and ty.NULL in (a.type for a in args[1:])
    ):
        return Literal(None, ty.NULL, span)
    return rounded(name, _coerced(args, targets), result, span)


def aggregate(
    name: str,
    args: Sequence[Expr],
    *,
    distinct: bool = False,
    filter: Expr | None = None,
    order: Sequence[SortKey] = (),
    span: Span | None = None,
) -> Expr:
    """Return the call of an aggregate function by its plan or SQL name, or the expression over such calls that it stands for.

    DISTINCT and ORDER BY are dropped where they change nothing.  Raises `UnknownName`, `TypeMismatch` and `InvalidQuery`.
    """
    known = name if name in AGGREGATE else aggregate_name(name)
    if known is None:
        raise unknown_function(name, span)
    if known == "count" and not args:
        known = "count_star"
    if known == "string_agg":
        args = [to_text(args[0]), *(args[1:] or [Literal(",", ty.VARCHAR)])] if args else args
    row = AGGREGATE[known]
    again = partial(aggregate, distinct=distinct, filter=filter, order=order, span=span)
    clauses = AggregateClauses(distinct, filter, order, span)
    if (found := by_others(MAKE, known, args, again, clauses)) is not None:
        return found
    targets, result = _signature(row, args, span)
    typed = _coerced(args, targets)
    if row.means is not None:
        typed = _read(args, targets, span)

        def of(name: str, *given: Expr | float | str | None, distinct: bool = distinct) -> Expr:
            exprs = [e if isinstance(e, Expr) else literal(e) for e in given]
            if name == "case":
                return case(exprs[:1], exprs[1:2], exprs[2], span)
            if name.startswith("as "):
                return cast(exprs[0], parse_type(name.removeprefix("as ")), span=span)
            if name not in AGGREGATE:
                return call(name, exprs, span)
            if distinct and not all(isinstance(e, Literal) or e in typed for e in exprs):
                raise Unsupported(f"DISTINCT in {known} is not supported.", span)
            return aggregate(name, exprs, distinct=distinct, filter=filter, order=order, span=span)

        return row.means(of, *typed)
    if known == "count" and not distinct and isinstance(typed[0], Literal) and not typed[0].is_null:
        known, typed = "count_star", ()
    check_constants(row, typed)
    return AggregateCall(
        known,
        typed,
        result,
        distinct and not row.idempotent,
        None if filter is None else condition(filter),
        tuple(order) if row.ordered or known == "quantile_disc" else (),
        span,
    )


def typed(
    row: FunctionRow, args: Sequence[Expr], span: Span | None
) -> tuple[tuple[Expr, ...], ty.DataType]:
    """Return arguments as a function takes them, and the type of its result."""
    targets, result = _signature(row, args, span)
    return _coerced(args, targets), result


def _pair(args: Sequence[Expr], row: FunctionRow, span: Span | None) -> tuple[Expr, Expr]:
    if len(args) != 2:
        raise TypeMismatch(f"{row.signature} takes 2 arguments, not {len(args)}.", span)
    return args[0], args[1]

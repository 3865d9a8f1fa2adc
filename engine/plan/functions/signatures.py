"""Makers of `Function.resolve`: how argument types choose the types to cast to and the result type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..coercion import as_decimal, common, compared_pair, implicit, loses_digits, operand_type
from ..types import (
    BIGINT,
    BIT,
    BOOLEAN,
    DOUBLE,
    INT64_DECIMAL_DIGITS,
    INTEGER,
    JSON,
    MAX_DECIMAL_DIGITS,
    NULL,
    VARCHAR,
    DataType,
    Kind,
    decimal,
)
from .row import Resolve

Resolved = tuple[tuple[DataType, ...], DataType] | None
Family = Callable[[DataType], bool]


def fixed(*parameters: DataType, result: DataType, optional: int = 0) -> Resolve:
    """Exactly these parameters, of which the last `optional` may be left out; arguments widen implicitly."""

    def resolve(types: Sequence[DataType]) -> Resolved:
        if not len(parameters) - optional <= len(types) <= len(parameters):
            return None
        targets = parameters[: len(types)]
        if not all(implicit(t, p) for t, p in zip(types, targets, strict=True)):
            return None
        return targets, result

    return resolve


def of_any(count: int = 1, result: DataType | None = None) -> Resolve:
    """So many values of any types; the result is of the first one's type, or as told."""
    return lambda types: (tuple(types), result or types[0]) if len(types) == count else None


def overloads(*candidates: Resolve) -> Resolve:
    """The first of several signatures that takes the arguments."""

    def resolve(types: Sequence[DataType]) -> Resolved:
        return next((found for c in candidates if (found := c(types)) is not None), None)

    return resolve


def any_of(*kinds: Kind, result: DataType | None = None, null: DataType = NULL) -> Resolve:
    """One argument of one of these kinds, kept as it is; NULL counts as `null`; result None: the argument's type."""

    def resolve(types: Sequence[DataType]) -> Resolved:
        if len(types) != 1:
            return None
        argument = null if types[0].kind is Kind.NULL else types[0]
        if argument.kind not in kinds and argument != null:
            return None
        return (argument,), result or argument

    return resolve


def unary(family: Family, result: DataType | None = None, null: DataType = BIGINT) -> Resolve:
    """One argument of `family`, kept as it is; result None: the argument's type."""

    def resolve(types: Sequence[DataType]) -> Resolved:
        if len(types) != 1:
            return None
        argument = null if types[0].kind is Kind.NULL else types[0]
        return ((argument,), result or argument) if family(argument) else None

    return resolve


def same(family: Family, result: DataType | None = None, null: DataType = BIGINT) -> Resolve:
    """Two arguments of `family`, cast to their common type, which the result has."""

    def resolve(types: Sequence[DataType]) -> Resolved:
        if len(types) != 2:
            return None
        shared = operand_type(*types)
        if shared is None:
            return None
        shared = null if shared.kind is Kind.NULL else shared
        if not family(shared) or not all(t == NULL or family(t) for t in types):
            return None
        return (shared, shared), result or shared

    return resolve


def comparison(types: Sequence[DataType]) -> Resolved:
    """Two arguments of any one type, after casts; VARCHAR beside another type is cast to that type."""
    if len(types) != 2:
        return None
    shared = compared(types)
    return None if shared is None else ((shared, shared), BOOLEAN)


def compared(types: Sequence[DataType]) -> DataType | None:
    """Return the type in which values are compared: the common type, VARCHAR giving way to any other, JSON to all but VARCHAR."""
    others = [t for t in types if t.kind is not Kind.VARCHAR]
    shared = common(others, compared_pair)
    if shared is not None and shared.kind is Kind.NULL and len(others) < len(types):
        return next((t for t in (JSON, BIT) if t in types), VARCHAR)
    return shared


def variadic(least: int) -> Resolve:
    """At least `least` arguments, cast to their common type; result None: that type."""

    def resolve(types: Sequence[DataType]) -> Resolved:
        shared = common(types)
        if len(types) < least or shared is None:
            return None
        return (shared,) * len(types), shared

    return resolve


def repeated(data_type: DataType, least: int, result: DataType) -> Resolve:
    """At least `least` arguments of one type."""

    def resolve(types: Sequence[DataType]) -> Resolved:
        if len(types) < least or not all(implicit(t, data_type) for t in types):
            return None
        return (data_type,) * len(types), result

    return resolve


def _is_untyped(types: Sequence[DataType]) -> bool:
    """Whether a DECIMAL meets an untyped NULL, which gives an untyped NULL in DuckDB; HUGEINT gives HUGEINT."""
    left, right = types
    return any(
        a == NULL and b.is_decimal and not b.is_whole for a, b in ((left, right), (right, left))
    )


def _operands(types: Sequence[DataType]) -> DataType | None:
    """Return the common type of two numbers, None where they have none; two NULLs are BIGINTs."""
    if len(types) != 2 or not all(t.is_numeric or t == NULL for t in types):
        return None
    if _is_untyped(types):
        return NULL
    shared = operand_type(*types)
    return BIGINT if shared == NULL else shared


def addition(types: Sequence[DataType]) -> Resolved:
    """Numbers; decimals get one digit more before the point, up to 38."""
    shared = _operands(types)
    if shared is None:
        return None
    if shared.is_decimal and not shared.is_whole:
        # Both within 18 digits and the sum 19: DuckDB widens to 128 bits.
        shared = decimal(min(shared.precision + 1, MAX_DECIMAL_DIGITS), shared.scale)
    return (shared, shared), shared


def multiplication(types: Sequence[DataType]) -> Resolved:
    """Numbers; decimals keep their scales, which add up, and digits add up to 18 or 38 at most."""
    shared = _operands(types)
    if shared is None:
        return None
    if not shared.is_decimal or shared.is_whole:
        return (shared, shared), shared
    left, right = (shared if t.kind is Kind.NULL else as_decimal(t) for t in types)
    scale = left.scale + right.scale
    if scale > MAX_DECIMAL_DIGITS:
        return None
    narrow = max(left.precision, right.precision) <= INT64_DECIMAL_DIGITS
    limit = INT64_DECIMAL_DIGITS if narrow and scale < INT64_DECIMAL_DIGITS else MAX_DECIMAL_DIGITS
    return (left, right), decimal(min(left.precision + right.precision, limit), scale)


def division(types: Sequence[DataType]) -> Resolved:
    """`/`: DOUBLE, or FLOAT where a FLOAT meets no DOUBLE; integers and decimals are cast."""
    if len(types) != 2 or not all(t.is_numeric or t == NULL for t in types):
        return None
    shared = operand_type(*types)
    quotient = shared if shared is not None and shared.kind is Kind.FLOAT else DOUBLE
    return (quotient, quotient), quotient


def integer_division(types: Sequence[DataType]) -> Resolved:
    """`//`: integers stay integers (HUGEINT too); with a decimal or float it is `/` without its fraction."""
    if len(types) != 2 or not all(t.is_numeric or t == NULL for t in types):
        return None
    shared = operand_type(*types)
    if shared is not None and shared.is_whole:
        return (shared, shared), shared
    if shared == NULL:
        return (BIGINT, BIGINT), BIGINT
    return division(types)


def remainder(types: Sequence[DataType]) -> Resolved:
    """`%`: numbers of one type; decimals that no decimal type holds together are cast to DOUBLE."""
    if len(types) == 2 and _is_untyped(types):
        return (NULL, NULL), NULL
    if len(types) == 2 and loses_digits(*types):
        return (DOUBLE, DOUBLE), DOUBLE
    return same(lambda t: t.is_numeric)(types)


def rounding(types: Sequence[DataType]) -> Resolved:
    """Round and trunc: the argument's type; a decimal loses its scale (`infer` keeps a literal number of digits)."""
    if not 1 <= len(types) <= 2:
        return None
    argument = BIGINT if types[0].kind is Kind.NULL else types[0]
    if not argument.is_numeric or not all(implicit(t, INTEGER) for t in types[1:]):
        return None
    exact = argument.is_decimal and not argument.is_whole
    result = decimal(argument.precision, 0) if exact else argument
    return (argument, *(INTEGER for _ in types[1:])), result


def whole(types: Sequence[DataType]) -> Resolved:
    """Ceil and floor: decimals lose their scale, floats stay, integers become DOUBLE as in DuckDB."""
    if len(types) != 1 or not (types[0].is_numeric or types[0] == NULL):
        return None
    argument = types[0]
    if argument.is_decimal and not argument.is_whole:
        return (argument,), decimal(argument.precision, 0)
    argument = argument if argument.is_float else DOUBLE
    return (argument,), argument

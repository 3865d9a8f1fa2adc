"""The shape of a row in the table of functions, and makers of `Function.resolve`: how argument types choose casts and the result type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal as OneOf

from ...records import dataclass
from .. import types as ty
from ..coercion import as_decimal, common, compared_pair, implicit, loses_digits, operand_type
from .value_bounds import BoundsOf

# Argument types -> (types to cast the arguments to, result type); None when the function does not take them.
# Raises nothing: the caller words the error.
Resolve = Callable[[Sequence[ty.DataType]], tuple[tuple[ty.DataType, ...], ty.DataType] | None]

# What makes calls of names, expressions and constants; arguments -> the expression that plans have instead of an aggregate of these
Means = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """One function: its name in plans, SQL spellings, types, NULL rule, and what the planner may do with it.

    Each backend's table KERNELS has its way to compute it, by name, unless the row says which function of its library does.
    """

    name: str
    resolve: Resolve
    signature: str  # for error messages: "substring(VARCHAR, BIGINT[, BIGINT])"
    aliases: tuple[str, ...] = ()
    kind: OneOf["scalar", "aggregate", "operator", "window"] = "scalar"
    # propagate: NULL in any argument gives NULL; all: NULLs in all of them do, a value in one may give a value; never: there is a
    # value for any arguments; own: anything else, as a list of NULLs, which is a value
    nulls: OneOf["propagate", "all", "own", "never"] = "propagate"
    # Of a division, when the divisor is 0: an error, or one unless that is a float
    by_zero: OneOf["", "error", "error if exact"] = ""
    total: bool = False  # has a value whenever its arguments have, of one row at least; others may make a NULL of their own
    raises: bool = True  # for some values, rather than to give one for all
    # Whether, with these constants behind its first argument, it does so for none of that
    safe_with: Callable[..., bool] | None = None
    # Of an infinite moment among its arguments: NULL; that infinity, of the first moment; an error
    infinite: OneOf["", "null", "kept", "error"] = ""
    # Functions that compute it of values that are not NULL, "" where there is none
    numpy: str = ""
    libcudf: str = ""  # of its unary or binary operators
    math: str = ""  # of Python's, which kernels have for both targets
    bounds: BoundsOf | None = None  # of its values, where those of its arguments are known
    # Its values are whole numbers though their type may have others: of any argument alone, or of arguments that are
    whole: OneOf["", "alone", "of whole"] = ""
    of_lists: str = ""  # the function that its name is for lists
    of_bits: str = ""  # and for BIT
    takes_lists: bool = False  # and arrays as lists
    sorts: bool = False  # elements, in an order that its text may leave out
    reverses: str = ""  # the function that sorts the other way
    # Of operators
    negated: str = ""  # the operator that is TRUE where this is FALSE, FALSE where it is TRUE, and NULL where it is
    mirrored: str = ""  # the comparison that says the same of exchanged sides
    bound: OneOf["", "lower", "upper", "both"] = (
        ""  # what a comparison says that the right side is for the left
    )
    or_equal: bool = False  # a bound that the left side may reach
    # Of aggregates
    means: Means | None = None
    merge: str = ""  # the aggregate that makes that of all rows of those of parts, if one does
    in_order: bool = False  # and the parts have to come in their order
    fold: str = ""  # with which a kernel adds a row's value to a group's accumulator, if one can
    keeps_values: bool = False  # of each group, until all of its rows have come
    idempotent: bool = False  # a value that comes again changes nothing, and so DISTINCT does not
    ordered: bool = False  # the result may depend on the order of the rows
    counts: bool = False  # is 0 for no rows, where others are NULL
    moments: bool = (
        False  # is made of counts, means and products of deviations, which parts add up to
    )
    # Of what goes over windows
    reach: OneOf["frame", "peers", "partition"] = (
        "frame"  # rows that it reads, peers with all before them
    )
    is_rank: bool = False  # is at least the row's rank
    orderable: bool = True  # may have an ORDER BY of its own

    ddof: int = 0  # by how many values less than there are it divides: of fewer it is NULL
    root: bool = False  # is the square root of what it divides

    @property
    def orders(self) -> bool:
        """Whether a comparison asks which of two values is the larger one."""
        return self.bound in ("lower", "upper")

    @property
    def adds_values(self) -> bool:
        """Whether a kernel adds up values, so that many rows may make more than an accumulator holds."""
        return self.fold == "add" and self.merge in ("", self.name)

    @property
    def tested(self) -> bool:
        """Whether a kernel can have its result in a condition on groups: 64 bits hold what that is made of."""
        return bool(self.fold) and not self.moments

    @property
    def merges(self) -> bool:
        """Whether the aggregate of the aggregates of parts, in any order, is that of all rows."""
        return self.merge == self.name and not self.in_order

    @property
    def sign(self) -> str:
        """What an operator has between its arguments, "" for a function and before a single argument."""
        return " ".join(self.signature.split()[1:-1]).lower() if self.kind == "operator" else ""


def operator(
    name: str, resolve: Resolve, signature: str, *aliases: str, **traits: Any
) -> FunctionRow:
    """Return the row of a function that SQL writes with a sign or a keyword."""
    return FunctionRow(name, resolve, signature, aliases, "operator", **traits)


Resolved = tuple[tuple[ty.DataType, ...], ty.DataType] | None
Family = Callable[[ty.DataType], bool]


def fixed(*parameters: ty.DataType, result: ty.DataType, optional: int = 0) -> Resolve:
    """Exactly these parameters, of which the last `optional` may be left out; arguments widen implicitly."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        if not len(parameters) - optional <= len(types) <= len(parameters):
            return None
        targets = parameters[: len(types)]
        if not all(implicit(t, p) for t, p in zip(types, targets, strict=True)):
            return None
        return targets, result

    return resolve


def of_any(count: int = 1, result: ty.DataType | None = None) -> Resolve:
    """So many values of any types; the result is of the first one's type, or as told."""
    return lambda types: (tuple(types), result or types[0]) if len(types) == count else None


def overloads(*candidates: Resolve) -> Resolve:
    """The first of several signatures that takes the arguments."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        return next((found for c in candidates if (found := c(types)) is not None), None)

    return resolve


def any_of(
    *kinds: ty.Kind, result: ty.DataType | None = None, null: ty.DataType = ty.NULL
) -> Resolve:
    """One argument of one of these kinds, kept as it is; NULL counts as `null`; result None: the argument's type."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        if len(types) != 1:
            return None
        argument = null if types[0].kind is ty.Kind.NULL else types[0]
        if argument.kind not in kinds and argument != null:
            return None
        return (argument,), result or argument

    return resolve


def unary(
    family: Family, result: ty.DataType | None = None, null: ty.DataType = ty.BIGINT
) -> Resolve:
    """One argument of `family`, kept as it is; result None: the argument's type."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        if len(types) != 1:
            return None
        argument = null if types[0].kind is ty.Kind.NULL else types[0]
        return ((argument,), result or argument) if family(argument) else None

    return resolve


def same(
    family: Family, result: ty.DataType | None = None, null: ty.DataType = ty.BIGINT
) -> Resolve:
    """Two arguments of `family`, cast to their common type, which the result has."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        if len(types) != 2:
            return None
        shared = operand_type(*types)
        if shared is None:
            return None
        shared = null if shared.kind is ty.Kind.NULL else shared
        if not family(shared) or not all(t == ty.NULL or family(t) for t in types):
            return None
        return (shared, shared), result or shared

    return resolve


def comparison(types: Sequence[ty.DataType]) -> Resolved:
    """Two arguments of any one type, after casts; VARCHAR beside another type is cast to that type."""
    if len(types) != 2:
        return None
    shared = compared(types)
    return None if shared is None else ((shared, shared), ty.BOOLEAN)


def compared(types: Sequence[ty.DataType]) -> ty.DataType | None:
    """Return the type in which values are compared: the common type, VARCHAR giving way to any other, JSON to all but VARCHAR."""
    others = [t for t in types if t.kind is not ty.Kind.VARCHAR]
    shared = common(others, compared_pair)
    if shared is not None and shared.kind is ty.Kind.NULL and len(others) < len(types):
        return next((t for t in (ty.JSON, ty.BIT) if t in types), ty.VARCHAR)
    return shared


def variadic(least: int) -> Resolve:
    """At least `least` arguments, cast to their common type; result None: that type."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        shared = common(types)
        if len(types) < least or shared is None:
            return None
        return (shared,) * len(types), shared

    return resolve


def repeated(data_type: ty.DataType, least: int, result: ty.DataType) -> Resolve:
    """At least `least` arguments of one type."""

    def resolve(types: Sequence[ty.DataType]) -> Resolved:
        if len(types) < least or not all(implicit(t, data_type) for t in types):
            return None
        return (data_type,) * len(types), result

    return resolve


def _is_untyped(types: Sequence[ty.DataType]) -> bool:
    """Whether a DECIMAL meets an untyped NULL, which gives an untyped NULL in DuckDB; HUGEINT gives HUGEINT."""
    left, right = types
    return any(
        a == ty.NULL and b.is_decimal and not b.is_whole for a, b in ((left, right), (right, left))
    )


def _operands(types: Sequence[ty.DataType]) -> ty.DataType | None:
    """Return the common type of two numbers, None where they have none; two NULLs are BIGINTs."""
    if len(types) != 2 or not all(t.is_numeric or t == ty.NULL for t in types):
        return None
    if _is_untyped(types):
        return ty.NULL
    shared = operand_type(*types)
    return ty.BIGINT if shared == ty.NULL else shared


def addition(types: Sequence[ty.DataType]) -> Resolved:
    """Numbers; decimals get one digit more before the point, up to 38."""
    shared = _operands(types)
    if shared is None:
        return None
    if shared.is_decimal and not shared.is_whole:
        # Both within 18 digits and the sum 19: DuckDB widens to 128 bits.
        shared = ty.decimal(min(shared.precision + 1, ty.MAX_DECIMAL_DIGITS), shared.scale)
    return (shared, shared), shared


def multiplication(types: Sequence[ty.DataType]) -> Resolved:
    """Numbers; decimals keep their scales, which add up, and digits add up to 18 or 38 at most."""
    shared = _operands(types)
    if shared is None:
        return None
    if not shared.is_decimal or shared.is_whole:
        return (shared, shared), shared
    left, right = (shared if t.kind is ty.Kind.NULL else as_decimal(t) for t in types)
    scale = left.scale + right.scale
    if scale > ty.MAX_DECIMAL_DIGITS:
        return None
    narrow = max(left.precision, right.precision) <= ty.INT64_DECIMAL_DIGITS
    limit = (
        ty.INT64_DECIMAL_DIGITS
        if narrow and scale < ty.INT64_DECIMAL_DIGITS
        else ty.MAX_DECIMAL_DIGITS
    )
    return (left, right), ty.decimal(min(left.precision + right.precision, limit), scale)


def division(types: Sequence[ty.DataType]) -> Resolved:
    """`/`: DOUBLE, or FLOAT where a FLOAT meets no DOUBLE; integers and decimals are cast."""
    if len(types) != 2 or not all(t.is_numeric or t == ty.NULL for t in types):
        return None
    shared = operand_type(*types)
    quotient = shared if shared is not None and shared.kind is ty.Kind.FLOAT else ty.DOUBLE
    return (quotient, quotient), quotient


def integer_division(types: Sequence[ty.DataType]) -> Resolved:
    """`//`: integers stay integers (HUGEINT too); with a decimal or float it is `/` without its fraction."""
    if len(types) != 2 or not all(t.is_numeric or t == ty.NULL for t in types):
        return None
    shared = operand_type(*types)
    if shared is not None and shared.is_whole:
        return (shared, shared), shared
    if shared == ty.NULL:
        return (ty.BIGINT, ty.BIGINT), ty.BIGINT
    return division(types)


def remainder(types: Sequence[ty.DataType]) -> Resolved:
    """`%`: numbers of one type; decimals that no decimal type holds together are cast to DOUBLE."""
    if len(types) == 2 and _is_untyped(types):
        return (ty.NULL, ty.NULL), ty.NULL
    if len(types) == 2 and loses_digits(*types):
        return (ty.DOUBLE, ty.DOUBLE), ty.DOUBLE
    return same(lambda t: t.is_numeric)(types)


def rounding(types: Sequence[ty.DataType]) -> Resolved:
    """Round and trunc: the argument's type; a decimal loses its scale (`infer` keeps a literal number of digits)."""
    if not 1 <= len(types) <= 2:
        return None
    argument = ty.BIGINT if types[0].kind is ty.Kind.NULL else types[0]
    if not argument.is_numeric or not all(implicit(t, ty.INTEGER) for t in types[1:]):
        return None
    exact = argument.is_decimal and not argument.is_whole
    result = ty.decimal(argument.precision, 0) if exact else argument
    return (argument, *(ty.INTEGER for _ in types[1:])), result


def whole(types: Sequence[ty.DataType]) -> Resolved:
    """Ceil and floor: decimals lose their scale, floats stay, integers become DOUBLE as in DuckDB."""
    if len(types) != 1 or not (types[0].is_numeric or types[0] == ty.NULL):
        return None
    argument = types[0]
    if argument.is_decimal and not argument.is_whole:
        return (argument,), ty.decimal(argument.precision, 0)
    argument = argument if argument.is_float else ty.DOUBLE
    return (argument,), argument

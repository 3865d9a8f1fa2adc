"""Values that must be known while planning: LIMIT, bounds of range(), options of read_parquet, settings."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from fuseline.errors import InvalidQuery, TypeMismatch, Unsupported
from fuseline.plan.expr import Call, Cast, Expr, Literal, Value
from fuseline.plan.types import DIGITS


def plain_constant(expr: Expr, what: str) -> Value:
    """Return the value of a literal, a cast literal or integer arithmetic over them; `what` begins the error."""
    match expr:
        case Literal(value=value):
            return value
        case Cast(operand=operand):
            return plain_constant(operand, what)
        case Call(function=function, args=args):
            values = [plain_constant(arg, what) for arg in args]
            numbers = [v for v in values if isinstance(v, int | Decimal)]
            if None in values:
                return None
            if len(numbers) == len(values):
                result = _arithmetic(function, numbers)
                if result is not None:
                    return result
    raise Unsupported(f"{what} must be a constant.", expr.span)


def _arithmetic(function: str, numbers: list[int | Decimal]) -> int | Decimal | None:
    match function, numbers:
        case "neg", [x]:
            return DIGITS.minus(x) if isinstance(x, Decimal) else -x
        case "add" | "sub" | "mul", [x, y] if isinstance(x, int) and isinstance(y, int):
            return {"add": x + y, "sub": x - y, "mul": x * y}[function]
        case "add", [x, y]:
            return DIGITS.add(x, y)
        case "sub", [x, y]:
            return DIGITS.subtract(x, y)
        case "mul", [x, y]:
            return DIGITS.multiply(x, y)
    return None


def integer_constant(expr: Expr, what: str) -> int | None:
    """Return the integer that `expr` is, rounded as a cast rounds; None for NULL."""
    value = plain_constant(expr, what)
    match value:
        case None:
            return None
        case bool() | str():
            pass
        case int():
            return value
        case Decimal() | float():
            return int(Decimal(value).quantize(Decimal(1), ROUND_HALF_UP, DIGITS))
    raise TypeMismatch(f"{what} must be an integer, not {expr.type}.", expr.span)


def row_count(expr: Expr, what: str) -> int | None:
    """Return the number of rows that LIMIT or OFFSET names; None for NULL."""
    count = integer_constant(expr, what)
    if count is not None and count < 0:
        raise InvalidQuery(f"{what} cannot be negative.", expr.span)
    return count

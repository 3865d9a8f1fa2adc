"""Python's operators on expressions: comparisons, `& | ~`, arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import InvalidQuery
from ...fence import fenced
from ...plan import infer
from .unbound import Operand, Unbound, call_name, operand

if TYPE_CHECKING:
    from .expression import Expression


@fenced
class OperatorMethods(Unbound):
    """`==`, `<` and so on build comparisons, `&`, `|`, `~` are AND, OR, NOT; plain Python values become literals."""

    __array_ufunc__ = None  # NumPy's scalars and arrays leave operators to this class

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise InvalidQuery(
            "An expression has no truth value before it runs: combine conditions with & | ~, not and/or/not."
        )

    def __eq__(self, other: Operand) -> Expression:  # type: ignore[override]
        return self._compared("eq", other, "==", "is_null()")

    def __ne__(self, other: Operand) -> Expression:  # type: ignore[override]
        return self._compared("ne", other, "!=", "is_not_null()")

    def _compared(self, function: str, other: Operand, sign: str, remedy: str) -> Expression:
        if other is None:
            raise InvalidQuery(
                f"{self.name} {sign} None is NULL for each row, as in SQL: write col(...).{remedy}, or lit(None) if you mean it."
            )
        return self._call(function, other)

    def __lt__(self, other: Operand) -> Expression:
        return self._call("lt", other)

    def __le__(self, other: Operand) -> Expression:
        return self._call("le", other)

    def __gt__(self, other: Operand) -> Expression:
        return self._call("gt", other)

    def __ge__(self, other: Operand) -> Expression:
        return self._call("ge", other)

    def __and__(self, other: Operand) -> Expression:
        return self._call("and", other)

    def __rand__(self, other: Operand) -> Expression:
        return self._behind("and", other)

    def __or__(self, other: Operand) -> Expression:
        return self._call("or", other)

    def __ror__(self, other: Operand) -> Expression:
        return self._behind("or", other)

    def __invert__(self) -> Expression:
        return self._call("not")

    def __add__(self, other: Operand) -> Expression:
        return self._call("add", other)

    def __radd__(self, other: Operand) -> Expression:
        return self._behind("add", other)

    def __sub__(self, other: Operand) -> Expression:
        return self._call("sub", other)

    def __rsub__(self, other: Operand) -> Expression:
        return self._behind("sub", other)

    def __mul__(self, other: Operand) -> Expression:
        return self._call("mul", other)

    def __rmul__(self, other: Operand) -> Expression:
        return self._behind("mul", other)

    def __truediv__(self, other: Operand) -> Expression:
        return self._call("div", other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return self._behind("div", other)

    def __floordiv__(self, other: Operand) -> Expression:
        return self._call("int_div", other)

    def __rfloordiv__(self, other: Operand) -> Expression:
        return self._behind("int_div", other)

    def __mod__(self, other: Operand) -> Expression:
        return self._call("mod", other)

    def __rmod__(self, other: Operand) -> Expression:
        return self._behind("mod", other)

    def __pow__(self, other: Operand) -> Expression:
        return self._call("power", other)

    def __rpow__(self, other: Operand) -> Expression:
        return self._behind("power", other)

    def __abs__(self) -> Expression:
        return self._call("abs")

    def __neg__(self) -> Expression:
        return self._call("neg")

    def _behind(self, function: str, first: Operand) -> Expression:
        """Return an operator whose left side is another value."""
        left = operand(first)
        name = call_name(function, [left.name, self.name])
        return self._made(lambda bound: infer.call(function, bound[::-1]), name, left)

"""Methods of expressions that give a value for the values of one row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import EllipsisType
from typing import TYPE_CHECKING

from ...errors import InvalidQuery, TypeMismatch, WrongArguments, check_name, check_text, shown
from ...fence import fenced
from ...plan import derived, infer
from ...plan.copies import fresh
from ...plan.expr import Expr, Quantified
from ...plan.logical import Logical
from ...plan.types import DataType
from ..plan_columns import cast_columns
from .unbound import Operand, Unbound, operand

if TYPE_CHECKING:
    from typing import Self

    from .expression import Expression


@fenced
class ValueMethods(Unbound):
    """Casts, NULLs, choices and functions of numbers."""

    def alias(self, name: str) -> Self:
        """Name the result."""
        check_name(name, "column")
        return replace(self, name=name, rename_=None)

    def keep_name(self) -> Self:
        """Name the result as the first column that it reads: `(col("a", "b") * 2).keep_name()`."""
        return replace(self, rename_=str)

    def prefix(self, text: str) -> Self:
        """Name the result as the first column that it reads, with a text before it."""
        return self._renamed("prefix", text, lambda name: text + name)

    def suffix(self, text: str) -> Self:
        """Name the result as the first column that it reads, with a text behind it."""
        return self._renamed("suffix", text, lambda name: name + text)

    def _renamed(self, what: str, text: object, rename: Callable[[str], str]) -> Self:
        if not isinstance(text, str):
            raise WrongArguments(f"{what}() takes a text, not {shown(text)}.")
        check_text(text, "The text")
        return replace(self, rename_=rename)

    def desc(self) -> Self:
        """As a sort key: largest first."""
        return replace(self, descending=True)

    def asc(self) -> Self:
        return replace(self, descending=False)

    def nulls_first(self) -> Self:
        return replace(self, nulls_first_=True)

    def nulls_last(self) -> Self:
        return replace(self, nulls_first_=False)

    def cast(self, data_type: DataType | str, safe: bool = False) -> Expression:
        """CAST, or with `safe` TRY_CAST, to a type or the SQL name of one."""
        if not isinstance(data_type, DataType | str):
            raise InvalidQuery(
                f'cast takes the SQL name of a type, such as "integer", not {shown(data_type)}.'
            )
        target = infer.parse_type(data_type) if isinstance(data_type, str) else data_type
        made = self._made(lambda bound: infer.cast(bound[0], target, safe=safe), self.name)
        return replace(made, rename_=self.rename_)

    def is_null(self) -> Expression:
        return self._call("is_null")

    def is_not_null(self) -> Expression:
        return self._call("is_not_null")

    def is_nan(self) -> Expression:
        return self._function("isnan")

    def is_finite(self) -> Expression:
        return self._function("isfinite")

    def eq_null(self, other: Operand) -> Expression:
        """IS NOT DISTINCT FROM: NULL equals NULL, and the answer is never NULL."""
        return self._call("is_not_distinct", other)

    def between(self, low: Operand, high: Operand, closed: str = "both") -> Expression:
        """Whether the value lies between two others, which are inside too unless `closed` is "left", "right" or "none"."""
        if not isinstance(closed, str) or closed not in ("both", "left", "right", "none"):
            raise InvalidQuery(
                f'`closed` is "both", "left", "right" or "none", not {shown(closed)}.'
            )
        above, below = operand(low), operand(high)
        lower = self._call("ge" if closed in ("both", "left") else "gt", above)
        upper = self._call("le" if closed in ("both", "right") else "lt", below)
        return lower._call("and", upper)

    is_between = between

    def is_in(self, values: object) -> Expression:
        """IN a list of values, or the rows of a frame of one column."""
        plan = getattr(values, "plan", None)
        if isinstance(plan, Logical):
            return self._in_rows(plan)
        single = isinstance(values, str | bytes | Unbound) or getattr(values, "ndim", 1) == 0
        if single or not isinstance(values, Iterable):
            raise InvalidQuery(f"is_in takes a list of values, not {shown(values)}.")
        items = [operand(v) for v in values]
        listed = ", ".join(i.name for i in items)
        return self._made(
            lambda bound: infer.in_list(bound[0], bound[1:]), f"({self.name} IN ({listed}))", *items
        )

    def _in_rows(self, plan: Logical) -> Expression:
        if len(plan.columns) != 1:
            raise InvalidQuery(
                f"is_in takes a frame of one column, and this one has {len(plan.columns)}: select(...) one of them first."
            )

        def build(bound: list[Expr]) -> Expr:
            rows, _ = fresh(plan)
            try:
                common = infer.common_type([bound[0].type, rows.columns[0].type])
            except TypeMismatch as error:
                raise TypeMismatch(f"is_in: {error.message}") from None
            value = infer.coerce(bound[0], common)
            return Quantified("eq", "any", (value,), cast_columns(rows, [common]))

        return self._made(build, f"({self.name} IN (...))")

    def like(self, pattern: Operand) -> Expression:
        return self._call("like", pattern)

    def ilike(self, pattern: Operand) -> Expression:
        return self._call("ilike", pattern)

    def replace(
        self, old: object, new: object = None, *, default: Operand | EllipsisType = ...
    ) -> Expression:
        """Return other values for some: `replace({1: "one", 2: "two"})`, or `replace([1, 2], ["one", "two"])`.

        The others stay, or become `default` (None for NULL).  For parts of texts there is `.str.replace`.
        """
        if isinstance(old, Mapping):
            if new is not None:
                raise WrongArguments("replace() takes a dictionary, or old and new values.")
            pairs = list(old.items())
        else:
            olds = old if isinstance(old, list | tuple) else [old]
            news = new if isinstance(new, list | tuple) else [new] * len(olds)
            if len(olds) != len(news):
                raise WrongArguments(
                    f"replace() has {len(olds)} old values and {len(news)} new ones."
                )
            pairs = list(zip(olds, news, strict=True))
        if not pairs:
            raise InvalidQuery("replace() needs at least one value to replace.")
        count = len(pairs)
        rest = [] if isinstance(default, EllipsisType) else [operand(default)]

        def build(bound: list[Expr]) -> Expr:
            value, befores, afters = (
                bound[0],
                bound[1 : count + 1],
                bound[count + 1 : 2 * count + 1],
            )
            tests = [infer.call("is_not_distinct", [value, before]) for before in befores]
            return infer.case(tests, afters, bound[-1] if rest else value)

        operands = [*(operand(o) for o, _ in pairs), *(operand(n) for _, n in pairs), *rest]
        return self._made(build, self.name, *operands)

    def floor_div(self, other: Operand) -> Expression:
        """The quotient rounded down, as `//` of Python does it; `//` here is SQL's, which rounds towards zero. NULL for a divisor of 0."""

        def build(bound: list[Expr]) -> Expr:
            value, divisor = bound
            zero, null = infer.literal(0), infer.literal(None)
            if value.type.is_whole and divisor.type.is_whole:
                quotient = infer.call("int_div", bound)
                inexact = infer.call("ne", [infer.call("mod", bound), zero])
                below = [infer.call("lt", [side, zero]) for side in bound]
                up = infer.call("and", [inexact, infer.call("ne", below)])
                lower = infer.call("sub", [quotient, infer.literal(1)])
                quotient = infer.case([up], [lower], quotient)
            else:
                quotient = derived.function("floor", [infer.call("div", bound)])
            return infer.case([infer.call("ne", [divisor, zero])], [quotient], null)

        return self._made(build, f"floor_div({self.name}, {operand(other).name})", other)

    def round(self, digits: int = 0) -> Expression:
        return self._function("round", *([digits] if digits else []))

    def floor(self) -> Expression:
        return self._function("floor")

    def ceil(self) -> Expression:
        return self._function("ceil")

    def abs(self) -> Expression:
        return self._call("abs")

    def sqrt(self) -> Expression:
        return self._function("sqrt")

    def exp(self) -> Expression:
        return self._function("exp")

    def log(self, base: float | None = None) -> Expression:
        """Return the natural logarithm, or the one of another base."""
        if base is None:
            return self._function("ln")
        if not isinstance(base, int | float) or not 0 < base < math.inf or base == 1:
            raise WrongArguments(f"A base is a number above 0 other than 1, not {shown(base)}.")
        return self._function("ln")._call("div", operand(math.log(base)))

    def sign(self) -> Expression:
        return self._function("sign")

    def clip(self, low: Operand = None, high: Operand = None) -> Expression:
        """Return the value, or the limit beyond which it lies; NULL stays NULL."""

        def build(bound: list[Expr]) -> Expr:
            value, rest = bound[0], bound[1:]
            clipped = value
            if low is not None:
                clipped = infer.call("greatest", [clipped, rest.pop(0)])
            if high is not None:
                clipped = infer.call("least", [clipped, rest.pop(0)])
            return infer.case([infer.call("is_not_null", [value])], [clipped], infer.literal(None))

        limits = [limit for limit in (low, high) if limit is not None]
        return self._made(build, self.name, *limits)

    def _function(self, function: str, *others: Operand) -> Expression:
        """Return any scalar function of SQL."""
        return self._call(function, *others, how=derived.function)

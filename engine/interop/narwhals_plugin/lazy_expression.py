"""A Narwhals expression: a function from a frame to Expressions, with the window that each gets by `over`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from narwhals._sql.expr import SQLExpr
from narwhals._utils import NO_DEFAULT, Implementation, Version, extend_bool, floor_mod

from ...frame.expressions.expression import Expression, lit
from ...frame.functions import count, fn, when, window
from .expression_namespaces import (
    NarwhalsLists,
    NarwhalsMaps,
    NarwhalsMoments,
    NarwhalsStructs,
    NarwhalsTexts,
)
from .native_calls import column, namespace_of, sort_keys, windowed

if TYPE_CHECKING:
    from typing import Self

    from narwhals._compliant import WindowInputs
    from narwhals._compliant.typing import AliasNames, EvalNames, EvalSeries, WindowFunction
    from narwhals._typing import NoDefault
    from narwhals._utils import _LimitedContext
    from narwhals.typing import FillNullStrategy, IntoDType, RollingInterpolationMethod

    from .lazy_frame import NarwhalsFrame
    from .narwhals_namespace import NarwhalsNamespace


class NarwhalsExpression(SQLExpr["NarwhalsFrame", Expression]):
    """What `nw.col("a").mean()` becomes: Expressions of the columns that it stands for."""

    _implementation = Implementation.UNKNOWN

    def __init__(
        self,
        call: EvalSeries[NarwhalsFrame, Expression],
        window_function: WindowFunction[NarwhalsFrame, Expression] | None = None,
        *,
        evaluate_output_names: EvalNames[NarwhalsFrame],
        alias_output_names: AliasNames | None,
        version: Version,
        implementation: Implementation = Implementation.UNKNOWN,
    ) -> None:
        self._call = call
        self._window_function = window_function
        self._evaluate_output_names = evaluate_output_names
        self._alias_output_names = alias_output_names
        self._version = version

    def __narwhals_namespace__(self) -> NarwhalsNamespace:
        return namespace_of(self._version)

    @classmethod
    def from_column_names(
        cls, evaluate_column_names: EvalNames[NarwhalsFrame], /, *, context: _LimitedContext
    ) -> Self:
        return cls(
            lambda frame: [column(name) for name in evaluate_column_names(frame)],
            evaluate_output_names=evaluate_column_names,
            alias_output_names=None,
            version=context._version,
        )

    @classmethod
    def from_column_indices(cls, *column_indices: int, context: _LimitedContext) -> Self:
        return cls(
            lambda frame: [column(frame.columns[i]) for i in column_indices],
            evaluate_output_names=cls._eval_names_indices(column_indices),
            alias_output_names=None,
            version=context._version,
        )

    @classmethod
    def _alias_native(cls, expr: Expression, name: str) -> Expression:
        return expr.alias(name)

    def broadcast(self) -> Self:
        return self.over([], [])

    # What the base leaves to each backend

    def _count_star(self) -> Expression:
        return count()

    def _window_expression(
        self,
        expr: Expression,
        partition_by: Sequence[str | Expression] = (),
        order_by: Sequence[str | Expression] = (),
        rows_start: int | None = None,
        rows_end: int | None = None,
        *,
        descending: Sequence[bool] | None = None,
        nulls_last: Sequence[bool] | None = None,
    ) -> Expression:
        rows = (rows_start, rows_end)
        return windowed(expr, partition_by, order_by, rows, descending, nulls_last)

    def _first(self, expr: Expression, *order_by: str) -> Expression:
        return expr.first().order_by(_nulls_first(order_by))

    def _last(self, expr: Expression, *order_by: str) -> Expression:
        return expr.last().order_by(_nulls_first(order_by))

    def _any_value(self, expr: Expression, *, ignore_nulls: bool) -> Expression:
        return expr.any_value() if ignore_nulls else expr.first()

    def _singleton_list(self, expr: Expression) -> Expression:
        return lit([expr])

    def _list_first(self, expr: Expression) -> Expression:
        return expr.list.first()

    # Operators

    def __mod__(self, other: Self) -> Self:
        return self._with_binary(floor_mod, other)

    def __rmod__(self, other: Self) -> Self:
        return self._with_binary(lambda expr, other: floor_mod(other, expr), other).alias("literal")

    def __invert__(self) -> Self:
        return self._with_elementwise(operator.invert)

    def __neg__(self) -> Self:
        return self._with_elementwise(operator.neg)

    # Aggregates

    def len(self) -> Self:
        return self._with_callable(lambda _: count())

    def null_count(self) -> Self:
        return self._with_aggregates(lambda expr, over: over(count()) - over(expr.count()))

    def skew(self) -> Self:
        def sample_skewness(
            expr: Expression, over: Callable[[Expression], Expression]
        ) -> Expression:
            n = over(expr.count())
            adjusted = over(fn.skewness(expr)) * (n - 2) / (n * (n - 1)).sqrt()
            few = when(n == 0).then(None).when(n == 1).then(float("nan")).when(n == 2).then(0.0)
            return few.otherwise(adjusted)

        return self._with_aggregates(sample_skewness)

    def kurtosis(self) -> Self:
        return self._with_callable(fn.kurtosis_pop)

    def quantile(self, quantile: float, interpolation: RollingInterpolationMethod) -> Self:
        if interpolation != "linear":
            raise NotImplementedError(
                f'A quantile is "linear" between two values, and {interpolation!r} is asked for.'
            )
        return self._with_callable(lambda expr: expr.quantile(quantile))

    def _with_aggregates(
        self, build: Callable[[Expression, Callable[[Expression], Expression]], Expression]
    ) -> Self:
        """Return what is built of several aggregates, each of which gets the window by itself."""

        def over_each(
            frame: NarwhalsFrame, inputs: WindowInputs[Expression]
        ) -> Sequence[Expression]:
            return [build(e, lambda a: windowed(a, inputs.partition_by)) for e in self(frame)]

        return self._with_callable(lambda expr: build(expr, lambda a: a), over_each)

    # Values of one row

    def is_nan(self) -> Self:
        return self._with_elementwise(Expression.is_nan)

    def is_finite(self) -> Self:
        return self._with_elementwise(Expression.is_finite)

    def is_in(self, other: Sequence[object]) -> Self:
        values = [value for value in other if value is not None]

        def among(expr: Expression) -> Expression:
            if values:
                return expr.is_in(values)
            return when(expr.is_not_null()).then(False)

        return self._with_elementwise(among)

    def fill_null(
        self, value: Self | None, strategy: FillNullStrategy | None, limit: int | None
    ) -> Self:
        if strategy is None:
            return self._with_elementwise(
                lambda expr, value: expr.fill_null(value), expression_args={"value": value}
            )
        forward = strategy == "forward"
        name = "last_value" if forward else "first_value"
        rows = (None if limit is None else -limit, 0) if forward else (0, limit)

        def fill(frame: NarwhalsFrame, inputs: WindowInputs[Expression]) -> Sequence[Expression]:
            return [
                windowed(
                    window(name, expr, ignore_nulls=True),
                    inputs.partition_by,
                    inputs.order_by,
                    rows,
                )
                for expr in self(frame)
            ]

        return self._with_window_function(fill)

    def cast(self, dtype: IntoDType) -> Self:
        def plain(frame: NarwhalsFrame) -> Sequence[Expression]:
            target = frame.data_type(dtype)
            return [expr.cast(target) for expr in self(frame)]

        def over(frame: NarwhalsFrame, inputs: WindowInputs[Expression]) -> Sequence[Expression]:
            target = frame.data_type(dtype)
            return [expr.cast(target) for expr in self.window_function(frame, inputs)]

        return self._alike(plain, over)

    def replace_strict(
        self,
        default: Self | NoDefault,
        old: Sequence[object],
        new: Sequence[object],
        *,
        return_dtype: IntoDType | None,
    ) -> Self:
        if default is NO_DEFAULT:
            raise ValueError(
                "`replace_strict` requires an explicit value for `default` for fuseline backend."
            )

        def replaced(frame: NarwhalsFrame) -> Sequence[Expression]:
            rest = frame._evaluate_single_output_expr(default)
            made = [
                expr.replace(list(old), list(new), default=rest) if old else rest
                for expr in self(frame)
            ]
            if return_dtype is None:
                return made
            target = frame.data_type(return_dtype)
            return [expr.cast(target) for expr in made]

        return self._alike(replaced, None)

    def _alike(
        self,
        call: EvalSeries[NarwhalsFrame, Expression],
        window_function: WindowFunction[NarwhalsFrame, Expression] | None,
    ) -> Self:
        """Return an expression of the same names."""
        return self.__class__(
            call,
            window_function,
            evaluate_output_names=self._evaluate_output_names,
            alias_output_names=self._alias_output_names,
            version=self._version,
        )

    # Functions of one type

    @property
    def str(self) -> NarwhalsTexts:
        return NarwhalsTexts(self)

    @property
    def dt(self) -> NarwhalsMoments:
        return NarwhalsMoments(self)

    @property
    def list(self) -> NarwhalsLists:
        return NarwhalsLists(self)

    @property
    def map(self) -> NarwhalsMaps:
        return NarwhalsMaps(self)

    @property
    def struct(self) -> NarwhalsStructs:
        return NarwhalsStructs(self)


def _nulls_first(names: Sequence[str]) -> Sequence[Expression]:
    flags = extend_bool(False, len(names))
    return sort_keys(names, flags, flags)

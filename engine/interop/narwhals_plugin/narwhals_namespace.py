"""The namespace of a version of Narwhals' API: what `nw.lit`, `nw.concat`, `nw.len` and `nw.scan_parquet` become.

What code for `narwhals.stable.v1` gets, such as Altair's and Plotly's: a frame of rows, which are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add, or_
from typing import TYPE_CHECKING

import pyarrow as pa
from narwhals._arrow.dataframe import ArrowDataFrame
from narwhals._compliant import CompliantSelector, LazySelectorNamespace
from narwhals._expression_parsing import (
    combine_alias_output_names,
    combine_evaluate_output_names,
)
from narwhals._sql.namespace import SQLNamespace
from narwhals._utils import (
    Implementation,
    Version,
    check_column_names_are_unique,
    validate_separators,
)

import fuseline

from ...frame.expressions.expression import Expression, lit
from ...frame.frame import Frame
from ...frame.functions import coalesce, count, fn, when
from ...frame.library_columns import with_plain_integers
from .lazy_expression import NarwhalsExpression
from .lazy_frame import NarwhalsFrame
from .native_calls import function, named_values, windowed

if TYPE_CHECKING:
    from narwhals._compliant.window import WindowInputs
    from narwhals.dtypes import DType
    from narwhals.typing import (
        ConcatMethod,
        CorrelationMethod,
        IntoDType,
        NormalizedSource,
        PythonLiteral,
    )

    Over = Callable[[Expression], Expression]


class NarwhalsNamespace(SQLNamespace[NarwhalsFrame, NarwhalsExpression, Frame, Expression]):
    """Functions of Narwhals that are of no frame and no expression."""

    _implementation = Implementation.UNKNOWN

    def __init__(self, *, version: Version) -> None:
        self._version = version

    @property
    def selectors(self) -> NarwhalsSelectors:
        return NarwhalsSelectors.from_namespace(self)

    @property
    def _expr(self) -> type[NarwhalsExpression]:
        return NarwhalsExpression

    @property
    def _lazyframe(self) -> type[NarwhalsFrame]:
        return NarwhalsFrame

    def _function(self, name: str, *args: Expression) -> Expression:
        return function(name, *args)

    def _lit(self, value: PythonLiteral) -> Expression:
        return lit(value)

    def _when(
        self, condition: Expression, value: Expression, otherwise: Expression | None = None
    ) -> Expression:
        chosen = when(condition).then(value)
        return chosen if otherwise is None else chosen.otherwise(otherwise)

    def _coalesce(self, *exprs: Expression) -> Expression:
        return coalesce(*exprs)

    def from_native(self, data: Frame, /) -> NarwhalsFrame | RowsAtNeed:
        if self._version is Version.V1:
            return RowsAtNeed(data, version=self._version)
        return NarwhalsFrame(data, version=self._version)

    # Files, which the default connection reads

    def scan_csv(
        self, source: NormalizedSource, *, separator: str = ",", **kwds: object
    ) -> NarwhalsFrame:
        validate_separators(separator, ("delimiter", "delim", "sep"), kwds)
        return self._scanned(fuseline.read_csv(source, None, delim=separator, **kwds))

    def scan_parquet(self, source: NormalizedSource, **kwds: object) -> NarwhalsFrame:
        return self._scanned(fuseline.read_parquet(source, None, **kwds))

    def _scanned(self, frame: Frame) -> NarwhalsFrame:
        return NarwhalsFrame(frame, version=self._version)

    # Frames

    def concat(self, items: Iterable[NarwhalsFrame], *, how: ConcatMethod) -> NarwhalsFrame:
        frames = list(items)
        first = frames[0]
        if how == "vertical" and any(frame.schema != first.schema for frame in frames[1:]):
            raise TypeError("inputs should all have the same schema")
        natives = [frame.native for frame in frames]
        together = Frame.union_by_name if how == "diagonal" else Frame.union
        return first._with_native(reduce(together, natives))

    # Constants and rows

    def lit(self, value: PythonLiteral, dtype: IntoDType | None) -> NarwhalsExpression:
        def constant(frame: NarwhalsFrame) -> Sequence[Expression]:
            made = lit(value)
            return [made if dtype is None else made.cast(frame.data_type(dtype))]

        return self._made(constant, lambda frame, _: constant(frame), name="literal")

    def len(self) -> NarwhalsExpression:
        return self._made(lambda _: [count()], None, name="len")

    def _made(
        self,
        call: Callable[[NarwhalsFrame], Sequence[Expression]],
        window_function: Callable[[NarwhalsFrame, WindowInputs[Expression]], Sequence[Expression]]
        | None,
        *exprs: NarwhalsExpression,
        name: str | None = None,
    ) -> NarwhalsExpression:
        """Return an expression of a name, or of those that others have together."""
        names = combine_evaluate_output_names(*exprs) if name is None else lambda _: [name]
        return NarwhalsExpression(
            call,
            window_function,
            evaluate_output_names=names,
            alias_output_names=combine_alias_output_names(*exprs) if name is None else None,
            version=self._version,
        )

    # Several columns of one row

    def concat_str(
        self, *exprs: NarwhalsExpression, separator: str, ignore_nulls: bool
    ) -> NarwhalsExpression:
        def joined(columns: Sequence[Expression]) -> Expression:
            texts = [c.cast("varchar") for c in columns]
            text = fn.concat_ws(separator, *texts)
            if ignore_nulls:
                return text
            return when(~reduce(or_, (c.is_null() for c in columns))).then(text)

        return self._expr._from_elementwise_horizontal_op(joined, *exprs)

    def mean_horizontal(self, *exprs: NarwhalsExpression) -> NarwhalsExpression:
        def mean(columns: Sequence[Expression]) -> Expression:
            total = reduce(add, (c.fill_null(0) for c in columns))
            return total / reduce(add, (c.is_not_null().cast("bigint") for c in columns))

        return self._expr._from_elementwise_horizontal_op(mean, *exprs)

    def struct(self, *exprs: NarwhalsExpression) -> NarwhalsExpression:
        def build(frame: NarwhalsFrame) -> Sequence[Expression]:
            fields = named_values(frame, exprs)
            check_column_names_are_unique([name for name, _ in fields])
            return [lit(dict(fields))]

        return self._made(build, None, *exprs)

    def list(self, *exprs: NarwhalsExpression) -> NarwhalsExpression:
        def build(frame: NarwhalsFrame) -> Sequence[Expression]:
            return [lit([value for expr in exprs for value in expr(frame)])]

        return self._made(build, None, *exprs)

    # Aggregates of two columns

    def corr(
        self, a: NarwhalsExpression, b: NarwhalsExpression, *, method: CorrelationMethod
    ) -> NarwhalsExpression:
        if method != "pearson":
            raise NotImplementedError(f'Only "pearson" correlation is there, and not {method!r}.')
        return self._of_pair(a, b, lambda x, y, over: over(fn.corr(x, y)))

    def cov(self, a: NarwhalsExpression, b: NarwhalsExpression, *, ddof: int) -> NarwhalsExpression:
        def covariance(x: Expression, y: Expression, over: Over) -> Expression:
            if ddof == 0:
                return over(fn.covar_pop(x, y))
            sample = over(fn.covar_samp(x, y))
            if ddof == 1:
                return sample
            pairs = over(when(y.is_not_null()).then(x).count())
            return when(pairs > ddof).then(sample * (pairs - 1) / (pairs - ddof))

        return self._of_pair(a, b, covariance)

    def _of_pair(
        self,
        a: NarwhalsExpression,
        b: NarwhalsExpression,
        build: Callable[[Expression, Expression, Over], Expression],
    ) -> NarwhalsExpression:
        def pair(frame: NarwhalsFrame) -> tuple[Expression, Expression]:
            evaluate = frame._evaluate_single_output_expr
            return evaluate(a), evaluate(b)

        def over_each(
            frame: NarwhalsFrame, inputs: WindowInputs[Expression]
        ) -> Sequence[Expression]:
            return [build(*pair(frame), lambda part: windowed(part, inputs.partition_by))]

        return self._made(lambda frame: [build(*pair(frame), lambda part: part)], over_each, a, b)


class NarwhalsSelectors(LazySelectorNamespace["NarwhalsFrame", Expression]):
    """`narwhals.selectors`."""

    @property
    def _selector(self) -> type[NarwhalsSelector]:
        return NarwhalsSelector


class NarwhalsSelector(CompliantSelector["NarwhalsFrame", Expression], NarwhalsExpression):
    """The columns that a selector chooses."""

    _window_function = None

    def _to_expr(self) -> NarwhalsExpression:
        return NarwhalsExpression(
            self._call,
            self._window_function,
            evaluate_output_names=self._evaluate_output_names,
            alias_output_names=self._alias_output_names,
            version=self._version,
        )


class RowsAtNeed(ArrowDataFrame):
    """An eager frame of Arrow columns, whose Frame runs at the first call that needs them; `lazy()` goes back to the Frame.

    Libraries that draw ask the first version of Narwhals' API for eager frames alone, and write no decimals as JSON: sums of
    integers are int64 here, or doubles where a value does not fit, as in pandas, and decimals are doubles.
    """

    def __init__(
        self,
        native_dataframe: Frame | pa.Table,
        *,
        version: Version,
        validate_column_names: bool = True,
        validate_backend_version: bool = False,
    ) -> None:
        is_frame = isinstance(native_dataframe, Frame)
        self._frame = native_dataframe if is_frame else None
        self._table = None if is_frame else native_dataframe
        self._version = version

    @property
    def _native_frame(self) -> pa.Table:
        if self._table is None:
            assert self._frame is not None
            types = [*self._frame.schema.values()]
            table = with_plain_integers(self._frame.to_arrow(), types)
            doubles = [
                field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field
                for field in table.schema
            ]
            self._table = table.cast(pa.schema(doubles))
        return self._table

    @property
    def schema(self) -> dict[str, DType]:
        if self._table is not None or self._frame is None:
            return ArrowDataFrame.schema.fget(self)
        schema = NarwhalsFrame(self._frame, version=self._version).schema
        dtypes = self._version.dtypes
        plain = {dtypes.Int128: dtypes.Int64(), dtypes.Decimal: dtypes.Float64()}
        return {n: plain.get(type(t), t) for n, t in schema.items()}

    def collect_schema(self) -> dict[str, DType]:
        return self.schema

    @property
    def columns(self) -> list[str]:
        return self._native_frame.column_names if self._frame is None else self._frame.columns

    def lazy(self, backend: object = None, *, session: object = None) -> NarwhalsFrame:
        if backend is None and self._frame is not None:
            return NarwhalsFrame(self._frame, version=self._version)
        return super().lazy(backend, session=session)

    def _with_version(self, version: Version) -> RowsAtNeed:
        return RowsAtNeed(self._table if self._frame is None else self._frame, version=version)

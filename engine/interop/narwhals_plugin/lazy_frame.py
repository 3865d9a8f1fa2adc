"""The lazy frame that Narwhals sees: a Frame, and how its methods are those of Polars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from narwhals._sql.dataframe import SQLLazyFrame
from narwhals._sql.group_by import SQLGroupBy
from narwhals._utils import (
    Implementation,
    Version,
    check_column_names_are_unique,
    extend_bool,
    generate_temporary_column_name,
    parse_columns_to_drop,
)
from narwhals.exceptions import ColumnNotFoundError

import fuseline

from ...frame.expressions.expression import Expression
from ...frame.frame import Frame
from ...frame.functions import count, fn
from .lazy_expression import NarwhalsExpression
from .narwhals_types import to_data_type, to_dtype
from .native_calls import (
    MissingColumn,
    column,
    named_values,
    namespace_of,
    sort_keys,
    windowed,
)

if TYPE_CHECKING:
    from io import BytesIO
    from pathlib import Path
    from types import ModuleType
    from typing import Self

    from narwhals._compliant.typing import CompliantDataFrameAny
    from narwhals._typing import _EagerAllowedImpl
    from narwhals._utils import _LimitedContext
    from narwhals.dataframe import LazyFrame
    from narwhals.dtypes import DType
    from narwhals.typing import AsofJoinStrategy, IntoDType, JoinStrategy, UniqueKeepStrategy

    from ...plan.types import DataType
    from .narwhals_namespace import NarwhalsNamespace


class NarwhalsFrame(SQLLazyFrame["NarwhalsExpression", Frame, "LazyFrame[Frame]"]):
    """A Frame behind Narwhals' LazyFrame; `collect` runs it, nothing else does."""

    _implementation = Implementation.UNKNOWN

    def __init__(self, frame: Frame, *, version: Version) -> None:
        self._native_frame = frame
        self._version = version

    @staticmethod
    def _is_native(obj: object) -> bool:
        return isinstance(obj, Frame)

    @classmethod
    def from_native(cls, data: Frame, /, *, context: _LimitedContext) -> Self:
        return cls(data, version=context._version)

    def to_narwhals(self) -> LazyFrame[Frame]:
        return self._version.lazyframe(self, level="lazy")

    def __narwhals_lazyframe__(self) -> Self:
        return self

    def __native_namespace__(self) -> ModuleType:
        return fuseline

    def __narwhals_namespace__(self) -> NarwhalsNamespace:
        return namespace_of(self._version)

    def _with_native(self, df: Frame) -> Self:
        return self.__class__(df, version=self._version)

    def _with_version(self, version: Version) -> Self:
        return self.__class__(self.native, version=version)

    def _iter_columns(self) -> Iterator[Expression]:
        return map(column, self.columns)

    # What is in it

    @property
    def zone(self) -> str:
        """The time zone of the connection, in which its timestamps with a zone are."""
        return self.native.zone

    @property
    def columns(self) -> list[str]:
        return self.native.columns

    @property
    def schema(self) -> dict[str, DType]:
        return {n: to_dtype(t, self._version, self.zone) for n, t in self.native.schema.items()}

    def collect_schema(self) -> dict[str, DType]:
        return self.schema

    def data_type(self, dtype: IntoDType) -> DataType:
        """Return the SQL type of one of Narwhals'."""
        return to_data_type(dtype, self._version, self.zone)

    # Answers

    def collect(self, backend: _EagerAllowedImpl | None, **_: object) -> CompliantDataFrameAny:
        checked = {"validate_backend_version": True, "version": self._version}
        if backend is None or backend is Implementation.PYARROW:
            from narwhals._arrow.dataframe import ArrowDataFrame

            return ArrowDataFrame(self.native.to_arrow(), validate_column_names=True, **checked)
        if backend is Implementation.PANDAS:
            from narwhals._pandas_like.dataframe import PandasLikeDataFrame

            return PandasLikeDataFrame(
                self.native.to_pandas(),
                implementation=backend,
                validate_column_names=True,
                **checked,
            )
        if backend is Implementation.POLARS:
            from narwhals._polars.dataframe import PolarsDataFrame

            return PolarsDataFrame(self.native.to_polars(), **checked)
        raise ValueError(f"Unsupported `backend` value: {backend}")

    def sink_parquet(self, file: str | Path | BytesIO) -> None:
        self.native.write_parquet(file)

    def lazy(self, backend: None = None, **_: None) -> Self:
        if backend is not None:
            raise ValueError("`backend` argument is not supported for Fuseline")
        return self

    # Columns

    def _named(self, exprs: Sequence[NarwhalsExpression]) -> list[Expression]:
        return [value.alias(name) for name, value in named_values(self, exprs)]

    def simple_select(self, *column_names: str) -> Self:
        return self._with_native(self.native.select([column(name) for name in column_names]))

    def select(self, *exprs: NarwhalsExpression) -> Self:
        with _names_of(self):
            return self._with_native(self.native.select(self._named(exprs)))

    def aggregate(self, *exprs: NarwhalsExpression) -> Self:
        with _names_of(self):
            return self._with_native(self.native.agg(self._named(exprs)))

    def with_columns(self, *exprs: NarwhalsExpression) -> Self:
        with _names_of(self):
            return self._with_native(self.native.with_columns(self._named(exprs)))

    def drop(self, columns: Sequence[str], *, strict: bool) -> Self:
        dropped = parse_columns_to_drop(self, columns, strict=strict)
        return self.simple_select(*(name for name in self.columns if name not in dropped))

    def rename(self, mapping: Mapping[str, str]) -> Self:
        check_column_names_are_unique([mapping.get(name, name) for name in self.columns])
        there = {old: new for old, new in mapping.items() if old in self.columns}
        return self._with_native(self.native.rename(there))

    def with_row_index(self, name: str, order_by: Sequence[str]) -> Self:
        if not order_by:
            raise TypeError("Must pass `order_by` to `with_row_index` for Fuseline")
        number = windowed(fn.row_number(), order_by=order_by) - 1
        return self._with_native(self.native.select(number.alias(name), [*self._iter_columns()]))

    # Rows

    def _filter(self, predicate: NarwhalsExpression) -> Self:
        with _names_of(self):
            return self._with_native(self.native.filter(predicate(self)))

    def head(self, n: int) -> Self:
        return self._with_native(self.native.limit(n))

    def sort(self, *by: str, descending: bool | Sequence[bool], nulls_last: bool) -> Self:
        count_ = len(by)
        keys = sort_keys(by, extend_bool(descending, count_), extend_bool(nulls_last, count_))
        return self._with_native(self.native.sort(keys))

    def top_k(self, k: int, *, by: Iterable[str], reverse: bool | Sequence[bool]) -> Self:
        names = list(by)
        largest = [not flag for flag in extend_bool(reverse, len(names))]
        keys = sort_keys(names, largest, [True] * len(names))
        return self._with_native(self.native.sort(keys).limit(k))

    def drop_nulls(self, subset: Sequence[str] | None) -> Self:
        names = self.columns if subset is None else subset
        return self._with_native(self.native.filter([column(n).is_not_null() for n in names]))

    def unique(
        self,
        subset: Sequence[str] | None,
        *,
        keep: UniqueKeepStrategy,
        order_by: str | Sequence[str] | None,
    ) -> Self:
        names = subset or self.columns
        order = [order_by] if isinstance(order_by, str) else order_by or ()
        if error := self._check_columns_exist(names):
            raise error
        if keep == "any" and not order:
            keys = [column(n) for n in subset or ()]
            return self._with_native(self.native.distinct(keys))
        if keep == "none":
            number = windowed(count(), names)
        else:
            last = [keep == "last"] * len(order)
            number = windowed(fn.row_number(), names, order, descending=last, nulls_last=last)
        return self._with_native(self.native.filter(number == 1))

    # Other shapes

    def group_by(
        self, keys: Sequence[str] | Sequence[NarwhalsExpression], *, drop_null_keys: bool
    ) -> NarwhalsGroups:
        return NarwhalsGroups(self, keys, drop_null_keys=drop_null_keys)

    def explode(
        self, columns: Sequence[str], *, empty_as_null: bool = True, keep_nulls: bool = True
    ) -> Self:
        name = self._validate_explode_columns(columns)
        exploded, frame = column(name), self.native
        if not empty_as_null:
            frame = frame.filter(exploded.is_null() | (exploded.list.len() > 0))
        if not keep_nulls:
            frame = frame.filter(exploded.is_not_null())
        return self._with_native(frame.explode(name))

    def unpivot(
        self,
        on: Sequence[str] | None,
        index: Sequence[str] | None,
        variable_name: str,
        value_name: str,
    ) -> Self:
        kept = list(index or ())
        turned = [c for c in self.columns if c not in kept] if on is None else list(on)
        return self._with_native(
            self.native.unpivot(
                turned, index=kept, name=variable_name, value=value_name, include_nulls=True
            )
        )

    # Joins

    def join(
        self,
        other: Self,
        *,
        how: JoinStrategy,
        left_on: Sequence[str] | None,
        right_on: Sequence[str] | None,
        suffix: str,
    ) -> Self:
        if how in ("semi", "anti"):
            pairs = [*zip(left_on or (), right_on or (), strict=True)]
            return self._with_native(self.native.join(other.native, pairs, how))
        apart = self._apart(other)
        keys = [*zip(left_on or (), (apart[name] for name in right_on or ()), strict=True)]
        joined = self.native.join(other.native.rename(apart), keys or None, how)
        dropped = () if how == "full" else right_on or ()
        return self._beside(joined, apart, dropped, suffix)

    def join_asof(
        self,
        other: Self,
        *,
        left_on: str,
        right_on: str,
        by_left: Sequence[str] | None,
        by_right: Sequence[str] | None,
        strategy: AsofJoinStrategy,
        suffix: str,
    ) -> Self:
        if strategy not in ("backward", "forward"):
            raise NotImplementedError(
                "Only 'backward' and 'forward' strategies are currently supported for Fuseline"
            )
        apart = self._apart(other)
        joined = self.native.join_asof(
            other.native.rename(apart),
            left_on=left_on,
            right_on=apart[right_on],
            by=[*zip(by_left or (), (apart[name] for name in by_right or ()), strict=True)],
            strategy=strategy,
        )
        return self._beside(joined, apart, [right_on, *(by_right or ())], suffix)

    def _apart(self, other: Self) -> dict[str, str]:
        """Return names for the columns of the other side of a join that neither side has."""
        taken = [*self.columns, *other.columns]
        apart: dict[str, str] = {}
        for name in other.columns:
            apart[name] = generate_temporary_column_name(8, taken)
            taken.append(apart[name])
        return apart

    def _beside(
        self, joined: Frame, apart: Mapping[str, str], dropped: Sequence[str], suffix: str
    ) -> Self:
        """Return both sides' columns; those of the right get a suffix where the left has the name."""
        kept = {old: there for old, there in apart.items() if old not in dropped}
        names = [name + suffix if name in self.columns else name for name in kept]
        check_column_names_are_unique([*self.columns, *names])
        right = [column(there).alias(n) for n, there in zip(names, kept.values(), strict=True)]
        return self._with_native(joined.select([*self._iter_columns()], right))


class NarwhalsGroups(SQLGroupBy["NarwhalsFrame", NarwhalsExpression, Expression]):
    """What `group_by` returns: `agg` makes a frame of it again."""

    def __init__(
        self,
        frame: NarwhalsFrame,
        keys: Sequence[NarwhalsExpression] | Sequence[str],
        /,
        *,
        drop_null_keys: bool,
    ) -> None:
        whole, self._keys, self._output_key_names = self._parse_keys(frame, keys=keys)
        self._compliant_frame = whole.drop_nulls(self._keys) if drop_null_keys else whole

    def agg(self, *exprs: NarwhalsExpression) -> NarwhalsFrame:
        frame = self.compliant
        with _names_of(frame):
            grouped = frame.native.group_by([column(key) for key in self._keys])
            made = frame._with_native(grouped.agg([*self._evaluate_exprs(exprs)]))
        return made.rename(dict(zip(self._keys, self._output_key_names, strict=True)))


@contextmanager
def _names_of(frame: NarwhalsFrame) -> Iterator[None]:
    """Raise what Narwhals raises for a column that is not there."""
    try:
        yield
    except MissingColumn as error:
        found = ColumnNotFoundError.from_missing_and_available_column_names
        raise found([error.column], frame.columns) from error

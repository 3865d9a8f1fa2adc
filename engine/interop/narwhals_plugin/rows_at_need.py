"""What code for `narwhals.stable.v1` gets, such as Altair's and Plotly's: a frame of rows, which are made when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from narwhals._arrow.dataframe import ArrowDataFrame

from ...frame.frame import Frame
from ...frame.python_values import with_plain_integers
from .lazy_frame import NarwhalsFrame

if TYPE_CHECKING:
    from narwhals._utils import Version
    from narwhals.dtypes import DType


class RowsAtNeed(ArrowDataFrame):
    """An eager frame of Arrow columns, whose Frame runs at the first call that needs them; `lazy()` goes back to the Frame.

    Libraries that draw ask the first version of Narwhals' API for eager frames alone, and write no decimals as JSON: sums of
    integers are int64 here, or doubles where a value does not fit, as in pandas.
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
            self._table = with_plain_integers(self._frame.to_arrow(), types)
        return self._table

    @property
    def schema(self) -> dict[str, DType]:
        if self._table is not None or self._frame is None:
            return ArrowDataFrame.schema.fget(self)
        schema = NarwhalsFrame(self._frame, version=self._version).schema
        dtypes = self._version.dtypes
        return {n: dtypes.Int64() if t == dtypes.Int128 else t for n, t in schema.items()}

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

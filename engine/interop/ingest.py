"""What `Connection.register` takes, and names in FROM among the variables of the Python code that asks: objects of other libraries become Arrow tables, without a copy where they can.

As in DuckDB: the locals of the caller, then the globals of its module; with `python_scan_all_frames` those of its callers too.  What is
found is taken as it is now, each time a text is bound: no plan that names a variable is kept for the next run of the text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import TypeMismatch
from ..operators.cpu.sort.keys import DAY_MICROS
from ..plan.arrow.arrow_arrays import array_from
from ..plan.copies import fresh
from ..plan.logical import CatalogTable, Logical
from ..plan.text.quoted_name import distinct_names
from ..storage.tables.other_types import ENUM_MARK, as_enum

if TYPE_CHECKING:
    import pandas as pd

    from ..connection import Connection
    from ..running import QueryRunner


TAKEN = (
    "a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or Polars frame, a NumPy array of one or two "
    "dimensions or a list of such of one, a dictionary of arrays or lists, a list of dictionaries, or an object with __arrow_c_stream__"
)


def ingest(source: object) -> pa.Table:
    """Return an object as an Arrow table; a reader is read to its end.

    Raises `TypeMismatch` for an object that is no table, or whose columns Arrow cannot hold.
    """
    try:
        table = None if isinstance(source, type) else _to_table(source)
        if table is not None:
            return _as_read(table)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise TypeMismatch(
            f"{_type_name(source)} could not be taken as a table: {reason}."
        ) from error
    raise TypeMismatch(f"{_type_name(source)} is no table: give {TAKEN}.")


def is_table(value: object) -> bool:
    """Whether an object looks like a table, which `ingest` may still refuse for what is in it."""
    if isinstance(value, type):
        return False
    pandas, datasets = sys.modules.get("pandas"), sys.modules.get("pyarrow.dataset")
    if isinstance(value, pa.Table | pa.RecordBatch | pa.RecordBatchReader | Mapping):
        return True
    if datasets is not None and isinstance(value, datasets.Dataset):
        return True
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return True
    return (
        _is_lazy(value)
        or _is_rows(value)
        or _arrays(value) is not None
        or hasattr(type(value), "__arrow_c_stream__")
    )


def _is_lazy(value: object) -> bool:
    return hasattr(value, "collect") and type(value).__module__.startswith("polars")


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(r, Mapping) for r in value)


def _arrays(value: object) -> list[np.ndarray] | None:
    """Return the columns, which have no names, of a NumPy array or of several; None for another object."""
    if isinstance(value, np.ndarray):
        if value.ndim == 1:
            return [value]
        return list(value) if value.ndim == 2 and len(value) else None
    if not isinstance(value, list | tuple):
        return None
    found = [v for v in value if isinstance(v, np.ndarray) and v.ndim == 1]
    return found if found and len(found) == len(value) else None


def _to_table(source: object) -> pa.Table | None:
    # A library that is not imported yet has made no object to take in
    pandas, datasets = sys.modules.get("pandas"), sys.modules.get("pyarrow.dataset")
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    if datasets is not None and isinstance(source, datasets.Dataset):
        return source.to_table()
    if type(source).__name__ == "Series" and hasattr(source, "to_frame"):
        is_pandas = type(source).__module__.startswith("pandas")
        source = source.to_frame("value") if is_pandas else source.to_frame()
    if pandas is not None and isinstance(source, pandas.DataFrame):
        # A column's name may be a number
        named = source.set_axis(distinct_names([str(name) for name in source.columns]), axis=1)
        try:
            table = pa.Table.from_pandas(named, preserve_index=False)
        except (pa.ArrowException, OverflowError):
            mixed = [name for name, kind in named.dtypes.items() if kind.kind == "O"]
            named = named.assign(**{name: _as_one_type(named[name]) for name in mixed})
            table = pa.Table.from_pandas(named, preserve_index=False)
        table = table.replace_schema_metadata(None)
        return _with_intervals(_with_enums(table), days=True)
    if _is_lazy(source):
        source = source.collect()  # type: ignore[attr-defined]
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    if isinstance(source, Mapping):
        return _from_columns(source)
    if _is_rows(source):
        return pa.Table.from_pylist(source)
    arrays = _arrays(source)
    if arrays is not None:
        return _from_columns({f"column{i}": values for i, values in enumerate(arrays)})
    return None


def _as_one_type(column: pd.Series) -> pd.Series:
    """Return a pandas column of objects that Arrow takes: values of several types as Python's texts, as in DuckDB, and integers beyond 64 bits as decimals.

    Of other types than these it stays as it is.
    """
    kinds = {type(value) for value in column[column.notna()]}
    if kinds == {int}:
        return column.map(Decimal, na_action="ignore")
    return column.map(str, na_action="ignore") if kinds <= _WRITTEN else column


_WRITTEN = {str, int, float, bool, Decimal, UUID, date, datetime, time}


def _as_read(table: pa.Table) -> pa.Table:
    """Return a table with columns of the types that queries read: durations are INTERVALs, run-end encoded columns are plain, and times have microseconds.

    Times that have nanoseconds stay what they are, which queries may leave out.
    """
    nanos = pa.time64("ns")
    for i, field in enumerate(table.schema):
        plain = column = table.column(i)
        if pa.types.is_run_end_encoded(field.type):
            chunks = map(pc.run_end_decode, column.chunks)
            plain = pa.chunked_array(chunks, field.type.value_type)
        elif field.type == nanos:  # all of Polars' times
            with suppress(pa.ArrowInvalid):
                plain = column.cast(pa.time64("us"))
        if plain is not column:
            table = table.set_column(i, field.with_type(plain.type), plain)
    return _with_intervals(table)


def _with_enums(table: pa.Table) -> pa.Table:
    """Return a table of pandas whose categories are ENUMs where they are texts, as DuckDB takes them."""
    t = pa.types
    for i, field in enumerate(table.schema):
        values = field.type.value_type if t.is_dictionary(field.type) else None
        if values is not None and (t.is_string(values) or t.is_large_string(values)):
            chunks = [as_enum(chunk) for chunk in table.column(i).chunks]
            column = pa.chunked_array(chunks or [as_enum(array_from([], field.type))])
            table = table.set_column(
                i, pa.field(field.name, column.type, metadata=ENUM_MARK), column
            )
    return table


def _with_intervals(table: pa.Table, days: bool = False) -> pa.Table:
    """Return a table whose durations are INTERVALs as DuckDB takes them: of microseconds, or with whole `days` apart."""
    for i, field in enumerate(table.schema):
        if pa.types.is_duration(field.type):
            column = pa.chunked_array([_intervals(field.name, table.column(i), days)])
            table = table.set_column(i, field.with_type(column.type), column)
    return table


def _intervals(name: str, column: pa.ChunkedArray, days: bool) -> pa.Array:
    """Return durations as Arrow's intervals of months, days and nanoseconds; what is below a microsecond is cut off."""
    counts = column.cast(pa.duration("us"), safe=False).cast(pa.int64()).fill_null(0)
    micros = counts.to_numpy()
    values = np.zeros(len(column), dtype=[("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
    if days:
        whole = np.trunc(micros / DAY_MICROS).astype(np.int64)
        values["days"], micros = whole, micros - whole * DAY_MICROS
    if len(micros) and max(micros.max(), -micros.min()) > (2**63 - 1) // 1000:
        raise TypeMismatch(
            f'The column "{name}" has a duration of more than 292 years, and INTERVAL counts nanoseconds in 64 bits.'
        )
    values["nanos"] = micros * 1000
    bitmap = column.is_valid().combine_chunks().buffers()[1] if column.null_count else None
    buffers = [bitmap, pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.month_day_nano_interval(), len(column), buffers)


def _from_columns(columns: Mapping[object, object]) -> pa.Table:
    arrays = {str(name): _column(str(name), values) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise TypeMismatch(f"The columns of a table have one length, not {lengths}.")
    return pa.table(arrays)


def _column(name: str, values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise TypeMismatch(
                f'The column "{name}" has {values.ndim} dimensions: a column has one.'
            )
        if isinstance(values, np.ma.MaskedArray):
            return pa.array(values.data, mask=np.ma.getmaskarray(values), from_pandas=True)
        return pa.array(values, from_pandas=True)  # NaN is NULL, as in DuckDB
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        return array_from(values)
    return array_from(list(values))


def _type_name(source: object) -> str:
    kind = type(source)
    module = kind.__module__.split(".")[0]
    name = kind.__name__ if module == "builtins" else f"{module}.{kind.__name__}"
    return f"{'An' if name[0] in 'aeiou' else 'A'} {name}"


PACKAGE = "fuseline"


class CallerObjects:
    """The variables of who called this package, for one text; an object that is named twice is taken once."""

    def __init__(
        self,
        connection: Connection,
        runner: QueryRunner,
        frame: FrameType,
        tables: Mapping[str, Logical] | None = None,
    ) -> None:
        self._given = tables or {}
        self._connection, self._runner = connection, runner
        self._frame: FrameType | None = frame  # which keeps all that its callers have
        settings = runner.settings
        self._everywhere = settings.python_scan_all_frames
        self._is_on = settings.python_enable_replacements and settings.external_access
        self._taken: dict[int, tuple[object, CatalogTable | Logical]] = {}

    def __enter__(self) -> CallerObjects:
        return self

    def __exit__(self, *_: object) -> None:
        self._frame = None
        self._taken.clear()

    @property
    def were_named(self) -> bool:
        """Whether a plan reads any of them."""
        return bool(self._taken or self._given)

    def given(self, name: str) -> Logical | None:
        """Return a plan that the text was given under a name, which goes before tables of the catalog."""
        plan = self._given.get(name.lower())
        return None if plan is None else fresh(plan)[0]

    def find(self, name: str) -> CatalogTable | Logical | None:
        """Return a variable as a table, of one of our Frames its plan; None where there is no variable of the name.

        Raises `TypeMismatch` for an object that is no table.
        """
        for variables in self._variables():
            if name in variables:
                return self._table_of(name, variables[name])
        return None

    def names(self) -> list[str]:
        """Return the names of variables that are tables that anyone may mean: neither Python's own, as `__annotations__`, nor cursors."""
        from ..frame.cursor import Cursor

        variables = (pair for found in self._variables() for pair in found.items())
        tables = ((n, value) for n, value in variables if is_table(value))
        found = (n for n, v in tables if not (n.startswith("__") or isinstance(v, Cursor)))
        return list(dict.fromkeys([*self._given, *found]))

    def _variables(self) -> Iterator[dict[str, object]]:
        frame = self._frame
        while frame is not None and _is_own(frame):
            frame = frame.f_back
        while frame is not None and self._is_on:
            yield dict(frame.f_locals)
            yield frame.f_globals
            frame = frame.f_back if self._everywhere else None

    def _table_of(self, name: str, value: object) -> CatalogTable | Logical:
        from ..frame.frame import Frame

        if isinstance(value, Frame) and value.runs_on(self._runner):
            self._taken[id(value)] = value, value.plan
            return fresh(value.plan)[0]
        if id(value) not in self._taken:
            if not is_table(value):
                raise TypeMismatch(
                    f'There is no table "{name}", and the variable of this name is a {type(value).__name__}, which is no table: '
                    f"a table is {TAKEN}."
                )
            table = self._connection.table_of(name, value)
            table.settled = False  # its columns are not kept for another run
            self._taken[id(value)] = value, table
        return self._taken[id(value)][1]


def _is_own(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")

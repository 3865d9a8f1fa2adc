"""Columns as parts of longer ones: operators whose inputs begin behind the first row of their buffers, where masks and offsets are easily forgotten.

The rows before and after are NULL where the column's own are not, and its values in another order elsewhere, so that who reads from the first row sees others.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from typing import Any
from unittest.mock import patch
from zlib import crc32

import pyarrow as pa

BEFORE, AFTER = 13, 7  # rows; the first bit of the mask lies within a byte
# Threads that each put back what they had found would leave another's operators in place for good.
_PATCHING, _patches, _within = threading.Lock(), ExitStack(), []


def array(part: pa.Array) -> pa.Array:
    """Return the same values as a slice of a longer array."""
    if isinstance(part, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(part.type, array(part.storage))
    if pa.types.is_string_view(part.type) or pa.types.is_binary_view(part.type):
        return part  # Arrow picks none
    around = [_around(part, BEFORE), part, _around(part, AFTER)]
    return pa.concat_arrays(around).slice(BEFORE, len(part))


def _around(part: pa.Array, count: int) -> pa.Array:
    valid = part.drop_null()
    if not len(valid):
        return _blanks(part.type, count)
    places = range(count)
    hidden = [part[i % len(part)].is_valid for i in places]
    rows = [None if hidden[i] else (len(valid) - 1 - i) % len(valid) for i in places]
    return valid.take(pa.array(rows, pa.int64()))


def _blanks(kind: pa.DataType, count: int) -> pa.Array:
    """Return zeros or empty texts; NULLs of a type that has neither."""
    nulls = pa.nulls(count, kind)
    if kind.num_fields or pa.types.is_dictionary(kind) or pa.types.is_null(kind):
        return nulls
    return pa.Array.from_buffers(kind, count, [None, *nulls.buffers()[1:]])


def table(whole: pa.Table) -> pa.Table:
    """Return the same table with each chunk as a slice."""
    columns = [pa.chunked_array(map(array, c.chunks), c.type) for c in whole.columns]
    return pa.table(columns, whole.schema) if columns else whole


def held(backend: str, whole: Any) -> Any:
    """Return a backend's table with each column as a slice; one that has columns which are not there yet, or lie on a GPU's host, as it is."""
    columns, make = (whole.arrays, array) if backend == "cpu" else (whole.columns, _on_device)
    if type(columns) is dict:
        with suppress(MemoryError):  # of a test's limit, which counts these rows too
            return type(whole)({i: make(column) for i, column in columns.items()}, whole.num_rows)
    return whole


def _on_device(part: Any) -> Any:
    """As `array`, of a column in a GPU's memory or the codes of one."""
    import pylibcudf as plc

    from fuseline.operators.gpu.columns import constant, negate, where_true, without_nulls
    from fuseline.operators.gpu.dictionaries import Coded

    if isinstance(part, Coded):
        return Coded(_on_device(part.codes), part.keys)
    rows = part.size()
    blank = {plc.TypeId.STRING: "", plc.TypeId.BOOL8: False}.get(part.type().id(), 0)

    def picked(column: Any, places: Iterable[int]) -> Any:
        numbers = plc.Column.from_arrow(pa.array([i % rows for i in places], pa.int32()))
        policy = plc.copying.OutOfBoundsPolicy.DONT_CHECK
        return plc.copying.gather(plc.Table([column]), numbers, policy).columns()[0]

    def around(count: int) -> Any:
        if not rows:
            return constant(blank, part.type(), count)
        hidden = picked(plc.unary.is_valid(part), range(count))
        values = without_nulls(picked(part, range(-1, -1 - count, -1)), blank)
        return where_true(values, negate(hidden))

    longer = plc.concatenate.concatenate([around(BEFORE), part, around(AFTER)])
    return plc.copying.slice(longer, [BEFORE, BEFORE + rows])[0]


@contextmanager
def from_operators(backends: Iterable[str]) -> Iterator[None]:
    """Have each operator give slices to the next one, until the last of the threads that want it leaves."""

    def sliced(operator: Callable[..., Any], backend: str) -> Callable[..., Any]:
        @wraps(operator)
        def run(*given: Any) -> Any:
            return held(backend, operator(*given))

        return run

    with _PATCHING:
        if not _within:
            for name in backends:
                operators = importlib.import_module(f"fuseline.operators.{name}").OPERATORS
                others = {node: sliced(operator, name) for node, operator in operators.items()}
                _patches.enter_context(patch.dict(operators, others))
        _within.append(None)
    try:
        yield
    finally:
        with _PATCHING:
            _within.pop()
            if not _within:
                _patches.close()


def wanted(query: str) -> bool:
    """Whether a query runs over slices, as every second one does."""
    return bool(crc32(query.encode()) % 2)

"""A Python function called for one row after the other, with Python's own values: slow, and all of Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from math import isfinite
from typing import Any

import pyarrow as pa

from ..... import stopping
from .....errors import ExecutionError, OutOfRange, shown
from .....plan.arrow.arrow_arrays import array_from
from .....plan.types import HUGEINT, DataType, Kind, to_arrow
from .....plan.udf.python_function import PythonFunction
from .....threads.fork_locks import new_reentrant_lock

LOOKS = 256  # rows between two looks at whether the query is to stop
SINGLE_MAX = 3.4028234663852886e38  # of a FLOAT
_one = new_reentrant_lock()


def raised(function: PythonFunction, error: BaseException) -> ExecutionError:
    """Return the error that says what a function raised."""
    what = str(error).strip()
    said = f"{type(error).__name__}: {what}" if what else type(error).__name__
    return ExecutionError(f'The Python function "{function.name}" raised {said.rstrip(".")}.')


def of_rows(
    function: PythonFunction, args: Sequence[pa.Array], types: Sequence[DataType], count: int
) -> pa.Array:
    """Return the value for each row."""
    columns = [python_values(a, t) for a, t in zip(args, types, strict=True)]
    rows = zip(*columns, strict=True) if columns else iter([()] * count)
    return arrow_values(each(function, rows), function)


def each(function: PythonFunction, rows: Iterable[Sequence[object]]) -> list[object]:
    """Return the value for each row of arguments, unless the query is stopped before."""

    def call() -> list[object]:
        made: list[object] = []
        for place, row in enumerate(rows):
            if place % LOOKS == 0:
                stopping.check()
            made.append(_one_row(function, row))
        return made

    with turn():
        return stopping.apart(call)


@contextmanager
def turn() -> Iterator[None]:
    """Wait until no other thread calls functions: one that counts, say, is called by one thread at a time.

    A query that such a function runs has the turn already.
    """
    stop = stopping.current()
    if stop is not None and stop.is_apart:
        yield
        return
    while not _one.acquire(timeout=stopping.WAIT_SECONDS):
        stopping.check()
    try:
        yield
    finally:
        _one.release()


def _one_row(function: PythonFunction, row: Sequence[object]) -> object:
    """Return the value for one row of arguments."""
    try:
        return function.python(*row)
    except Exception as error:  # whatever a function may raise
        stopping.check()  # it may be of a query that the function ran
        if function.null_on_error:
            return None
        raise raised(function, error) from error


def python_values(array: pa.Array, data_type: DataType) -> list[Any]:
    """Return values as Python has them, and as DuckDB gives them to functions: intervals as timedelta, maps as dict."""
    if data_type == HUGEINT:
        return [None if v is None else int(v) for v in array.to_pylist()]
    if pa.types.is_interval(array.type):
        return [_timedelta(v) for v in array.to_pylist()]
    if pa.types.is_map(array.type):
        return [None if v is None else dict(v) for v in array.to_pylist()]
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        array = array.cast(pa.timestamp("us", array.type.tz), safe=False)
    return list(array.to_pylist())


def _timedelta(value: pa.MonthDayNano | None) -> timedelta | None:
    if value is None:
        return None
    return timedelta(value.months * 30 + value.days, microseconds=value.nanoseconds // 1000)


def arrow_values(values: list[object], function: PythonFunction) -> pa.Array:
    """Return Python values as an array, of the declared type if they are of it."""
    target = function.result
    if target.is_integer:
        low, high = target.integer_range
        large = next((v for v in values if isinstance(v, int) and not low <= v <= high), None)
        if large is not None:
            raise beyond(function, large)
    if target.kind is Kind.INTERVAL:
        values = [_interval(v) for v in values]
    try:
        if not _loses(values, target):
            return array_from(values, to_arrow(target))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    try:
        return array_from(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        wrong = next((v for v in values if v is not None), None)
        if isinstance(wrong, int) or isinstance(error, OverflowError):
            raise beyond(function, wrong) from error
        raise ExecutionError(
            f'The Python function "{function.name}" gave {shown(wrong)}, which is no {target}.'
        ) from error


def beyond(function: PythonFunction, value: object) -> OutOfRange:
    """Return the error of a number that the declared type does not hold."""
    return OutOfRange(
        f'The Python function "{function.name}" gave {shown(value)}, which {function.result} does not hold: declare a wider type.'
    )


def _loses(values: list[object], target: DataType) -> bool:
    """Whether Arrow would read values otherwise than SQL casts them: it cuts the fraction off, where a cast rounds."""
    if target.is_integer:
        return any(hasattr(v, "is_integer") and not isinstance(v, int) for v in values)
    return target.kind is Kind.FLOAT and any(
        isinstance(v, float) and isfinite(v) and abs(v) > SINGLE_MAX for v in values
    )


def _interval(value: object) -> object:
    if not isinstance(value, timedelta):
        return value
    micros = value.seconds * 1_000_000 + value.microseconds
    return pa.MonthDayNano([0, value.days, micros * 1000])

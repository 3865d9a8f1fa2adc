"""Columns that were read together, encoded together: a kernel or two for each, and two waits for all.

Kernels measure all columns; the host looks at what they found and chooses encodings; other kernels write the codes and say when
a value has none, which leaves that column to `storage.columns.device_encode`, as are types without a kernel.  Texts of few different
values are numbered by a hash table of those in some rows; long texts are made compact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....plan.expr import Column
from ....plan.types import DataType, Kind
from ....records import dataclass
from ....storage.columns import encodings as enc
from ....storage.columns.device_encode import (
    I64_MAX,
    UNCHECKED,
    aligned,
    codes_at,
    encode_codes,
    encode_on_device,
    most_values_of,
    spread,
    with_order,
)
from ....storage.columns.encode import SAMPLE
from ...context import Context
from ..columns import DECIMAL128, NUMBERS, is_float
from ..dictionaries import SAMPLE_ROWS, SAMPLE_SHARE, Coded, Held, distinct, encoded as with_codes
from ..memory.device import take_device
from . import compact, run_column_kernels
from .compact import Compacting, CompactText
from .dictionary_lookup import WHOLE, KeyTable, bits, key_table, number

if TYPE_CHECKING:
    from rmm.pylibrmm.stream import Stream

I64_MIN = -(1 << 63)
ENCODERS = 4
MOST_KEYS = 1 << 12  # of a hash table that stays in the first-level cache
EXTREMES = 2  # before the sample in what `column_measure` gives

Encoded: TypeAlias = "enc.EncodedColumn | CompactText | Held"

DEFAULT = plc.utils.CUDF_DEFAULT_STREAM


def encode_each(
    columns: dict[str, Held], types: Mapping[str, Column], context: Context
) -> Iterator[tuple[str, Encoded]]:
    """Yield columns encoded, or as they are, by libcudf's functions alone; `columns` is emptied on the way.

    Threads take them in turn, so that one's wait for a number hides behind others.
    """
    sources = list(columns)

    def encode(source: str) -> Encoded:
        return _ordered(encode_by_libcudf(columns.pop(source), types[source].type))

    threads = min(ENCODERS, len(sources) or 1)
    with ThreadPoolExecutor(threads, initializer=take_device) as pool:
        pending = [pool.submit(encode, source) for source in sources]
        for source, future in zip(sources, pending, strict=True):
            yield source, future.result()
            context.check()


def encode_together(
    columns: dict[str, Held],
    types: Mapping[str, Column],
    stream: Stream,
    context: Context,
    keep_compact: bool,
) -> Iterator[tuple[str, Encoded]]:
    """Yield columns encoded, or as they are, by kernels on `stream`; long texts compact if they are to be kept so.

    `columns` is emptied on the way.  They may belong to any stream, if nothing runs on it any more; what comes back belongs to the default stream.
    """
    turn = _Turn(stream, context.kernel_directory, keep_compact)
    left: dict[str, Held] = {}
    while columns:
        source, held = columns.popitem()
        if isinstance(held, Coded) or not turn.takes(source, held, types[source].type):
            left[source] = held
    made, refused = turn.run()
    left |= refused
    refused.clear()
    for source, encoded in made.items():
        yield source, _ordered(encoded)
    while left:
        source, held = left.popitem()
        # What comes back may share memory with what goes in
        own = held if isinstance(held, Coded) else _copied(held)
        if source not in turn.long:
            yield source, _ordered(encode_by_libcudf(own, types[source].type))
        else:
            yield source, own


def _ordered(encoded: Encoded) -> Encoded:
    return with_order(encoded) if isinstance(encoded, enc.EncodedColumn) else encoded


def encode_by_libcudf(held: Held, data_type: DataType) -> enc.EncodedColumn | Held:
    """Return a column encoded, or as it is where it has no encoding."""
    if not isinstance(held, Coded):
        held = with_codes(held)
    if isinstance(held, Coded):
        return encode_codes(held.codes, held.keys, data_type)
    return encode_on_device(held, data_type) or held


def _copied(column: plc.Column) -> plc.Column:
    made = column.copy()
    DEFAULT.synchronize()  # the column may be freed on another stream as soon as this returns
    return made


@dataclass
class _EncodeTask:
    """One column: what is known of it, and the memory that its codes go to."""

    column: plc.Column
    type: DataType
    measured: slice
    keys: pa.Array | None = None  # of texts of few different values
    encoding: enc.Encoding | None = None
    low: int | None = None
    high: int | None = None
    codes: DeviceBuffer | None = None
    validity: enc.Array | None = None
    compacting: Compacting | None = None


class _Turn:
    """Columns on their way through measuring, choosing and writing."""

    def __init__(self, stream: Stream, directory: Path, keep_compact: bool) -> None:
        self._stream, self._directory, self._keep_compact = stream, directory, keep_compact
        self._tasks: dict[str, _EncodeTask] = {}
        self._blanks: list[enc.Array] = []
        self._size = 0
        self._tables: list[KeyTable] = []  # what kernels read until they have run
        self.long: set[str] = set()  # texts that mostly differ and stay as they are
        self._follow_default()

    def _follow_default(self) -> None:
        """Have the stream wait for what the default stream has to do so far."""
        plc.experimental.join_streams([DEFAULT], self._stream)

    def takes(self, source: str, held: plc.Column, data_type: DataType) -> bool:
        """Take on a column, if kernels can encode it."""
        kind = held.type().id()
        if held.size() == held.null_count() or data_type.kind is Kind.NULL:
            return False
        column = aligned(held)
        if column is not held:
            self._follow_default()
        if kind == DECIMAL128 or (kind in NUMBERS and not is_float(column)):
            blank = np.full(EXTREMES + -(-column.size() // _spacing(column)), I64_MIN)
            blank[0] = I64_MAX
            self._tasks[source] = _EncodeTask(column, data_type, self._room(blank))
            return True
        if kind != plc.TypeId.STRING:
            return False
        keys = self._keys(column)
        if keys is None and most_values_of(column):
            return False
        if keys is None and not self._keep_compact:
            self.long.add(source)
            return False
        if keys is not None and len(keys) > MOST_KEYS:
            return False
        blank = np.zeros(compact.MEASURES if keys is None else 0, np.int64)
        self._tasks[source] = _EncodeTask(column, data_type, self._room(blank), keys)
        return True

    def _keys(self, column: plc.Column) -> pa.Array | None:
        """Return the different texts of some rows, sorted by their bytes; None where most differ."""
        table = plc.Table([column])
        if column.size() > SAMPLE_ROWS:
            places = spread(column.size(), SAMPLE_ROWS)
            self._follow_default()
            table = plc.copying.gather(table, places, UNCHECKED, self._stream)
        found = distinct(table, self._stream)
        if column.size() > SAMPLE_ROWS and found.num_rows() > SAMPLE_ROWS // SAMPLE_SHARE:
            return None
        keys = found.columns()[0].to_arrow(stream=self._stream).drop_null().cast(pa.string())
        return keys.take(pc.sort_indices(keys))

    def _room(self, blank: enc.Array) -> slice:
        self._blanks.append(blank)
        self._size += len(blank)
        return slice(self._size - len(blank), self._size)

    def run(self) -> tuple[dict[str, Encoded], dict[str, Held]]:
        """Return what was encoded, and the columns that were not."""
        try:
            return self._run() if self._tasks else ({}, {})
        finally:
            # Also where memory ran out: what kernels work on is about to be let go of, on other streams
            self._stream.synchronize()

    def _run(self) -> tuple[dict[str, Encoded], dict[str, Held]]:
        measured = self._measure()
        for task in self._tasks.values():
            _choose(task, measured[task.measured])
        wrong = DeviceBuffer(size=8 * len(self._tasks), stream=DEFAULT)
        # What was allocated on the default stream may be written to once that has come so far
        self._follow_default()
        wrong.copy_from_host(np.zeros(wrong.size, np.uint8), self._stream)
        for i, task in enumerate(self._tasks.values()):
            self._write(task, wrong.ptr + 8 * i)
        failures = _to_host(wrong, self._stream)
        made: dict[str, Encoded] = {}
        refused: dict[str, Held] = {}
        for (source, task), failed in zip(self._tasks.items(), failures, strict=True):
            result = None if failed else _result(task)
            if result is None:
                refused[source] = task.column
            else:
                made[source] = result
        self._tasks.clear()
        return made, refused

    def _measure(self) -> enc.Array:
        """Return what kernels find in all columns, one after the other."""
        out = DeviceBuffer.to_device(
            np.concatenate(self._blanks).view(np.uint8), stream=self._stream
        )
        for task in self._tasks.values():
            column, place = task.column, task.measured
            found = run_column_kernels.array(out.ptr + 8 * place.start, place.stop - place.start)
            if column.type().id() != plc.TypeId.STRING:
                arguments = (*_numbers(column), _spacing(column), *found)
                self._launch("column_measure", column.size(), arguments)
            elif task.keys is None:
                arguments = (*compact.text_pointers(column), int(column.data().ptr), *found)
                self._launch("text_measure", column.size(), arguments)
        return _to_host(out, self._stream)

    def _write(self, task: _EncodeTask, wrong: int) -> None:
        """Launch what writes a column's codes."""
        column = task.column
        if task.compacting is not None:
            task.compacting.start(self._stream, self._directory)
        if task.codes is None:
            return
        codes, counted = task.codes.ptr, run_column_kernels.array(wrong, 1)
        encoding = task.encoding
        assert encoding is not None
        if encoding.values is None:
            how = encoding.base, encoding.step, encoding.width
            arguments = (*_numbers(column), *how, *[codes] * 4, *counted)
            self._launch("column_narrow", column.size(), arguments)
        else:
            table, into = key_table(encoding.values, self._stream), (encoding.width, codes, wrong)
            self._tables.append(table)
            number(column, table, WHOLE, into, self._stream, self._directory)

    def _launch(self, name: str, rows: int, arguments: tuple[object, ...]) -> None:
        run_column_kernels.run(name, rows, arguments, self._stream, self._directory)


def _choose(task: _EncodeTask, found: enc.Array) -> None:
    """Choose a column's encoding by what was measured, and take the memory for it; leave both where there is none."""
    column, rows = task.column, task.column.size()
    if task.keys is not None:
        task.encoding = enc.Dictionary(task.keys, enc.code_width(len(task.keys)))
    elif column.type().id() == plc.TypeId.STRING:
        how = compact.layout(found)
        task.compacting = None if how is None else Compacting(column, how)
    else:
        task.low, task.high = int(found[0]), int(found[1])
        if task.low < 0 and task.type.kind is Kind.UBIGINT:
            return  # beyond 63 bits
        sample = found[EXTREMES:]
        step = enc.likely_step(
            sample[sample != I64_MIN], task.low, task.high
        )  # a NULL left what was there
        task.encoding = enc.fixed_encoding(task.type) or enc.narrow_for(task.low, task.high, step)
    if task.encoding is not None:
        task.codes = DeviceBuffer(size=rows * task.encoding.width, stream=DEFAULT)
    if column.null_count():
        task.validity = plc.gpumemoryview(plc.null_mask.copy_bitmask(column))


def _result(task: _EncodeTask) -> Encoded | None:
    rows, nulls = task.column.size(), task.column.null_count()
    if task.compacting is not None:
        return task.compacting.finished(task.validity)
    if task.encoding is None:
        return None
    codes = codes_at(plc.gpumemoryview(task.codes), task.encoding, rows)
    return enc.EncodedColumn(
        task.type, task.encoding, rows, codes, task.validity, nulls, task.low, task.high
    )


def _numbers(column: plc.Column) -> tuple[int, ...]:
    """A column of numbers as kernels take it."""
    kind = column.type().id()
    # Of 128 bits the low 64 are read, and the others looked at
    number, stride = np.dtype(NUMBERS.get(kind, np.int64)), 2 if kind == DECIMAL128 else 1
    width = number.itemsize
    shift = 64 - 8 * width if number.kind == "i" else 0
    data = int(column.data().ptr)
    return column.size(), width, shift, stride, data, data, data, data, *bits(column)


def _spacing(column: plc.Column) -> int:
    """Rows from one sampled value to the next."""
    return max(1, int(column.size()) // SAMPLE)


def _to_host(buffer: DeviceBuffer, stream: Stream) -> Stream:
    """Wait for a stream, and return 64-bit integers."""
    host = np.empty(buffer.size, np.uint8)
    buffer.copy_to_host(host, stream)
    stream.synchronize()
    return host.view(np.int64)

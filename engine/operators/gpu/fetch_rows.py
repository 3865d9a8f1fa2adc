"""Some rows of a table to the host by one kernel and one copy, wherever its columns lie.

libcudf gathers a column of strings in several kernels and a wait, and each of its buffers is a copy of its own: for the last rows
of a query that takes longer than to find them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ...codegen.handwritten import row_kernels as kernels
from ...codegen.handwritten.row_kernels import WORD, Job
from ...codegen.targets.cache import warn_without
from ...plan.expr import Column
from . import launch
from .buffers import exchanged
from .device import kernel_files
from .dictionaries import Coded, Held
from .host_values import ALIGNMENT, INT32, STRING, Lying, host_values, lying_of, width_of
from .late import LateColumns, Places
from .small import HostColumns
from .table import Table
from .texts import Texts
from .upload import uploaded

MOST_ROWS = 1 << 15
# Texts come in any order, and the host takes 0.15 ms for 20,000 of them to put them in order: as long as libcudf takes to gather them
MOST_TEXTS = 1 << 13
SPARE_BYTES = 1024  # for a column's characters, beyond one and a half times what is expected

_codes: dict[Path, Future[bytes]] = {}
_lock = threading.Lock()


def saves(table: Table, columns: Sequence[Column]) -> bool:
    """Whether columns of a table would have to be gathered first."""
    held = table.columns
    if not isinstance(held, LateColumns):
        return False
    late = (held.fetches[c.id][0] for c in columns if c.id not in held.there)
    return any(held.places[number].rows is not None for number in late)


def fetched(
    table: Table, columns: Sequence[Column], most_bytes: int, picked: plc.Column | Any = None
) -> HostColumns | None:
    """Return rows of a table on the host, all or those of `picked` numbers (a column, or an array).

    None where they take more bytes, and where that is not possible.
    """
    count = table.num_rows if picked is None else int(_size(picked))
    if not 0 < count <= MOST_ROWS or not columns or isinstance(table.columns, HostColumns):
        return None
    parts = [_part(table.columns, c) for c in dict.fromkeys(columns)]
    known = [p for p in parts if p is not None and (count <= MOST_TEXTS or not p.job.text)]
    code = _code() if len(known) == len(parts) else None
    if code is None:
        return None
    fetch = _Fetch(known, count, picked, code)
    memory = fetch.run(most_bytes)
    return None if memory is None else fetch.columns(memory)


def _size(picked: Any) -> int:
    return picked.size() if isinstance(picked, plc.Column) else len(picked)


@dataclass
class _Part:
    """A column that is to be fetched."""

    column: Column
    lying: Lying
    job: Job
    average: float  # bytes of a text


def _part(columns: Mapping[int, Held], column: Column) -> _Part | None:
    """What to fetch of a column; None for types that the kernel does not know."""
    places: Places | None = None
    if isinstance(columns, LateColumns) and column.id not in columns.there:
        number, fetch = columns.fetches[column.id]
        places = columns.places[number]
        held = fetch.lying if fetch.keys is None else Coded(fetch.lying, fetch.keys)
        lying = lying_of(held, fetch.encoding)
    else:
        lying = lying_of(columns[column.id])
    source, rows = lying.column, None if places is None else places.rows
    kind = source.type().id()
    if not source.size() or (rows is not None and rows.type().id() != INT32):
        return None
    job = _job(source, kind)
    if job is None:
        return None
    if rows is not None:
        job.places = _address(rows, 4)
    if source.null_count():
        job.bits, job.first = int(source.null_mask().ptr), int(source.offset())
    if job.bits or (places is not None and places.optional and job.places):
        job.valid = 0
    data = source.data()
    size = data.size / max(source.child(0).size() - 1, 1) if job.text and data is not None else 0
    return _Part(column, lying, job, size)


def _job(source: plc.Column, kind: plc.TypeId) -> Job | None:
    if kind != STRING:
        width = width_of(kind)
        return None if width is None else Job(0, width, _address(source, width), 0, 0, 0, 0)
    offsets, characters = source.child(0), source.data()
    width = 4 if offsets.type().id() == INT32 else 8
    begin = _address(offsets, width) + int(source.offset()) * width
    return Job(1, width, begin, 0 if characters is None else int(characters.ptr), 0, 0, 0)


def _address(column: plc.Column, width: int) -> int:
    return int(column.data().ptr) + int(column.offset()) * width


class _Fetch:
    """One run of the kernel, and another where there are more characters than one had to expect."""

    def __init__(self, parts: list[_Part], rows: int, picked: Any, code: bytes) -> None:
        self.parts, self.rows, self.picked, self.code = parts, rows, picked, code
        self.items = sum(part.job.items(rows) for part in parts)

    def run(self, most_bytes: int) -> Any:
        """Return the bytes of the result; None where they are too many."""
        rooms = [int(1.5 * self.rows * p.average) + SPARE_BYTES for p in self.parts]
        while True:
            size = self._lay_out(rooms)
            if size > most_bytes:
                return None
            memory = self._exchanged(size)
            found = memory[: WORD * len(self.parts)].view(np.int64).tolist()
            if all(f <= p.job.room for f, p in zip(found, self.parts, strict=True)):
                return memory
            rooms = found

    def _lay_out(self, rooms: Sequence[int]) -> int:
        """Give each column its place behind the cursors; return the size of all."""
        end = _padded(WORD * len(self.parts))
        for part, room in zip(self.parts, rooms, strict=True):
            job = part.job
            job.out, job.room = end, room if job.text else 0
            end += _padded(self.rows * (WORD if job.text else job.width) + job.room)
            if job.valid >= 0:
                job.valid = end
                end += _padded(self.rows)
        return end

    def _exchanged(self, size: int) -> Any:
        """Send the jobs, run the kernel, and return what it wrote."""
        given, count = self.picked, len(self.parts)
        jobs = np.array([part.job.words for part in self.parts], np.int64).view(np.uint8).ravel()
        numbers = np.zeros(0, np.uint8)
        if given is not None and not isinstance(given, plc.Column):
            numbers = np.ascontiguousarray(given, np.int32).view(np.uint8)
        places, cursors = _padded(len(jobs)), _padded(len(jobs)) + _padded(len(numbers))
        sent = np.zeros(cursors + WORD * count, np.uint8)
        sent[: len(jobs)] = jobs
        sent[places : places + len(numbers)] = numbers
        buffer = DeviceBuffer(size=cursors + size, stream=plc.utils.CUDF_DEFAULT_STREAM)
        start = int(buffer.ptr)
        result, picked = start + cursors, start + places
        if isinstance(given, plc.Column):
            picked = _address(given, 4)
        arguments = {
            **{name: 0 for name, _ in kernels.SIGNATURE if name.startswith("memory")},
            **{name: result for name, _ in kernels.SIGNATURE if name.startswith("result")},
            "rows": self.rows,
            "columns": count,
            "jobs": start,
            "picking": int(given is not None),
            "picked": picked,
            "cursors": (0, 0, count, WORD, result, count, WORD),
        }
        turns = self.items * kernels.WARP
        step = launch.prepared_fixed(self.code, kernels.NAME, kernels.SIGNATURE, turns, arguments)
        return exchanged(sent, start, step.run_alone, result, size)

    def columns(self, memory: Any) -> HostColumns:
        return HostColumns({p.column: self._held(p, memory) for p in self.parts}, uploaded)

    def _held(self, part: _Part, memory: Any) -> Any:
        job, rows = part.job, self.rows
        valid = None
        if job.valid >= 0:
            valid = memory[job.valid : job.valid + rows].view(np.bool_)
            valid = None if valid.all() else valid
        if not job.text:
            data = memory[job.out : job.out + rows * job.width]
            return host_values(part.column.type, part.lying, rows, data, valid)
        end = job.out + rows * WORD
        halves = memory[job.out : end].view(np.int32)
        return Texts(halves[0::2], halves[1::2], valid, memory[end : end + job.room])


def _padded(size: int) -> int:
    return size + -size % ALIGNMENT


def _code() -> bytes | None:
    """Return the kernel's machine code; None while it is being compiled, and where it cannot be."""
    place = kernel_files.get()
    if place is None or place[0] == Path() or place[1] == "never":
        return None
    directory, fuse = place
    with _lock:
        found = _codes.get(directory)
        start = found is None
        if found is None:
            found = _codes[directory] = Future()
    if start:
        file = kernels.row_kernel(directory, launch.architecture())
        if fuse == "auto" and not file.is_compiled:
            threading.Thread(target=_compile, args=(file, found), daemon=True).start()
        else:
            _compile(file, found)
    if fuse == "auto" and not found.done():
        return None
    return found.result() if found.exception() is None else None


def _compile(file: Any, found: Future[bytes]) -> None:
    try:
        code, _ = file.cubin()
        found.set_result(code)
    except Exception as error:  # whatever a compiler that is not there or a full disk may raise
        found.set_exception(error)
        warn_without(file.name, error)

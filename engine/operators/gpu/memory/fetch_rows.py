"""Some rows of a table to the host by one kernel and one copy, wherever its columns lie.

libcudf gathers a column of strings in several kernels and a wait, and each of its buffers is a copy of its own: for the last rows
of a query that takes longer than to find them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pylibcudf as plc

from ....codegen.groups.results import ALL
from ....codegen.handwritten import row_kernels as kernels
from ....codegen.handwritten.row_kernels import WORD, Job
from ....plan.expr import Column
from ....records import dataclass
from ....storage.columns.encodings import Array
from ..columns import address_of
from ..dictionaries import Held
from ..late_materialization import LateColumns
from ..pipeline import launch
from ..pipeline.driver_calls import DriverCall, DriverCalls, LateArgument, driver_calls
from ..pipeline.fixed_kernels import machine_code
from ..table import Table
from .buffers import exchanged, give_back, stream_handle, working_memory
from .host_table import HostColumns, Lying as HostColumn
from .host_values import Lying, host_values, lying_of
from .link import ALIGNMENT
from .texts import Texts
from .upload import uploaded

if TYPE_CHECKING:
    Picked: TypeAlias = plc.Column | Array | None  # row numbers, on the device or on the host

MOST_ROWS = 1 << 15
# Texts come in any order, and the host takes 0.15 ms for 20,000 of them to put them in order: as long as libcudf takes to gather them
MOST_TEXTS = 1 << 13
SPARE_BYTES = 1024  # for a column's characters, beyond one and a half times what is expected
# Of the first rows of an order, as many as slots may hold two of without many more than that being found
MOST_LEADING = kernels.SLOTS // 8
LEADING_ROOM = 512  # at least, for those that are found
LEADING_KERNELS = (kernels.LEAST, kernels.BOUND, kernels.ROWS)

_ANYWHERE = {name: 0 for name, _ in kernels.SIGNATURE if name.startswith("memory")}
_RESULT = [name for name, _ in kernels.SIGNATURE if name.startswith("result")]
# What a run gives its calls, in this order; what finds the first rows is given more
_GIVEN = [
    "host",
    "start",
    "sent",
    "result",
    "size",
    "rows",
    "columns",
    "picking",
    "picked",
    "blocks",
]
_MORE_GIVEN = ["keys", "width", "key_rows", "turned", "wanted", "least", "state", "chosen"]
_BLOCKS = [f"blocks_{name}" for name in LEADING_KERNELS]
_LATE = {name: LateArgument(i) for i, name in enumerate([*_GIVEN, *_MORE_GIVEN, *_BLOCKS])}


def saves(table: Table, columns: Sequence[Column]) -> bool:
    """Whether columns of a table would have to be gathered first."""
    held = table.columns
    if type(held) is not LateColumns:
        return False
    for column in columns:
        if column.id not in held.there and held.places[held.fetches[column.id][0]].rows is not None:
            return True
    return False


def fetched(
    table: Table, columns: Sequence[Column], most_bytes: int, picked: Picked = None
) -> HostColumns | None:
    """Return rows of a table on the host, all or those of `picked` numbers (a column, or an array).

    None where they take more bytes, and where that is not possible.
    """
    count = table.num_rows if picked is None else int(_size(picked))
    if not 0 < count <= MOST_ROWS or not columns or type(table.columns) is HostColumns:
        return None
    parts = [_part(table.columns, c) for c in {c.id: c for c in columns}.values()]
    known = [p for p in parts if p is not None and (count <= MOST_TEXTS or not p.job.text)]
    code = _code() if len(known) == len(parts) else None
    if code is None:
        return None
    fetch = _Fetch(known, count, picked, code)
    memory = fetch.run(most_bytes)
    return None if memory is None else fetch.columns(memory)


def leading(
    table: Table,
    columns: Sequence[Column],
    keys: plc.Column,
    descending: bool,
    count: int,
    most_bytes: int,
) -> HostColumns | None:
    """Return rows of a table, in their order: all that can be among the first `count` by a key (INT32 or INT64, no NULL), and some more.

    None where they are many, or take more bytes.
    """
    if not 0 < count <= min(MOST_LEADING, table.num_rows):
        return None
    parts = [_part(table.columns, c) for c in dict.fromkeys(columns)]
    known = [p for p in parts if p is not None]
    codes = [_code(name) for name in (kernels.NAME, *LEADING_KERNELS)]
    code, *others = [c for c in codes if c is not None] or [b""]
    if len(known) < len(parts) or len(others) < len(LEADING_KERNELS):
        return None
    room = max(LEADING_ROOM, 2 * count)
    fetch = _Leading(known, room, None, code, keys, descending, count, others)
    memory = fetch.run(most_bytes)
    if memory is None:
        return None
    rows = fetch.rows_of(memory)
    return None if rows is None else fetch.columns(memory).take(rows)


def _size(picked: plc.Column | Array) -> int:
    return picked.size() if isinstance(picked, plc.Column) else len(picked)


@dataclass(slots=True)
class _FetchedPart:
    """A column that is to be fetched: its job, which is the same in each run, and what one adds to that."""

    column: Column
    lying: Lying
    job: Job
    places: int
    nullable: bool
    out: int = 0
    valid: int = -1
    room: int = 0


def _part(columns: Mapping[int, Held], column: Column) -> _FetchedPart | None:
    """What to fetch of a column; None for types that the kernel does not know."""
    at, optional = 0, False
    if type(columns) is LateColumns and column.id not in columns.there:
        number, fetch = columns.fetches[column.id]
        places, lying = columns.places[number], fetch.copied
        if places.address is None:
            return None
        at, optional = places.address, places.optional
    else:
        lying = lying_of(columns[column.id])
    job = lying.job
    if job is None:
        return None
    return _FetchedPart(column, lying, job, at, job.valid >= 0 or (optional and at != 0))


# Those of a run's job, in the order in which the kernel reads them
WORDS = attrgetter(
    *[f"job.{name}" for name in ("text", "width", "data", "characters", "bits", "first")],
    *("places", "out", "valid", "room"),
)


class _Fetch:
    """One run of the kernel, and another where there are more characters than one had to expect."""

    def __init__(self, parts: list[_FetchedPart], rows: int, picked: Picked, code: bytes) -> None:
        self.parts, self.rows, self.picked, self.code = parts, rows, picked, code
        texts = sum([part.job.text for part in parts])
        # Turns of a warp: a row of a text takes one
        self.items = rows * texts + -(-rows // kernels.WARP) * (len(parts) - texts)
        self.head = np.zeros(WORD * len(parts), np.uint8)  # of the result, from the cursors on

    def run(self, most_bytes: int) -> Array | None:
        """Return the bytes of the result; None where they are too many."""
        rooms = [int(1.5 * self.rows * p.lying.average) + SPARE_BYTES for p in self.parts]
        while True:
            size = self._lay_out(rooms)
            if size > most_bytes:
                return None
            memory = self._exchanged(size)
            found = memory[: WORD * len(self.parts)].view(np.int64).tolist()
            if not [f for f, p in zip(found, self.parts, strict=True) if f > p.room]:
                return memory
            rooms = found

    def _lay_out(self, rooms: Sequence[int]) -> int:
        """Give each column its place behind the cursors; return the size of all."""
        rows, end = self.rows, _padded(self.head.nbytes)
        validity = rows + -rows % ALIGNMENT
        for part, room in zip(self.parts, rooms, strict=True):
            job = part.job
            part.out, part.room = end, room if job.text else 0
            size = rows * (WORD if job.text else job.width) + part.room
            end += size + -size % ALIGNMENT
            if part.nullable:
                part.valid = end
                end += validity
        return end

    def _exchanged(self, size: int) -> Array:
        """Send the jobs, run the kernel, and return what it wrote."""
        jobs, numbers = np.array([*map(WORDS, self.parts)], np.int64), self._numbers()
        places = _padded(jobs.nbytes)
        cursors = places + _padded(numbers.nbytes)
        sent = np.zeros(cursors + self.head.nbytes, np.uint8)
        sent[: jobs.nbytes] = jobs.view(np.uint8).ravel()
        sent[places : places + numbers.nbytes] = numbers
        sent[cursors:] = self.head
        buffer = working_memory(cursors + size)
        start = int(buffer.ptr)
        calls, given = self._calls(start + places, start + cursors)
        turns = self.items * kernels.WARP
        blocks = launch.fixed_blocks(self.code, kernels.NAME, turns)
        picked = self._picked(start + places, start + cursors)
        counts = self.rows, len(self.parts), int(picked != 0), picked or start, blocks
        all_given = (start, sent.nbytes, start + cursors, size, *counts, *given)
        found = exchanged(sent, calls, all_given, size)
        give_back(buffer)
        return found

    def _numbers(self) -> Array:
        """What is sent besides jobs, as bytes: row numbers that lie on the host."""
        given = self.picked
        if given is None or isinstance(given, plc.Column):
            return np.zeros(0, np.uint8)
        return np.ascontiguousarray(given, np.int32).view(np.uint8)

    def _calls(self, numbers: int, result: int) -> tuple[DriverCalls, tuple[int, ...]]:
        """All that a run has the driver do, and what it gives besides; `numbers` is where row numbers lie, `result` where the result is to begin."""
        return _fetch_calls(self.code), ()

    def _picked(self, numbers: int, result: int) -> int:
        """Where the row numbers lie that are wanted; 0 for all rows."""
        if self.picked is None:
            return 0
        return address_of(self.picked, 4) if isinstance(self.picked, plc.Column) else numbers

    def columns(self, memory: Array) -> HostColumns:
        rows, found = self.rows, HostColumns((), uploaded)
        for part in self.parts:
            job, out, column, valid = part.job, part.out, part.column, None
            if part.nullable:
                valid = memory[part.valid : part.valid + rows].view(np.bool_)
                valid = None if ALL(valid) else valid
            if job.text:
                end = out + rows * WORD
                halves = memory[out:end].view(np.int32)
                characters = memory[end : end + part.room]
                held: HostColumn = Texts(halves[0::2], halves[1::2], valid, characters)
            else:
                data = memory[out : out + rows * job.width]
                held = host_values(column.type, part.lying, rows, data, valid)
            found.held[column.id] = column, held
        return found


class _Leading(_Fetch):
    """The same of rows that kernels find: behind the cursors are a bound, how many rows there are, and their numbers."""

    def __init__(
        self,
        parts: list[_FetchedPart],
        room: int,
        picked: None,
        code: bytes,
        keys: plc.Column,
        descending: bool,
        count: int,
        codes: Sequence[bytes],
    ) -> None:
        super().__init__(parts, room, picked, code)
        self.keys, self.turned, self.count, self.codes = keys, -int(descending), count, codes
        self.state = self.head.nbytes
        numbers = np.full(room, -1, np.int32).view(np.uint8)
        self.head = np.concatenate([self.head, np.zeros(2 * WORD, np.uint8), numbers])

    def rows_of(self, memory: Array) -> Array | None:
        """Return the places of the rows that were found, in the order of the table; None if not all are there."""
        words = memory[self.state : self.state + 2 * WORD].view(np.int64)
        found = int(words[1])
        if not self.count <= found <= self.rows:
            return None
        return np.argsort(memory[self.state + 2 * WORD :][: 4 * found].view(np.int32))

    def _numbers(self) -> Array:
        return np.full(kernels.SLOTS, np.iinfo(np.int64).max).view(np.uint8)

    def _picked(self, numbers: int, result: int) -> int:
        return result + self.state + 2 * WORD

    def _calls(self, numbers: int, result: int) -> tuple[DriverCalls, tuple[int, ...]]:
        width = 8 if self.keys.type().id() == plc.TypeId.INT64 else 4
        rows, state = self.keys.size(), result + self.state
        turns = rows, kernels.SLOTS * kernels.WARP, rows
        named = zip(self.codes, LEADING_KERNELS, turns, strict=True)
        blocks = [launch.fixed_blocks(code, name, turn) for code, name, turn in named]
        given = address_of(self.keys, width), width, rows, self.turned, self.count, numbers
        return _fetch_calls(self.code, *self.codes), (*given, state, state + 2 * WORD, *blocks)


@lru_cache(maxsize=8)
def _fetch_calls(code: bytes, *leading_codes: bytes) -> DriverCalls:
    """The calls of a run, for which `_LATE` are left open: what is sent, the kernels, what comes back, and the wait."""
    late, stream = _LATE, stream_handle()
    found = [DriverCall("cuMemcpyAsync", (late["start"], late["host"], late["sent"], stream))]
    result, count = late["result"], late["columns"]
    for code_of_kernel, name in zip(leading_codes, LEADING_KERNELS, strict=bool(leading_codes)):
        found.append(_leading_call(code_of_kernel, name))
    given = {
        **_ANYWHERE,
        **dict.fromkeys(_RESULT, result),
        "rows": late["rows"],
        "columns": count,
        "jobs": late["start"],
        "picking": late["picking"],
        "picked": late["picked"],
        "cursors": launch.array_at(result, count, WORD),
    }
    fetch = launch.fixed_call(code, kernels.NAME, kernels.SIGNATURE, late["blocks"], given)
    # Copies of a stream keep their order: what is sent has gone when the last begins
    back = DriverCall("cuMemcpyAsync", (late["host"], result, late["size"], stream))
    return driver_calls([*found, fetch, back, DriverCall("cuStreamSynchronize", (stream,))])


def _leading_call(code: bytes, name: str) -> DriverCall:
    """The launch of one of the kernels that find rows."""
    late = _LATE
    least, state = late["least"], late["state"]
    given = {
        "rows": late["key_rows"],
        "width": late["width"],
        "keys32": late["keys"],
        "keys64": late["keys"],
        "turned": late["turned"],
        "wanted": late["wanted"],
        "room": late["rows"],
        "chosen": late["chosen"],
        "least": launch.array_at(least, kernels.SLOTS, WORD) if name == kernels.LEAST else least,
        "state": launch.array_at(state, 2, WORD) if name == kernels.ROWS else state,
    }
    return launch.fixed_call(code, name, kernels.SIGNATURES[name], late[f"blocks_{name}"], given)


def _padded(size: int) -> int:
    return size + -size % ALIGNMENT


def _code(name: str = kernels.NAME) -> bytes | None:
    return machine_code(name, partial(kernels.row_kernel, name))

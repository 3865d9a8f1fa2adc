"""An exchange of columns of fixed width: rows are written once, where they are sent from or where they stay, and received where they stay.

Beside hashes of the keys, 4 bytes a row, kernels of our own read them and note a slot of 1 byte a row, from which they count, and then
read each value once and write it once.  Where their machine code is not there yet, libcudf cuts rows, and those of each slot are copied.
Rows that go to the first worker or to all are copied as they lie.  Integers as in registers stay so.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import numpy as np
import pylibcudf as plc
from cuda.bindings import runtime
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.handwritten import exchange_kernels as kernels
from ....codegen.handwritten.group_kernels import ranges
from ....codegen.handwritten.row_kernels import WARP, WORD
from ....plan.exchange import Exchange
from ....plan.expr import Column
from ....storage.columns.encodings import Array
from ...context import Context
from ...exchange.exchange_placed import (
    PlacedColumn,
    PlacedRows,
    SlotRows,
    arrays_of,
    exchange_placed,
    route_of,
)
from ...exchange.exchange_rounds import Space
from ...spilling import PARTS
from .. import table as tables
from ..columns import INT64, address_of, cast, empty, width_of
from ..dictionaries import Held
from ..late_materialization import Fetch, LateColumns, registers_of
from ..memory.buffers import check, copy, landed, stream_handle
from ..memory.device import kernel_files, with_room
from ..pipeline import launch
from ..pipeline.finish import from_registers, late_integers
from ..pipeline.fixed_kernels import machine_code
from ..table import Table, check_rows, device_type
from .device_parts import BOOL, RowNumbers, cut_in_slots, row_numbers, sliced

Codes = dict[str, bytes]  # machine code of kernels by their names

_ANYWHERE = {name: 0 for name, _ in kernels.SIGNATURES[kernels.SCATTER] if "memory" in name}


def is_placed(node: Exchange) -> bool:
    """Whether rows go so in an exchange, which all workers know of its plan."""
    kinds = ("hash", "range", "spread") if node.keys else ("gather", "broadcast")
    return node.kind in kinds and not node.orders and all(_widths(node))


def picked_table(node: Exchange, table: Table, context: Context) -> Table | None:
    """Return this worker's own of rows that each worker has; None where libcudf has to pick them.

    15 million keys on an H200: 1.2 ms by libcudf, which hashes, compares and copies in a pass each.
    """
    kernel_files.place = context.kernel_directory, context.fuse
    codes = _codes() if node.keys and all(_widths(node)) and not node.is_spread else None
    found = row_numbers(node, table, context) if codes is not None else None
    if codes is None or found is None or found.numbers is None:
        return None
    assert context.peers is not None
    owners = [0 if owner == context.peers.rank else kernels.NO_SLOT for owner in found.owners]
    numbers = RowNumbers(1, found.numbers, found.keys, owners)
    rows = _ScatteredRows(node, _lying(node, table), numbers, codes)
    memory = _DeviceMemory(node, context)
    (count,) = rows.counts
    arrays = arrays_of(rows.widths, rows.nulls)
    spaces = [memory.space(count * array.width) for array in arrays]
    if count:
        rows.write([[space.address] for space in spaces])
    values, marks = (
        {a.column: space for a, space in zip(arrays, spaces, strict=True) if a.is_marks == is_marks}
        for is_marks in (False, True)
    )
    columns = [PlacedColumn(values[i], marks.get(i)) for i in range(len(node.columns))]
    return _table(node, PlacedRows(count, columns, rows.widths))


def placed_table(node: Exchange, table: Table, context: Context) -> Table | None:
    """Return the rows that this worker has after such an exchange, None where they have to go by the host.

    Raises `MemoryError` when there is no room for them; a second call then goes on.
    """
    peers = context.peers
    assert peers is not None
    kernel_files.place = context.kernel_directory, context.fuse
    if node.number not in context.placed:
        source: SlotRows | None = None
        is_given = table.num_rows > 0 and not (node.of_first and peers.rank > 0)
        try:
            numbers = with_room(lambda: _row_numbers(node, table, context), context)
        except MemoryError:
            # The others would wait where they have to agree on heavy keys
            if node.is_spread:
                raise
        else:
            if numbers is None:
                return table
            with suppress(MemoryError):
                source = with_room(lambda: _source(node, table, numbers, is_given), context)
        slots = peers.workers + int(node.is_spread) if node.keys else 1
        route, memory = route_of(node, peers.workers), _DeviceMemory(node, context)
        given = source if peers.linked else None
        placed = exchange_placed(peers, node.number, _widths(node), slots, route, given, memory)
        if placed is None:
            return None
        context.placed[node.number] = placed
    made = with_room(lambda: _table(node, context.placed[node.number]), context)
    del context.placed[node.number]
    return made


def _row_numbers(node: Exchange, table: Table, context: Context) -> RowNumbers | None:
    return row_numbers(node, table, context) if node.keys else RowNumbers(1)


def _widths(node: Exchange) -> list[int]:
    """The bytes that a value of each column has at most; 0 for texts."""
    return [width_of(device_type(column.type).id()) for column in node.columns]


def _table(node: Exchange, placed: PlacedRows) -> Table:
    rows = check_rows(placed.rows, "An exchange")
    columns: dict[int, Held | Fetch] = {}
    for column, held, width in zip(node.columns, placed.columns, placed.widths, strict=True):
        lying = device_type(column.type)
        if width < width_of(lying.id()) and rows:
            registers = _column(INT64, rows, held)
            columns[column.id] = late_integers(registers, column.type, None)
        else:
            columns[column.id] = _column(lying, rows, held)
    return Table(LateColumns.of_one(columns), rows)


def _column(data_type: plc.DataType, rows: int, placed: PlacedColumn) -> plc.Column:
    if not rows:
        return empty(data_type)
    column = _plain(data_type, rows, placed.values)
    if placed.marks is None:
        return column
    mask, nulls = plc.transform.bools_to_mask(_plain(BOOL, rows, placed.marks))
    return column.with_mask(mask, nulls) if nulls else column


def _plain(data_type: plc.DataType, rows: int, space: Space) -> plc.Column:
    return plc.Column(data_type, rows, plc.gpumemoryview(space.held), None, 0, 0, [])


class _DeviceMemory:
    """Memory of this worker's device, as `exchange_placed` takes it for one exchange."""

    def __init__(self, node: Exchange, context: Context) -> None:
        self._node, self._context, self._asked = node, context, 0

    def space(self, size: int) -> Space:
        self._asked += size
        self._context.ask(self._node, self._asked)
        made = with_room(lambda: _buffer(size), self._context)
        return Space(int(made.ptr), made)

    def copy(self, target: int, source: int, size: int) -> None:
        copy(target, source, size)

    def fill(self, target: int, byte: int, size: int) -> None:
        check(runtime.cudaMemsetAsync(target, byte, size, stream_handle())[0])


def _buffer(size: int) -> DeviceBuffer:
    return DeviceBuffer(size=size, stream=plc.utils.CUDF_DEFAULT_STREAM)


def _source(node: Exchange, table: Table, numbers: RowNumbers, is_given: bool) -> SlotRows:
    """Return what writes a table's rows to their slots, if it gives any."""
    if not is_given:
        return _CutRows(node, [], numbers.slots)
    if numbers.numbers is None:
        return _CutRows(node, [_lying(node, table)], numbers.slots)
    codes = _codes() if numbers.slots <= kernels.MOST_SLOTS else None
    if codes is None:
        pieces = [sliced(stretch) for stretch in cut_in_slots(node, table, numbers)]
        return _CutRows(node, [_physical(node.columns, p) for p in pieces], numbers.slots)
    return _ScatteredRows(node, _lying(node, table), numbers, codes)


def _codes() -> Codes | None:
    codes = {
        name: machine_code(name, partial(kernels.exchange_kernel, name))
        for name in kernels.SIGNATURES
    }
    found = {name: code for name, code in codes.items() if code is not None}
    return found if len(found) == len(codes) else None


def _lying(node: Exchange, table: Table) -> list[plc.Column]:
    """Return columns as they are sent: those of 128 bits that are made of integers as in registers as these."""
    registers = {
        column: found
        for column in node.columns
        if column.type.is_wide_decimal
        and (found := registers_of(table.columns, column.id)) is not None
    }
    plain = [column for column in node.columns if column not in registers]
    rows = iter(_physical(plain, tables.plc_table(table, plain)))
    return [registers[c] if c in registers else next(rows) for c in node.columns]


def _physical(columns: Sequence[Column], rows: plc.Table) -> list[plc.Column]:
    """Return columns in the types that all workers expect."""
    pairs = zip(rows.columns(), columns, strict=True)
    return [cast(held, device_type(column.type)) for held, column in pairs]


class _SlotRows:
    """Rows in pieces, the columns of each, which are as wide as those of the first one."""

    def __init__(self, node: Exchange, pieces: Sequence[list[plc.Column]]) -> None:
        self._node, self._pieces = node, list(pieces)
        self.nulls = [
            any(piece[place].null_count() for piece in pieces) for place in range(len(node.columns))
        ]

    @property
    def widths(self) -> list[int]:
        some = self._pieces[0] if self._pieces else ()
        return [width_of(column.type().id()) for column in some] or _widths(self._node)

    def widen(self, widths: Sequence[int]) -> None:
        types = [device_type(column.type) for column in self._node.columns]
        self._pieces = [
            [
                held if width_of(held.type().id()) == width else from_registers(held, lying)
                for held, width, lying in zip(piece, widths, types, strict=True)
            ]
            for piece in self._pieces
        ]


class _CutRows(_SlotRows):
    """Rows of which those of each slot are a piece; of no pieces there are no rows."""

    def __init__(self, node: Exchange, pieces: Sequence[list[plc.Column]], slots: int) -> None:
        super().__init__(node, pieces)
        self.counts = [piece[0].size() for piece in pieces] or [0] * slots

    def write(self, bases: Sequence[Sequence[int]]) -> None:
        for array, starts in zip(arrays_of(self.widths, self.nulls), bases, strict=True):
            for piece, rows, start in zip(self._pieces, self.counts, starts, strict=True):
                if rows:
                    held = piece[array.column]
                    values = plc.unary.is_valid(held) if array.is_marks else held
                    copy(start, address_of(values, array.width), rows * array.width)


class _ScatteredRows(_SlotRows):
    """Rows that kernels count by slots, and write to them."""

    def __init__(
        self, node: Exchange, columns: list[plc.Column], numbers: RowNumbers, codes: Codes
    ) -> None:
        super().__init__(node, [columns])
        assert numbers.numbers is not None
        self._numbers, self._codes = numbers, codes
        self._rows = int(numbers.numbers.size())
        self._warps, self._share = ranges(self._rows, kernels.RANGES)
        self._to = _buffer(self._rows)  # the slot of each row
        self._held: list[DeviceBuffer] = []  # until the kernels that read them are over
        self._ends = self._counted(numbers)
        self.counts = self._totals()

    def _counted(self, numbers: RowNumbers) -> plc.Column:
        """The running sums of the rows of each slot in each range, slot by slot."""
        nullable = [key for key in numbers.keys if key.null_count()]
        bitmaps = [w for key in nullable for w in (int(key.null_mask().ptr), int(key.offset()))]
        owners, places = self._sent(np.array(numbers.owners, np.uint8), np.array(bitmaps, np.int64))
        size = numbers.slots * self._warps
        counts = _plain_words(size)
        self._run(
            kernels.COUNT,
            numbers=address_of(numbers.numbers, 4),
            mask=PARTS - 1 if numbers.keys else -1,
            owners=owners,
            nullable=len(nullable),
            bitmaps=places,
            counts=address_of(counts, WORD),
        )
        return plc.reduce.scan(counts, plc.aggregation.sum(), plc.reduce.ScanType.INCLUSIVE)

    def _totals(self) -> list[int]:
        """How many rows each slot has, which the host waits for."""
        slots, start = self._numbers.slots, address_of(self._ends, WORD)
        pieces = [
            (WORD * slot, start + WORD * (self._warps * (slot + 1) - 1), WORD)
            for slot in range(slots)
        ]
        ends = landed(pieces, WORD * slots).view(np.int64)
        counts: list[int] = np.diff(ends, prepend=0).tolist()
        return counts

    def write(self, bases: Sequence[Sequence[int]]) -> None:
        (columns,) = self._pieces
        jobs: list[tuple[int, int, int, int]] = []
        for array in arrays_of(self.widths, self.nulls):
            column = columns[array.column]
            if array.is_marks:
                jobs.append((0, 0, int(column.null_mask().ptr), int(column.offset())))
            else:
                jobs.append((array.width, address_of(column, array.width), 0, 0))
        given, starts = self._sent(
            np.array(jobs, np.int64).ravel(), np.array(bases, np.int64).ravel()
        )
        ends = address_of(self._ends, WORD)
        self._run(kernels.SCATTER, ends=ends, columns=len(jobs), jobs=given, bases=starts)

    def _run(self, name: str, **given: int) -> None:
        """Run a kernel, a warp for each range of rows."""
        arguments = {
            **_ANYWHERE,
            **given,
            "rows": self._rows,
            "warps": self._warps,
            "share": self._share,
            "slots": self._numbers.slots,
            "to": int(self._to.ptr),
        }
        turns = WARP * self._warps
        launch.run_fixed(self._codes[name], name, kernels.SIGNATURES[name], turns, arguments)

    def _sent(self, first: Array, second: Array) -> tuple[int, int]:
        """Return where two arrays lie on the device."""
        parts = [np.ascontiguousarray(first).view(np.uint8), second.view(np.uint8)]
        padding = np.zeros(-len(parts[0]) % WORD + WORD, np.uint8)  # never nothing
        held = DeviceBuffer.to_device(np.concatenate([parts[0], padding, parts[1]]))
        self._held.append(held)
        return int(held.ptr), int(held.ptr) + len(parts[0]) + len(padding)


def _plain_words(count: int) -> plc.Column:
    return _plain(INT64, count, Space(0, _buffer(WORD * count)))

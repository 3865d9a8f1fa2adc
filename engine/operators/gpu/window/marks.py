"""Where partitions and peers of sorted rows begin, as a byte for each, and what kernels of our own find in one pass over these.

libcudf's functions take some 25 passes over columns of 64 bits for a row number; these take three, two of them over the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.handwritten import window_kernels as kernels
from ....codegen.handwritten.group_kernels import ranges
from ....codegen.handwritten.row_kernels import WARP, WORD
from ....records import dataclass
from ...windows.frames import Ints
from ..columns import BOOL, FLOAT64, INT32, INT64, cast, same_type, width_of
from ..pipeline import launch
from ..pipeline.fixed_kernels import machine_code
from .device_array import as_array, column_of

Codes: TypeAlias = Mapping[tuple[str, bool], bytes]  # of kernels, and whether values are FLOAT64

MARKED_ROWS = 1 << 17  # of fewer, launches and their memory take as long as passes do
# What changes no sum, no least and no greatest value
NONE = (0, (1 << 63) - 1, -(1 << 63))


def codes_for(rows: int) -> Codes | None:
    """Return the kernels' machine code; None for few rows, and as long as it is not there."""
    if rows < MARKED_ROWS:
        return None
    found: dict[tuple[str, bool], bytes] = {}
    wanted = [(name, False) for name in kernels.SIGNATURES]
    for name, double in (*wanted, (kernels.SUMS, True), (kernels.RUNNING, True)):
        kernel = partial(kernels.window_kernel, name, double=double)
        code = machine_code(f"{name} of FLOAT64" if double else name, kernel)
        if code is not None:
            found[name, double] = code
    return found if len(found) == len(wanted) + 2 else None


@dataclass(frozen=True)
class WindowMarks:
    """Bytes that are not 0 where partitions (`heads`) and `peers` begin; `state` is what `kernels.HEADS` says of ranges of places."""

    codes: Codes
    rows: int
    heads: plc.Column
    peers: plc.Column
    state: plc.Column

    def starts(self, what: int) -> Ints:
        """Return one of the things that `kernels.STARTS` writes."""
        out = _empty(INT64, self.rows)
        self._run(kernels.STARTS, what=what, out=_address(out))
        return as_array(out)

    def stops(self, of_peers: bool) -> Ints:
        """Return the place behind each place's partition or peers."""
        out = _empty(INT64, self.rows)
        warps, _ = ranges(self.rows)
        which = kernels.FIRST_PEERS if of_peers else kernels.FIRST_HEADS
        firsts = _address(self.state) + WORD * warps * which
        flags = _address(self.peers if of_peers else self.heads)
        self._run(kernels.STOPS, flags=flags, firsts=firsts, out=_address(out))
        return as_array(out)

    def running(self, column: plc.Column, how: int) -> plc.Column | None:
        """Combine the values of each place's partition up to it, none of which is NULL; None for types that no kernel takes."""
        kind, floats = column.type(), same_type(column.type(), FLOAT64)
        if not (floats and how == kernels.ADDED) and kind.id() not in (INT32.id(), INT64.id()):
            return None
        values = column if floats else cast(column, INT64)
        out, sums = (_empty(values.type(), size) for size in (self.rows, ranges(self.rows)[0]))
        none = float(NONE[how]) if floats else NONE[how]
        given = {"how": how, "none": none, "values": _address(values)}
        given |= {"sums": _address(sums), "out": _address(out)}
        for name in (kernels.SUMS, kernels.RUNNING):
            self._run(name, floats, **given)
        return out if how == kernels.ADDED else cast(out, kind)

    def _run(self, name: str, double: bool = False, **given: float) -> None:
        run(self.codes[name, double], name, self.rows, **self._marks, **given)

    @property
    def _marks(self) -> dict[str, int]:
        parts = {"heads": self.heads, "peers": self.peers, "state": self.state}
        return {name: _address(column) for name, column in parts.items()}


def marks_of(codes: Codes, heads: plc.Column, peers: plc.Column) -> WindowMarks:
    """Return marks of which there are columns of BOOL8."""
    rows = int(heads.size())
    state = _empty(INT64, kernels.STATES * ranges(rows)[0])
    marks = WindowMarks(codes, rows, heads, peers, state)
    marks._run(kernels.HEADS)
    return marks


def changes(codes: Codes, keys: plc.Column, below: int) -> WindowMarks:
    """Return the marks of keys in order, INT32 or INT64 without NULL: a partition has `below` of them, one (1), or all (0)."""
    rows = int(keys.size())
    heads, peers = _empty(BOOL, rows), _empty(BOOL, rows)
    run(
        codes[kernels.CHANGES, False], kernels.CHANGES, rows,
        narrow=int(same_type(keys.type(), INT32)), below=below,
        keys32=_address(keys), keys64=_address(keys), heads=_address(heads), peers=_address(peers),
    )  # fmt: skip
    return marks_of(codes, heads, peers)


def scattered(codes: Codes, column: plc.Column, order: plc.Column) -> plc.Column | None:
    """Return the values of places where their rows are; None for NULLs, and widths that the kernel does not take."""
    words = width_of(column.type().id()) // WORD
    if column.null_count() or words * WORD != width_of(column.type().id()) or not words:
        return None
    out = _empty(column.type(), column.size())
    run(
        codes[kernels.SCATTER, False], kernels.SCATTER, int(column.size()),
        words=words, order=_address(order), values=_address(column), out=_address(out),
    )  # fmt: skip
    return out


def moved(codes: Codes, bounds: Ints, away: int) -> Ints:
    """Return the place so many away from each one, -1 beyond its partition, which begins or ends with `bounds`."""
    column = column_of(bounds)
    out = _empty(INT64, column.size())
    run(
        codes[kernels.MOVED, False], kernels.MOVED, int(column.size()),
        away=away, bounds=_address(column), out=_address(out),
    )  # fmt: skip
    return as_array(out)


def at_ends(codes: Codes, column: plc.Column, stops: Ints) -> plc.Column:
    """Return the values, of 64 bits each, before the places where something of each place's own stops."""
    ends = column_of(stops)
    out = _empty(column.type(), ends.size())
    run(
        codes[kernels.ENDS, False], kernels.ENDS, int(ends.size()),
        stops=_address(ends), words=_address(column), out=_address(out),
    )  # fmt: skip
    return out


def rows_taken(
    codes: Codes, places: Ints, order: plc.Column, nowhere: int, stays: bool
) -> plc.Column:
    """Return for each row, or for each place, the number of the row at the place that it has, `nowhere` for -1."""
    column = column_of(places)
    out = _empty(INT32, column.size())
    run(
        codes[kernels.TAKEN, False], kernels.TAKEN, int(column.size()),
        nowhere=nowhere, order=_address(order), stays=int(stays), places=_address(column), out=_address(out),
    )  # fmt: skip
    return out


def run(code: bytes, name: str, rows: int, **given: float) -> None:
    """Run a kernel: a thread for each row, or a warp for each range of rows."""
    signature = kernels.SIGNATURES[name]
    warps, share = ranges(rows)
    by_ranges = any(parameter == "warps" for parameter, _ in signature)
    arguments = {"rows": rows, "warps": warps, "share": share, **given}
    launch.run_fixed(code, name, signature, WARP * warps if by_ranges else rows, arguments)


def _empty(data_type: plc.DataType, rows: int) -> plc.Column:
    """A column that a kernel is to write."""
    memory = plc.gpumemoryview(DeviceBuffer(size=rows * width_of(data_type.id())))
    return plc.Column(data_type, rows, memory, None, 0, 0, [])


def _address(column: plc.Column) -> int:
    return int(column.data().ptr) + int(column.offset()) * width_of(column.type().id())

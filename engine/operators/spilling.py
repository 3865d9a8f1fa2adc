"""Joins larger than memory: both sides are cut into parts by their keys, leave memory, and come back a few parts at a time.

Rows with equal keys are in the part of one number on both sides, and rows with NULL among their keys in the first one, so that
each row finds all of its partners in its own part: what the parts give, put together, is the join, of every kind.  There
are always `PARTS` parts; as many are joined at a time as fit.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ExecutionError
from ..plan import physical as p
from ..plan.expr import Column, columns_of
from .bodies import Operator
from .context import Context
from .room import readable

PARTS = 64
# Of the memory that is left, what the inputs of joined parts may take: beside them lie indexes, pairs and what comes out
SHARE_OF_ROOM = 4
SHARE_OF_SIDES = 8  # what is joined at a time of sides that the device had no memory for
PIECE_BYTES = 256 << 20  # of a side, cut at a time


class Parting(Protocol):
    """What a backend does for it: `operators.cpu` and `operators.gpu` are modules with these names."""

    OPERATORS: Mapping[type[p.Physical], Operator]

    def num_bytes(self, table: Any) -> int: ...

    def parted(
        self, table: Any, keys: Sequence[Column], columns: Sequence[Column]
    ) -> Iterator[Piece]: ...

    def unparted(self, rows: Sequence[pa.RecordBatch], columns: Sequence[Column]) -> Any: ...


@dataclass(frozen=True)
class Piece:
    """Rows on the host in the order of their parts: those of part i are bounds[i]..bounds[i + 1].

    `pinned` are the bytes of memory with locked pages that they lie in, if they do.
    """

    rows: pa.RecordBatch = field(repr=False)
    bounds: Sequence[int]
    pinned: int = 0

    @property
    def place(self) -> str:
        return "pinned host memory" if self.pinned else "host memory"

    @property
    def size(self) -> int:
        return max(self.pinned, int(self.rows.nbytes))

    def parts(self, first: int, last: int) -> list[pa.RecordBatch]:
        """Return the rows of some parts."""
        begin, end = self.bounds[first], self.bounds[last]
        return [self.rows.slice(begin, end - begin)]


@dataclass(frozen=True)
class _File:
    """A piece on disk: an Arrow file with a record batch for each part."""

    path: Path
    place = "disk"

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def parts(self, first: int, last: int) -> list[pa.RecordBatch]:
        with pa.OSFile(str(self.path)) as file, pa.ipc.open_file(file) as reader:
            return [reader.get_batch(i) for i in range(first, last)]


class SpillArea:
    """Where parts lie while a query runs: those of a GPU in `host_limit` bytes of host memory, all others in files.

    What a GPU copied lies in pinned memory, as far as the system has it; what is written to a file gives that back.

    The files' directory is made when there is a first one, and removed at the end of a `with` statement.
    """

    def __init__(self, directory: Path, host_limit: int) -> None:
        self._parent, self._limit, self._room = directory, host_limit, host_limit
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._files = 0

    def __enter__(self) -> SpillArea:
        return self

    def __exit__(self, *_: object) -> None:
        if self._directory is not None:
            self._directory.cleanup()

    def keep(self, piece: Piece, device: p.Device) -> Piece | _File:
        """Take a piece from a device; raises `ExecutionError` when it cannot be written."""
        if device == "gpu" and piece.size < self._room:
            self._room -= piece.size
            return piece
        try:
            return self._written(piece)
        except OSError as error:
            raise ExecutionError(self._refusal(piece, device, error)) from error

    def _refusal(self, piece: Piece, device: p.Device, error: OSError) -> str:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        text = f"A join that does not fit into memory could not write its parts to {self._parent}: {reason}. "
        with suppress(OSError):
            free = readable(shutil.disk_usage(self._parent).free)
            text += f"{readable(piece.size)} were to be written, {free} are free there. "
        if device == "gpu":
            text += f"Host memory holds {readable(self._limit - self._room)} of spill_memory = {readable(self._limit)}. "
        raised = "spill_memory or memory_limit" if device == "gpu" else "memory_limit"
        return f"{text}Name a directory with more room with SET spill_dir, or raise {raised}."

    def drop(self, kept: Piece | _File) -> None:
        """Let go of a piece, whose place others may take."""
        if isinstance(kept, Piece):
            self._room += kept.size
        else:
            kept.path.unlink(missing_ok=True)

    def _written(self, piece: Piece) -> _File:
        if self._directory is None:
            self._parent.mkdir(parents=True, exist_ok=True)
            self._directory = tempfile.TemporaryDirectory(prefix="fuseline-", dir=self._parent)
        path = Path(self._directory.name) / f"{self._files}.arrow"
        self._files += 1
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, piece.rows.schema, options=options) as writer,
        ):
            for i in range(PARTS):
                writer.write_batch(*piece.parts(i, i + 1))
        return _File(path)


class SpilledSide:
    """One side of a join in parts, outside of the device's memory; `sizes` are the bytes of each part."""

    def __init__(self, node: p.HashJoin, place: int, area: SpillArea) -> None:
        self.keys = (node.left_keys, node.right_keys)[place]
        condition = () if node.residual is None else columns_of(node.residual)
        read = {*node.columns, *self.keys, *condition}
        self.columns = tuple(c for c in node.children[place].columns if c in read)
        self.sizes = [0] * PARTS
        self._pieces: list[Piece | _File] = []
        self._area, self._device = area, node.device

    def add(self, piece: Piece) -> None:
        for i in range(PARTS):
            self.sizes[i] += sum(rows.nbytes for rows in piece.parts(i, i + 1))
        self._pieces.append(self._area.keep(piece, self._device))

    def parts(self, first: int, last: int) -> list[pa.RecordBatch]:
        return [rows for piece in self._pieces for rows in piece.parts(first, last)]

    def drop(self) -> None:
        """Let go of all parts."""
        while self._pieces:
            self._area.drop(self._pieces.pop())

    @property
    def places(self) -> Counter[str]:
        """Where the parts lie, and how many bytes they take there."""
        found: Counter[str] = Counter()
        for piece in self._pieces:
            found[piece.place] += piece.size
        return +found


def join_in_parts(
    node: p.HashJoin,
    sides: tuple[SpilledSide, SpilledSide],
    context: Context,
    backend: Parting,
    room: Callable[[], int | None],
) -> Any:
    """Return the join of two spilled sides; `room` says how many bytes are left, None where nobody knows.

    Raises `MemoryLimitError` or `MemoryError` when a single part does not fit, nor what the parts give together.
    """
    sizes = list(map(sum, zip(sides[0].sizes, sides[1].sizes, strict=True)))
    most = sum(sizes) // SHARE_OF_SIDES
    held = first = groups = 0
    results: list[Any] = []

    def hold(nbytes: int) -> None:
        nonlocal held
        held += nbytes
        context.hold(node, nbytes)

    more = _witness(node, sides[1])
    try:
        while first < PARTS:
            context.check()
            left = room()
            last = _end(sizes, first, most if left is None else min(most, left // SHARE_OF_ROOM))
            try:
                results.append(_joined(node, sides, (first, last), more, context, backend, hold))
            except MemoryError:
                if last == first + 1:
                    raise
                most = sum(sizes[first:last]) // 2
                continue
            first, groups = last, groups + 1
        places = sides[0].places + sides[1].places
        context.spilled.update(places)
        context.remarks[id(node)] = f"in {groups} part{'s' * (groups > 1)}, {_spilled(places)}"
        rows = p.ConcatRows((node,) * len(results), node.columns, device=node.device)
        return backend.OPERATORS[p.ConcatRows](rows, tuple(results), context)
    finally:
        context.hold(node, -held)
        for side in sides:
            side.drop()


def _spilled(places: Mapping[str, int]) -> str:
    """How many bytes lay where, memory first."""
    if not places:
        return "nothing spilled"
    parts = [f"{readable(places[place])} to {place}" for place in sorted(places, reverse=True)]
    return f"spilled {' and '.join(parts)}"


def _joined(
    node: p.HashJoin,
    sides: tuple[SpilledSide, SpilledSide],
    parts: tuple[int, int],
    more: list[pa.RecordBatch],
    context: Context,
    backend: Parting,
    hold: Callable[[int], None],
) -> Any:
    """Join some parts; their inputs count towards the memory limit meanwhile, and the result from then on."""
    left = backend.unparted(sides[0].parts(*parts), sides[0].columns)
    right = backend.unparted([*sides[1].parts(*parts), *more], sides[1].columns)
    size = backend.num_bytes(left) + backend.num_bytes(right)
    try:
        hold(size)
        table = backend.OPERATORS[p.HashJoin](node, (left, right), context)
    finally:
        hold(-size)
    hold(backend.num_bytes(table))
    return table


def _end(sizes: Sequence[int], first: int, most: int) -> int:
    """Return the number after the last part that is joined together with the first one: at least that one."""
    sums = accumulate(sizes[first:])
    return first + max(1, sum(1 for total in sums if total <= most))


def _witness(node: p.HashJoin, right: SpilledSide) -> list[pa.RecordBatch]:
    """Return a row that all parts of the right side of NOT IN get, if it has one: with a NULL if there is one.

    A value without a match is unknown where the right side has a NULL, and a NULL is where it has any row, in whichever part.
    Such a join passes on no right row, so that one more does no harm.
    """
    if not node.null_aware:
        return []
    place = right.columns.index(right.keys[0])
    found: list[pa.RecordBatch] = []
    for part in range(PARTS):
        for rows in filter(len, right.parts(part, part + 1)):
            null = pc.indices_nonzero(_is_null(rows.column(place)))
            if len(null):
                return [rows.slice(null[0].as_py(), 1)]
            found = found or [rows.slice(0, 1)]
        if found:  # all NULLs are in the first part
            return found
    return found


def _is_null(keys: pa.Array) -> pa.Array:
    return pc.is_null(keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys)

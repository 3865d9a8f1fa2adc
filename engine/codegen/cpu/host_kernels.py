"""CPU kernels: load or compile a program's, run it over ranges of rows on threads, merge the accumulators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import numpy as np

from ... import stopping
from ...settings import usable_cores
from ...storage.recent import Recent
from ...threads.fork_locks import new_lock
from ...threads.together import shared_threads
from ..compile.compiler import Signature
from ..compile.kernel_files import KernelFile, Origin, kernel_file
from ..compile.native import NativeKernel
from ..groups.accumulate import FOLDS
from ..kernel_fingerprint import SHAPES_KEPT, Shape, shape
from ..loop import Machine
from ..program import Program, once
from . import emit_cpu
from .hash_groups import (
    CUT_GROUPS,
    CUT_SIGNATURE,
    FOLD_GROUPS,
    FOLD_SIGNATURE,
    GroupedRows,
    HashGroups,
    part_shift,
)
from .kept_rows import KeptRows
from .pace import Pace, in_steps
from .sparse_groups import COPY_GROUPS, COPY_SIGNATURE, Met, merged, met

ROWS_A_RANGE = 1 << 17  # below this a second thread costs more than it saves
DETERMINISTIC_ROWS = 1 << 20
SPARSE_GROUPS = 1 << 16  # groups from which a range leaves out those that it does not meet
NUMBERED_ROWS = 1 << 15  # rows whose numbers fit a core's cache
KERNELS_KEPT = 512
ROOM = 1 << 12  # numbers of rows that a range may list at first, at least

Part = TypeVar("Part")
Result = TypeVar("Result")
Argument: TypeAlias = np.ndarray | int | float
Memory = Mapping[str, np.ndarray]  # the buffers of indexes by name


@dataclass(frozen=True, slots=True)
class Outcome:
    """One array an accumulator, one element a group; `numbers` are the groups' where they are hashed.

    `doubt`: the kernel cannot vouch for the answer.
    """

    arrays: list[np.ndarray]
    doubt: bool
    numbers: np.ndarray | None = None


def no_limit(nbytes: int) -> None:
    """Let a run take as many bytes as it asks for."""


class HostFunction:
    """The kernel of a file, loaded when it is first asked for; one that `has_loops` of a user's function may never end."""

    def __init__(self, file: KernelFile, has_loops: bool = False) -> None:
        self.file, self._has_loops = file, has_loops
        self._kernel: NativeKernel | None = None
        self._code: bytes | None = None
        self._lock = new_lock()

    @property
    def is_stored(self) -> bool:
        """Whether the machine code need not be compiled."""
        return self._kernel is not None or self._code is not None or self.file.is_compiled

    def fetch(self) -> Origin:
        """Bring the machine code into memory, and return where it came from; raises `NotCompiled`."""
        if self._kernel is not None or self._code is not None:
            return "memory"
        # Without a lock: several may wait for one compiler, and stop waiting
        self._code, origin = self.file.machine_code()
        return origin

    def load(self) -> Origin:
        """Make the kernel ready; return where its machine code came from."""
        if self._kernel is not None:
            return "memory"
        origin = self.fetch()
        with self._lock:
            if self._kernel is None:
                assert self._code is not None
                self._kernel = NativeKernel(self._code, self.file.signature)
                self._code = None
        return origin

    def __call__(self, *arguments: Argument) -> int:
        return self._ready()(*arguments)

    def over(self, arguments: Sequence[Argument]) -> Callable[..., int]:
        """Return what runs the kernel over a range of rows: it takes start and end, then what follows these arguments."""
        run = (self._kernel or self._ready()).over(arguments)
        return partial(stopping.apart, run) if self._has_loops else run

    def _ready(self) -> NativeKernel:
        if self._kernel is None:
            self.load()
        assert self._kernel is not None
        return self._kernel


def compiled(
    program: Program, describe: Callable[[], str], directory: Path
) -> tuple[HostFunction, Path]:
    """Return the kernel of a program, and its file, whose docstring `describe` gives."""
    key = shape(program), emit_cpu.is_wide(program), directory
    file = _files.find(key)
    if file is None:
        source, signature = emit_cpu.source(program, describe()), emit_cpu.signature(program)
        file = kernel_file(program.name, source, signature, directory, None)
        _files.keep(key, file)
    return _function(file, any(f.image.has_loops for f in program.functions)), file.path


def written_kernel(
    name: str, source: str, signature: Signature, directory: Path, has_loops: bool = False
) -> HostFunction:
    """Return a kernel that is the same for all programs."""
    return _function(kernel_file(name, source, signature, directory, None), has_loops)


def shared_kernels(program: Program, directory: Path) -> tuple[HostFunction, ...]:
    """Return the kernels that run after that of a program and are the same for all."""
    if emit_cpu.hashed(program):
        return _group_kernels(directory)[:2]
    return _group_kernels(directory)[2:] if _is_sparse(program) else ()


@lru_cache(maxsize=16)
def _group_kernels(directory: Path) -> tuple[HostFunction, ...]:
    """Return what folds groups, what cuts them into parts, and what copies those that were met."""
    return (
        written_kernel("fold_groups", FOLD_GROUPS, FOLD_SIGNATURE, directory),
        written_kernel("cut_groups", CUT_GROUPS, CUT_SIGNATURE, directory),
        written_kernel("copy_groups", COPY_GROUPS, COPY_SIGNATURE, directory),
    )


def _is_sparse(program: Program) -> bool:
    """Whether each range of rows may meet few of the groups."""
    grouping = program.grouping
    return grouping is not None and grouping.groups >= SPARSE_GROUPS and not grouping.distinct


_files: Recent[Shape, KernelFile] = Recent(SHAPES_KEPT)
_functions: Recent[Path, HostFunction] = Recent(KERNELS_KEPT)


def _function(file: KernelFile, has_loops: bool) -> HostFunction:
    return _functions.find_or_make(file.path, lambda: HostFunction(file, has_loops))


def _arguments(program: Program, columns: Sequence[np.ndarray], memory: Memory) -> list[Argument]:
    """What a kernel takes between its range of rows and its results."""
    if not program.buffers:
        return [*columns, *program.constants]
    return [*columns, *[memory[buffer.name] for buffer in program.buffers], *program.constants]


def run(
    kernel: HostFunction,
    program: Program,
    columns: Sequence[np.ndarray],
    rows: int,
    threads: int,
    deterministic: bool = False,
    memory: Memory = MappingProxyType({}),
    kept: KeptRows | None = None,
    ask: Callable[[int], None] = no_limit,
) -> Outcome:
    """Run a kernel over all rows, or over those that are `kept`.

    `columns` are the code arrays of the program's inputs and then of its elements, each followed by its bitmap where the
    column has NULLs; `memory` holds the buffers of indexes.
    `ask` raises `MemoryError` where so many bytes must not be taken, for tables whose groups are not counted before.
    `deterministic` cuts the rows into ranges that do not depend on the number of threads, so that float sums repeat.
    """
    over = kernel.over(_arguments(program, columns, memory))
    hashed = program.grouping is not None and program.grouping.hashed
    if kept is not None:
        over = kept.only(over, hashed)
    ranges = ranges_of(rows, threads, kept, deterministic)
    directory = kernel.file.directory
    if hashed:
        return _run_hashed(over, program, ranges, directory, ask)
    groups = 1 if program.grouping is None else program.grouping.groups
    if groups >= SPARSE_GROUPS and _is_sparse(program):
        return _run_sparse(over, program, ranges, directory)

    def part(bounds: tuple[int, int]) -> tuple[list[np.ndarray], bool]:
        out_i, out_f = _blank(program, groups)
        doubt = in_steps(over, *bounds, out_i, out_f)
        arrays = {"out_i": out_i, "out_f": out_f}
        return [arrays[a][at] for a, at in program.slots], bool(doubt)

    first, *rest = _each(part, ranges)
    merged, doubt = first
    for arrays, another in rest:
        doubt |= another
        merged = [
            FOLDS[a.fold](old, new)
            for a, old, new in zip(program.accumulators, merged, arrays, strict=True)
        ]
    return Outcome(merged, doubt)


def _run_sparse(
    over: Callable[..., int], program: Program, ranges: list[tuple[int, int]], directory: Path
) -> Outcome:
    assert program.grouping is not None
    groups = program.grouping.groups
    (copy,) = shared_kernels(program, directory)
    copy.load()

    def part(bounds: tuple[int, int]) -> tuple[Met, bool]:
        out_i, out_f = _blank(program, groups)
        doubt = in_steps(over, *bounds, out_i, out_f)
        rows = None if program.repeats else bounds[1] - bounds[0]
        return met(copy, program, out_i, out_f, rows), bool(doubt)

    found = _each(part, ranges)
    numbers, arrays = merged(program, [m for m, _ in found])
    return Outcome(arrays, any(doubt for _, doubt in found), numbers)


def select_rows(
    kernel: HostFunction, program: Program, columns: Sequence[np.ndarray], rows: int, threads: int
) -> np.ndarray | None:
    """Return the numbers of the rows that a selection keeps, ascending, or None when they are in doubt."""
    over = kernel.over(_arguments(program, columns, {}))
    ranges = ranges_of(rows, threads)
    selected = np.empty(rows, np.bool_)

    def choose(bounds: tuple[int, int]) -> int:
        doubt = in_steps(over, *bounds, selected)
        return -1 if doubt else int(np.count_nonzero(selected[slice(*bounds)]))

    counts = _each(choose, ranges)
    if min(counts) < 0:
        return None
    places = [0, *accumulate(counts)]
    found = np.empty(places[-1], np.int64)

    def number(part: tuple[tuple[int, int], int]) -> None:
        (start, end), at = part
        for block in range(start, end, NUMBERED_ROWS):
            chosen = np.flatnonzero(selected[block : min(block + NUMBERED_ROWS, end)])
            np.add(chosen, block, out=found[at : at + len(chosen)])
            at += len(chosen)

    _each(number, list(zip(ranges, places, strict=False)))
    return found


def list_rows(
    kernel: HostFunction,
    program: Program,
    columns: Sequence[np.ndarray],
    ranges: Sequence[tuple[int, int]],
    memory: Memory = MappingProxyType({}),
    bound: int | float | None = None,
    kept: KeptRows | None = None,
) -> list[np.ndarray] | None:
    """Return the row numbers that a kernel lists of some ranges, an int32 array for each of `rows_out`, or None when they are in doubt.

    `bound`: the value of the parameter of this name; `kept`: the only rows that may be in.
    """
    arguments = _arguments(program, columns, memory)
    if bound is not None:
        first = len(arguments) - len(program.constants)
        arguments[first + [p.name for p in program.parameters].index(program.bound or "")] = bound
    over = kernel.over(arguments)

    def listed(start: int, end: int) -> list[np.ndarray] | None:
        room = max(end - start, ROOM)
        while True:
            found = [np.empty(room, np.int32) for _ in program.rows_out]
            count = over(start, end, *found)
            if count < 0:
                return None
            if count <= room:
                return [array[:count] for array in found]
            room = count

    def part(bounds: tuple[int, int]) -> list[list[np.ndarray] | None]:
        pace = Pace()
        pieces: list[list[np.ndarray] | None] = [[np.empty(0, np.int32) for _ in program.rows_out]]
        for start, last in [bounds] if kept is None else kept.within(*bounds):
            end = start
            while end < last:
                begin, end = end, pace.end(end, last)
                pieces.append(listed(begin, end))
                pace.done()
        return pieces

    few = sum(end - start for start, end in ranges) < ROWS_A_RANGE
    found = map(part, ranges) if few else _each(part, list(ranges))
    parts = [piece for pieces in found for piece in pieces]
    lists = [p for p in parts if p is not None]
    if len(lists) < len(parts):
        return None
    return [np.concatenate(arrays) for arrays in zip(*lists, strict=True)]


def _run_hashed(
    over: Callable[..., int],
    program: Program,
    ranges: list[tuple[int, int]],
    directory: Path,
    ask: Callable[[int], None],
) -> Outcome:
    fold, cut = shared_kernels(program, directory)

    def blank(groups: int) -> tuple[np.ndarray, np.ndarray]:
        return _blank(program, groups)

    assert program.grouping is not None
    shift = part_shift(program.grouping.groups, ranges[-1][1])
    grouped = HashGroups(program, shift, blank, fold.over, cut, ask)

    def part(bounds: tuple[int, int]) -> GroupedRows:
        return grouped.fill(over, *bounds)

    found = _each(part, ranges)
    arrays, numbers = grouped.merge(found, _each)
    return Outcome(arrays, any(one.doubt for one in found), numbers)


def ranges_of(
    rows: int, threads: int, kept: KeptRows | None = None, deterministic: bool = False
) -> list[tuple[int, int]]:
    """Return the ranges that make up all rows, or those that are kept, one for each thread that they are worth."""
    if kept is None and rows < ROWS_A_RANGE:
        return [(0, rows)]
    if kept is not None:
        return list(pairwise(kept.bounds(_bounds(kept.count, threads, deterministic))))
    return list(pairwise(_bounds(rows, threads, deterministic)))


def each_range(work: Callable[[tuple[int, int]], Result], rows: int, threads: int) -> list[Result]:
    """Do work for ranges that make up all rows, on threads; return what came of each."""
    return _each(work, ranges_of(rows, threads))


def _bounds(rows: int, threads: int, deterministic: bool) -> list[int]:
    """Where ranges of rows begin and end: at multiples of 8, so that no two share a byte of a bitmap."""
    parts = rows // DETERMINISTIC_ROWS if deterministic else min(threads, rows // ROWS_A_RANGE)
    if parts <= 1:
        return [0, rows]
    return [rows * i // parts // 8 * 8 for i in range(parts)] + [rows]


def _each(work: Callable[[Part], Result], ranges: list[Part]) -> list[Result]:
    # This thread waits: TPC-H's Q03 took a sixth more time where it took ranges too
    each = map if len(ranges) == 1 else shared_threads("fuseline-kernel", usable_cores()).map
    return [*each(stopping.carried(work), ranges)]


def _blank(program: Program, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Accumulators set to the identities of their folds; at least one row each, since Numba needs the shape."""
    integers, floats, wide = _identities(program)
    filled: list[np.ndarray] = []
    for identities, any_set in (integers, floats):
        shape = (groups, len(identities)) if wide else (len(identities), groups)
        made = np.zeros(shape, identities.dtype)  # memory that is not touched costs nothing
        rows = made.T if wide else made
        if any_set:
            rows[:] = identities[:, None]
        filled.append(rows)
    return filled[0], filled[1]


Identities = tuple[np.ndarray, bool]  # of accumulators, and whether any is not 0


@once
def _identities(program: Program) -> tuple[Identities, Identities, bool]:
    """What accumulators begin with, and whether those of a group lie side by side."""
    integers = [a.identity for a in program.accumulators if a.machine is Machine.I64] or [0]
    floats = [a.identity for a in program.accumulators if a.machine is Machine.F64] or [0.0]
    wide = emit_cpu.is_wide(program)
    starts = np.array(integers, np.int64), np.array(floats, np.float64)
    return (starts[0], any(integers)), (starts[1], any(floats)), wide

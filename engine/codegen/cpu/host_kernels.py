"""CPU kernels: run a program's over ranges of rows on threads, merge the accumulators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from ... import stopping
from ...records import dataclass
from ...settings import usable_cores
from ...storage.columns.encodings import Array
from ...threads.together import shared_threads
from ..groups.accumulate import FOLDS
from ..loop import Machine
from ..program import Program, once
from . import emit_cpu
from .clustered_rows import (
    COUNT_ROWS,
    COUNT_SIGNATURE,
    MOVE_ROWS,
    Moved,
    ascending_key,
    clustered,
    clustering_key,
    move_signature,
    widths,
)
from .hash_groups import (
    CUT_GROUPS,
    CUT_SIGNATURE,
    FOLD_GROUPS,
    FOLD_SIGNATURE,
    GroupedRows,
    HashGroups,
    part_shift,
)
from .host_functions import Argument, HostFunction, Pace, in_steps, written_kernel
from .kept_rows import KeptRows
from .sparse_groups import COPY_GROUPS, COPY_SIGNATURE, Met, merged, met

ROWS_A_RANGE = 1 << 17  # below this a second thread costs more than it saves
DETERMINISTIC_ROWS = 1 << 20
SPARSE_GROUPS = 1 << 16  # groups from which a range leaves out those that it does not meet
NUMBERED_ROWS = 1 << 15  # rows whose numbers fit a core's cache
ROOM = 1 << 12  # numbers of rows that a range may list at first, at least

Part = TypeVar("Part")
Result = TypeVar("Result")
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


def shared_kernels(program: Program, directory: Path) -> tuple[HostFunction, ...]:
    """Return the kernels that run before and after that of a program and are the same for all."""
    fold, cut, count, copy = _group_kernels(directory)
    if not emit_cpu.hashed(program):
        return (copy,) if _is_sparse(program) else ()
    if clustering_key(program) is None:
        return fold, cut
    return (fold, cut, count, *(_move_kernel(directory, width) for width in widths(program)))


@lru_cache(maxsize=16)
def _move_kernel(directory: Path, width: int) -> HostFunction:
    return written_kernel("move_rows", MOVE_ROWS, move_signature(width), directory)


@lru_cache(maxsize=16)
def _group_kernels(directory: Path) -> tuple[HostFunction, ...]:
    """Return what folds groups, what cuts them into parts, what counts rows of parts, and what copies groups that were met."""
    return (
        written_kernel("fold_groups", FOLD_GROUPS, FOLD_SIGNATURE, directory),
        written_kernel("cut_groups", CUT_GROUPS, CUT_SIGNATURE, directory),
        written_kernel("count_rows", COUNT_ROWS, COUNT_SIGNATURE, directory),
        written_kernel("copy_groups", COPY_GROUPS, COPY_SIGNATURE, directory),
    )


def _is_sparse(program: Program) -> bool:
    """Whether each range of rows may meet few of the groups."""
    grouping = program.grouping
    return grouping is not None and grouping.groups >= SPARSE_GROUPS and not grouping.distinct


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
    ranges = ranges_of(rows, threads, kept, deterministic)
    directory = kernel.file.directory
    hashed = program.grouping is not None and program.grouping.hashed
    moved = None
    if hashed and clustering_key(program) is not None:
        moves = shared_kernels(program, directory)[2:]
        moved = clustered(program, columns, ranges, moves, _each, ask)
        columns = columns if moved is None else moved.columns
    over = kernel.over(_arguments(program, columns, memory))
    if kept is not None:
        over = kept.only(over, hashed)
    if hashed:
        place = ascending_key(program)
        codes = None if place is None else columns[place][:rows]
        return _run_hashed(over, program, ranges, directory, ask, moved, codes)
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
    kernel: HostFunction,
    program: Program,
    columns: Sequence[np.ndarray],
    rows: int,
    threads: int,
    kept: KeptRows | None = None,
) -> np.ndarray | None:
    """Return the numbers of the rows that a selection keeps, ascending, or None when they are in doubt; `kept`: the only rows that may be in."""
    over = kernel.over(_arguments(program, columns, {}))
    if kept is not None:
        over = kept.only(over, resumes=False)
    ranges = ranges_of(rows, threads, kept)
    selected = np.empty(rows, np.bool_)

    def stretches(start: int, end: int) -> Iterable[tuple[int, int]]:
        return [(start, end)] if kept is None else kept.within(start, end)

    def choose(bounds: tuple[int, int]) -> int:
        doubt = in_steps(over, *bounds, selected)
        counts = [np.count_nonzero(selected[slice(*each)]) for each in stretches(*bounds)]
        return -1 if doubt else int(sum(counts))

    counts = _each(choose, ranges)
    if min(counts) < 0:
        return None
    places = [0, *accumulate(counts)]
    found = np.empty(places[-1], np.int64)

    def number(part: tuple[tuple[int, int], int]) -> None:
        bounds, at = part
        for start, end in stretches(*bounds):
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
    moved: Moved | None,
    codes: Array | None,
) -> Outcome:
    """`codes` are those of a key in whose order the rows lie."""
    fold, cut, *_ = shared_kernels(program, directory)

    def blank(groups: int) -> tuple[np.ndarray, np.ndarray]:
        return _blank(program, groups)

    assert program.grouping is not None
    shift = part_shift(program.grouping.groups, ranges[-1][1])
    grouped = HashGroups(program, shift, blank, fold.over, cut, ask)

    if moved is not None:
        arrays, numbers, doubt = grouped.by_parts(over, moved.parts, moved.slots, _each)
        return Outcome(arrays, doubt, numbers)
    if codes is not None:
        arrays, numbers, doubt = grouped.in_order(over, ranges, codes, _each)
        return Outcome(arrays, doubt, numbers)

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

"""CPU kernels: compile a kernel file with Numba, run it over ranges of rows on threads, merge the accumulators."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import accumulate, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any
from typing import Literal as OneOf

import numpy as np

from ..groups.accumulate import FOLDS
from ..loop import Machine
from ..steps import Program
from . import emit_cpu
from .cache import file_digest, kernel_key, source_file
from .emit import accumulator_slots
from .hash_groups import PLACE_KEYS, HashTable, fill, merge
from .shapes import Files, shape
from .sparse_groups import COPY_GROUPS, Met, merged, met

ROWS_A_RANGE = 1 << 17  # below this a second thread costs more than it saves
DETERMINISTIC_ROWS = 1 << 20
WIDE_GROUPS = (
    1 << 12
)  # groups from which a group's accumulators lie side by side: they no longer fit a core's cache
SPARSE_GROUPS = 1 << 16  # groups from which a range leaves out those that it does not meet
NUMBERED_ROWS = 1 << 15  # rows whose numbers fit a core's cache
KERNELS_KEPT = 512
ROOM = 1 << 12  # numbers of rows that a range may list at first, at least

Memory = Mapping[str, Any]  # the buffers of indexes by name


@dataclass(frozen=True, slots=True)
class Outcome:
    """One array an accumulator, one element a group; `numbers` are the groups' where they are hashed.

    `doubt`: the kernel cannot vouch for the answer.
    """

    arrays: list[Any]
    doubt: bool
    numbers: Any = None


@cache
def toolchain() -> str:
    """Versions that machine code for this processor depends on."""
    kinds = ("", "alike_", "atomic_", "ranks_")
    files = [Path(__file__).with_name(f"functions_{kind}cpu.py") for kind in kinds]
    functions = " ".join(map(file_digest, files))
    packages = f"numba {version('numba')} llvmlite {version('llvmlite')} numpy {np.__version__}"
    return f"{packages} functions {functions}"


def compiled(
    program: Program, describe: Callable[[], str], directory: Path
) -> tuple[Callable[..., Any], Path]:
    """Return the kernel of a program as a function that lets go of the GIL, and its file, whose docstring `describe` gives.

    Numba keeps the machine code beside the file, keyed by argument types.
    """
    key = shape(program), directory
    path = _files.find(key)
    if path is None:
        source = emit_cpu.source(program, describe())
        path = source_file(directory, program.name, kernel_key(source, toolchain()), source)
        _files.keep(key, path, path)
    return _function(path, program.name), path


def written_kernel(name: str, source: str, directory: Path) -> Callable[..., Any]:
    """Return a kernel that is the same for all programs."""
    return _function(source_file(directory, name, kernel_key(source, toolchain()), source), name)


_files: Files[Path] = Files()
_kernels: OrderedDict[Path, Callable[..., Any]] = OrderedDict()
_lock = threading.Lock()


def _function(path: Path, name: str) -> Callable[..., Any]:
    """Return a file's function, ready to be compiled; those not used for long are let go."""
    with _lock:
        if path not in _kernels:
            _kernels[path] = _loaded(path, name)
            while len(_kernels) > KERNELS_KEPT:
                old, _ = _kernels.popitem(last=False)
                sys.modules.pop(old.stem, None)
        _kernels.move_to_end(path)
        return _kernels[path]


def _loaded(path: Path, name: str) -> Callable[..., Any]:
    from numba import njit

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where Numba's stored machine code looks for it
    spec.loader.exec_module(module)
    kernel: Callable[..., Any] = njit(nogil=True, cache=True, error_model="numpy")(
        getattr(module, name)
    )
    return kernel


def is_stored(kernel: Any, path: Path) -> bool:
    """Whether a kernel's machine code need not be compiled."""
    stored = path.parent / "__pycache__"
    return bool(kernel.signatures) or any(stored.glob(f"{path.stem}*.nbi"))


def load(
    kernel: Any, program: Program, columns: Sequence[Any]
) -> OneOf["memory", "disk", "compiler"]:
    """Make a kernel ready by running it over no rows; return where its machine code came from.

    Stored machine code that cannot be read is dropped, and compiled again.
    """
    before = kernel.stats
    hits, misses = sum(before.cache_hits.values()), sum(before.cache_misses.values())
    memory = {b.name: np.zeros(1, b.type) for b in program.buffers}

    def launch() -> None:
        if program.rows_out:
            list_rows(kernel, program, columns, 0, 1, memory)
        elif program.accumulators:
            run(kernel, program, columns, 0, 1, False, memory)
        else:
            select_rows(kernel, program, columns, 0, 1)

    try:
        launch()
    except Exception:  # whatever unpickling of damaged bytes raises
        path = Path(kernel.py_func.__code__.co_filename)
        stored = list((path.parent / "__pycache__").glob(f"{path.stem}*.nb?"))
        if not stored:
            raise
        for file in stored:
            file.unlink(missing_ok=True)
        launch()
    if sum(kernel.stats.cache_misses.values()) > misses:
        return "compiler"
    return "disk" if sum(kernel.stats.cache_hits.values()) > hits else "memory"


def scalars(program: Program) -> list[Any]:
    """The scalar arguments, in the types that the kernel was written for."""
    return [getattr(np, p.machine.value)(p.value) for p in program.parameters]


def tables(program: Program) -> list[Any]:
    return [t.array for t in program.tables]


def _arguments(program: Program, columns: Sequence[Any], memory: Memory) -> list[Any]:
    """What a kernel takes between its range of rows and its results."""
    buffers = [memory[b.name] for b in program.buffers]
    return [*columns, *buffers, *scalars(program), *tables(program)]


def run(
    kernel: Callable[..., Any],
    program: Program,
    columns: Sequence[Any],
    rows: int,
    threads: int,
    deterministic: bool = False,
    memory: Memory = MappingProxyType({}),
) -> Outcome:
    """Run a kernel over all rows.

    `columns` are the code arrays of the program's inputs and then of its elements, each followed by its bitmap where the
    column has NULLs; `memory` holds the buffers of indexes.
    `deterministic` cuts the rows into ranges that do not depend on the number of threads, so that float sums repeat.
    """
    arguments = _arguments(program, columns, memory)
    bounds = _bounds(rows, threads, deterministic)
    ranges = list(pairwise(bounds))
    if program.grouping is not None and program.grouping.hashed:
        return _run_hashed(kernel, program, arguments, ranges)
    groups = 1 if program.grouping is None else program.grouping.groups
    if groups >= SPARSE_GROUPS and program.grouping is not None and not program.grouping.distinct:
        return _run_sparse(kernel, program, arguments, ranges)
    slots = accumulator_slots(program)

    def part(bounds: tuple[int, int]) -> tuple[list[Any], bool]:
        out_i, out_f = _blank(program, groups)
        doubt = kernel(*bounds, *arguments, out_i, out_f)
        arrays = {"out_i": out_i, "out_f": out_f}
        return [arrays[a][at] for a, at in slots], bool(doubt)

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
    kernel: Callable[..., Any],
    program: Program,
    arguments: Sequence[Any],
    ranges: list[tuple[int, int]],
) -> Outcome:
    assert program.grouping is not None
    groups = program.grouping.groups
    copy = written_kernel("copy_groups", COPY_GROUPS, _directory(kernel))

    def part(bounds: tuple[int, int]) -> tuple[Met, bool]:
        out_i, out_f = _blank(program, groups)
        doubt = kernel(*bounds, *arguments, out_i, out_f)
        rows = None if program.repeats else bounds[1] - bounds[0]
        return met(copy, program, out_i, out_f, rows), bool(doubt)

    found = _each(part, ranges)
    numbers, arrays = merged(program, [m for m, _ in found])
    return Outcome(arrays, any(doubt for _, doubt in found), numbers)


def _directory(kernel: Any) -> Path:
    return Path(kernel.py_func.__code__.co_filename).parent


def select_rows(
    kernel: Callable[..., Any], program: Program, columns: Sequence[Any], rows: int, threads: int
) -> Any:
    """Return the numbers of the rows that a selection keeps, ascending, or None when they are in doubt."""
    arguments = _arguments(program, columns, {})
    ranges = list(pairwise(_bounds(rows, threads, deterministic=False)))
    selected = np.empty(rows, np.bool_)

    def choose(bounds: tuple[int, int]) -> int:
        doubt = kernel(*bounds, *arguments, selected)
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
    kernel: Callable[..., Any],
    program: Program,
    columns: Sequence[Any],
    rows: int,
    threads: int,
    memory: Memory = MappingProxyType({}),
) -> list[Any] | None:
    """Return the row numbers that a kernel lists, an int32 array for each of `rows_out`, or None when they are in doubt."""
    arguments = _arguments(program, columns, memory)

    def part(bounds: tuple[int, int]) -> list[Any] | None:
        start, end = bounds
        room = max(end - start, ROOM)
        while True:
            found = [np.empty(room, np.int32) for _ in program.rows_out]
            count = kernel(start, end, *arguments, *found)
            if count < 0:
                return None
            if count <= room:
                return [array[:count] for array in found]
            room = count

    parts = each_range(part, rows, threads)
    lists = [p for p in parts if p is not None]
    if len(lists) < len(parts):
        return None
    return [np.concatenate(arrays) for arrays in zip(*lists, strict=True)]


def _run_hashed(
    kernel: Callable[..., Any],
    program: Program,
    arguments: Sequence[Any],
    ranges: list[tuple[int, int]],
) -> Outcome:
    place = written_kernel("place_keys", PLACE_KEYS, _directory(kernel))

    def blank(groups: int) -> tuple[Any, Any]:
        return _blank(program, groups)

    def part(bounds: tuple[int, int]) -> HashTable:
        return fill(kernel, *bounds, arguments, blank, place, program.repeats)

    found = _each(part, ranges)
    arrays, numbers = merge(found, program, blank, place)
    return Outcome(arrays, any(t.state[1] for t in found), numbers)


def each_range(work: Callable[[tuple[int, int]], Any], rows: int, threads: int) -> list[Any]:
    """Do work for ranges that make up all rows, on threads; return what came of each."""
    return _each(work, list(pairwise(_bounds(rows, threads, deterministic=False))))


def _bounds(rows: int, threads: int, deterministic: bool) -> list[int]:
    """Where ranges of rows begin and end: at multiples of 8, so that no two share a byte of a bitmap."""
    parts = rows // DETERMINISTIC_ROWS if deterministic else min(threads, rows // ROWS_A_RANGE)
    parts = max(parts, 1)
    return [rows * i // parts // 8 * 8 for i in range(parts)] + [rows]


def _each(work: Callable[[Any], Any], ranges: list[Any]) -> list[Any]:
    return [work(ranges[0])] if len(ranges) == 1 else list(_pool().map(work, ranges))


def _blank(program: Program, groups: int) -> tuple[Any, Any]:
    """Accumulators set to the identities of their folds; at least one row each, since Numba needs the shape."""
    integers = [a.identity for a in program.accumulators if a.machine is Machine.I64] or [0]
    floats = [a.identity for a in program.accumulators if a.machine is Machine.F64] or [0.0]
    wide = groups >= WIDE_GROUPS
    return _filled(np.array(integers, np.int64), groups, wide), _filled(
        np.array(floats, np.float64), groups, wide
    )


def _filled(identities: Any, groups: int, wide: bool) -> Any:
    shape = (groups, len(identities)) if wide else (len(identities), groups)
    made = np.zeros(shape, identities.dtype)  # memory that is not touched costs nothing
    filled = made.T if wide else made
    if identities.any():
        filled[:] = identities[:, None]
    return filled


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="fuseline-kernel")

"""CPU kernels: compile a kernel file with Numba, run it over ranges of rows on threads, merge the accumulators."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from . import emit_cpu
from .cache import kernel_key, source_file
from .emit import accumulator_slots
from .loop import Machine
from .steps import Program

ROWS_A_RANGE = 1 << 17  # below this a second thread costs more than it saves
FOLDS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "or": np.bitwise_or,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
}


@cache
def toolchain() -> str:
    """Versions that machine code for this processor depends on."""
    return f"numba {version('numba')} llvmlite {version('llvmlite')} numpy {np.__version__}"


def compiled(program: Program, description: str, directory: Path) -> tuple[Callable[..., bool], Path]:
    """Return the kernel of a program as a function that lets go of the GIL, and its file.

    Numba keeps the machine code beside the file, keyed by argument types.
    """
    source = emit_cpu.source(program, description)
    path = source_file(directory, program.name, kernel_key(source, toolchain()), source)
    return _function(path, program.name), path


@cache
def _function(path: Path, name: str) -> Callable[..., bool]:
    from numba import njit

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where Numba's stored machine code looks for it
    spec.loader.exec_module(module)
    kernel: Callable[..., bool] = njit(nogil=True, cache=True, error_model="numpy")(
        getattr(module, name)
    )
    return kernel


def scalars(program: Program) -> list[Any]:
    """The scalar arguments, in the types that the kernel was written for."""
    return [getattr(np, p.machine.value)(p.value) for p in program.kernel.parameters]


def tables(program: Program) -> list[Any]:
    return [t.array for t in program.kernel.tables]


def run(
    kernel: Callable[..., bool],
    program: Program,
    columns: Sequence[Any],
    rows: int,
    threads: int,
) -> tuple[list[Any], bool]:
    """Run a kernel over all rows; return one array a accumulator, one element a group, and whether to doubt it.

    `columns` are the code arrays of the program's inputs, each followed by its bitmap where the column has NULLs.
    """
    arguments = [*columns, *scalars(program), *tables(program)]
    groups = 1 if program.grouping is None else program.grouping.groups
    parts = max(min(threads, rows // ROWS_A_RANGE), 1)
    # Multiples of 8 rows, so that no two ranges share a byte of a bitmap
    bounds = [rows * i // parts // 8 * 8 for i in range(parts)] + [rows]

    def part(i: int) -> tuple[list[Any], bool]:
        out_i, out_f = _blank(program, groups)
        doubt = kernel(bounds[i], bounds[i + 1], *arguments, out_i, out_f)
        arrays = {"out_i": out_i, "out_f": out_f}
        return [arrays[a][at] for a, at in accumulator_slots(program)], bool(doubt)

    results = [part(0)] if parts == 1 else list(_pool().map(part, range(parts)))
    merged = [
        FOLDS[accumulator.fold].reduce([arrays[i] for arrays, _ in results])
        for i, accumulator in enumerate(program.accumulators)
    ]
    return merged, any(doubt for _, doubt in results)


def _blank(program: Program, groups: int) -> tuple[Any, Any]:
    """Accumulators set to the identities of their folds; at least one row each, since Numba needs the shape."""
    integers = [a.identity for a in program.accumulators if a.machine is Machine.I64] or [0]
    floats = [a.identity for a in program.accumulators if a.machine is Machine.F64] or [0.0]
    out_i = np.repeat(np.array(integers, np.int64)[:, None], groups, axis=1)
    out_f = np.repeat(np.array(floats, np.float64)[:, None], groups, axis=1)
    return out_i, out_f


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="fuseline-kernel")

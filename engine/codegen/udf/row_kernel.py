"""Compiled loops over arrays: a Python function's, where no kernel of a pipeline holds its call, and a Python aggregate's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ...plan.udf.python_function import PythonCall, PythonFold
from ..compile.compiler import Architecture, Signature
from ..compile.kernel_files import KernelFile, kernel_file
from ..cpu.host_functions import HostFunction, loaded_function, written_kernel
from .function_text import (
    IMPORT,
    DeviceFunction,
    bounds,
    device_function,
    machine_of_kind,
    register_kind,
)

FILES_KEPT = 256
ARRAYS = {"whole": "int64", "real": "float64", "single": "float64", "truth": "bool_"}


def row_kernel(call: PythonCall, directory: Path) -> HostFunction:
    """Return the loop over a function's rows: start, end, an array each of the arguments, values and failures."""
    function = device_function(call, "function")
    return loaded_function(_row_file(function, directory), function.image.has_loops)


@lru_cache(maxsize=FILES_KEPT)  # each run of a query asks
def _row_file(function: DeviceFunction, directory: Path) -> KernelFile:
    names = [f"a{i}" for i in range(len(function.parameters))]
    types = [f"[{ARRAYS[kind]}]" for kind in function.parameters]
    result = f"[{machine_of_kind(function.result).value}]"
    signature: Signature = [
        ("start", "int64"),
        ("end", "int64"),
        *zip(names, types, strict=True),
        ("values", result),
        ("failures", "[bool_]"),
    ]
    given = ", ".join(["True", *(f"{name}[row]" for name in names)])
    body = f"""
    failed = False
    for row in range(np.uint64(start), np.uint64(end)):
        found = function({given})
        values[row] = value_of(found)
        failures[row] = failed_of(found)
        failed |= failed_of(found)
    return failed"""
    source = _source(DEVICE_ROWS, signature, [IMPORT["cpu"], "", function.line], body)
    return kernel_file(DEVICE_ROWS, source, signature, directory, None)


DEVICE_ROWS = "python_rows"


def device_row_kernel(call: PythonCall, directory: Path, architecture: Architecture) -> KernelFile:
    """Return the same loop for a GPU: rows, a byte each for whether a row is reached, the arguments, values and failures."""
    function = device_function(call, "function")
    names = [f"a{i}" for i in range(len(function.parameters))]
    signature: Signature = [("rows", "int64"), ("reached", "*uint8")]
    signature += [(n, _pointer(ARRAYS[k])) for n, k in zip(names, function.parameters, strict=True)]
    signature += [
        ("values", _pointer(machine_of_kind(function.result).value)),
        ("failures", "*uint8"),
    ]
    given = [
        f"{name}[row]{' != 0' if kind == 'truth' else ''}"
        for name, kind in zip(names, function.parameters, strict=True)
    ]
    body = f"""
    row = np.uint64(cuda.grid(1))
    while row < np.uint64(rows):
        found = function({", ".join(["reached[row] != 0", *given])})
        values[row] = value_of(found)
        failures[row] = failed_of(found)
        row += np.uint64(cuda.gridsize(1))"""
    made = [IMPORT["cuda"], "", function.line]
    source = _source(DEVICE_ROWS, signature, made, body, "from numba import cuda")
    return kernel_file(DEVICE_ROWS, source, signature, directory, architecture)


def _pointer(kind: str) -> str:
    return "*uint8" if kind == "bool_" else f"*{kind}"


FOLD_IMPORT = "from fuseline.codegen.cpu.functions_udf_folds_cpu import python_fold"
_STATES = {bool: "truth", int: "whole", float: "real"}


def fold_kernel(fold: PythonFold, directory: Path) -> HostFunction:
    """Return the loop over groups: start, end, where each begins, which values count, an array each of them, results and failures."""
    aggregate = fold.function
    kinds = [register_kind(t) for t in aggregate.parameters]
    result = register_kind(fold.type)
    names = [f"a{i}" for i in range(len(kinds))]
    signature: Signature = [
        ("start", "int64"),
        ("end", "int64"),
        ("offsets", "[int64]"),
        ("counts", "[bool_]"),
        *zip(names, (f"[{ARRAYS[kind]}]" for kind in kinds), strict=True),
        ("results", f"[{machine_of_kind(result).value}]"),
        ("failures", "[bool_]"),
    ]
    images = ", ".join(repr(image.text) for image in fold.images)
    state = " ".join(_STATES[type(v)] for v in aggregate.initial)
    initial = [_written(v) for v in aggregate.initial]
    low, high = bounds(fold.type)
    rest = f"{initial!r}, {state!r}, {aggregate.scalar}, {' '.join(kinds)!r}, {result!r}, {low}, {high}"
    body = f"""
    failed = False
    for group in range(np.uint64(start), np.uint64(end)):
        value, wrong = fold(offsets[group], offsets[group + np.uint64(1)], counts, {", ".join(names)})
        results[group] = value
        failures[group] = wrong
        failed |= wrong
    return failed"""
    made = [FOLD_IMPORT, "", f"fold = python_fold(({images}), {rest})"]
    source = _source("python_groups", signature, made, body)
    has_loops = any(image.has_loops for image in fold.images)
    return written_kernel("python_groups", source, signature, directory, has_loops)


def _source(
    name: str, signature: Signature, made: Sequence[str], body: str, *libraries: str
) -> str:
    """Return a kernel's file: what it imports and calls, `made`, and its loop."""
    head = f"def {name}({', '.join(parameter for parameter, _ in signature)}):"
    return "\n".join(["import numpy as np", *libraries, "", *made, "", "", f"{head}{body}"]) + "\n"


def _written(value: bool | int | float) -> str:
    """Return a number of an initial state as a kernel's file has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)

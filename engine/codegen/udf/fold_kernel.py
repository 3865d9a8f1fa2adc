"""A compiled Python aggregate over lists of the values of each group."""

from __future__ import annotations

import math
from pathlib import Path

from ...plan.udf.python_aggregate import PythonFold
from ..compile.compiler import Signature
from ..cpu.host_kernels import HostFunction, written_kernel
from .function_text import bounds, machine_of_kind, register_kind
from .row_kernel import ARRAYS

_IMPORT = "from fuseline.codegen.cpu.functions_udf_folds_cpu import python_fold"
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
    lines = [
        "import numpy as np",
        "",
        _IMPORT,
        "",
        f"fold = python_fold(({images}), {rest})",
        "",
        "",
        f"def python_groups({', '.join(name for name, _ in signature)}):",
        "    failed = False",
        "    for group in range(np.uint64(start), np.uint64(end)):",
        f"        value, wrong = fold(offsets[group], offsets[group + np.uint64(1)], counts, {', '.join(names)})",
        "        results[group] = value",
        "        failures[group] = wrong",
        "        failed |= wrong",
        "    return failed",
    ]
    return written_kernel("python_groups", "\n".join(lines) + "\n", signature, directory)


def _written(value: bool | int | float) -> str:
    """Return a number of an initial state as a kernel's file has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)

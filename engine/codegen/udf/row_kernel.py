"""A compiled Python function over arrays of arguments, where no kernel of a pipeline holds its call."""

from __future__ import annotations

from pathlib import Path

from ...plan.udf.python_function import PythonCall
from ..compile.compiler import Signature
from ..cpu.host_kernels import HostFunction, written_kernel
from .function_text import IMPORT, device_function, machine_of_kind

ARRAYS = {"whole": "int64", "real": "float64", "single": "float64", "truth": "bool_"}


def row_kernel(call: PythonCall, directory: Path) -> HostFunction:
    """Return the loop over a function's rows: start, end, an array each of the arguments, values and failures."""
    function = device_function(call, "function")
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
    lines = [
        "import numpy as np",
        "",
        IMPORT,
        "",
        function.line,
        "",
        "",
        f"def python_rows({', '.join(name for name, _ in signature)}):",
        "    failed = False",
        "    for row in range(np.uint64(start), np.uint64(end)):",
        f"        found = function({given})",
        "        values[row] = value_of(found)",
        "        failures[row] = failed_of(found)",
        "        failed |= failed_of(found)",
        "    return failed",
    ]
    return written_kernel("python_rows", "\n".join(lines) + "\n", signature, directory)

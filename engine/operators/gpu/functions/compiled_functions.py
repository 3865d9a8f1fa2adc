"""Python functions over columns on the device: the compiled loop over their rows, which says for which of them it fails."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.compile.compiler import Signature
from ....codegen.udf.function_text import machine_of_kind, register_kind
from ....codegen.udf.row_kernel import DEVICE_ROWS, device_row_kernel
from ....plan.udf.python_function import PythonCall
from ..columns import BOOL, FLOAT64, INT64, as_integers, cast
from ..memory.device import kernel_files
from ..pipeline import launch

# The columns that a kernel takes and gives, by what Python has for their values
_TAKEN = {"whole": INT64, "real": FLOAT64, "single": FLOAT64, "truth": BOOL}
_GIVEN = {"whole": INT64, "real": FLOAT64, "single": plc.DataType(plc.TypeId.FLOAT32), "truth": BOOL}  # fmt: skip


def python_refusal(call: PythonCall) -> str | None:
    """Return which Python function the GPU does not run and why, or None."""
    why = call.why if call.image is None else call.not_on_gpu
    return f"the Python function {call.function.name}, which {why}" if why else None


def looped(
    call: PythonCall, columns: Sequence[plc.Column], reached: plc.Column
) -> tuple[plc.Column, plc.Column]:
    """Return the values of rows that are reached, whole numbers with 64 bits, and where the compiled function fails; zero elsewhere."""
    stream, rows = plc.utils.CUDF_DEFAULT_STREAM, reached.size()
    kind = register_kind(call.type)
    width = np.dtype(machine_of_kind(kind).value).itemsize
    values = DeviceBuffer(size=rows * width, stream=stream)
    failures = DeviceBuffer(size=rows, stream=stream)
    taken = [_register(c, register_kind(a.type)) for c, a in zip(columns, call.args, strict=True)]
    given = {
        "rows": rows,
        "reached": _address(reached, 1),
        **{f"a{i}": _address(*column) for i, column in enumerate(taken)},
        "values": values.ptr,
        "failures": failures.ptr,
    }
    code, signature = _code(kernel_files.place, call)
    launch.run_fixed(code, DEVICE_ROWS, signature, rows, given)
    found = plc.Column(_GIVEN[kind], rows, plc.gpumemoryview(values), None, 0, 0, [])
    return found, plc.Column(BOOL, rows, plc.gpumemoryview(failures), None, 0, 0, [])


def _register(column: plc.Column, kind: str) -> tuple[plc.Column, int]:
    """Return the values of an argument as the kernel reads them, and their bytes."""
    plain = as_integers(column) if kind == "whole" else column
    return cast(plain, _TAKEN[kind]), 1 if kind == "truth" else 8


def _address(column: plc.Column, width: int) -> int:
    """Return where values of `width` bytes begin."""
    return int(column.data().ptr) + int(column.offset()) * width


@lru_cache(maxsize=64)
def _code(place: tuple[Path, str] | None, call: PythonCall) -> tuple[bytes, Signature]:
    """Return the machine code of a call's loop, which was compiled when the query was planned, and its parameters."""
    directory = Path() if place is None else place[0]
    file = device_row_kernel(call, directory, launch.architecture())
    return file.machine_code()[0], file.signature

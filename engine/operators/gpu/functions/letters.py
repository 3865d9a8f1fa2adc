"""lower() and upper() of ASCII by a kernel of our own; libcudf decodes each character, and does so twice."""

from __future__ import annotations

from functools import partial

import numpy as np
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.handwritten import value_kernels as kernels
from ..columns import TEXT
from ..memory.buffers import landed, zeros
from ..pipeline import launch
from ..pipeline.fixed_kernels import machine_code

LEAST_BYTES = 1 << 20  # of fewer libcudf makes others in the time of a wait
LETTERS = {True: "az", False: "AZ"}  # that change


def in_case(column: plc.Column, upper: bool) -> plc.Column:
    """Return strings in upper or in lower case; 1.6 GB of them take an H200 1 ms, by libcudf 20."""
    found = _of_ascii(column, upper)
    if found is not None:
        return found
    return (plc.strings.case.to_upper if upper else plc.strings.case.to_lower)(column)


def _of_ascii(column: plc.Column, upper: bool) -> plc.Column | None:
    """The same by the kernel; None where there are other characters, for parts of columns, and while the kernel is being compiled."""
    rows, data = column.size(), column.data()
    if data is None or data.size < LEAST_BYTES:
        return None
    offsets = column.child(0)
    if column.offset() or offsets.offset() or offsets.size() != rows + 1:
        return None
    code = machine_code(kernels.LETTERS, partial(kernels.letter_kernel, kernels.LETTERS))
    if code is None:
        return None
    size, start = int(data.size), int(data.ptr)
    made, state = DeviceBuffer(size=size, stream=plc.utils.CUDF_DEFAULT_STREAM), zeros(8)
    words, rest = divmod(size, kernels.WORD)
    given = {
        "words": words, "rest": rest, "first": ord(LETTERS[upper][0]), "last": ord(LETTERS[upper][1]),
        "words64": start, "bytes8": start, "out64": int(made.ptr), "out8": int(made.ptr), "state": int(state.ptr),
    }  # fmt: skip
    launch.run_fixed(
        code, kernels.LETTERS, kernels.LETTERS_SIGNATURE, max(words, kernels.WORD), given
    )
    if landed([(0, int(state.ptr), 8)], 8).view(np.int64)[0]:
        return None
    nulls = column.null_count()
    mask = column.null_mask() if nulls else None
    return plc.Column(TEXT, rows, plc.gpumemoryview(made), mask, nulls, 0, [offsets])

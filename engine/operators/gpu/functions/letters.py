"""lower() and upper(): of ASCII by a kernel of our own, of other text character by character as Arrow and DuckDB have it.

libcudf's own makes several of some characters (SS of ß, which is ẞ here), and decodes each twice.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pyarrow.compute as pc
import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.handwritten import value_kernels as kernels
from ....plan.arrow.arrow_arrays import array_from
from ..columns import TEXT
from ..memory.buffers import landed, zeros
from ..pipeline import launch
from ..pipeline.fixed_kernels import machine_code

LEAST_BYTES = 1 << 20  # fewer are made in the time of a wait
LETTERS = {True: "az", False: "AZ"}  # that change
BEHIND_LETTERS = 0x20000  # no character from here on has a case


def in_case(column: plc.Column, upper: bool) -> plc.Column:
    """Return strings in upper or in lower case; 1.6 GB of ASCII take an H200 1 ms, by libcudf 20."""
    found = _of_ascii(column, upper)
    return plc.strings.translate.translate(column, letters(upper)) if found is None else found


@cache
def letters(upper: bool) -> dict[int, str]:
    """Return by code point the characters that change, and what they become."""
    surrogates = range(0xD800, 0xE000)
    texts = [chr(i) for i in range(BEHIND_LETTERS) if i not in surrogates]
    made = (pc.utf8_upper if upper else pc.utf8_lower)(array_from(texts)).to_pylist()
    return {ord(old): new for old, new in zip(texts, made, strict=True) if old != new}


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

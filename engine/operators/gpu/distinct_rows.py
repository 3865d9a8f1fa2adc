"""The first of equal rows: by a place for each combination of keys where these are few numbers, else by libcudf's hash table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pylibcudf as plc
from cuda.bindings import runtime
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ...codegen.handwritten import row_kernels as kernels
from .columns import EQUAL, INT32
from .memory.buffers import check, landed, stream_handle, zeros
from .pipeline import launch
from .pipeline.fixed_kernels import machine_code
from .sort.packed_keys import NARROW, PackedKeys, numbered

# Places that are worth it for each row: 8 bytes of memory, as in a hash table that is half full.  60 M rows of 14 M combinations of two
# keys take 3 ms on an H200, hashed 14.
SLOTS_A_ROW = 2
# Above the number of each row; of equal bytes, so that memory is filled by one call
NO_ROW = 0x7F7F7F7F


def first_of_each(keys: plc.Table, places: PackedKeys | None = None) -> plc.Column:
    """Return the number of the first of each set of equal rows, in no order; keys are in the form of `columns.as_key`, and may have been numbered."""
    found = _by_places(keys.columns(), places)
    if found is not None:
        return found
    return plc.stream_compaction.distinct_indices(
        keys,
        plc.stream_compaction.DuplicateKeepOption.KEEP_FIRST,
        EQUAL,
        plc.types.NanEquality.ALL_EQUAL,
    )


def places_of(keys: Sequence[plc.Column]) -> PackedKeys | None:
    """Return a place for each row, the same where keys are equal; None where these have too many, and of few rows."""
    limit = min(SLOTS_A_ROW * keys[0].size(), NARROW)
    return numbered(keys, [(False, True)] * len(keys), limit)


def _by_places(keys: Sequence[plc.Column], known: PackedKeys | None) -> plc.Column | None:
    """The same by kernels; None while they are being compiled, and where keys have too many places."""
    rows = keys[0].size()
    codes = [
        machine_code(name, partial(kernels.row_kernel, name))
        for name in (kernels.FIRST, kernels.LIST)
    ]
    found = None
    if rows < NO_ROW and None not in codes:
        found = known or places_of(keys)
    if found is None:
        return None
    slots = found.places
    at = int(found.numbers.data().ptr)
    first, state = DeviceBuffer(size=4 * slots, stream=plc.utils.CUDF_DEFAULT_STREAM), zeros(8)
    check(runtime.cudaMemsetAsync(first.ptr, NO_ROW & 0xFF, first.size, stream_handle())[0])
    room = min(rows, slots)
    chosen = DeviceBuffer(size=4 * room, stream=plc.utils.CUDF_DEFAULT_STREAM)
    given = {"rows": rows, "width": 4, "keys32": at, "keys64": at}
    more = {
        kernels.FIRST: {"first": launch.array_at(int(first.ptr), slots, 4)},
        kernels.LIST: {
            "first": int(first.ptr),
            "room": room,
            "state": launch.array_at(int(state.ptr), 1, 8),
            "chosen": int(chosen.ptr),
        },
    }
    for code, (name, added) in zip(codes, more.items(), strict=True):
        if code is not None:
            launch.run_fixed(code, name, kernels.SIGNATURES[name], rows, {**given, **added})
    (count,) = landed([(0, int(state.ptr), 8)], 8).view(np.int64).tolist()
    return plc.Column(INT32, count, plc.gpumemoryview(chosen), None, 0, 0, [])

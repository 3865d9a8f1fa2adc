"""The first bytes of texts as numbers, by which rows that cannot be among the first of an order are left out."""

from __future__ import annotations

import pylibcudf as plc
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.handwritten import sort_kernels as kernels
from ..columns import INT64
from ..pipeline import launch
from ..pipeline.fixed_kernels import machine_code


def leads(column: plc.Column) -> plc.Column | None:
    """Return numbers in the order of strings without NULL, equal for those whose first 8 bytes are; None while the kernel is compiled."""
    code = machine_code(kernels.LEAD, kernels.lead_kernel)
    if code is None or not column.size():
        return None
    rows, offsets, data = column.size(), column.child(0), column.data()
    wide = offsets.type().id() == plc.TypeId.INT64
    first = column.offset() + offsets.offset()
    place = int(offsets.data().ptr) + first * (8 if wide else 4)
    memory = plc.gpumemoryview(DeviceBuffer(size=rows * 8))
    out = plc.Column(INT64, rows, memory, None, 0, 0, [])
    given = {
        "rows": rows, "characters": place if data is None else int(data.ptr), "wide": int(wide), "offsets32": place,
        "offsets64": place, "out": int(out.data().ptr),
    }  # fmt: skip
    launch.run_fixed(code, kernels.LEAD, kernels.LEAD_SIGNATURE, rows, given)
    return out

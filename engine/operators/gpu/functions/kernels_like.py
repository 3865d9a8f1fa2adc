"""LIKE over long strings by kernels of our own (`codegen.handwritten.like`), several times as fast as libcudf's.

Kernels are compiled once for each shape of pattern; while a thread does that, and for few rows, `matches` has no answer and the
caller asks libcudf.
"""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pylibcudf as plc
from cuda.core import Kernel, launch
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen.compile.compiler import Architecture
from ....codegen.compile.kernel_files import KernelFile, kernel_file
from ....codegen.handwritten import like, like_source
from ....codegen.handwritten.like import LikeShape
from ....plan.patterns import Literals
from ..columns import BOOL, kept
from ..pipeline.fixed_kernels import machine_code
from ..pipeline.launch import default_stream, grid_of, loaded

FEW_ROWS = 1 << 16  # up to which libcudf is as fast
# Bytes of a column up to which a thread a string is faster than blocks of threads: what lies in the second-level cache may be
# read in any order.  On an H200 6 MB took 0.029 ms so and 0.041 by blocks, 66 MB 0.059 and 0.039.
FEW_BYTES = 32 << 20
VECTOR = 16  # bytes


def matches(column: plc.Column, parts: Literals) -> plc.Column | None:
    """Return whether each string of a column matches a pattern, NULL for NULL; None when libcudf has to say it."""
    rows = column.size()
    if rows < max(FEW_ROWS, 1):
        return None
    wide = column.child(0).type().id() == plc.TypeId.INT64
    size = _bytes(column)
    shape = like.shape_of(parts, size > FEW_BYTES, wide)
    code = machine_code(shape.name, partial(_kernel_file, shape))
    if code is None:
        return None
    out = DeviceBuffer(size=rows, stream=plc.utils.CUDF_DEFAULT_STREAM)
    _launch(loaded(code, shape.name), shape, column, parts, size, out)
    found = plc.Column(BOOL, rows, plc.gpumemoryview(out), None, 0, 0, [])
    nulls = column.null_count()
    if not nulls:
        return found
    mask = column.null_mask()
    if column.offset():
        mask = plc.gpumemoryview(plc.null_mask.copy_bitmask(column))
    return found.with_mask(mask, nulls)


def _bytes(column: plc.Column) -> int:
    """About how many bytes the strings of a column have, which may be a slice of others."""
    data = column.data()
    if data is None:
        return 0
    return int(data.size * column.size() // max(column.child(0).size() - 1, 1))


def _launch(
    kernel: Kernel,
    shape: LikeShape,
    column: plc.Column,
    parts: Literals,
    size: int,
    out: DeviceBuffer,
) -> None:
    rows, offsets = column.size(), column.child(0)
    data, mask = column.data(), column.null_mask()
    address = 0 if data is None else int(data.ptr)
    first = column.offset() + offsets.offset()
    pattern = kept(_uploaded, parts.size)(parts)
    arguments = [
        address - address % VECTOR,
        address - address % VECTOR,
        address % VECTOR,
        int(offsets.data().ptr) + first * (8 if shape.wide else 4),
        0 if mask is None else int(mask.ptr),
        column.offset(),
        int(column.null_count() > 0),
        pattern.ptr,
        pattern.ptr,
        pattern.ptr + like.bounds_at(parts),
        np.int32(len(parts.floating)),
        np.int32(parts.size),
        np.int32(len(parts.suffix)),
        out.ptr,
    ]
    share = like.THREADS
    if shape.blocks:
        share = like.rows_a_block(rows, size)
        lead = np.int32(like.searched(parts))
        arguments = [share, lead, *arguments, *like.words(parts)]
    config = grid_of(-(-rows // share), like.THREADS, 0)
    launch(default_stream(), config, kernel, rows, *arguments)


def _kernel_file(shape: LikeShape, directory: Path, architecture: Architecture) -> KernelFile:
    source, signature = like_source.source(shape), like.signature(shape)
    return kernel_file(shape.name, source, signature, directory, architecture)


@lru_cache(maxsize=256)
def _uploaded(parts: Literals) -> DeviceBuffer:
    return DeviceBuffer.to_device(like.memory(parts))

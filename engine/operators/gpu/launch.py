"""Generated kernels on the device: loading machine code, launching it, bringing its accumulators back.

A launch is prepared once for a program and its columns; a run then takes an allocation, a copy that sets the accumulators to
their identities, the kernel, and one copy to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pylibcudf as plc
from cuda.bindings import driver, runtime
from cuda.core import Device, Kernel, LaunchConfig, ObjectCode, Stream, launch
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ...codegen.device import Architecture
from ...codegen.emit_cuda import rows_a_thread
from ...codegen.loop import Machine
from ...codegen.places import ROWS_A_THREAD, Layout, layout
from ...codegen.steps import Program

PLAIN_SHARED_BYTES = 48 * 1024  # of dynamic shared memory; for more the kernel must be told
ALIGNMENT = 64
TO_DEVICE = runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice


@dataclass(frozen=True)
class Launch:
    """A kernel with all that a launch needs but the memory of its results.

    `results` says for each accumulator in which array and row of `groups` elements it ends.  `blank` holds the identities of the results: `integers` int64 values, the doubts last, then doubles.  `held` keeps the
    memory of tables alive; that of columns the caller keeps.
    """

    kernel: Kernel
    config: LaunchConfig
    arguments: tuple[Any, ...]
    results: tuple[tuple[str, int], ...]
    groups: int
    blank: DeviceBuffer
    integers: int
    held: DeviceBuffer | None


@cache
def architecture() -> Architecture:
    """Return the device's compute capability."""
    attributes = runtime.cudaDeviceAttr
    major = _attribute(attributes.cudaDevAttrComputeCapabilityMajor)
    return major, _attribute(attributes.cudaDevAttrComputeCapabilityMinor)


@cache
def _attribute(name: Any) -> int:
    error, value = runtime.cudaDeviceGetAttribute(name, 0)
    _check(error)
    return int(value)


def prepare(program: Program, code: bytes, pointers: Sequence[int], rows: int) -> Launch:
    """Load a kernel and lay out its arguments; `pointers` are those of codes and bitmaps in the order of its inputs."""
    where = layout(program)
    kernel = _loaded(code, program.name, where.shared_bytes)
    tables, held = _tables(program)
    blank, integers = _blank(where)
    arguments = (rows, *pointers, *_scalars(program), *tables)
    config = _config(kernel, where, rows, rows_a_thread(program))
    places = where.results()
    results = tuple(places[i] for i in range(len(program.accumulators)))
    return Launch(kernel, config, arguments, results, where.groups, blank, integers, held)


def run(prepared: Launch) -> tuple[list[Any], bool]:
    """Launch a kernel and wait; return one array an accumulator, one element a group, and whether to doubt them."""
    stream = plc.utils.CUDF_DEFAULT_STREAM
    blank, integers = prepared.blank, prepared.integers
    size = blank.size
    out = DeviceBuffer(size=size, stream=stream)
    (error,) = runtime.cudaMemcpyAsync(
        out.ptr, blank.ptr, size, TO_DEVICE, stream.__cuda_stream__()[1]
    )
    _check(error)
    out_i = _array(out.ptr, integers)
    out_f = _array(out.ptr + 8 * integers, size // 8 - integers)
    launch(_stream(), prepared.config, prepared.kernel, *prepared.arguments, *out_i, *out_f)
    host = np.empty(size, np.uint8)
    out.copy_to_host(host, stream=stream)
    stream.synchronize()
    arrays = {
        "out_i": host[: 8 * integers].view(np.int64),
        "out_f": host[8 * integers :].view(np.float64),
    }
    count = prepared.groups
    found = [arrays[a][row * count : (row + 1) * count] for a, row in prepared.results]
    return found, bool(arrays["out_i"][-1])


@cache
def _stream() -> Stream:
    """The stream on which libcudf works, as cuda.core wants it."""
    device = Device()
    device.set_current()
    return device.create_stream(plc.utils.CUDF_DEFAULT_STREAM)


def _array(pointer: int, length: int) -> tuple[int, ...]:
    """A one-dimensional array of 8-byte items as Numba passes it: no owner, length, item size, data, shape, stride."""
    return (0, 0, length, 8, pointer, length, 8)


@cache
def _loaded(code: bytes, name: str, shared_bytes: int) -> Kernel:
    """Load machine code; each kernel once a process."""
    device = Device()
    device.set_current()
    kernel = ObjectCode.from_cubin(code).get_kernel(name)
    attributes = driver.CUfunction_attribute
    wanted = {}
    if shared_bytes > PLAIN_SHARED_BYTES:
        wanted[attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = shared_bytes
    if shared_bytes > 1024:
        # As much shared memory as there is, so that as many blocks as possible are resident
        wanted[attributes.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = 100
    for attribute, value in wanted.items():
        (error,) = driver.cuKernelSetAttribute(
            attribute, value, driver.CUkernel(int(kernel.handle)), driver.CUdevice(device.device_id)
        )
        _check(error)
    return kernel


def _config(kernel: Kernel, where: Layout, rows: int, rows_at_a_time: int) -> LaunchConfig:
    """As many blocks as are resident at once, fewer for few rows, more where a thread would get too many."""
    threads, shared = where.threads, where.shared_bytes
    resident = kernel.occupancy.max_active_blocks_per_multiprocessor(threads, shared)
    processors = _attribute(runtime.cudaDeviceAttr.cudaDevAttrMultiProcessorCount)
    words = -(-rows // rows_at_a_time)
    useful = -(-words // threads)
    least = -(-words // (threads * (ROWS_A_THREAD // rows_at_a_time - 1)))
    blocks = max(min(max(resident, 1) * processors, useful), least, 1)
    return LaunchConfig(grid=blocks, block=threads, shmem_size=shared)


def _blank(where: Layout) -> tuple[DeviceBuffer, int]:
    """The identities of all results on the device, and how many of them are integers."""
    integers = np.repeat(np.array(where.identities("out_i"), np.int64), where.groups)
    doubles = np.repeat(np.array(where.identities("out_f"), np.float64), where.groups)
    integers = np.append(integers, 0)
    host = np.concatenate([integers.view(np.uint8), doubles.view(np.uint8)])
    return DeviceBuffer.to_device(host), len(integers)


def _scalars(program: Program) -> list[Any]:
    """Scalar arguments: Python's numbers are passed as 8 bytes, NumPy's as they are."""
    wide = (Machine.I64, Machine.F64)
    return [
        p.value if p.machine in wide else getattr(np, p.machine.value)(p.value)
        for p in program.kernel.parameters
    ]


def _tables(program: Program) -> tuple[list[int], DeviceBuffer | None]:
    """Put all tables into one buffer; return where each begins."""
    parts: list[Any] = []
    starts: list[int] = []
    size = 0
    for table in program.kernel.tables:
        values = np.ascontiguousarray(table.array, dtype=table.machine.value).view(np.uint8)
        starts.append(size)
        padding = -len(values) % ALIGNMENT
        parts += [values, np.zeros(padding, np.uint8)]
        size += len(values) + padding
    if not size:
        return [0] * len(starts), None
    buffer = DeviceBuffer.to_device(np.concatenate(parts))
    return [buffer.ptr + start for start in starts], buffer


def _check(error: Any) -> None:
    if int(error) != 0:
        raise RuntimeError(f"The CUDA driver answered {error.name}.")

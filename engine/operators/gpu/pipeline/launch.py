"""Generated kernels on the device: loading machine code, preparing the arguments of launches, running those of a pipeline.

The launches of a pipeline are prepared once for its programs and columns.  A run then takes two allocations, and one list of calls of
the driver: copies and fills, a launch a kernel, one copy to the host, and the wait for that.

All kernels run on one stream.  Builds of sides that do not read each other could share the device, but large ones fill it anyway
(their grids are as many blocks as are resident), and a small one takes 5 to 10 us, as long as the host takes to launch the
next (4 to 9 us): two events to fork and two to join would cost as much as they save.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
import pylibcudf as plc
from cuda.bindings import driver, runtime
from cuda.core import Device, Kernel, LaunchConfig, ObjectCode, Stream, launch
from rmm.pylibrmm.device_buffer import DeviceBuffer

from ....codegen import index_checks
from ....codegen.compile.compiler import Architecture, Signature
from ....codegen.cuda import emit_cuda
from ....codegen.cuda.accumulator_layout import ROWS_A_THREAD, Layout
from ....codegen.program import Program, SharedMemory
from ....codegen.typed_values import NotFusable
from ....records import dataclass
from ..memory.buffers import (
    Memory,
    check,
    give_staging,
    staging_memory,
    stream_handle,
)
from .driver_calls import POINTERS, DriverCall, DriverCalls, driver_calls
from .late_arguments import ColumnPart, Constants, RowsOf, RunInputs
from .regions import BYTES, BufferSpan, Region, Regions

PLAIN_SHARED_BYTES = 48 * 1024  # of dynamic shared memory; for more the kernel must be told
LITTLE_SHARED_BYTES = 1024  # with which the driver divides cache and shared memory well
RESERVED_SHARED_BYTES = 1024  # of each block, by the driver
FIXED_THREADS = 256
KERNELS_KEPT = 512

# What a kernel takes, by the name of a parameter: a number, an array (as Numba takes it, or in a run's buffers), or a column's
# codes or bitmap
Given = Any


@dataclass(frozen=True)
class Launch:
    """A kernel and its arguments, some of which each run has its own of: arrays in its buffers, columns, late ones."""

    kernel: Kernel
    config: LaunchConfig
    arguments: tuple[Given, ...]

    @property
    def call(self) -> DriverCall:
        sizes = *self.config.grid, *self.config.block, self.config.shmem_size
        kernel = int(self.kernel.handle)
        given = kernel, *sizes, stream_handle(), POINTERS, 0
        return DriverCall("cuLaunchKernel", given, self.arguments, self.kernel)

    @cached_property
    def _alone(self) -> DriverCalls:
        return driver_calls([self.call])

    def run(self, memory: Memory, given: Sequence[int]) -> None:
        """Launch it alone, with late arguments by their numbers."""
        self._alone.run_numbered(memory.starts, given)


@dataclass(frozen=True)
class Launches:
    """The launches of a pipeline as calls that lack a text's `constants`; `held` keeps the memory of tables alive."""

    calls: DriverCalls
    regions: Regions
    blank: DeviceBuffer | None
    constants: Constants
    held: tuple[DeviceBuffer, ...]

    @cached_property
    def nbytes(self) -> int:
        """The bytes of a run's buffers."""
        return sum(self.regions.sizes.values())

    @cached_property
    def _calls(self) -> DriverCalls:
        return self.calls.completed(self.constants)

    @cached_property
    def _parts(self) -> tuple[ColumnPart | RowsOf, ...]:
        """What is another one in each run, in the order in which the calls take it."""
        return tuple(part for part in self._calls.late if isinstance(part, ColumnPart | RowsOf))

    def run(self, run: RunInputs) -> tuple[Memory, Any]:
        """Run all kernels and wait; return the buffers, and the small one's words on the host."""
        memory, size = Memory(self.regions), self.regions.sizes[Region.SMALL]
        host, memory.starts[Region.HOST] = landing = staging_memory(size)
        parts = self._parts
        self._calls.run(memory.starts, [part.of(run) for part in parts] if parts else ())
        words = host[:size].view(np.int64).copy()
        give_staging(landing)
        return memory, words


def calls_of(steps: Sequence[Launch], regions: Regions, blank: DeviceBuffer | None) -> DriverCalls:
    """Return all that a run of a pipeline has the driver do."""
    stream = stream_handle()
    small = BufferSpan(Region.SMALL, 0, regions.sizes[Region.SMALL], 1)
    calls = [] if blank is None else [_copy(small, int(blank.ptr), small.size)]
    for span, word in regions.fills:
        if word in BYTES:
            calls.append(DriverCall("cuMemsetD8Async", (span, BYTES[word], span.size, stream)))
    calls += [step.call for step in steps]
    calls += [_copy(place, word, 8) for word, place in regions.reports]
    calls.append(_copy(BufferSpan(Region.HOST, 0, small.size, 1), small, small.size))
    return driver_calls([*calls, DriverCall("cuStreamSynchronize", (stream,))])


def _copy(target: Given, source: Given, size: int) -> DriverCall:
    return DriverCall("cuMemcpyAsync", (target, source, size, stream_handle()))


@cache
def architecture() -> Architecture:
    """Return the device's compute capability."""
    attributes = runtime.cudaDeviceAttr
    major = _attribute(attributes.cudaDevAttrComputeCapabilityMajor)
    return major, _attribute(attributes.cudaDevAttrComputeCapabilityMinor)


@cache
def shared_memory() -> SharedMemory:
    """Return what the device's multiprocessors have."""
    attributes = runtime.cudaDeviceAttr
    return SharedMemory(
        _attribute(attributes.cudaDevAttrMaxSharedMemoryPerBlockOptin),
        _attribute(attributes.cudaDevAttrMaxSharedMemoryPerMultiprocessor),
        _attribute(attributes.cudaDevAttrMaxThreadsPerMultiProcessor),
    )


@cache
def _attribute(name: Any) -> int:
    error, value = runtime.cudaDeviceGetAttribute(name, 0)
    check(error)
    return int(value)


# Preparing


def prepared(
    program: Program, code: bytes, where: Layout, rows: int, given: Mapping[str, Given]
) -> Launch:
    """Load a kernel and lay out its arguments for so many rows; `given` are all others by the names of parameters."""
    kernel = loaded(code, program.name, where.shared_bytes, where.threads)
    config = _config(kernel, where, rows, emit_cuda.rows_a_thread(program))
    return _launch(kernel, config, emit_cuda.signature(program), {**given, "groups": where.groups})


def prepared_check(code: bytes, buckets: int, given: Mapping[str, Given]) -> Launch:
    """Return the launch that counts the keys of a hashed index that repeat."""
    return prepared_fixed(code, index_checks.NAME, index_checks.SIGNATURE, buckets, given)


def prepared_fixed(
    code: bytes, name: str, signature: Signature, turns: int, given: Mapping[str, Given]
) -> Launch:
    """Return the launch of a kernel that is the same for all programs and works with any grid; a thread takes a turn at a time."""
    kernel = loaded(code, name)
    config = grid_of(_blocks(kernel, FIXED_THREADS, 0, turns), FIXED_THREADS, 0)
    return _launch(kernel, config, signature, given)


def prepared_block(
    code: bytes, name: str, signature: Signature, given: Mapping[str, Given]
) -> Launch:
    """Return the launch of a kernel that is one block, whose threads share 8 bytes each."""
    config = grid_of(1, FIXED_THREADS, 8 * FIXED_THREADS)
    return _launch(loaded(code, name), config, signature, given)


def run_fixed(
    code: bytes, name: str, signature: Signature, turns: int, given: Mapping[str, Given]
) -> None:
    """Run a kernel as `prepared_fixed` prepares it, on arguments that no other run has; `array_at` gives its arrays."""
    kernel = loaded(code, name)
    arguments: list[Given] = []
    for parameter, _ in signature:
        value = given[parameter]
        if isinstance(value, tuple):
            arguments += value
        else:
            arguments.append(value)
    config = grid_of(_blocks(kernel, FIXED_THREADS, 0, turns), FIXED_THREADS, 0)
    launch(default_stream(), config, kernel, *arguments)


def fixed_call(
    code: bytes, name: str, signature: Signature, blocks: Given, given: Mapping[str, Given]
) -> DriverCall:
    """Return the call that launches a kernel as `prepared_fixed` prepares it, in so many `blocks`."""
    kernel = loaded(code, name)
    launched = _launch(kernel, grid_of(1, FIXED_THREADS, 0), signature, given)
    function, _, *sizes = launched.call.arguments
    return replace(launched.call, arguments=(function, blocks, *sizes))


def fixed_blocks(code: bytes, name: str, turns: int) -> int:
    """Return in how many blocks of `prepared_fixed` so many threads take a turn."""
    return _blocks(loaded(code, name), FIXED_THREADS, 0, turns)


def array_at(address: Given, length: Given, width: int) -> tuple[Given, ...]:
    """Return an array as Numba takes it: no owner, length, item size, data, shape, stride."""
    return (0, 0, length, width, address, length, width)


def _launch(
    kernel: Kernel,
    config: LaunchConfig,
    signature: Sequence[tuple[str, str]],
    given: Mapping[str, Given],
) -> Launch:
    """Put arguments into the order of parameters, arrays as `array_at` gives them."""
    arguments: list[Given] = []
    for name, kind in signature:
        value = given[name]
        if isinstance(value, BufferSpan) and kind.startswith("["):
            length, width = value.length, value.width
            arguments += [0, 0, length, width, value, length, width]
        elif isinstance(value, tuple):
            arguments += value
        else:
            arguments.append(value)
    return Launch(kernel, config, tuple(arguments))


@lru_cache(maxsize=1024)
def grid_of(blocks: int, threads: int, shared: int) -> LaunchConfig:
    """Describe a grid of blocks in one dimension; the same one is described once."""
    return LaunchConfig(grid=blocks, block=threads, shmem_size=shared)


@cache
def default_stream() -> Stream:
    """The stream on which libcudf works, as cuda.core wants it."""
    device = Device()
    device.set_current()
    return device.create_stream(plc.utils.CUDF_DEFAULT_STREAM)


@lru_cache(maxsize=KERNELS_KEPT)
def loaded(code: bytes, name: str, shared_bytes: int = 0, threads: int = FIXED_THREADS) -> Kernel:
    """Load machine code, or return what was loaded; a kernel not used for long stays in memory while a plan holds it."""
    device = Device()
    device.set_current()
    kernel = ObjectCode.from_cubin(code).get_kernel(name)
    attributes = driver.CUfunction_attribute
    if shared_bytes > PLAIN_SHARED_BYTES:
        if shared_bytes > _attribute(
            runtime.cudaDeviceAttr.cudaDevAttrMaxSharedMemoryPerBlockOptin
        ):
            raise NotFusable(f"a block takes {shared_bytes} bytes of shared memory")
        wanted = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _set_attribute(kernel, wanted, shared_bytes)
    if shared_bytes > LITTLE_SHARED_BYTES:
        carveout = attributes.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        _set_attribute(kernel, carveout, 100)
        # As much shared memory as all resident blocks take; the rest caches what probes look at
        blocks = kernel.occupancy.max_active_blocks_per_multiprocessor(threads, shared_bytes)
        size = _attribute(runtime.cudaDeviceAttr.cudaDevAttrMaxSharedMemoryPerMultiprocessor)
        taken = max(blocks, 1) * (shared_bytes + RESERVED_SHARED_BYTES)
        _set_attribute(kernel, carveout, min(-(-100 * taken // size), 100))
    return kernel


def _set_attribute(kernel: Kernel, attribute: Any, value: int) -> None:
    handle, number = driver.CUkernel(int(kernel.handle)), Device().device_id
    (error,) = driver.cuKernelSetAttribute(attribute, value, handle, driver.CUdevice(number))
    check(error)


def _config(kernel: Kernel, where: Layout, rows: int, rows_at_a_time: int) -> LaunchConfig:
    """As many blocks as are resident at once, fewer for few rows, more where a thread would get too many."""
    threads, shared = where.threads, where.shared_bytes
    words = -(-rows // rows_at_a_time)
    least = -(-words // (threads * (ROWS_A_THREAD // rows_at_a_time - 1)))
    blocks = max(_blocks(kernel, threads, shared, words), least)
    return grid_of(blocks, threads, shared)


def _blocks(kernel: Kernel, threads: int, shared: int, turns: int) -> int:
    """As many blocks as are resident at once, fewer where these have nothing to do."""
    return max(min(_resident(kernel, threads, shared), -(-turns // threads)), 1)


@lru_cache(maxsize=KERNELS_KEPT)
def _resident(kernel: Kernel, threads: int, shared: int) -> int:
    """As many blocks as are resident at once."""
    blocks = kernel.occupancy.max_active_blocks_per_multiprocessor(threads, shared)
    processors = _attribute(runtime.cudaDeviceAttr.cudaDevAttrMultiProcessorCount)
    return max(int(blocks), 1) * processors

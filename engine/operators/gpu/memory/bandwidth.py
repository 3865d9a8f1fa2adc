"""The bandwidth of device memory, which kernels are measured against."""

from __future__ import annotations

import time

import rmm
from cuda.bindings import runtime

COPY_BYTES = 1 << 30
LEAST_BYTES = 1 << 28  # several times the second-level cache
REPEATS = 20
LEAST_ROUNDS, MOST_ROUNDS = 10, 50  # the first rounds wake the clocks
LEAST_SHARE = 0.7  # of what clock and bus allow; copies reach 88 % on an H200


def device_name(threads: int) -> str:
    """Return the GPU's name, under which a measurement is remembered; the host's threads change nothing."""
    _, properties = runtime.cudaGetDeviceProperties(0)
    name: bytes = properties.name
    return name.decode()


def peak_bandwidth() -> float:
    """Return bytes a second that the memory's clock and bus allow: two transfers a clock."""
    attributes = runtime.cudaDeviceAttr
    _, kilohertz = runtime.cudaDeviceGetAttribute(attributes.cudaDevAttrMemoryClockRate, 0)
    _, bits = runtime.cudaDeviceGetAttribute(attributes.cudaDevAttrGlobalMemoryBusWidth, 0)
    return 2 * kilohertz * 1e3 * bits / 8


def copy_bandwidth(threads: int) -> float:
    """Return bytes a second, read and written, of copies within the device; raises `MemoryError` where it is full.

    The largest of some rounds counts, and of more as long as none reaches `LEAST_SHARE`: one measurement alone was seen to be wrong
    by 12 times.
    """
    source, target = _two_buffers()
    size = source.size
    kind = runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice
    enough, best = LEAST_SHARE * peak_bandwidth(), 0.0
    for done in range(MOST_ROUNDS):
        if done >= LEAST_ROUNDS and best >= enough:
            break
        runtime.cudaDeviceSynchronize()
        start = time.perf_counter()
        for _ in range(REPEATS):
            runtime.cudaMemcpyAsync(target.ptr, source.ptr, size, kind, 0)
        runtime.cudaDeviceSynchronize()
        best = max(best, 2 * size * REPEATS / (time.perf_counter() - start))
    return best


def _two_buffers() -> tuple[rmm.DeviceBuffer, rmm.DeviceBuffer]:
    """Two buffers of `COPY_BYTES`, or of half or a quarter of that."""
    size = COPY_BYTES
    while True:
        try:
            return rmm.DeviceBuffer(size=size), rmm.DeviceBuffer(size=size)
        except MemoryError:
            if size <= LEAST_BYTES:
                raise
            size //= 2

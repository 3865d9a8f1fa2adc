"""The bandwidth of device memory, which kernels are measured against."""

from __future__ import annotations

import time

import rmm
from cuda.bindings import runtime

COPY_BYTES = 1 << 30
LEAST_BYTES = 1 << 28  # several times the second-level cache
REPEATS = 20


def device_name(threads: int) -> str:
    """Return the GPU's name, under which a measurement is remembered; the host's threads change nothing."""
    _, properties = runtime.cudaGetDeviceProperties(0)
    name: bytes = properties.name
    return name.decode()


def copy_bandwidth(threads: int) -> float:
    """Return bytes a second, read and written, of copies within the device; raises `MemoryError` where it is full."""
    source, target = _two_buffers()
    size = source.size
    kind = runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice
    best = float("inf")
    for _ in range(2):  # the first round wakes the clocks
        runtime.cudaDeviceSynchronize()
        start = time.perf_counter()
        for _ in range(REPEATS):
            runtime.cudaMemcpyAsync(target.ptr, source.ptr, size, kind, 0)
        runtime.cudaDeviceSynchronize()
        best = min(best, time.perf_counter() - start)
    return float(2 * size * REPEATS / best)


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

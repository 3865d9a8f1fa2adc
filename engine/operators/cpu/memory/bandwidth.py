"""The bandwidth of host memory, which kernels are measured against."""

from __future__ import annotations

import platform
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

COPY_BYTES = 256 << 20  # several times what a last-level cache holds
REPEATS = 5


def device_name(threads: int) -> str:
    """Return the processor's name and the threads, under which a measurement is remembered."""
    return f"{_processor()}, {threads} threads"


def copy_bandwidth(threads: int) -> float:
    """Return bytes a second, read and written, of the best of some copies by NumPy on all threads."""
    source, target = np.ones(COPY_BYTES, np.uint8), np.zeros(COPY_BYTES, np.uint8)
    parts = [
        slice(COPY_BYTES * i // threads, COPY_BYTES * (i + 1) // threads) for i in range(threads)
    ]

    def copy(part: slice) -> None:
        target[part] = source[part]

    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(REPEATS):
            start = time.perf_counter()
            list(pool.map(copy, parts))
            seconds.append(time.perf_counter() - start)
    return 2 * COPY_BYTES / min(seconds)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())

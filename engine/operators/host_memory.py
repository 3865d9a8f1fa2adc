"""How much memory the host has, and bytes as people read them."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa

UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


class NoRoom(MemoryError):
    """There is no memory, though nothing is cached any more that could go: no second run would help."""


def readable(count: int) -> str:
    """Return a number of bytes in the unit that suits it: 1610612736 is '1.5 GiB'."""
    for size, unit in UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def let_go() -> None:
    """Free what failed attempts left in reference cycles, such as the tables in the frames of an error that a thread raised.

    Python looks for cycles when there are many objects; it does not know that a few of them hold most of a device's memory.
    """
    gc.collect()
    give_back()


def give_back() -> None:
    """Return what allocators keep of freed memory to the system: 1 ms, and as much again for pages that are touched anew.

    Arrow's and C's keep a few times what a query takes at a time, apart for each thread; a memory limit does not see that.
    """
    pa.default_memory_pool().release_unused()
    if (trim := _trim()) is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    """C's function for it, which only glibc has."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None


def available_memory() -> int:
    """Return the bytes that the host can give right now without swapping, or fewer in a container: 40 us."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    except OSError:
        found = []
    return min([host_memory(), *found, *_left_in_container()])


def _left_in_container() -> list[int]:
    """Return what a container's limit leaves, apart from file pages that the kernel can drop; nothing where there is no limit."""
    group = Path("/sys/fs/cgroup")
    try:
        limit, used, statistics = (
            (group / name).read_text(encoding="ascii").strip()
            for name in ("memory.max", "memory.current", "memory.stat")
        )
    except OSError:
        return []
    counts = dict(line.split() for line in statistics.splitlines())
    files = int(counts.get("inactive_file", 0))
    return [max(0, int(limit) - int(used) + files)] if limit.isdigit() else []


@cache  # each query asks, and a container keeps its limit
def host_memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or fewer in a container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total

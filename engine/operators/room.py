"""How much memory the host has, and bytes as people read them."""

from __future__ import annotations

import gc
import os
from functools import cache
from pathlib import Path

UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


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


@cache  # each query asks, and a container keeps its limit
def host_memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or fewer in a container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total

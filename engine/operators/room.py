"""How much memory the host has, and bytes as people read them."""

from __future__ import annotations

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


@cache  # each query asks, and a container keeps its limit
def host_memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or fewer in a container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total

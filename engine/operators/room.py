"""How much memory the host has."""

from __future__ import annotations

import os
from pathlib import Path


def host_memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or fewer in a container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total

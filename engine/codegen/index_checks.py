"""Whether keys repeat in a hashed index: its build cannot tell, since rows of several keys share a bucket.

Kernels that are the same for all programs.  They count buckets that hold two rows of one key; one of very many rows counts too,
as if some of them had the same key.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from .compile.compiler import Architecture, Signature, parameters
from .compile.kernel_files import KernelFile, kernel_file
from .cpu.host_functions import HostFunction, written_kernel

NAME = "count_repeats"
SIGNATURE: Signature = parameters("heads links [int32], numbers state [int64]")
CPU_SIGNATURE: Signature = [*parameters("start end int64"), *SIGNATURE[:3]]

# `others` ends the comparisons of one row with those after it: only buckets of repeated keys grow as long
_BUCKET = """
        row = heads[slot]
        repeated = False
        while row >= 0 and not repeated:
            other = links[np.uint64(row)]
            others = 0
            while other >= 0 and not repeated:
                others += 1
                repeated = numbers[np.uint64(other)] == numbers[np.uint64(row)] or others == 64
                other = links[np.uint64(other)]
            row = links[np.uint64(row)]
        if repeated:
            count += 1
"""

CPU = f'''"""Count the buckets of a hashed index that hold two rows of one key."""

import numpy as np


def {NAME}(start, end, heads, links, numbers):
    count = 0
    for slot in range(np.uint64(start), np.uint64(end)):
{_BUCKET.strip(chr(10))}
    return count
'''

CUDA = f'''"""Add to state[2] the number of buckets of a hashed index that hold two rows of one key."""

import numpy as np
from numba import cuda


def {NAME}(heads, links, numbers, state):
    slot = np.uint64(cuda.grid(1))
    count = np.int64(0)
    while slot < np.uint64(heads.size):
{_BUCKET.strip(chr(10))}
        slot += np.uint64(cuda.gridsize(1))
    if count > 0:
        cuda.atomic.add(state, np.uint64(2), np.int64(count))
'''


@lru_cache(maxsize=16)
def cpu_kernel(directory: Path) -> HostFunction:
    """Return the function that counts among the buckets from `start` to `end`."""
    return written_kernel(NAME, CPU, CPU_SIGNATURE, directory)


def cuda_kernel(directory: Path, architecture: Architecture) -> KernelFile:
    """Return the kernel that adds to a build's state; any grid will do."""
    return kernel_file(NAME, CUDA, SIGNATURE, directory, architecture)

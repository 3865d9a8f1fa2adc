"""A CUDA kernel, written by hand, that changes the case of ASCII letters, eight bytes at a time; `value_kernels` lists its parameters."""

from __future__ import annotations

import numpy as np
from numba import cuda

HIGH = np.uint64(0x8080808080808080)  # the highest bit of each byte
LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
BYTES = np.uint64(0x0101010101010101)


def letter_case(words, rest, first, last, words64, bytes8, out64, out8, state):  # type: ignore[no-untyped-def]
    """Turn round the case of the bytes from `first` to `last`, and note in `state` whether some byte is no ASCII.

    There are `words` of eight bytes and `rest` bytes behind them.  A sum with the complement of a bound has a byte's highest bit where
    that is not below the bound; without highest bits before it, no sum reaches into the next byte.
    """
    thread = np.int64(cuda.grid(1))
    from_first = BYTES * np.uint64(128 - first)
    above_last = BYTES * np.uint64(127 - last)
    seen = np.uint64(0)
    at = thread
    while at < words:
        word = np.uint64(words64[at])
        low = word & LOW
        seen |= word
        within = (low + from_first) & ~(low + above_last) & HIGH
        out64[at] = word ^ (within >> np.uint64(2))
        at += np.int64(cuda.gridsize(1))
    if thread < rest:
        place = (words << np.int64(3)) + thread
        byte = np.int64(bytes8[place])
        seen |= np.uint64(byte)
        turned = byte
        if first <= byte <= last:
            turned = byte ^ np.int64(32)
        out8[place] = np.uint8(turned)
    if seen & HIGH != np.uint64(0):
        state[0] = np.int64(1)

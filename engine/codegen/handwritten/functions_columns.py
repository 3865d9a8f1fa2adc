"""CUDA kernels, written by hand, that encode and decode whole columns; `column_kernels` lists their parameters.

Numbers of any width come as unsigned words of `width` bytes, `stride` words apart; `shift` is what extends the sign of a word
to 64 bits, 0 for one without a sign.  `bits` is an Arrow bitmap, read where `nullable` is not 0.  Arrays that may have several
element types come once for each, all at the same address, and a number says which is meant: all threads take the same branch.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

I64_MAX = np.int64(2**63 - 1)
I64_MIN = np.int64(-(2**63))
ALL_LANES = 0xFFFFFFFF
MEASURES = 2  # before the sample in what `column_measure` gives
HASH_START = np.uint64(0xCBF29CE484222325)  # FNV-1a
HASH_FACTOR = np.uint64(0x100000001B3)


@cuda.jit(device=True, inline="always")
def value_at(row, width, shift, stride, words8, words16, words32, words64):  # type: ignore[no-untyped-def]
    """The number in a row, in 64 bits."""
    if width == 8:
        word = words64[row * np.uint64(stride)]
    elif width == 4:
        word = np.uint64(words32[row])
    elif width == 2:
        word = np.uint64(words16[row])
    else:
        word = np.uint64(words8[row])
    return np.int64(word << np.uint64(shift)) >> np.int64(shift)


@cuda.jit(device=True, inline="always")
def is_set(bits, row):  # type: ignore[no-untyped-def]
    """Whether a row's bit is set in a bitmap of 32-bit words."""
    return (bits[row >> np.uint64(5)] >> np.uint32(row & np.uint64(31))) & np.uint32(1) != 0


@cuda.jit(device=True, inline="always")
def start_of(row, wide, starts32, starts64):  # type: ignore[no-untyped-def]
    """Where a text begins among the characters."""
    if wide != 0:
        return np.uint64(starts64[row])
    return np.uint64(starts32[row])


def column_measure(  # type: ignore[no-untyped-def]
    rows, width, shift, stride, words8, words16, words32, words64, bits, nullable, spacing, out
):
    """Find the least and the greatest number, and put every `spacing`-th one behind them; a NULL leaves what is there."""
    thread = np.uint64(cuda.grid(1))
    threads = np.uint64(cuda.gridsize(1))
    low = I64_MAX
    high = I64_MIN
    row = thread
    while row < np.uint64(rows):
        if nullable == 0 or is_set(bits, row):
            value = value_at(row, width, shift, stride, words8, words16, words32, words64)
            low = min(low, value)
            high = max(high, value)
        row += threads
    sampled = thread
    while sampled * np.uint64(spacing) < np.uint64(rows):
        row = sampled * np.uint64(spacing)
        if nullable == 0 or is_set(bits, row):
            value = value_at(row, width, shift, stride, words8, words16, words32, words64)
            out[np.uint64(MEASURES) + sampled] = value
        sampled += threads
    for distance in (16, 8, 4, 2, 1):
        low = min(low, cuda.shfl_down_sync(ALL_LANES, low, distance))
        high = max(high, cuda.shfl_down_sync(ALL_LANES, high, distance))
    if cuda.laneid == 0:
        cuda.atomic.min(out, 0, low)
        cuda.atomic.max(out, 1, high)


def column_narrow(  # type: ignore[no-untyped-def]
    rows, width, shift, stride, words8, words16, words32, words64, bits, nullable,
    base, step, code_width, codes8, codes16, codes32, codes64, wrong,
):  # fmt: skip
    """Write (value - base) / step as a code, 0 for NULL; count in `wrong` the threads that met another rest than 0.

    Of a 128-bit value that does not fit 64 bits the rest is another one too.
    """
    thread = np.uint64(cuda.grid(1))
    threads = np.uint64(cuda.gridsize(1))
    failed = False
    row = thread
    while row < np.uint64(rows):
        code = np.uint64(0)
        if nullable == 0 or is_set(bits, row):
            value = value_at(row, width, shift, stride, words8, words16, words32, words64)
            if stride == 2:
                failed |= np.int64(words64[row * np.uint64(2) + np.uint64(1)]) != value >> 63
            code = np.uint64(value - base)
            if step != 1:
                quotient = code // np.uint64(step)
                failed |= quotient * np.uint64(step) != code
                code = quotient
        if code_width == 1:
            codes8[row] = np.uint8(code)
        elif code_width == 2:
            codes16[row] = np.uint16(code)
        elif code_width == 4:
            codes32[row] = np.uint32(code)
        else:
            codes64[row] = code
        row += threads
    if failed:
        cuda.atomic.add(wrong, 0, 1)


def text_number(  # type: ignore[no-untyped-def]
    rows, wide, starts32, starts64, characters, bits, nullable, skipped, most,
    last_slot, slots, keys, key_starts, code_width, codes8, codes16, wrong,
):  # fmt: skip
    """Write for each text its place among the keys, 0 for NULL; count in `wrong` the threads that met a text that is none.

    With `most` not 0 it is the place of so many characters, without the `skipped` ones before them; threads that meet any
    but ASCII ones among all these count as well.
    `slots` is a hash table with open addressing: places of keys, -1 where there is none.
    """
    thread = np.uint64(cuda.grid(1))
    threads = np.uint64(cuda.gridsize(1))
    failed = False
    row = thread
    while row < np.uint64(rows):
        code = np.int32(0)
        if nullable == 0 or is_set(bits, row):
            start = start_of(row, wide, starts32, starts64)
            end = start_of(row + np.uint64(1), wide, starts32, starts64)
            if most != 0:
                stop = start + np.uint64(skipped) + np.uint64(most)
                end = end if end < stop else stop
                place = start
                while place < end:
                    failed |= characters[place] >= np.uint8(128)
                    place += np.uint64(1)
                start += np.uint64(skipped)
                start = start if start < end else end
            hashed = HASH_START
            place = start
            while place < end:
                hashed = (hashed ^ np.uint64(characters[place])) * HASH_FACTOR
                place += np.uint64(1)
            slot = (hashed ^ (hashed >> np.uint64(32))) & np.uint64(last_slot)
            code = slots[slot]
            found = False
            while code >= 0 and not found:
                first = np.uint64(key_starts[np.uint64(code)])
                length = np.uint64(key_starts[np.uint64(code) + np.uint64(1)]) - first
                found = length == end - start
                place = np.uint64(0)
                while found and place < length:
                    found = keys[first + place] == characters[start + place]
                    place += np.uint64(1)
                if not found:
                    slot = (slot + np.uint64(1)) & np.uint64(last_slot)
                    code = slots[slot]
            failed |= not found
        if code_width == 1:
            codes8[row] = np.uint8(code)
        else:
            codes16[row] = np.uint16(code)
        row += threads
    if failed:
        cuda.atomic.add(wrong, 0, 1)


def text_measure(rows, wide, starts32, starts64, words, out):  # type: ignore[no-untyped-def]
    """Find the length of the longest text, where the first begins and the last ends, and which bytes occur, as 256 bits."""
    thread = np.uint64(cuda.grid(1))
    threads = np.uint64(cuda.gridsize(1))
    longest = np.int64(0)
    row = thread
    while row < np.uint64(rows):
        start = start_of(row, wide, starts32, starts64)
        end = start_of(row + np.uint64(1), wide, starts32, starts64)
        longest = max(longest, np.int64(end - start))
        row += threads
    count = start_of(np.uint64(rows), wide, starts32, starts64)
    seen0 = np.int64(0)
    seen1 = np.int64(0)
    seen2 = np.int64(0)
    seen3 = np.int64(0)
    at = thread
    while at * np.uint64(4) < count:
        word = words[at]
        for k in range(4):
            if at * np.uint64(4) + np.uint64(k) < count:
                byte = (word >> np.uint32(8 * k)) & np.uint32(255)
                bit = np.int64(1) << np.int64(byte & np.uint32(63))
                seen0 |= bit if byte < np.uint32(64) else np.int64(0)
                seen1 |= bit if (byte >> np.uint32(6)) == np.uint32(1) else np.int64(0)
                seen2 |= bit if (byte >> np.uint32(6)) == np.uint32(2) else np.int64(0)
                seen3 |= bit if byte >= np.uint32(192) else np.int64(0)
        at += threads
    for distance in (16, 8, 4, 2, 1):
        longest = max(longest, cuda.shfl_down_sync(ALL_LANES, longest, distance))
        seen0 |= cuda.shfl_down_sync(ALL_LANES, seen0, distance)
        seen1 |= cuda.shfl_down_sync(ALL_LANES, seen1, distance)
        seen2 |= cuda.shfl_down_sync(ALL_LANES, seen2, distance)
        seen3 |= cuda.shfl_down_sync(ALL_LANES, seen3, distance)
    if cuda.laneid == 0:
        cuda.atomic.max(out, 0, longest)
        cuda.atomic.or_(out, 1, seen0)
        cuda.atomic.or_(out, 2, seen1)
        cuda.atomic.or_(out, 3, seen2)
        cuda.atomic.or_(out, 4, seen3)
    if thread == np.uint64(0):
        out[5] = np.int64(start_of(np.uint64(0), wide, starts32, starts64))
        out[6] = np.int64(count)


def text_lengths(  # type: ignore[no-untyped-def]
    rows, wide, starts32, starts64, length_width, lengths8, lengths16, lengths32
):
    """Write the length of each text, and a 0 after the last."""
    row = np.uint64(cuda.grid(1))
    while row <= np.uint64(rows):
        length = np.uint64(0)
        if row < np.uint64(rows):
            length = start_of(row + np.uint64(1), wide, starts32, starts64)
            length -= start_of(row, wide, starts32, starts64)
        if length_width == 1:
            lengths8[row] = np.uint8(length)
        elif length_width == 2:
            lengths16[row] = np.uint16(length)
        else:
            lengths32[row] = np.uint32(length)
        row += np.uint64(cuda.gridsize(1))


def text_pack(count, width, symbols, words, packed):  # type: ignore[no-untyped-def]
    """Write each byte as the `width` bits that `symbols` gives for it.

    A warp packs blocks of 1,024 bytes: a lane takes every 32nd word of them, and its 32 bytes become every 32nd word of what is
    written, so that neighbours read and write neighbours.
    """
    thread = np.uint64(cuda.grid(1))
    lane = thread & np.uint64(31)
    block = thread >> np.uint64(5)
    blocks = (np.uint64(count) + np.uint64(1023)) >> np.uint64(10)
    while block < blocks:
        gathered = np.uint64(0)
        filled = np.uint64(0)
        into = block * np.uint64(32) * np.uint64(width) + lane
        for j in range(8):
            at = block * np.uint64(256) + np.uint64(32 * j) + lane
            word = np.uint32(0)
            if at * np.uint64(4) < np.uint64(count):
                word = words[at]
            for k in range(4):
                byte = (word >> np.uint32(8 * k)) & np.uint32(255)
                gathered |= np.uint64(symbols[np.uint64(byte)]) << filled
                filled += np.uint64(width)
                if filled >= np.uint64(32):
                    packed[into] = np.uint32(gathered & np.uint64(0xFFFFFFFF))
                    into += np.uint64(32)
                    gathered >>= np.uint64(32)
                    filled -= np.uint64(32)
        block += np.uint64(cuda.gridsize(1)) >> np.uint64(5)


def text_unpack(count, width, symbols, packed, words):  # type: ignore[no-untyped-def]
    """Undo `text_pack`; `symbols` gives the byte for each number of `width` bits.  Writes whole blocks of 1,024 bytes."""
    thread = np.uint64(cuda.grid(1))
    lane = thread & np.uint64(31)
    block = thread >> np.uint64(5)
    blocks = (np.uint64(count) + np.uint64(1023)) >> np.uint64(10)
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    while block < blocks:
        gathered = np.uint64(0)
        filled = np.uint64(0)
        source = block * np.uint64(32) * np.uint64(width) + lane
        for j in range(8):
            word = np.uint32(0)
            for k in range(4):
                if filled < np.uint64(width):
                    gathered |= np.uint64(packed[source]) << filled
                    source += np.uint64(32)
                    filled += np.uint64(32)
                byte = np.uint32(symbols[gathered & mask])
                word |= byte << np.uint32(8 * k)
                gathered >>= np.uint64(width)
                filled -= np.uint64(width)
            words[block * np.uint64(256) + np.uint64(32 * j) + lane] = word
        block += np.uint64(cuda.gridsize(1)) >> np.uint64(5)

"""The loop of `operators.cpu.functions.values.text_kernels` that makes digests, a function that `compile_host` compiles from this text.

RFC 1321 (MD5) and FIPS 180-4 (SHA-1, SHA-256): a message is followed by a bit, zeros and its length in bits, and read by blocks of 64
bytes.  Whoever imports this imports Numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 64  # bytes
LENGTH = 8  # bytes that the length of a message takes
READ = 16  # words of a block
MD5, SHA1 = 4, 5  # words of a digest; SHA-256 has 8
STATE, MADE = 8, 80  # most words of a state, and of what is made of a block


@njit(error_model="numpy", inline="always")
def turned(word, bits):  # type: ignore[no-untyped-def]
    """A word whose bits move up, the highest ones to the other end."""
    return np.uint32(word << np.uint32(bits)) | np.uint32(word >> np.uint32(32 - bits))


@njit(error_model="numpy", inline="always")
def read_block(text, begin, size, offset, big, words):  # type: ignore[no-untyped-def]
    """Set the words of the block at an offset of a message: the first byte of each is its highest one if `big`, else its lowest."""
    turn, count = np.int64(24 if big else 0), max(min(size - offset, BLOCK), 0)
    for i in range(count >> 2):
        word, place = np.uint32(0), begin + offset + 4 * i
        for k in range(4):
            byte = np.uint32(text[np.uint64(place + k)])
            word |= byte << np.uint32((8 * k) ^ turn)
        words[np.uint64(i)] = word
    word = np.uint32(0)
    for k in range(count & 3):
        byte = np.uint32(text[np.uint64(begin + offset + (count & ~3) + k)])
        word |= byte << np.uint32((8 * k) ^ turn)
    if offset <= size < offset + BLOCK:
        word |= np.uint32(0x80) << np.uint32((8 * (count & 3)) ^ turn)
    for i in range(count >> 2, READ):
        words[np.uint64(i)], word = word, np.uint32(0)
    if size + LENGTH < offset + BLOCK:
        low, high = np.uint32(8 * size), np.uint32(np.uint64(8 * size) >> np.uint64(32))
        words[READ - 2], words[READ - 1] = (high, low) if big else (low, high)


@njit(error_model="numpy", inline="always")
def md5_step(word, other, mixed, turn, step, place, held):  # type: ignore[no-untyped-def]
    """What takes the place of a word: `held` are the words of a block, of which one is read, and what each step adds."""
    added = held[1][np.uint64(step)] + held[0][np.uint64(place & 15)]
    return np.uint32(other + turned(np.uint32(word + mixed + added), turn))


@njit(error_model="numpy")
def md5_block(words, state, table):  # type: ignore[no-untyped-def]
    """Go on from a state through a block; `table` has what each step adds."""
    a, b, c, d = state[0], state[1], state[2], state[3]
    held = (words, table)
    for i in range(0, 16, 4):
        a = md5_step(a, b, d ^ (b & (c ^ d)), 7, i, i, held)
        d = md5_step(d, a, c ^ (a & (b ^ c)), 12, i + 1, i + 1, held)
        c = md5_step(c, d, b ^ (d & (a ^ b)), 17, i + 2, i + 2, held)
        b = md5_step(b, c, a ^ (c & (d ^ a)), 22, i + 3, i + 3, held)
    for i in range(16, 32, 4):
        a = md5_step(a, b, c ^ (d & (b ^ c)), 5, i, 5 * i + 1, held)
        d = md5_step(d, a, b ^ (c & (a ^ b)), 9, i + 1, 5 * i + 6, held)
        c = md5_step(c, d, a ^ (b & (d ^ a)), 14, i + 2, 5 * i + 11, held)
        b = md5_step(b, c, d ^ (a & (c ^ d)), 20, i + 3, 5 * i + 16, held)
    for i in range(32, 48, 4):
        a = md5_step(a, b, b ^ c ^ d, 4, i, 3 * i + 5, held)
        d = md5_step(d, a, a ^ b ^ c, 11, i + 1, 3 * i + 8, held)
        c = md5_step(c, d, d ^ a ^ b, 16, i + 2, 3 * i + 11, held)
        b = md5_step(b, c, c ^ d ^ a, 23, i + 3, 3 * i + 14, held)
    for i in range(48, 64, 4):
        a = md5_step(a, b, c ^ (b | ~d), 6, i, 7 * i, held)
        d = md5_step(d, a, b ^ (a | ~c), 10, i + 1, 7 * i + 7, held)
        c = md5_step(c, d, a ^ (d | ~b), 15, i + 2, 7 * i + 14, held)
        b = md5_step(b, c, d ^ (c | ~a), 21, i + 3, 7 * i + 21, held)
    state[0], state[1] = np.uint32(state[0] + a), np.uint32(state[1] + b)
    state[2], state[3] = np.uint32(state[2] + c), np.uint32(state[3] + d)


@njit(error_model="numpy")
def sha1_block(words, state, table):  # type: ignore[no-untyped-def]
    """Go on from a state through a block; `table` has what each twenty steps add."""
    for i in range(READ, MADE):
        word = words[np.uint64(i - 3)] ^ words[np.uint64(i - 8)]
        word ^= words[np.uint64(i - 14)] ^ words[np.uint64(i - 16)]
        words[np.uint64(i)] = turned(word, 1)
    a, b, c, d, e = state[0], state[1], state[2], state[3], state[4]
    for i in range(MADE):
        if i < 20:
            mixed = d ^ (b & (c ^ d))
        elif 40 <= i < 60:
            mixed = (b & c) | (d & (b | c))
        else:
            mixed = b ^ c ^ d
        added = mixed + e + table[np.uint64(i // 20)] + words[np.uint64(i)]
        a, e, d, c, b = np.uint32(turned(a, 5) + added), d, c, turned(b, 30), a
    state[0], state[1] = np.uint32(state[0] + a), np.uint32(state[1] + b)
    state[2], state[3] = np.uint32(state[2] + c), np.uint32(state[3] + d)
    state[4] = np.uint32(state[4] + e)


@njit(error_model="numpy")
def sha256_block(words, state, table):  # type: ignore[no-untyped-def]
    """Go on from a state through a block; `table` has what each step adds."""
    for i in range(READ, BLOCK):
        early, late = words[np.uint64(i - 15)], words[np.uint64(i - 2)]
        first = turned(early, 25) ^ turned(early, 14) ^ np.uint32(early >> np.uint32(3))
        second = turned(late, 15) ^ turned(late, 13) ^ np.uint32(late >> np.uint32(10))
        before = words[np.uint64(i - 16)] + words[np.uint64(i - 7)]
        words[np.uint64(i)] = np.uint32(before + first + second)
    a, b, c, d = state[0], state[1], state[2], state[3]
    e, f, g, h = state[4], state[5], state[6], state[7]
    for i in range(BLOCK):
        first = turned(e, 26) ^ turned(e, 21) ^ turned(e, 7)
        step = table[np.uint64(i)] + words[np.uint64(i)]
        added = np.uint32(h + first + (g ^ (e & (f ^ g))) + step)
        second = turned(a, 30) ^ turned(a, 19) ^ turned(a, 10)
        h, g, f, e = g, f, e, np.uint32(d + added)
        d, c, b, a = c, b, a, np.uint32(added + second + ((a & b) | (c & (a | b))))
    state[0], state[1] = np.uint32(state[0] + a), np.uint32(state[1] + b)
    state[2], state[3] = np.uint32(state[2] + c), np.uint32(state[3] + d)
    state[4], state[5] = np.uint32(state[4] + e), np.uint32(state[5] + f)
    state[6], state[7] = np.uint32(state[6] + g), np.uint32(state[7] + h)


@njit(error_model="numpy")
def digest(text, ends, start, stop, first, table, words, state, out):  # type: ignore[no-untyped-def]
    """Set the digests of texts as digits of base 16; `first` is the state before each, of as many words as the digest has."""
    count = len(first)
    big = count != MD5
    for row in range(start, stop):
        here = np.uint64(row)
        begin, size = ends[here], ends[here + np.uint64(1)] - ends[here]
        for k in range(count):
            state[np.uint64(k)] = first[np.uint64(k)]
        for block in range((size + LENGTH) // BLOCK + 1):
            read_block(text, begin, size, block * BLOCK, big, words)
            if count == MD5:
                md5_block(words, state, table)
            elif count == SHA1:
                sha1_block(words, state, table)
            else:
                sha256_block(words, state, table)
        for k in range(8 * count):
            low = 4 * (k & 7)
            bits = np.uint32(28 - low if big else low ^ 4)
            digit = np.uint8((state[np.uint64(k >> 3)] >> bits) & np.uint32(15))
            letters = np.uint8(39) if digit > 9 else np.uint8(0)
            out[np.uint64(8 * count * row + k)] = digit + np.uint8(48) + letters

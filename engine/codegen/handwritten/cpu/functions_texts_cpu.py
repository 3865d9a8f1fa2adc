"""The loops of `operators.cpu.sort.text_words` and `text_hashes`, each a function that `compile_host` compiles from this text.

Texts are compared by words of 8 bytes, the first byte the highest, so that unsigned words have the order of the bytes; `flip` has all
bits where that order is turned round (-1), else none.  Whoever imports this imports Numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

WORD = 8


@njit(error_model="numpy", inline="always")
def word_at(text, at, end):  # type: ignore[no-untyped-def]
    """The bytes from a place on as a word, with zeros behind the end of the text."""
    word, missing = np.uint64(0), at + WORD - end
    if at + WORD <= len(text):
        for k in range(WORD):
            word = (word << np.uint64(8)) | np.uint64(text[np.uint64(at + k)])
        if missing > 0:
            bits = np.uint64(8 * missing)
            word = np.uint64(0) if missing >= WORD else (word >> bits) << bits
        return word
    for k in range(WORD):
        byte = np.uint64(text[np.uint64(at + k)]) if at + k < end else np.uint64(0)
        word = (word << np.uint64(8)) | byte
    return word


@njit(error_model="numpy")
def is_after(text, at, end, other, place, stop, flip):  # type: ignore[no-untyped-def]
    """Whether a text comes after another one with the same first word."""
    shorter, longer = end - at < stop - place, end - at > stop - place
    while True:
        at += WORD
        place += WORD
        if at >= end or place >= stop:
            return longer if flip == 0 else shorter
        mine, its = word_at(text, at, end) ^ flip, word_at(other, place, stop) ^ flip
        if mine != its:
            return mine > its


@njit(error_model="numpy")
def last_texts(text, offsets, codes, valid, start, stop, flip, words, best):  # type: ignore[no-untyped-def]
    """Go on from `best`, the row of the last text of each group, or -1, and `words`, its first word, through some rows.

    `codes` are the groups of rows, none where all are of one, and `valid` says which are not NULL, nothing where all are.
    """
    group, turned = np.int64(0), np.uint64(flip)
    for row in range(start, stop):
        here = np.uint64(row)
        if len(valid) and not valid[here]:
            continue
        if len(codes):
            group = codes[here]
        at, end = np.int64(offsets[here]), np.int64(offsets[here + np.uint64(1)])
        word, held = word_at(text, at, end) ^ turned, best[np.uint64(group)]
        if held >= 0:
            if word < words[np.uint64(group)]:
                continue
            if word == words[np.uint64(group)]:
                place = np.int64(offsets[np.uint64(held)])
                last = np.int64(offsets[np.uint64(held + 1)])
                if not is_after(text, at, end, text, place, last, turned):
                    continue
        words[np.uint64(group)] = word
        best[np.uint64(group)] = row


@njit(error_model="numpy")
def not_after(text, offsets, bound, start, stop, flip, out):  # type: ignore[no-untyped-def]
    """Set `out` for rows whose text does not come after the bound."""
    size, turned = np.int64(len(bound)), np.uint64(flip)
    last = word_at(bound, np.int64(0), size) ^ turned
    for row in range(start, stop):
        here = np.uint64(row)
        at, end = np.int64(offsets[here]), np.int64(offsets[here + np.uint64(1)])
        word = word_at(text, at, end) ^ turned
        if word == last:
            out[here] = not is_after(text, at, end, bound, np.int64(0), size, turned)
        else:
            out[here] = word < last


@njit(error_model="numpy", inline="always")
def low_word_at(text, at, end):  # type: ignore[no-untyped-def]
    """The bytes from a place on as a word, the first byte the lowest, with zeros behind the end of the text."""
    word = np.uint64(0)
    if at + WORD <= end:
        for k in range(WORD):
            word |= np.uint64(text[np.uint64(at + k)]) << np.uint64(8 * k)
        return word
    for k in range(end - at):
        word |= np.uint64(text[np.uint64(at + k)]) << np.uint64(8 * k)
    return word


@njit(error_model="numpy")
def hash_texts(text, offsets, start, stop, out):  # type: ignore[no-untyped-def]
    """Set the hashes of texts: of their lengths, and of their first, middle and last words."""
    for row in range(start, stop):
        here = np.uint64(row)
        at, end = np.int64(offsets[here]), np.int64(offsets[here + np.uint64(1)])
        found = np.uint64(end - at)
        for k in range(3):
            place = at if k == 0 else (at + end) >> 1 if k == 1 else max(at, end - WORD)
            found ^= (found >> np.uint64(32)) ^ low_word_at(text, place, end)
            found *= np.uint64(0x9E3779B97F4A7C15)
        out[here] = found


@njit(error_model="numpy")
def find_others(text, offsets, codes, firsts, start, stop, places, others):  # type: ignore[no-untyped-def]
    """List rows whose text is not that of the first row of their code; return how many.

    Of as many rows as `places` has room for all first texts are looked at before any is read on, so that the processor waits for them
    together.
    """
    count, begin = np.int64(0), start
    while begin < stop:
        rows = min(np.int64(len(places)), stop - begin)
        for k in range(rows):
            first = np.uint64(firsts[np.uint64(codes[np.uint64(begin + k)])])
            place, last = np.int64(offsets[first]), np.int64(offsets[first + np.uint64(1)])
            here = np.uint64(begin + k)
            same = last - place == np.int64(offsets[here + np.uint64(1)]) - np.int64(offsets[here])
            places[np.uint64(k)] = place if same else -1
        for k in range(rows):
            here, place = np.uint64(begin + k), places[np.uint64(k)]
            if place >= 0:
                at, end = np.int64(offsets[here]), np.int64(offsets[here + np.uint64(1)])
                last = place + end - at
                ends = low_word_at(text, max(at, end - WORD), end) ^ low_word_at(
                    text, max(place, last - WORD), last
                )
                starts = low_word_at(text, at, end) ^ low_word_at(text, place, last)
                if (ends | starts) != np.uint64(0):
                    places[np.uint64(k)] = -1
        for k in range(rows):
            here, place = np.uint64(begin + k), places[np.uint64(k)]
            at, end = np.int64(offsets[here]) + WORD, np.int64(offsets[here + np.uint64(1)]) - WORD
            same, place = place >= 0, place + WORD
            while same and at < end:
                same = low_word_at(text, at, at + WORD) == low_word_at(text, place, place + WORD)
                at += WORD
                place += WORD
            if not same:
                others[np.uint64(count)] = begin + k
                count += 1
        begin += rows
    return count

"""The loop of `operators.cpu.functions.json.json_skeletons`: documents without what their strings and numbers are, which many have alike.

A document that has anything unusual, or is no JSON, is left as it is.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .functions_json_cpu import (
    ARRAY,
    ARRAY_END,
    BEHIND,
    COMMA,
    DEEPEST,
    ELEMENT,
    FIRST_KEY,
    KEY,
    MINUS,
    NINE,
    OBJECT,
    OBJECT_END,
    POINT,
    QUOTE,
    VALUE,
    ZERO,
    past_blanks,
    scalar_end,
)
from .functions_json_fields_cpu import any_number_end, escaped_end, past_key

__all__ = ["json_skeletons"]


@njit(error_model="numpy", inline="always")
def copied(text, at, stop, out, place):  # type: ignore[no-untyped-def]
    """Copy bytes; the place behind them."""
    for k in range(stop - at):
        out[np.uint64(place + k)] = text[np.uint64(at + k)]
    return place + stop - at


@njit(error_model="numpy", inline="always")
def number_written(text, at, stop, out, place):  # type: ignore[no-untyped-def]
    """Write 1, -1 or 1.1 for a number, as it has a sign or a fraction; the place behind it."""
    for k in range(at + 1, stop):
        if not ZERO <= text[np.uint64(k)] <= NINE:
            out[np.uint64(place)] = out[np.uint64(place + 2)] = ZERO + 1
            out[np.uint64(place + 1)] = POINT
            return place + 3
    out[np.uint64(place)] = MINUS
    place += text[np.uint64(at)] == MINUS
    out[np.uint64(place)] = ZERO + 1
    return place + 1


@njit(error_model="numpy")
def skeleton_of(text, at, end, out, place):  # type: ignore[no-untyped-def]
    """Write a document with empty strings and few numbers; the place behind it, -1 where it is not read here."""
    depth, objects, expected = 0, np.uint64(0), VALUE
    while True:
        at = past_blanks(text, at, end)
        if at >= end or depth > DEEPEST:
            return place if depth == 0 and expected == BEHIND else -1
        byte, stop, is_copied = text[np.uint64(at)], at + 1, True
        bit = np.uint64(1) << np.uint64(depth)
        is_object = objects & bit != 0
        if byte in (OBJECT_END, ARRAY_END):
            if expected in (VALUE, KEY) or depth == 0 or is_object != (byte == OBJECT_END):
                return -1
            depth, expected = depth - 1, BEHIND
        elif expected == BEHIND:
            if byte != COMMA or depth == 0:
                return -1
            expected = KEY if is_object else VALUE
        elif expected in (KEY, FIRST_KEY):
            stop, expected = past_key(text, at, end), VALUE
        elif byte in (OBJECT, ARRAY):
            depth, opens = depth + 1, byte == OBJECT
            bit = bit << np.uint64(1)
            objects = objects | bit if opens else objects & ~bit
            expected = FIRST_KEY if opens else ELEMENT
        else:
            expected = BEHIND
            if byte == QUOTE:
                stop, is_copied = escaped_end(text, at + 1, end), False
                out[np.uint64(place)] = out[np.uint64(place + 1)] = QUOTE
                place += 2
            elif byte == MINUS or ZERO <= byte <= NINE:
                stop, is_copied = any_number_end(text, at, end), False
                place = number_written(text, at, stop, out, place) if stop >= 0 else place
            else:
                stop = scalar_end(text, at, end, False)
        if stop < 0:
            return -1
        place = copied(text, at, stop, out, place) if is_copied else place
        at = stop


@njit(error_model="numpy")
def json_skeletons(text, ends, valid, start, stop, out, out_ends):  # type: ignore[no-untyped-def]
    """Write documents behind one another, none of which becomes longer, and where each ends."""
    for row in range(start, stop):
        here, after = np.uint64(row), np.uint64(row + 1)
        place = np.int64(out_ends[here])
        if len(valid) == 0 or valid[here]:
            found = skeleton_of(text, ends[here], ends[after], out, place)
            place = found if found >= 0 else copied(text, ends[here], ends[after], out, place)
        out_ends[after] = place

"""The loops of `operators.cpu.functions.json.json_scan`, each a function that `compile_host` compiles from this text.

What is usual is read; where a text has anything else, or is no JSON, `place_in` says so and its caller has it read by other means.
"""

from __future__ import annotations

import numpy as np
from numba import njit

DEEPEST = 60  # open containers, of which an integer has a bit each
QUOTE, BACKSLASH, COMMA, COLON, POINT, MINUS = 34, 92, 44, 58, 46, 45
OBJECT, OBJECT_END, ARRAY, ARRAY_END = 123, 125, 91, 93
ZERO, NINE, BLANK = 48, 57, 32
TAB, LINE, RETURN = 9, 10, 13
ESCAPED = (34, 92, 47, 98, 102, 110, 114, 116)  # what may stand behind a backslash, but for u
VALUE, ELEMENT, KEY, FIRST_KEY, BEHIND = 0, 1, 2, 3, 4  # what may come next
LONGEST_WHOLE, LONGEST_FRACTION = 18, 15  # digits that are written again as they are read


@njit(error_model="numpy", inline="always")
def past_blanks(text, at, end):  # type: ignore[no-untyped-def]
    """Where the blanks end that begin at a place."""
    while at < end:
        byte = text[np.uint64(at)]
        if byte not in (BLANK, TAB, LINE, RETURN):
            break
        at += 1
    return at


@njit(error_model="numpy")
def string_end(text, at, end, plain):  # type: ignore[no-untyped-def]
    """Where a string ends whose text begins at a place, -1 where it has what is not read here; `plain` ones have no escapes."""
    while at < end:
        byte = text[np.uint64(at)]
        if byte == QUOTE:
            return at + 1
        if byte < BLANK:
            return -1
        if byte == BACKSLASH:
            # \u may be half of a character
            if plain or at + 1 >= end or text[np.uint64(at + 1)] not in ESCAPED:
                return -1
            at += 1
        at += 1
    return -1


@njit(error_model="numpy", inline="always")
def digits_end(text, at, end):  # type: ignore[no-untyped-def]
    """Where the digits end that begin at a place."""
    while at < end and ZERO <= text[np.uint64(at)] <= NINE:
        at += 1
    return at


@njit(error_model="numpy")
def number_end(text, at, end, plain):  # type: ignore[no-untyped-def]
    """Where a number without exponent ends, -1 where there is none; a `plain` one is written as JSON writes its value."""
    first = at + 1 if text[np.uint64(at)] == MINUS else at
    stop = digits_end(text, first, end)
    whole, leading = stop - first, first < end and text[np.uint64(first)] == ZERO
    if whole == 0 or (leading and whole > 1):
        return -1
    if stop == end or text[np.uint64(stop)] != POINT:
        if plain and (whole > LONGEST_WHOLE or (leading and first > at)):
            return -1
        return stop
    point = stop + 1
    stop = digits_end(text, point, end)
    fraction = stop - point
    if fraction == 0:
        return -1
    if plain and whole + fraction > LONGEST_FRACTION:
        return -1
    if plain and fraction > 1:
        small = leading and text[np.uint64(point)] == ZERO and text[np.uint64(point + 1)] == ZERO
        if small or text[np.uint64(stop - 1)] == ZERO:
            return -1
    return stop


@njit(error_model="numpy")
def are_at(text, at, end, others, start, stop):  # type: ignore[no-untyped-def]
    """Whether a part of `others` is what a text has at a place."""
    if end - at < stop - start:
        return False
    while start < stop and text[np.uint64(at)] == others[np.uint64(start)]:
        at, start = at + 1, start + 1
    return start == stop


@njit(error_model="numpy")
def scalar_end(text, at, end, plain):  # type: ignore[no-untyped-def]
    """Where a string, a number or a word ends, -1 where there is none."""
    byte = text[np.uint64(at)]
    if byte == QUOTE:
        return string_end(text, at + 1, end, plain)
    if byte == MINUS or ZERO <= byte <= NINE:
        return number_end(text, at, end, plain)
    if are_at(text, at, end, b"true", 0, 4) or are_at(text, at, end, b"null", 0, 4):
        return at + 4
    return at + 5 if are_at(text, at, end, b"false", 0, 5) else -1


@njit(error_model="numpy")
def key_end(text, at, end):  # type: ignore[no-untyped-def]
    """Where a key ends that a colon follows, -1 where there is none."""
    stop = string_end(text, at + 1, end, True) if text[np.uint64(at)] == QUOTE else -1
    return stop if 0 <= stop < end and text[np.uint64(stop)] == COLON else -1


@njit(error_model="numpy")
def place_in(text, at, end, keys, key_ends, places, found):  # type: ignore[no-untyped-def]
    """Set where the value at a path begins and ends, -1 where there is none; whether the text was read to its end.

    A step is a key, of which `key_ends` has the bytes, or a place that is not negative.  The container at depth `looked` has the
    value of the first `matched` steps, and the next step leads to one of its values; of a key that comes twice the first counts.
    """
    depth, inside, looked, matched, count, level = 0, 0, 0, 0, 0, 0
    objects, expected, on = np.uint64(0), VALUE, True
    found[0] = found[1] = -1
    while True:
        before, at = at, past_blanks(text, at, end)
        if depth > DEEPEST or (inside and at > before):
            return False
        if at >= end:
            return expected == BEHIND and depth == 0
        byte = text[np.uint64(at)]
        is_object = (objects >> np.uint64(depth)) & np.uint64(1) == 1
        if byte in (OBJECT_END, ARRAY_END):
            if expected in (VALUE, KEY) or depth == 0 or is_object != (byte == OBJECT_END):
                return False
            at += 1
            found[1] = at if depth == inside else found[1]
            inside, looked = inside if depth != inside else 0, looked if depth != looked else 0
            depth, expected, on = depth - 1, BEHIND, False
        elif expected == BEHIND:
            if byte != COMMA or depth == 0:
                return False
            at, count = at + 1, count + (depth == looked)
            expected = KEY if is_object else VALUE
            on = not is_object and depth == looked and places[matched] == count
        elif expected in (KEY, FIRST_KEY):
            stop = key_end(text, at, end)
            if stop < 0:
                return False
            if depth == looked:
                start, last = key_ends[matched], key_ends[matched + 1]
                on = last - start == stop - at - 2 and are_at(text, at + 1, end, keys, start, last)
            at, expected = stop + 1, VALUE
        else:
            level = level if not on else matched + 1 if depth else 0
            looked = looked if not on else 0
            is_target = on and level == len(places)
            stop = scalar_end(text, at, end, is_target or inside > 0)
            if byte in (OBJECT, ARRAY):
                depth, opens = depth + 1, byte == OBJECT
                bit = np.uint64(1) << np.uint64(depth)
                objects = objects | bit if opens else objects & ~bit
                if is_target:
                    found[0], inside = at, depth
                elif on and (places[level] < 0) == opens:
                    looked, matched, count = depth, level, 0
                at, expected = at + 1, FIRST_KEY if opens else ELEMENT
                on = not opens and depth == looked and places[matched] == 0
            elif stop < 0:
                return False
            else:
                found[0], found[1] = (at, stop) if is_target else (found[0], found[1])
                at, expected, on = stop, BEHIND, False


@njit(error_model="numpy")
def json_places(  # type: ignore[no-untyped-def]
    text, offsets, valid, keys, key_ends, places, start, stop, found, begins, ends
):
    """Set where the values at a path begin and end in the texts of rows: -1 where there are none, -2 where a text was not read."""
    for row in range(start, stop):
        here = np.uint64(row)
        begins[here] = ends[here] = -1
        if len(valid) and not valid[here]:
            continue
        at, end = np.int64(offsets[here]), np.int64(offsets[here + np.uint64(1)])
        if place_in(text, at, end, keys, key_ends, places, found):
            begins[here], ends[here] = found[0], found[1]
        else:
            begins[here] = ends[here] = -2


@njit(error_model="numpy")
def copy_parts(text, begins, offsets, start, stop, out):  # type: ignore[no-untyped-def]
    """Copy a part of a text for each row to where its offsets say."""
    for row in range(start, stop):
        here = np.uint64(row)
        at, place = begins[here], np.int64(offsets[here])
        for k in range(np.int64(offsets[here + np.uint64(1)]) - place):
            out[np.uint64(place + k)] = text[np.uint64(at + k)]

"""Regular expressions by the tables of `regex.automata`, for both targets; `regex_kernels` adds the kernels that call these functions.

`text` are the bytes of all strings, `offsets` where each begins.  A bitmap has the bit of row -`first_bit`, read where `nullable` is not 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FOUND = 1  # the state of a text that matches, however it goes on


@njit(error_model="numpy")
def match_rows(  # type: ignore[no-untyped-def]
    row, step, rows, text, offsets, bits, first_bit, nullable, classes, columns, moves, ends, start, out
):  # fmt: skip
    """Set `out` to 1 for strings that have a match, else to 0: from a row on, so many at a time."""
    while row < rows:
        state, at, end = np.int64(0), np.int64(0), np.int64(0)
        if not is_null(row, bits, first_bit, nullable):
            state, at, end = np.int64(start), np.int64(offsets[row]), np.int64(offsets[row + 1])
        while state > FOUND and at < end:
            state = np.int64(moves[state * columns + np.int64(classes[text[at]])])
            at += 1
        out[row] = np.uint8(ends[state])
        row += step


@njit(error_model="numpy")
def put_rows(  # type: ignore[no-untyped-def]
    row, step, registers, half, rows, text, offsets, bits, first_bit, nullable,
    classes, columns, moves, ends, copies, lists, starts, tags,
    pieces, template, parts, every, rest, writing, places, sizes, out,
):  # fmt: skip
    """Replace matches: count the bytes of each string into `sizes`, or write them to `places` in `out`.

    A replacement has `parts` of three numbers: -1 and where a piece of `template` begins and ends, or the tag of what is copied.
    The `rest` of a string, outside of matches, stays or not; `every` match counts, or the first one.
    """
    best = 2 * half
    while row < rows:
        begin, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        into = np.int64(places[row]) if writing != 0 else np.int64(0)
        going = not is_null(row, bits, first_bit, nullable)
        at, last = begin, np.int64(-1)
        copied = begin if going else end
        while True:
            is_match = going and is_found(
                text, begin, at, end, classes, columns, moves, ends, copies, lists, starts, tags, registers, half
            )  # fmt: skip
            first, past, count = end, end, np.int64(0)
            if is_match:
                first, past = begin + registers[best], begin + registers[best + 1]
                count = np.int64(parts)
            # There is no empty match where the last one ended: a character stays
            is_empty = first == past and first == last
            if is_empty:
                count = np.int64(0)
            # What lies before the match comes first, in the same loop: each call of `put` is compiled where it stands
            for part in range(-1, count):
                is_text, here, until = True, copied, first if rest != 0 else copied
                if part >= 0:
                    tag, here, until = pieces[3 * part], pieces[3 * part + 1], pieces[3 * part + 2]
                    is_text = tag >= 0
                    if is_text:
                        here = begin + registers[best + tag]
                        until = begin + registers[best + tag + 1]
                into = put(text, template, is_text, here, max(here, until), out, into, writing)
            if not is_match:
                break
            copied = first
            if is_empty:
                going = bool(first < end)
                at = next_character(text, first, end)
            else:
                at = copied = last = past
                going = every != 0
        if writing == 0:
            sizes[row] = into
        row += step


@njit(error_model="numpy")
def is_found(  # type: ignore[no-untyped-def]
    text, begin, at, end, classes, columns, moves, ends, copies, lists, starts, tags, registers, half
):  # fmt: skip
    """Whether a string that lies from `begin` to `end` has a match from `at` on; where, registers behind both halves say then."""
    best = 2 * half
    for tag in range(tags):
        registers[tag] = -1
        registers[best + tag] = -1
    kind = 0 if at == begin else 2
    state, place, side = np.int64(starts[kind]), at - begin, np.int64(0)
    found, before = np.int64(starts[kind + 1]), at - begin
    is_moved, going = True, True
    # One call of `moved` for the beginning, each character and the end, since it is compiled where it stands
    while going:
        if is_moved:
            side = moved(registers, side, half, lists, found, before, place, tags)
        if state != 0 and at < end:
            move = state * columns + np.int64(classes[text[at]])
            at += 1
            state, found = np.int64(moves[move]), np.int64(copies[move])
            is_moved = found != 0
            before, place = at - begin - 1, at - begin
        else:
            found = np.int64(ends[state]) if state != 0 else np.int64(0)
            is_moved = going = found != 0
            before = place = end - begin
            state = np.int64(0)
    return registers[best + 1] >= 0


@njit(error_model="numpy")
def moved(registers, side, half, lists, at, before, now, tags):  # type: ignore[no-untyped-def]
    """Write the rows of registers that a list names into the other half, a match behind both; return that half."""
    other = half - side
    count, rows = lists[at], lists[at] + lists[at + 1]
    at += 2
    for row in range(rows):
        source, earlier, later = side + lists[at] * tags, lists[at + 1], lists[at + 2]
        to = other + row * tags if row < count else 2 * half
        for tag in range(tags):
            if (later >> tag) & 1:
                registers[to + tag] = now
            elif (earlier >> tag) & 1:
                registers[to + tag] = before
            else:
                registers[to + tag] = registers[source + tag]
        at += 3
    return other


@njit(error_model="numpy")
def put(text, template, is_text, at, end, out, into, writing):  # type: ignore[no-untyped-def]
    """Write bytes of the text or the template where that is wanted, and return where the next ones go."""
    if writing != 0:
        for i in range(at, end):
            out[into + i - at] = text[i] if is_text else template[i]
    return into + (end - at)


@njit(error_model="numpy")
def next_character(text, at, end):  # type: ignore[no-untyped-def]
    """Return where the next character begins."""
    at += 1
    while at < end and (text[at] & 0xC0) == 0x80:
        at += 1
    return at


@njit(error_model="numpy")
def is_null(row, bits, first_bit, nullable):  # type: ignore[no-untyped-def]
    place = row + first_bit
    return nullable != 0 and (np.int64(bits[place >> 3]) >> (place & 7)) & 1 == 0

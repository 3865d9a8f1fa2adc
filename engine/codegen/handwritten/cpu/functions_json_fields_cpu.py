"""The loops of `operators.cpu.functions.json.json_fields`: where the fields of documents and the elements of arrays lie, and what they are.

A document that has anything unusual, or is no JSON, is not read, and says so: its caller has it read by other means.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .functions_json_cpu import (
    ARRAY,
    ARRAY_END,
    BACKSLASH,
    BEHIND,
    BLANK,
    COLON,
    COMMA,
    DEEPEST,
    ELEMENT,
    ESCAPED,
    FIRST_KEY,
    KEY,
    LONGEST_FRACTION,
    LONGEST_WHOLE,
    MINUS,
    NINE,
    OBJECT,
    OBJECT_END,
    POINT,
    QUOTE,
    VALUE,
    ZERO,
    are_at,
    copy_parts,
    digits_end,
    number_end,
    past_blanks,
    scalar_end,
    string_end,
)

__all__ = ["copy_parts", "json_elements", "json_fields", "json_scalars"]

PLUS = 43
LONGEST_READ = 200  # digits of a fraction
CODE, EXPONENT, HALVES = 117, 101, (68, 100)  # u, e, and d as the first digit behind u
# What a document is: for `json_fields` and `json_elements`, and for `json_scalars`
NOTHING, FIELDS, WITH_OTHERS, LIST, OTHER, NOT_READ = 0, 1, 2, 3, 4, 5
WHOLE, SHORT, REAL, LONG, TRUTH, TEXT, ESCAPED_TEXT, CONTAINER, WRONG = range(1, 10)


@njit(error_model="numpy")
def escaped_end(text, at, end):  # type: ignore[no-untyped-def]
    """Where a string ends whose text begins at a place, -1 where it has what is not read here: halves of characters, too."""
    while at < end:
        byte = text[np.uint64(at)]
        if byte == QUOTE:
            return at + 1
        if byte < BLANK or (byte == BACKSLASH and at + 1 >= end):
            return -1
        if byte == BACKSLASH:
            at += 1
            sign = text[np.uint64(at)]
            if sign == CODE:
                for place in range(at + 1, at + 5):
                    if place >= end or not is_hexadecimal(text[np.uint64(place)]):
                        return -1
                if text[np.uint64(at + 1)] in HALVES:
                    return -1
                at += 4
            elif sign not in ESCAPED:
                return -1
        at += 1
    return -1


@njit(error_model="numpy", inline="always")
def is_hexadecimal(byte):  # type: ignore[no-untyped-def]
    """Whether a byte is a digit or a letter from a to f."""
    return ZERO <= byte <= NINE or 97 <= (byte | 32) <= 102


@njit(error_model="numpy")
def any_number_end(text, at, end):  # type: ignore[no-untyped-def]
    """Where a number ends of which a DOUBLE is near, -1 where there is none, and for -0."""
    first = at + 1 if text[np.uint64(at)] == MINUS else at
    stop = digits_end(text, first, end)
    whole, leading = stop - first, first < end and text[np.uint64(first)] == ZERO
    if whole == 0 or whole > LONGEST_WHOLE or (leading and whole > 1):
        return -1
    broken = stop < end and text[np.uint64(stop)] == POINT
    if broken:
        point = stop + 1
        stop = digits_end(text, point, end)
        if stop == point or stop - point > LONGEST_READ:
            return -1
    if stop < end and text[np.uint64(stop)] | 32 == EXPONENT:
        power = stop + 1
        if power < end and text[np.uint64(power)] in (MINUS, PLUS):
            power += 1
        stop = digits_end(text, power, end)
        return stop if 1 <= stop - power <= 2 else -1
    return -1 if leading and first > at and not broken else stop


@njit(error_model="numpy")
def past_key(text, at, end):  # type: ignore[no-untyped-def]
    """Where the colon ends behind the key that begins at a place, -1 where there is none."""
    if at >= end or text[np.uint64(at)] != QUOTE:
        return -1
    stop = escaped_end(text, at + 1, end)
    if stop < 0:
        return -1
    stop = past_blanks(text, stop, end)
    return stop + 1 if stop < end and text[np.uint64(stop)] == COLON else -1


@njit(error_model="numpy")
def value_end(text, at, end):  # type: ignore[no-untyped-def]
    """Where a value ends with all that is in it, -1 where it is not read here."""
    depth, objects, expected = 0, np.uint64(0), VALUE
    while True:
        at = past_blanks(text, at, end)
        if at >= end or depth > DEEPEST:
            return -1
        byte = text[np.uint64(at)]
        bit = np.uint64(1) << np.uint64(depth)
        is_object = objects & bit != 0
        if byte in (OBJECT_END, ARRAY_END):
            if expected in (VALUE, KEY) or depth == 0 or is_object != (byte == OBJECT_END):
                return -1
            at, depth, expected = at + 1, depth - 1, BEHIND
        elif expected == BEHIND:
            if byte != COMMA:
                return -1
            at, expected = at + 1, KEY if is_object else VALUE
        elif expected in (KEY, FIRST_KEY):
            at, expected = past_key(text, at, end), VALUE
        elif byte in (OBJECT, ARRAY):
            at, depth, opens = at + 1, depth + 1, byte == OBJECT
            bit = bit << np.uint64(1)
            objects = objects | bit if opens else objects & ~bit
            expected = FIRST_KEY if opens else ELEMENT
        else:
            expected = BEHIND
            if byte == QUOTE:
                at = escaped_end(text, at + 1, end)
            elif byte == MINUS or ZERO <= byte <= NINE:
                at = any_number_end(text, at, end)
            else:
                at = scalar_end(text, at, end, False)
        if at < 0 or (depth == 0 and expected == BEHIND):
            return at


@njit(error_model="numpy")
def fields_in(text, at, end, keys, key_ends, row, rows, begins, ends):  # type: ignore[no-untyped-def]
    """Set where the values of keys begin and end in the object at a place; its end, and whether it has other keys or one twice.

    Of a key that comes twice the first counts.  A key with escapes may be any, so that such objects are not read: their end is -1.
    """
    count, likely, others = len(key_ends) - 1, 0, False
    at = past_blanks(text, at + 1, end)
    if at < end and text[np.uint64(at)] == OBJECT_END:
        return at + 1, others
    while True:
        at = past_blanks(text, at, end)
        stop = string_end(text, at + 1, end, True) if at < end else -1
        value = past_key(text, at, end) if stop >= 0 else -1
        if value < 0:
            return -1, others
        field = -1
        for _ in range(count):
            likely = likely if likely < count else 0
            start, last = key_ends[likely], key_ends[likely + 1]
            if last - start == stop - at - 2 and are_at(text, at + 1, end, keys, start, last):
                field = likely
            likely += 1
            if field >= 0:
                break
        value = past_blanks(text, value, end)
        at = value_end(text, value, end)
        if at < 0:
            return -1, others
        place = np.uint64(field * rows + row)
        if field >= 0 and begins[place] < 0:
            begins[place], ends[place] = value, at
        else:
            others = True
        at = past_blanks(text, at, end)
        sign = text[np.uint64(at)] if at < end else 0
        at += 1
        if sign == OBJECT_END:
            return at, others
        if sign != COMMA:
            return -1, others


@njit(error_model="numpy")
def kind_at(text, at):  # type: ignore[no-untyped-def]
    """What the value is that begins at a place, but for objects: NOTHING for null."""
    byte = text[np.uint64(at)]
    return NOTHING if byte == 110 else LIST if byte == ARRAY else OTHER


@njit(error_model="numpy")
def json_fields(  # type: ignore[no-untyped-def]
    text, begins, ends, keys, key_ends, start, stop, field_begins, field_ends, kinds
):
    """Set where the values of keys begin and end in documents, key by key, -1 where they are none, and what the documents are."""
    rows = len(begins)
    for row in range(start, stop):
        here = np.uint64(row)
        for k in range(len(key_ends) - 1):
            place = np.uint64(k * rows + row)
            field_begins[place] = field_ends[place] = -1
        kinds[here] = NOTHING
        if begins[here] < 0:
            continue
        end = ends[here]
        at = past_blanks(text, begins[here], end)
        if at < end and text[np.uint64(at)] == OBJECT:
            at, others = fields_in(
                text, at, end, keys, key_ends, row, rows, field_begins, field_ends
            )
            kinds[here] = WITH_OTHERS if others else FIELDS
        else:
            kinds[here] = kind_at(text, at) if at < end else NOTHING
            at = value_end(text, at, end)
        if at < 0 or past_blanks(text, at, end) < end:
            kinds[here] = NOT_READ


@njit(error_model="numpy")
def json_elements(  # type: ignore[no-untyped-def]
    text, begins, ends, offsets, start, stop, element_begins, element_ends, lengths, kinds
):
    """Set how many elements the arrays among documents have, and what the documents are.

    A second run with `offsets` sets where each element begins and ends.
    """
    for row in range(start, stop):
        here = np.uint64(row)
        if len(offsets) and kinds[here] != LIST:
            continue
        kinds[here], lengths[here] = NOTHING, 0
        if begins[here] < 0:
            continue
        end, count = ends[here], 0
        at = past_blanks(text, begins[here], end)
        kind = kind_at(text, at) if at < end else NOTHING
        if kind == LIST:
            at = past_blanks(text, at + 1, end)
            closed = at < end and text[np.uint64(at)] == ARRAY_END
            while not closed:
                begin = past_blanks(text, at, end)
                at = value_end(text, begin, end)
                if at < 0:
                    break
                if len(offsets):
                    place = np.uint64(offsets[here] + count)
                    element_begins[place], element_ends[place] = begin, at
                count += 1
                at = past_blanks(text, at, end)
                sign = text[np.uint64(at)] if at < end else 0
                closed = sign == ARRAY_END
                if not closed and sign != COMMA:
                    at = -1
                    break
                at += 0 if closed else 1
            at = at + 1 if at >= 0 else at
        else:
            at = value_end(text, at, end)
        kinds[here], lengths[here] = kind, count
        if at < 0 or past_blanks(text, at, end) < end:
            kinds[here], lengths[here] = NOT_READ, 0


@njit(error_model="numpy")
def number_at(text, at, end, row, whole, real):  # type: ignore[no-untyped-def]
    """Set the value of a number that fills a place, and return what it is."""
    first = at + 1 if text[np.uint64(at)] == MINUS else at
    digits, fraction, power, broken = np.int64(0), 0, 1.0, False
    if end - first > LONGEST_WHOLE + 1:
        return LONG
    for place in range(first, end):
        byte = text[np.uint64(place)]
        if byte == POINT:
            broken = True
        elif not ZERO <= byte <= NINE:
            return LONG
        else:
            digits = digits * 10 + (byte - ZERO)
            if broken:
                fraction, power = fraction + 1, power * 10.0
    if not broken:
        whole[row] = -digits if first > at else digits
        return WHOLE
    if end - first - 1 > LONGEST_FRACTION:
        return LONG
    found = digits / power
    real[row] = -found if first > at else found
    return SHORT if number_end(text, at, end, True) == end else REAL


@njit(error_model="numpy")
def json_scalars(text, begins, ends, start, stop, whole, real, kinds):  # type: ignore[no-untyped-def]
    """Set what documents are, without blanks around them, and the numbers among them; true is 1."""
    for row in range(start, stop):
        here = np.uint64(row)
        kinds[here], whole[here], real[here] = NOTHING, 0, 0.0
        if begins[here] < 0:
            continue
        last = ends[here]
        at = past_blanks(text, begins[here], last)
        end = value_end(text, at, last)
        if end < 0 or past_blanks(text, end, last) < last:
            kinds[here] = WRONG
            continue
        begins[here], ends[here] = at, end
        byte = text[np.uint64(at)]
        if byte == QUOTE:
            kinds[here] = TEXT
            for place in range(at, end):
                if text[np.uint64(place)] == BACKSLASH:
                    kinds[here] = ESCAPED_TEXT
        elif byte in (OBJECT, ARRAY):
            kinds[here] = CONTAINER
        elif byte in (102, 116):  # false and true
            kinds[here], whole[here] = TRUTH, byte == 116
        elif byte == MINUS or ZERO <= byte <= NINE:
            kinds[here] = number_at(text, at, end, here, whole, real)

"""The compact protocol of Thrift, in which Parquet footers are written: as much of it as is needed to walk through one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

Fields = dict[int, Any]  # of a struct, by number
# Types of fields
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)
WIDTHS = {TRUE: 0, FALSE: 0, BYTE: 1, DOUBLE: 8, UUID: 16}
IN_LISTS = WIDTHS | {TRUE: 1, FALSE: 1}  # where a truth value is no part of the field's type
NUMBERS = (I16, I32, I64)
DEEPEST = 64  # Thrift's own limit


# Patterns of values as writers write them: a pattern steps over a struct in 1 us, a walk through its fields takes 100 us.
# What a pattern does not match is walked through.  No choice in them is taken back, so that matching is linear.


def header(*kinds: int) -> bytes:
    """Return the pattern of the first byte of a field of these types, whichever it is the next of."""
    return b"[%s]" % b"".join(
        re.escape(bytes([step << 4 | k])) for step in range(1, 16) for k in kinds
    )


def counted(item: bytes, firsts: Sequence[int], counts: Sequence[int]) -> bytes:
    """Return the pattern of a first byte and as many items as it stands for."""
    each = zip(firsts, counts, strict=True)
    return b"(?>%s)" % b"|".join(
        re.escape(bytes([first])) + item + b"{%d}" % n for first, n in each
    )


def list_of(kind: int, item: bytes) -> bytes:
    """Return the pattern of a list of up to 6 items."""
    return counted(b"(?:%s)" % item, [n << 4 | kind for n in range(7)], range(7))


def struct_of(*members: bytes) -> bytes:
    """Return the pattern of a struct of up to 20 such fields."""
    return b"(?>%s){0,20}+\\x00" % b"|".join(members)


SIGNED = rb"[\x80-\xff]*+[\x00-\x7f]"
BYTES = counted(b".", range(128), range(128))
INTEGER_FIELD, FLAG_FIELD = header(*NUMBERS) + SIGNED, header(TRUE, FALSE)
_UNION = struct_of(INTEGER_FIELD, FLAG_FIELD)
for _ in range(3):
    _UNION = struct_of(INTEGER_FIELD, FLAG_FIELD, header(STRUCT) + _UNION)


@cache
def plain_struct() -> re.Pattern[bytes]:
    """Return the pattern of structs of numbers, flags, one short text after the other and unions: elements of a schema."""
    members = INTEGER_FIELD, FLAG_FIELD, header(BINARY) + BYTES, header(STRUCT) + _UNION
    return re.compile(struct_of(*members), re.DOTALL)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of 7 bits a byte, and where it ends."""
    value = data[at] & 0x7F
    shift = 7
    while data[at] & 0x80:
        at += 1
        value |= (data[at] & 0x7F) << shift
        shift += 7
    return value, at + 1


def number(data: bytes, at: int) -> int:
    """Return a signed number."""
    value, _ = varint(data, at)
    return (value >> 1) ^ -(value & 1)


def field_at(data: bytes, at: int, before: int) -> tuple[int, int, int]:
    """Return number and type of a field and where its value begins, number 0 for the end of the struct; `before` is the last number."""
    first = data[at]
    if not first:
        return 0, 0, at + 1
    if first >> 4:
        return before + (first >> 4), first & 15, at + 1
    _, begin = varint(data, at + 1)
    return number(data, at + 1), first & 15, begin


def fields(data: bytes, at: int, depth: int = 0) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, type, begin and end of each field of a struct; the last one, without a type, ends behind the struct."""
    field, kind, at = field_at(data, at, 0)
    while kind:
        end = skip(data, at, kind, depth + 1)
        yield field, kind, at, end
        field, kind, at = field_at(data, end, field)
    yield 0, 0, at, at


def items(data: bytes, at: int) -> tuple[int, int, int]:
    """Return how many items a list has, of which type, and where the first one begins."""
    header = data[at]
    if header >> 4 == 15:
        count, at = varint(data, at + 1)
        return count, header & 15, at
    return header >> 4, header & 15, at + 1


def skip(data: bytes, at: int, kind: int, depth: int = 0) -> int:
    """Return where a value ends that begins here; raises `ValueError` or `IndexError` for what is no value."""
    if kind in NUMBERS:
        while data[at] & 0x80:
            at += 1
        return at + 1
    if kind == BINARY:
        length, at = varint(data, at)
        return at + length
    if depth > DEEPEST:
        raise ValueError("values are nested too deeply")
    if kind == STRUCT:
        plain = plain_struct().match(data, at)
        if plain:
            return plain.end()
        return [end for *_, end in fields(data, at, depth)][-1]
    if kind in (LIST, SET):
        count, of, at = items(data, at)
        return _skip_all(data, at, (of,), count, depth)
    if kind == MAP:
        count, at = varint(data, at)
        if not count:
            return at
        return _skip_all(data, at + 1, (data[at] >> 4, data[at] & 15), count, depth)
    if kind in WIDTHS:
        return at + WIDTHS[kind]
    raise ValueError(f"there is no type {kind}")


def _skip_all(data: bytes, at: int, kinds: tuple[int, ...], count: int, depth: int) -> int:
    for _ in range(count):
        for kind in kinds:
            width = IN_LISTS.get(kind)
            at = skip(data, at, kind, depth + 1) if width is None else at + width
            if at > len(data):
                raise IndexError
    return at


def decoded(data: bytes) -> Fields:
    """Return a struct as its values by the numbers of its fields; raises `ValueError` or `IndexError` for what is none."""
    found, _ = _struct(data, 0, 0)
    return found


def _struct(data: bytes, at: int, depth: int) -> tuple[Fields, int]:
    if depth > DEEPEST:
        raise ValueError("values are nested too deeply")
    found: Fields = {}
    field, kind, at = field_at(data, at, 0)
    while kind:
        if kind in (TRUE, FALSE):
            found[field] = kind == TRUE
        else:
            found[field], at = _value(data, at, kind, depth)
        field, kind, at = field_at(data, at, field)
    return found, at


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[object, int]:
    if kind == BINARY:
        length, at = varint(data, at)
        return data[at : at + length], at + length
    if kind == STRUCT:
        return _struct(data, at, depth + 1)
    if kind in (LIST, SET):
        count, of, at = items(data, at)
        values = []
        for _ in range(count):
            value, at = _value(data, at, of, depth + 1)
            values.append(value)
        return values, at
    if kind in NUMBERS:
        return number(data, at), skip(data, at, kind)
    if kind in (TRUE, FALSE, BYTE):  # in lists, or of 8 bits
        return int.from_bytes(data[at : at + 1], "little", signed=True), at + 1
    end = skip(data, at, kind, depth)
    return data[at:end], end

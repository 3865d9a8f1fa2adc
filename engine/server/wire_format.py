"""Protobuf's wire format for messages that are frozen dataclasses, each field with its number.

Strict where it matters for what comes from a socket: a message that ends early, a known field of another wire type, a text that is no UTF-8
or a number that is too long raises `MalformedMessage`.  Unknown fields are skipped, as protobuf says.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import MISSING, field, fields
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, cast

from ..errors import InterfaceError

M = TypeVar("M")

VARINT, FIXED64, SIZED, FIXED32 = 0, 1, 2, 5  # wire types
MOST_VARINT_BYTES = 10


class MalformedMessage(InterfaceError):
    """Bytes that are no message of the protocol."""


class Coding(NamedTuple, Generic[M]):
    """How the values of a field are written: their wire type, and from and to the number or bytes that stand there."""

    wire_type: int
    decode: Callable[[Any], M]
    encode: Callable[[M], Any]


class Slot(NamedTuple):
    """A field of a message: its name, coding, and whether it comes once, perhaps, or many times."""

    name: str
    number: int
    coding: Coding[object]
    is_repeated: bool
    is_optional: bool


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedMessage("A text in the message is no UTF-8.") from None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _signed_32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _unsigned(value: int) -> int:
    return value & 0xFFFFFFFFFFFFFFFF


TEXT: Coding[str] = Coding(SIZED, _text, str.encode)
BYTES: Coding[bytes] = Coding(SIZED, bytes, bytes)
BOOL: Coding[bool] = Coding(VARINT, bool, int)
UINT32: Coding[int] = Coding(VARINT, lambda v: v & 0xFFFFFFFF, int)
INT32: Coding[int] = Coding(VARINT, _signed_32, _unsigned)
INT64: Coding[int] = Coding(VARINT, _signed, _unsigned)
SFIXED64: Coding[int] = Coding(
    FIXED64, lambda v: struct.unpack("<q", v)[0], lambda v: struct.pack("<q", v)
)
DOUBLE: Coding[float] = Coding(
    FIXED64, lambda v: struct.unpack("<d", v)[0], lambda v: struct.pack("<d", v)
)


def message(kind: type[M]) -> Coding[M]:
    """Return the coding of messages within messages."""
    return Coding(SIZED, lambda data: decode(kind, data), encode)


def once(number: int, coding: Coding[M], default: M) -> M:
    """A field that is there; absent on the wire it has its default."""
    return field(default=default, metadata={"slot": (number, coding, False, False)})


def perhaps(number: int, coding: Coding[M]) -> M | None:
    """A field that is None where the message does not have it."""
    return field(default=None, metadata={"slot": (number, coding, False, True)})


def repeated(number: int, coding: Coding[M]) -> tuple[M, ...]:
    """A field that comes any number of times, as a tuple."""
    return field(default=(), metadata={"slot": (number, coding, True, False)})


@cache
def _slots(kind: type) -> dict[int, Slot]:
    found = [Slot(f.name, *f.metadata["slot"]) for f in fields(kind)]
    return {slot.number: slot for slot in found}


@cache
def _defaults(kind: type) -> dict[str, object]:
    return {f.name: f.default for f in fields(kind) if f.default is not MISSING}


def decode(kind: type[M], data: bytes) -> M:
    """Return a message of a kind; raises `MalformedMessage`."""
    of: type = kind
    slots = _slots(of)
    values: dict[str, Any] = {}
    for number, wire_type, value in _pieces(data):
        slot = slots.get(number)
        if slot is None:
            continue
        if slot.is_repeated and wire_type == SIZED and slot.coding.wire_type == VARINT:
            many = tuple(slot.coding.decode(v) for v in _packed(cast("bytes", value)))
            values[slot.name] = values.get(slot.name, ()) + many
        elif wire_type != slot.coding.wire_type:
            raise MalformedMessage(
                f'The field "{slot.name}" of {kind.__name__} has the wire type {wire_type} in the message.'
            )
        elif slot.is_repeated:
            values[slot.name] = (*values.get(slot.name, ()), slot.coding.decode(value))
        else:
            values[slot.name] = slot.coding.decode(value)
    return kind(**values)


def encode(value: object) -> bytes:
    """Return the bytes of a message."""
    found = bytearray()
    kind: type = type(value)
    defaults = _defaults(kind)
    for slot in _slots(kind).values():
        given = getattr(value, slot.name)
        if slot.is_repeated:
            for one in given:
                _write(found, slot, one)
        elif given is not None and (slot.is_optional or given != defaults[slot.name]):
            _write(found, slot, given)
    return bytes(found)


def _write(out: bytearray, slot: Slot, value: object) -> None:
    wire_type = slot.coding.wire_type
    out.append(slot.number << 3 | wire_type)  # no message has a field beyond 15
    encoded = slot.coding.encode(value)
    if wire_type == VARINT:
        _write_varint(out, encoded)
        return
    if wire_type == SIZED:
        _write_varint(out, len(encoded))
    out += encoded


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _pieces(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield number, wire type and value of each field of a message."""
    place, end = 0, len(data)
    while place < end:
        tag, place = (data[place], place + 1) if data[place] < 0x80 else _varint(data, place)
        number, wire_type = tag >> 3, tag & 7
        if not 1 <= number < 1 << 29:
            raise MalformedMessage(f"The message has a field of the number {number}.")
        if wire_type == VARINT:
            value, place = _varint(data, place)
            yield number, wire_type, value
            continue
        if wire_type == SIZED:
            size, place = _varint(data, place)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
        else:
            raise MalformedMessage(f"The message has the wire type {wire_type}.")
        if size > end - place:
            raise MalformedMessage("The message ends within a field.")
        yield number, wire_type, data[place : place + size]
        place += size


def _packed(data: bytes) -> Iterator[int]:
    place = 0
    while place < len(data):
        value, place = _varint(data, place)
        yield value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Return the number that starts at a place, and where the next field starts."""
    if place < len(data) and data[place] < 0x80:  # as nearly all are
        return data[place], place + 1
    value = 0
    for i, byte in enumerate(data[place : place + MOST_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            if value >> 64:
                break
            return value, place + i + 1
    raise MalformedMessage("The message has a number that does not end, or is too long.")

"""Bits, which are texts of 0 and 1: what they are of numbers and bytes, and their operators and functions."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce

import pyarrow as pa

from .....errors import ConversionError, ExecutionError, OutOfRange
from .....plan.arrow.arrow_arrays import array_from
from .....plan.expr import Call
from .....plan.types import BIT, INTEGER_BITS, DataType, Kind
from ..vectors import Kernel, Vector
from .each_value import PythonValue, ValueFunction, of_values

_FLOATS = {Kind.FLOAT: (">f", 32), Kind.DOUBLE: (">d", 64)}
_HUGEINT_BITS = 128
MOST_BITS = 1_000_000_000  # of bitstring_agg, as in DuckDB


def _width(data_type: DataType) -> int:
    """Return how many bits a number or truth value has."""
    if data_type.kind is Kind.BOOLEAN:
        return 8
    return _HUGEINT_BITS if data_type.is_decimal else INTEGER_BITS[data_type.kind]


def of_value(value: PythonValue, source: DataType) -> str:
    """Return the bits of a number, truth value, text or bytes; raises `ConversionError` where there are none."""
    if isinstance(value, str):
        return of_text(value)
    if isinstance(value, bytes):
        if not value:
            raise ConversionError("An empty BLOB has no bits.")
        return "".join(f"{byte:08b}" for byte in value)
    if source.is_float:
        form, _ = _FLOATS[source.kind]
        return of_value(struct.pack(form, value), source)
    assert isinstance(value, int | Decimal)
    bits = _width(source)
    return f"{int(value) & ((1 << bits) - 1):0{bits}b}"


def of_text(text: str) -> str:
    """Return the bits that a text is; none are one 0, as in DuckDB."""
    wrong = next((c for c in text if c not in "01"), None)
    if wrong is not None:
        raise ConversionError(f"'{text}' cannot be read as BIT: it has 0 and 1 alone.")
    return text or "0"


def to_value(bits: str, target: DataType) -> PythonValue:
    """Return bits as a number, truth value, text or bytes; raises `ConversionError` where they are too many."""
    if target.kind is Kind.VARCHAR:
        return bits
    if target.kind is Kind.BLOB:
        return int(bits, 2).to_bytes(-(-len(bits) // 8), "big")
    form, width = _FLOATS[target.kind] if target.is_float else ("", _width(target))
    if len(bits) > width:
        raise ConversionError(f"{len(bits)} bits do not fit into {target}, which has {width}.")
    number = int(bits, 2)
    if form:
        return float(struct.unpack(form, number.to_bytes(width // 8, "big"))[0])
    if target.kind is Kind.BOOLEAN:
        return number != 0
    signed = target.is_decimal or target.is_signed_integer
    number = number - (1 << width) if signed and number >> (width - 1) else number
    if target.is_decimal and abs(number) > target.integer_range[1]:
        raise ConversionError(f"{bits} has more than {target.precision} digits as {target}.")
    return number


def cast_bits(vector: Vector, target: DataType, safe: bool) -> Vector:
    """Cast a column from or to BIT."""
    source = vector.type

    def one(value: PythonValue) -> PythonValue:
        try:
            if source == BIT:
                assert isinstance(value, str)
                return to_value(value, target)
            return of_value(value, source)
        except ConversionError:
            if safe:
                return None
            raise

    return of_values(one)(Call("cast", (), target), (vector,))


def _pairwise(word: str, combine: Callable[[int, int], int]) -> ValueFunction:
    def function(left: str, right: str) -> str:
        if len(left) != len(right):
            raise ExecutionError(
                f"{word} takes bits of one length, not {len(left)} and {len(right)}: bitstring(bits, length) adds zeros before them."
            )
        return f"{combine(int(left, 2), int(right, 2)):0{len(left)}b}"

    return function


def _not(bits: str) -> str:
    return bits.translate({ord("0"): "1", ord("1"): "0"})


def _left(bits: str, places: int) -> str:
    if places < 0:
        raise OutOfRange(f"Bits cannot be shifted by {places}: shift them the other way.")
    return bits[places:].ljust(len(bits), "0")


def _right(bits: str, places: int) -> str:
    if places < 0:
        raise OutOfRange(f"Bits cannot be shifted by {places}: shift them the other way.")
    return bits[: max(len(bits) - places, 0)].rjust(len(bits), "0")


def _checked(bits: str, place: int) -> int:
    if not 0 <= place < len(bits):
        raise OutOfRange(f"There is no bit {place}: the places go from 0 to {len(bits) - 1}.")
    return place


def _get(bits: str, place: int) -> int:
    return int(bits[_checked(bits, place)])


def _set(bits: str, place: int, value: int) -> str:
    if value not in (0, 1):
        raise ExecutionError(f"A bit is 0 or 1, and not {value}.")
    place = _checked(bits, place)
    return f"{bits[:place]}{value}{bits[place + 1 :]}"


def _padded(bits: str, length: int) -> str:
    bits = of_text(bits)
    if length < len(bits):
        raise ExecutionError(
            f"There are {len(bits)} bits, and the length that bitstring gives them is {length}: it adds zeros and cuts none."
        )
    return bits.rjust(length, "0")


def _of_members(members: Sequence[object], least: int, most: int) -> str | None:
    """Return a bit for each number from the least to the most, 1 for those that are among the members."""
    if least > most:
        raise ExecutionError(f"No number is at least {least} and at most {most}.")
    if most - least >= MOST_BITS:
        raise OutOfRange(f"From {least} to {most} are more than {MOST_BITS:,} bits.")
    numbers = {int(m) for m in members if isinstance(m, int | Decimal)}
    if not numbers:
        return None
    wrong = next((n for n in sorted(numbers) if not least <= n <= most), None)
    if wrong is not None:
        raise OutOfRange(f"{wrong} is not between {least} and {most}, of which bits are made.")
    bits = bytearray(b"0" * (most - least + 1))
    for number in numbers:
        bits[number - least] = ord("1")
    return bits.decode()


FUNCTIONS: dict[str, ValueFunction] = {
    "bits_and": _pairwise("&", operator.and_),
    "bits_or": _pairwise("|", operator.or_),
    "bits_xor": _pairwise("xor", operator.xor),
    "bits_not": _not,
    "bits_left": _left,
    "bits_right": _right,
    "bits_length": len,
    "bits_bytes": lambda bits: -(-len(bits) // 8),
    "bits_count": lambda bits: bits.count("1"),
    # From 1, 0 for none
    "bit_position": lambda part, bits: bits.find(part) + 1,
    "get_bit": _get,
    "set_bit": _set,
    "bitstring": _padded,
}


def _bits_of_members(call: Call, args: tuple[Vector, ...]) -> Vector:
    count = max(v.length for v in args)
    rows = zip(*(v.to_arrow(count).to_pylist() for v in args), strict=True)
    found = [
        None
        if members is None or low is None or high is None
        else _of_members(members, int(low), int(high))
        for members, low, high in rows
    ]
    made = Vector(call.type, array_from(found, pa.string()))
    return made.first() if all(v.is_constant for v in args) else made


def _bits_of_list(call: Call, args: tuple[Vector, ...]) -> Vector:
    """Return what all known bits of each list have together; NULL of none."""
    combine = FUNCTIONS[call.function.replace("bit_", "bits_").removesuffix("_of_list")]
    (lists,) = args
    known = (
        [b for b in bits or () if b is not None]
        for bits in lists.to_arrow(lists.length).to_pylist()
    )
    found = [reduce(combine, bits) if bits else None for bits in known]
    made = Vector(call.type, array_from(found, pa.string()))
    return made.first() if lists.is_constant else made


KERNELS: dict[str, Kernel] = {
    "bits_of_members": _bits_of_members,
    "bit_and_of_list": _bits_of_list,
    "bit_or_of_list": _bits_of_list,
    "bit_xor_of_list": _bits_of_list,
}

"""Functions and operators of bits, to which the signs of integers stand for those of BIT."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import BIGINT, BIT, INTEGER, NULL, VARCHAR, DataType
from .row import FunctionRow, operator
from .signatures import Resolved, fixed, overloads

_PAIR = fixed(BIT, BIT, result=BIT)
_SHIFT = fixed(BIT, INTEGER, result=BIT)
_COUNT = fixed(BIT, result=BIGINT)


def _members(types: Sequence[DataType]) -> Resolved:
    """A list of whole numbers, and the least and the most that a bit is for."""
    if len(types) != 3 or not all(t.is_whole or t == NULL for t in types[1:]):
        return None
    return tuple(types), BIT


BITS_OF_TYPE = (
    operator("bits_and", _PAIR, "BIT & BIT"),
    operator("bits_or", _PAIR, "BIT | BIT"),
    operator("bits_xor", _PAIR, "xor(BIT, BIT)"),
    operator("bits_not", fixed(BIT, result=BIT), "~ BIT"),
    operator("bits_left", _SHIFT, "BIT << INTEGER"),
    operator("bits_right", _SHIFT, "BIT >> INTEGER"),
    operator("bits_length", _COUNT, "length(BIT)"),
    operator("bits_bytes", _COUNT, "octet_length(BIT)"),
    operator("bits_count", _COUNT, "bit_count(BIT)"),
    FunctionRow("bit_position", fixed(BIT, BIT, result=INTEGER), "bit_position(BIT, BIT)"),
    # Places count from 0, at the left
    FunctionRow("get_bit", fixed(BIT, INTEGER, result=INTEGER), "get_bit(BIT, INTEGER)"),
    FunctionRow(
        "set_bit", fixed(BIT, INTEGER, INTEGER, result=BIT), "set_bit(BIT, INTEGER, INTEGER)"
    ),
    FunctionRow(
        "bitstring",
        overloads(fixed(VARCHAR, INTEGER, result=BIT), fixed(BIT, INTEGER, result=BIT)),
        "bitstring(BIT | VARCHAR, INTEGER)",
    ),
    operator("bits_of_members", _members, "bitstring_agg(integer, min, max)"),
)

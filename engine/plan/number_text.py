"""Text as a number or a truth value, by DuckDB's rules.  None where it is no value.

Python's own `int`, `float` and `Decimal` read more: digits of any alphabet, signs before a base, NaN as a decimal.
"""

from __future__ import annotations

import math
import re
import struct

from .types import DataType, Kind

_SPACE = " \t\n\v\f\r"
_DIGITS = r"\d+(?:_\d+)*"
_NUMBER = re.compile(rf"([+-]?)({_DIGITS})?(?:(\.)({_DIGITS})?)?(?:[eE]([+-]?\d+))?", re.ASCII)
_BASED = re.compile(r"0[xX]([0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|0[bB]([01]+(?:_[01]+)*)")
_TRUE, _FALSE = ("true", "t", "1", "yes", "y"), ("false", "f", "0", "no", "n")
LARGEST_EXPONENT = 400  # more digits than any type holds


def parse_boolean(text: str) -> bool | None:
    folded = text.lower()
    return True if folded in _TRUE else False if folded in _FALSE else None


def parse_number(text: str, scale: int, decimal: bool = False) -> int | None:
    """Return the value times 10^scale, rounded half away from zero; integers may be in base 16 or 2."""
    text = text.strip(_SPACE)
    based = None if decimal else _BASED.fullmatch(text)
    if based:
        return int(based[1] or based[2], 16 if based[1] else 2)
    found = _NUMBER.fullmatch(text)
    if found is None or not (found[2] or found[4]):
        return None
    sign, whole, fraction = (
        found[1],
        (found[2] or "").replace("_", ""),
        (found[4] or "").replace("_", ""),
    )
    digits = int(whole + fraction or "0")
    shift = int(found[5] or "0") - len(fraction) + scale
    if digits and shift > LARGEST_EXPONENT:
        return None
    if shift >= 0:
        value = digits * 10**shift if digits else 0
    elif -shift > len(whole + fraction) + 1:
        value = 0
    else:
        value = (digits + 10**-shift // 2) // 10**-shift
    return -value if sign == "-" else value


def parse_double(text: str, target: DataType) -> float | None:
    text = text.strip(_SPACE)
    folded = text.lower().lstrip("+-")
    if folded not in ("inf", "infinity", "nan"):
        found = _NUMBER.fullmatch(text)
        if found is None or not (found[2] or found[4]):
            return None
    value = float(text.replace("_", ""))
    return nearest_float(value) if target.kind is Kind.FLOAT else value


def nearest_float(value: float) -> float:
    """Return the nearest value of 32 bits, infinity beyond the largest."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)

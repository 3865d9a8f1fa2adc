"""Text as a number or a truth value, by DuckDB's rules.  None where it is no value.

Python's own `int`, `float` and `Decimal` read more: digits of any alphabet, signs before a base, NaN as a decimal.
"""

from __future__ import annotations

import math
import re
import struct

from ..types import HUGEINT, MAX_DECIMAL_DIGITS, DataType, Kind

SPACE = " \t\n\v\f\r"
_DIGITS = r"\d+(?:_\d+)*"
_NUMBER = re.compile(rf"([+-]?)({_DIGITS})?(?:(\.)({_DIGITS})?)?(?:[eE]([+-]?\d+))?", re.ASCII)
_BASED = re.compile(r"0[xX]([0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|0[bB]([01]+(?:_[01]+)*)")
_TRUE, _FALSE = ("true", "t", "1", "yes", "y"), ("false", "f", "0", "no", "n")
LARGEST_SIZE = 60  # more digits than any type holds
MAX_EXPONENT = 2**15 - 1  # of a number with an exponent, as in DuckDB


def parse_boolean(text: str) -> bool | None:
    folded = text.lower()
    return True if folded in _TRUE else False if folded in _FALSE else None


def parse_number(text: str, target: DataType) -> int | None:
    """Return the value of an integer or decimal type, unscaled and rounded half away from zero, if it fits.

    Integers and HUGEINT may be in base 16 or 2.
    """
    text = text.strip(SPACE)
    based = _BASED.fullmatch(text) if target.is_whole else None
    if based:
        value: int | None = int(based[1] or based[2], 16 if based[1] else 2)
    else:
        value = _rounded(text, target)
    low, high = target.integer_range
    return value if value is not None and low <= value <= high else None


def _rounded(text: str, target: DataType) -> int | None:
    """Return a number in base 10 times 10^scale; None for more digits than any type has, of which int() would refuse to read 5,000."""
    found = _NUMBER.fullmatch(text)
    if found is None or not (found[2] or found[4]):
        return None
    whole, fraction = ((found[i] or "").replace("_", "") for i in (2, 4))
    exponent = int(found[5][:9] if found[5] else "0")
    if target == HUGEINT and _leaves_128_bits(fraction.lstrip("0")):
        return None  # DuckDB reads a fraction as a HUGEINT too
    digits = (whole + fraction).lstrip("0")
    whole = whole.lstrip("0")
    if found[5] and not -MAX_EXPONENT - 1 <= exponent <= MAX_EXPONENT:
        return None
    if found[5] and not target.is_whole and len(whole) > target.precision - target.scale:
        return None  # DuckDB reads the digits before it looks at the exponent
    before = len(digits) + exponent - len(fraction) + target.scale  # digits before the point
    if before > LARGEST_SIZE and digits:
        return None
    kept = digits[: max(before, 0)] or "0"
    value = int(kept) * 10 ** max(before - len(digits), 0)
    value += 0 <= before < len(digits) and digits[before] >= "5"
    return -value if found[1] == "-" else value


def _leaves_128_bits(digits: str) -> bool:
    return len(digits) > MAX_DECIMAL_DIGITS and (len(digits) > 39 or int(digits) >= 1 << 127)


def parse_double(text: str, target: DataType) -> float | None:
    text = text.strip(SPACE)
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

"""Numbers as texts: in other bases, as sizes of memory, as bars; and texts by their bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

from .....errors import ExecutionError, OutOfRange
from .....plan.expr import Call
from ..vectors import Kernel, Vector
from .each_value import ValueFunction, of_values

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WORD, _WORDS = 64, 128  # bits of a BIGINT, and of a HUGEINT
_BLOCKS = " ▏▎▍▌▋▊▉█"
_STEPS = len(_BLOCKS) - 1
_WIDEST, _USUAL = 1000, 80.0
_LONGEST = 64  # digits that to_base fills up to
_PREFIXES = "KMGTP"
_SIZE = re.compile(r"\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Z]+)\s*")
_UNITS = {
    **dict.fromkeys(("b", "byte", "bytes"), 1),
    **{f"{p.lower()}b": 1000**n for n, p in enumerate(_PREFIXES, 1)},
    **{p.lower(): 1000**n for n, p in enumerate(_PREFIXES, 1)},
    **{f"{p.lower()}ib": 1024**n for n, p in enumerate(_PREFIXES, 1)},
}


def _hex(value: str | bytes | int, bits: int) -> str:
    if isinstance(value, int):
        return f"{value % 2**bits:X}"
    return (value if isinstance(value, bytes) else value.encode()).hex().upper()


def _bin(value: str | int, bits: int) -> str:
    if isinstance(value, str):
        return "".join(f"{byte:08b}" for byte in value.encode())
    return f"{value % 2**bits:b}"


def _with_bits(function: Callable[..., str]) -> Kernel:
    """Give a function the number of bits that a negative number is written with."""
    kernels = {bits: of_values(partial(function, bits=bits)) for bits in (_WORD, _WORDS)}

    def kernel(call: Call, args: tuple[Vector, ...]) -> Vector:
        return kernels[_WORDS if args[0].type.is_wide_decimal else _WORD](call, args)

    return kernel


def _to_base(value: int, radix: int, least: int = 0) -> str:
    if value < 0:
        raise ExecutionError("to_base takes numbers from 0 on.")
    if not 2 <= radix <= len(_DIGITS):
        raise ExecutionError(f"The radix of to_base is between 2 and {len(_DIGITS)}.")
    if not 0 <= least <= _LONGEST:
        raise ExecutionError(f"The least number of digits of to_base is between 0 and {_LONGEST}.")
    made = ""
    while value or not made:
        value, digit = divmod(value, radix)
        made = _DIGITS[digit] + made
    return made.rjust(least, "0")


def _sized(base: int, unit: Callable[[str], str]) -> Callable[[int], str]:
    def sized(value: int) -> str:
        sign, size = "-" * (value < 0), abs(value)
        for power in range(len(_PREFIXES), 0, -1):
            whole, rest = divmod(size // base ** (power - 1), base)
            if power == len(_PREFIXES):
                whole = size // base**power
            if whole:
                return f"{sign}{whole}.{rest * 10 // base} {unit(_PREFIXES[power - 1])}"
        return f"{sign}{size} byte{'s' * (size != 1)}"

    return sized


def _parsed_size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    scale = None if found is None else _UNITS.get(found[2].lower())
    if found is None or scale is None:
        raise ExecutionError(
            f"'{text}' is no size of memory: write a number and one of bytes, KB, KiB, MB, ..."
        )
    try:
        size = float(found[1]) * scale
    except ValueError:
        raise ExecutionError(f"'{found[1]}' is no number.") from None
    if size < 0:
        raise ExecutionError("A size of memory is not negative.")
    if size >= 2.0**64:
        raise OutOfRange(f"'{text}' are more bytes than a UBIGINT holds.")
    return int(size)


def _bar(value: float, low: float, high: float, width: float = _USUAL) -> str:
    """Return blocks in proportion to where a value lies, filled up with spaces."""
    if math.isnan(width) or width < 1:
        raise OutOfRange("The width of bar is 1 or more.")
    if width > _WIDEST:
        raise OutOfRange(f"The width of bar is at most {_WIDEST}.")
    if any(map(math.isnan, (value, low, high))) or value <= low:
        filled = 0.0
    elif value >= high:
        filled = width
    else:
        filled = width * (value - low) / (high - low)
    if not math.isfinite(filled):
        raise OutOfRange("The bar has no finite width.")
    whole, rest = divmod(int(filled * _STEPS), _STEPS)
    made = _BLOCKS[-1] * whole + (_BLOCKS[rest] if rest else "")
    return made.ljust(math.ceil(width))


FUNCTIONS: dict[str, ValueFunction] = {
    "to_base": _to_base,
    "format_bytes": _sized(1024, lambda p: f"{p}iB"),
    "formatreadabledecimalsize": _sized(1000, lambda p: "kB" if p == "K" else f"{p}B"),
    "parse_formatted_bytes": _parsed_size,
    "bar": _bar,
}

KERNELS: dict[str, Kernel] = {"hex": _with_bits(_hex), "bin": _with_bits(_bin)}

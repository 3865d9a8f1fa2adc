"""printf and format: C's directives and those of the fmt library, whose words Python's own formats are."""

from __future__ import annotations

import re

from .....errors import ExecutionError
from .each_value import ValueFunction

Argument = str | int | float | bool

# The fmt library's [[fill]align][sign][#][0][width][.precision][separator][type], and printf's directive
_SPEC = re.compile(
    r"(?P<fill>(?:.?[<>^=])?)(?P<sign>[+\- ]?)(?P<alternate>#?)(?P<zero>0?)(?P<width>\d*)(?P<group>[,_]?)"
    r"(?P<precision>(?:\.\d+)?)(?P<kind>[a-zA-Z%]?)",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"%([-+ #0,]*)(\d*)((?:\.\d+)?)((?:hh?|ll?|[jztL])?)([a-zA-Z%])", re.DOTALL)
_BITS = {"h": 16, "hh": 8}  # of a whole number that are printed, where it is not all of them
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}:]*)(?::((?:[^{}]|\{[^{}]*\})*))?\}|[{}]")
_INSIDE = re.compile(r"\{(\d*)\}")
_OF_INTEGERS, _FRACTION, _OF_TEXT = "dxXbBoOn", "eEfFgGaA", "s"


def _shown(value: Argument, spec: str) -> str:
    """Format a value as the fmt library does."""
    found = _SPEC.fullmatch(spec)
    if found is None:
        raise ExecutionError(f"'{spec}' is no format specification.")
    kind = found["kind"]
    if isinstance(value, bool) and kind in ("", "s"):
        value = str(value).lower()
    allowed = (
        _OF_TEXT
        if isinstance(value, str)
        else _FRACTION
        if isinstance(value, float)
        else _OF_INTEGERS
    )
    if kind and kind not in allowed:
        name = "text" if isinstance(value, str) else type(value).__name__
        raise ExecutionError(f"The directive '{kind}' does not format a value that is {name}.")
    if isinstance(value, float) and kind in ("a", "A"):
        raise ExecutionError("Numbers in hexadecimal floating-point are not supported.")
    if isinstance(value, str) and (found["sign"] or found["zero"] or found["group"]):
        raise ExecutionError(f"'{spec}' formats numbers, and not text.")
    if isinstance(value, int) and found["precision"]:
        raise ExecutionError("A whole number takes no precision.")
    try:
        return format(int(value) if isinstance(value, bool) else value, spec)
    except (ValueError, OverflowError) as error:
        raise ExecutionError(f"'{spec}' does not format {value}: {error}.") from None


def _formatted(text: str, *given: Argument) -> str:
    """Replace {} by the next argument, {n} by the n-th; {{ is a brace."""
    places, numbered = iter(range(len(given) + 1)), set[bool]()

    def argument(name: str) -> Argument:
        if name and not name.isdigit():
            raise ExecutionError(f"An argument of format is a number, and not '{name}'.")
        numbered.add(bool(name))
        if len(numbered) > 1:
            raise ExecutionError("A format has either numbers in its braces or none.")
        place = int(name) if name else next(places, len(given))
        if place >= len(given):
            raise ExecutionError(f"The format has no argument {place}.")
        return given[place]

    def field(found: re.Match[str]) -> str:
        if found[0] in ("{{", "}}"):
            return found[0][0]
        if found[0] in ("{", "}"):
            raise ExecutionError(f"'{text}' has a brace alone: write it twice.")
        value = argument(found[1])
        spec = _INSIDE.sub(lambda inner: str(argument(inner[1])), found[2] or "")
        return _shown(value, spec)

    return _FIELD.sub(field, text)


def _character(value: int) -> str:
    """Return the sign of a byte."""
    if value & 0x80:
        raise ExecutionError(f"%c prints a byte, and {value} is none of a text.")
    return chr(value & 0x7F)


def _as_c_takes(value: int, kind: str, bits: int) -> int:
    """Return the number that the last bits stand for: one without a sign, but for %d and %i."""
    if bits == 64 and (value >= 0 or kind in "di"):
        return value
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if kind in "di" and low >> (bits - 1) else low


def _printed(text: str, *given: Argument) -> str:
    """Replace the directives of C by the arguments, one after the other."""
    rest = iter(given)

    def directive(found: re.Match[str]) -> str:
        flags, width, precision, size, kind = found.groups()
        if kind == "%":
            return "%"
        value = next(rest, None)
        if value is None:
            raise ExecutionError("printf has fewer arguments than directives.")
        align = "<" if "-" in flags else "" if "0" in flags else ">"
        sign = "+" if "+" in flags else " " if " " in flags else ""
        zero = "0" if "0" in flags and "-" not in flags else ""
        if kind == "c" and isinstance(value, int):
            value, kind = _character(value), "s"
        if isinstance(value, str):
            sign, zero = "", ""
        group = "," if "," in flags else ""
        marked = "#" if "#" in flags else ""
        if isinstance(value, bool):
            value = int(value) if kind != "s" else value
        if isinstance(value, int) and kind in "diuxXob":
            value = _as_c_takes(value, kind, _BITS.get(size, 64))
        kind = "d" if kind in "iu" else kind
        return _shown(value, f"{align}{sign}{marked}{zero}{width}{group}{precision}{kind}")

    lone = _DIRECTIVE.sub("", text).find("%")
    if lone >= 0:
        raise ExecutionError(f"'{text}' has a % that is no directive: write %%.")
    return _DIRECTIVE.sub(directive, text)


FUNCTIONS: dict[str, ValueFunction] = {"format": _formatted, "printf": _printed}

"""JSON texts as Python values and back, as DuckDB reads and writes them.

Python's own decoder reads what is usual, in C.  What it reads otherwise is read again, token by token and without recursion: numbers
that no DOUBLE holds and -0, which stay as they are written, NaN and infinities, a comma behind the last element, halves of characters, and any depth.
An object whose keys come twice keeps all of its pairs; a lookup finds the first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from ...errors import ConversionError, shown
from ...records import dataclass

_SMALLEST, _MOST = -(1 << 63), (1 << 64) - 1
_LONGEST = 4000  # digits of a number that Python reads as one
# What Python's decoder reads otherwise, or where it is not clear; within strings the sign of it is enough
_ODD_SYNTAX = re.compile(r"\\u[dD]|[eE]\+?[0-9]{3}|[0-9]{300}")
_ODD = re.compile(_ODD_SYNTAX.pattern + r"|-0(?![.eE0-9])|(?=[0-9.]{17})[0-9]+\.[0-9]")
_BLANK = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(
    r"""(?P<sign>[\[\]{},:])
    |(?P<text>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")
    |(?P<word>true|false|null)
    |(?P<special>-?(?:nan|infinity|inf)(?![0-9a-z]))
    |(?P<number>-?(?:0(?![0-9])|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?![0-9.eE])""",
    re.VERBOSE,
)
_SPECIAL = re.compile(_TOKEN.pattern, re.VERBOSE | re.IGNORECASE)
_WORDS = {"true": True, "false": False, "null": None}
_CONTROL = re.compile('[\x00-\x1f"\\\\]')
_ESCAPES = {chr(code): f"\\u{code:04X}" for code in range(32)}
_ESCAPES |= {s: f"\\{c}" for s, c in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)}


@dataclass(frozen=True, slots=True)
class Digits:
    """A number as it is written, which no number of Python is: beyond DOUBLE, infinite or NaN."""

    text: str


class LongDouble(float):
    """A number that is written with more digits than a DOUBLE has, which a DECIMAL may hold."""

    text: str


class NegativeZero(int):
    """-0, which is written as 0 and counts as a negative number."""


class RepeatedKeys(dict[str, object]):
    """An object with a key that comes twice: `items` are all pairs, and a lookup finds the first of a key."""

    def __init__(self, pairs: Sequence[tuple[str, object]]) -> None:
        super().__init__(reversed(pairs))
        self.pairs = list(pairs)

    def items(self) -> Sequence[tuple[str, object]]:  # type: ignore[override]
        return self.pairs


def object_of(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return an object of pairs in their order; of a key that comes twice it has both."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else RepeatedKeys(pairs)


def count_of(value: object) -> int:
    """Return how many pairs an object has; 0 for any other value."""
    return len(value.items()) if isinstance(value, dict) else 0


def _refuse(word: str) -> object:
    raise ValueError(word)


_DECODER = json.JSONDecoder(object_pairs_hook=object_of, parse_constant=_refuse)
_SYNTAX = json.JSONDecoder(parse_constant=_refuse)


def read(text: str) -> object:
    """Return the value of a JSON text; raises `ConversionError` with the byte at which it is none."""
    if not _ODD.search(text):
        with suppress(ValueError, RecursionError):
            return _DECODER.decode(text)
    return _Reader(text).read()


def check(text: str) -> None:
    """Raise `ConversionError` for a text that is no JSON, as `read` does, without the values: a third of the time or less."""
    if not _ODD_SYNTAX.search(text):
        with suppress(ValueError, RecursionError):
            _SYNTAX.decode(text)
            return
    _Reader(text).read()


def is_json(text: str) -> bool:
    """Whether a text is JSON."""
    try:
        check(text)
    except ConversionError:
        return False
    return True


class _Reader:
    """Reads one text token by token; the containers that are open are a list, so that no depth is too deep."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = self.begin = 0

    def read(self) -> object:
        value = self._value()
        if self.next()[0]:
            raise self.malformed("something follows the value")
        return value

    def next(self) -> tuple[str, str]:
        """Return the kind of the next token and its text, "" at the end."""
        blank = _BLANK.match(self.text, self.at)
        self.begin = self.at if blank is None else blank.end()
        if self.begin == len(self.text):
            return "", ""
        found = _TOKEN.match(self.text, self.begin) or _SPECIAL.match(self.text, self.begin)
        if found is None or (found.lastgroup == "word" and found[0] not in _WORDS):
            raise self.malformed("unexpected character")
        self.at = found.end()
        return found.lastgroup or "", found[0]

    def closes(self, sign: str) -> bool:
        """Take a sign, if it comes next."""
        before = self.at
        if self.next()[1] == sign:
            return True
        self.at = before
        return False

    def _value(self) -> object:
        opened: list[_Container] = []
        while True:
            kind, text = self.next()
            if kind == "sign" and text in "[{":
                opened.append(_Container("]" if text == "[" else "}"))
                if opened[-1].goes_on(self, is_first=True):
                    continue
                value = opened.pop().value()
            else:
                value = self._scalar(kind, text)
            while opened:
                opened[-1].add(value)
                if opened[-1].goes_on(self, is_first=False):
                    break
                value = opened.pop().value()
            else:
                return value

    def _scalar(self, kind: str, text: str) -> object:
        match kind:
            case "text":
                return self.string(text)
            case "word":
                return _WORDS[text]
            case "special":
                return Digits(text)
            case "number":
                return _number(text)
        raise self.malformed("unexpected character" if text else "unexpected end")

    def string(self, token: str) -> str:
        if "\\" not in token:
            return token[1:-1]
        found = str(_DECODER.decode(token))
        if "\\ud" in token.lower():
            try:
                found.encode()
            except UnicodeEncodeError:
                raise self.malformed("half of a character") from None
        return found

    def malformed(self, what: str) -> ConversionError:
        place = len(self.text[: self.begin].encode(errors="replace"))
        return ConversionError(f"Malformed JSON at byte {place}: {what} in {shown(self.text)}.")


class _Container:
    """An array or object that is open."""

    def __init__(self, closing: str) -> None:
        self.closing, self.key = closing, ""
        self.values: list[object] = []
        self.keys: list[str] = []

    def goes_on(self, reader: _Reader, *, is_first: bool) -> bool:
        """Read up to the next value, with its key; False where the container is closed instead."""
        if not is_first:
            sign = reader.next()[1]
            if sign == self.closing:
                return False
            if sign != ",":
                raise reader.malformed("unexpected character" if sign else "unexpected end")
        if reader.closes(self.closing):
            return False
        if self.closing == "}":
            kind, token = reader.next()
            if kind != "text":
                raise reader.malformed("unexpected character" if token else "unexpected end")
            self.key = reader.string(token)
            if reader.next()[1] != ":":
                raise reader.malformed("no colon behind a key")
        return True

    def add(self, value: object) -> None:
        self.values.append(value)
        if self.closing == "}":
            self.keys.append(self.key)

    def value(self) -> object:
        if self.closing == "]":
            return self.values
        return object_of(list(zip(self.keys, self.values, strict=True)))


def _number(text: str) -> object:
    if text.lstrip("-").isdigit():
        if text == "-0":
            return NegativeZero(0)
        return int(text) if len(text) < _LONGEST else Digits(text)
    return real_number(text)


def real_number(text: str) -> float | Digits:
    """Return a number with a point or an exponent; what no DOUBLE holds stays as it is written."""
    found = float(text)
    if abs(found) == float("inf"):
        return Digits(text)
    if len(text) <= _DIGITS_OF_DOUBLE:
        return found
    long = LongDouble(found)
    long.text = text
    return long


_DIGITS_OF_DOUBLE = 17


def kind_of(value: object) -> str:
    """Return the type of a value, as json_type calls it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case NegativeZero():
            return "BIGINT"
        case int():
            if value < 0:
                return "BIGINT" if value >= _SMALLEST else "DOUBLE"
            return "UBIGINT" if value <= _MOST else "DOUBLE"
        case str():
            return "VARCHAR"
        case list():
            return "ARRAY"
        case dict():
            return "OBJECT"
    return "DOUBLE"


def is_container(value: object) -> bool:
    return isinstance(value, list | dict)


def text_of(value: object) -> str:
    """Return a value as a JSON text without blanks."""
    if not isinstance(value, list | dict):
        return scalar_text(value)
    return "".join(_parts(value))


def _parts(value: object) -> Iterator[str]:
    """Yield the text of an array or object, of any depth."""
    opened: list[tuple[Iterator[Any], str]] = []
    separator = ""
    while True:
        yield separator
        if isinstance(value, dict) and value:
            yield "{"
            opened.append((iter(value.items()), "}"))
            separator = ""
        elif isinstance(value, list) and value:
            yield "["
            opened.append((iter(value), "]"))
            separator = ""
        else:
            yield scalar_text(value)
            separator = ","
        while opened:
            inside, closing = opened[-1]
            following: Any = next(inside, _END)
            if following is not _END:
                break
            opened.pop()
            yield closing
            separator = ","
        else:
            return
        if closing == "}":
            name, value = following
            separator += f"{string_text(name)}:"
        else:
            value = following


_END = object()


def pretty_text(value: object) -> str:
    """Return a value as a JSON text of lines, four blanks a level."""
    parts: list[str] = []
    depth = 0
    for piece in _TOKEN.finditer(text_of(value)):
        token = piece[0]
        if token in "]}" and parts[-1][-1] not in "[{":
            parts.append("\n" + _INDENT * (depth - 1))
        depth += (token in ("[", "{")) - (token in ("]", "}"))
        if parts and parts[-1] in ("[", "{") and token not in ("]", "}"):
            level = depth - (token in ("[", "{"))
            parts.append("\n" + _INDENT * level)
        parts.append({",": ",\n" + _INDENT * depth, ":": ": "}.get(token, token))
    return "".join(parts)


_INDENT = " " * 4


def scalar_text(value: object) -> str:
    """Return what is no container, or an empty one, as a JSON text."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return string_text(value)
        case int():
            return int.__repr__(value)
        case float():
            return float_text(value)
        case list():
            return "[]"
        case dict():
            return "{}"
        case Digits():
            return value.text
    raise AssertionError(f"{type(value).__name__} is no value of JSON")


def string_text(text: str) -> str:
    """Return a text in quotes, with escapes where JSON wants some."""
    return f'"{_CONTROL.sub(lambda sign: _ESCAPES[sign[0]], text)}"'


def plain_text(value: object) -> str:
    """Return what is no text as VARCHAR: a number as SQL writes it, others as JSON."""
    if type(value) is float or isinstance(value, LongDouble):
        return float.__repr__(value)
    return text_of(value)


def digits_text(value: float) -> str:
    """Return the digits of a DOUBLE for a DECIMAL, as they are written where those are more."""
    return value.text if isinstance(value, LongDouble) else repr(value)


def float_text(value: float) -> str:
    """Return the shortest digits of a DOUBLE, with an exponent from 1e21 on and below 1e-6."""
    text = float.__repr__(value)
    digits, sign, exponent = text.partition("e")
    if not sign:
        return _NOT_FINITE.get(text, text)
    power = int(exponent)
    if not _LEAST_POWER <= power < _POWER_OF_EXPONENTS:
        return f"{digits}e{power}"
    plain = format(Decimal(text), "f")
    return plain if "." in plain else f"{plain}.0"


_NOT_FINITE = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
_LEAST_POWER, _POWER_OF_EXPONENTS = -6, 21

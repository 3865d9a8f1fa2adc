"""The parts of a text that stands for a list, a struct or a map, as DuckDB cuts it.

Signs in quotes or in brackets do not cut, a quote that is not closed makes the text none, and a backslash
takes another sign its meaning in quotes alone; outside it does so for a quote.
"""

from __future__ import annotations

from .....plan.types import DataType, Kind

_CLOSING = {"[": "]", "{": "}", "(": ")"}
_QUOTES = ("'", '"')
_BLANKS = " \t\n\r\v\f"


def parts(text: str, target: DataType) -> list[str | None] | None:
    """Return the texts of the elements, of the fields in their order, or of keys and values in turn; None for another form."""
    if target.kind is Kind.LIST:
        return _values(_cut(text, "["))
    if target.kind is Kind.MAP:
        entries = _cut(text, "{", "=")
        return None if entries is None else [_plain(part) for entry in entries for part in entry]
    if target.is_tuple or text.lstrip(_BLANKS)[:1] == "(":
        items = _values(_cut(text, "("))
        if items is None:
            return None
        if len(items) > 1 and items[-1] == "" and text.rstrip(f"{_BLANKS})")[-1:] == ",":
            items.pop()  # `(x,)` is a row of one
        missing = len(target.children) - len(items)
        return None if missing < 0 else items + [None] * missing
    fields = _cut(text, "{", ":")
    if fields is None:
        return None
    given = {_plain(name, brackets=False): _plain(value) for name, value in fields}
    if len(given) < len(fields) or not given.keys() <= set(target.names):
        return None
    return [given.get(name) for name in target.names]


def _values(items: list[list[str]] | None) -> list[str | None] | None:
    return None if items is None else [_plain(item) for (item,) in items]


def _cut(text: str, opening: str, sign: str = "") -> list[list[str]] | None:
    """Return what stands between commas, each in two where `sign` stands within; None for a text of another form."""
    text = text.strip(_BLANKS)
    closing = _CLOSING[opening]
    found: list[list[str]] = []
    if text[:1] != opening:
        return None
    if text[1:].lstrip(_BLANKS) == closing:
        return found
    start = 1
    while True:
        item = []
        # Brackets in the name of a field are signs like others
        for ends in [sign, "," + closing] if sign else ["," + closing]:
            end = _find(text, start, ends, brackets=ends != ":")
            if end is None:
                return None
            item.append(text[start:end])
            start = end + 1
        found.append(item)
        if text[start - 1] == closing:
            return found if start == len(text) else None


def _find(text: str, place: int, ends: str, *, brackets: bool) -> int | None:
    """Return where one of the signs `ends` is that is in no quotes and no brackets; None where there is none."""
    while place < len(text):
        if brackets and text[place] in _CLOSING:
            behind = _behind_brackets(text, place)
        elif text[place] in ends:
            return place
        else:
            behind = _behind(text, place)
        if behind is None:
            return None
        place = behind
    return None


def _behind_brackets(text: str, place: int) -> int | None:
    closing: list[str] = []
    while place < len(text):
        if text[place] in _CLOSING:
            closing.append(_CLOSING[text[place]])
        elif text[place] == closing[-1]:
            closing.pop()
            if not closing:
                return place + 1
        behind = _behind(text, place)
        if behind is None:
            return None
        place = behind
    return None


def _behind(text: str, place: int) -> int | None:
    """Return the place behind the sign there, or behind its closing quote; None where it is not closed."""
    if text[place] == "\\" and text[place + 1 : place + 2] in _QUOTES:
        return place + 2
    if text[place] not in _QUOTES:
        return place + 1
    quote, place = text[place], place + 1
    while place < len(text):
        if text[place] == quote:
            return place + 1
        place += 2 if text[place] == "\\" else 1
    return None


def _plain(item: str, *, brackets: bool = True) -> str | None:
    """Return a part without the blanks around it, the quotes in it and their backslashes, but what is in brackets as it is; None for NULL."""
    item = item.strip(_BLANKS)
    if item.upper() == "NULL":
        return None
    made, place = "", 0
    while place < len(item):
        is_nested = brackets and item[place] in _CLOSING
        nested = _behind_brackets(item, place) if is_nested else None
        behind = nested or _behind(item, place) or len(item)
        piece = item[place:behind]
        if nested or len(piece) == 1:
            made += piece
        elif piece[0] == "\\":
            made += piece[1]
        else:
            inner = iter(piece[1:-1])
            made += "".join(next(inner, "") if c == "\\" else c for c in inner)
        place = behind
    return made

"""One value as SQL shows it: values of Python inside lists and structs too, as DuckDB writes them."""

from __future__ import annotations

import re
from datetime import datetime

from .python_values import interval_text

# Texts inside of others that would be read as something else without quotes
_AMBIGUOUS = re.compile(r"""[,'"()\[\]{}=:\\]|^\s|\s$|^null$|^$""", re.IGNORECASE)
_ESCAPED = re.compile(r"['\\]")


def cell(value: object) -> str:
    """Return a value's text; a MAP is written as a STRUCT is."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case bytes():
            return "".join(map(_byte, value))
        case list():
            return f"[{', '.join(map(_inside, value))}]"
        case dict():
            return f"{{{', '.join(f'{_name(k)}: {_inside(v)}' for k, v in value.items())}}}"
        case tuple() if hasattr(value, "nanoseconds"):  # Arrow's interval, and no TUPLE
            return interval_text(*value)
        case tuple():
            return f"({', '.join(map(_inside, value))})"
        case datetime() if value.microsecond:
            return str(value).rstrip("0")
    return str(value)


def _inside(value: object) -> str:
    text = cell(value)
    if isinstance(value, list | dict | tuple) or value is None or not _AMBIGUOUS.search(text):
        return text
    return _quoted(text)


def _name(key: object) -> str:
    return _quoted(key) if isinstance(key, str) else _inside(key)


def _quoted(text: str) -> str:
    return f"'{_ESCAPED.sub(lambda found: chr(92) + found[0], text)}'"


def _byte(value: int) -> str:
    return chr(value) if 32 <= value < 127 and chr(value) not in "\\'\"" else f"\\x{value:02X}"

"""Digests of texts and bytes, and texts in other writings: percent signs, composed letters, letters without accents, escaped patterns, others in places."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from string import ascii_letters, digits
from urllib.parse import quote, unquote_to_bytes

from .....errors import ExecutionError
from .each_value import ValueFunction

_MARKS = ("Mn", "Mc", "Me")
_PLAIN = frozenset(ascii_letters + digits + "_")


def _digest(name: str) -> Callable[[str | bytes], str]:
    made = getattr(hashlib, name)

    def digest(value: str | bytes) -> str:
        data = value if isinstance(value, bytes) else value.encode()
        return made(data, usedforsecurity=False).hexdigest()

    return digest


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _without_accents(text: str) -> str:
    """Return a text without the marks that its letters are composed with."""
    if text.isascii():
        return text
    letters = unicodedata.normalize("NFD", text)
    return _composed("".join(c for c in letters if unicodedata.category(c) not in _MARKS))


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise ExecutionError(f"url_decode('{text}') would be no valid UTF-8.") from None


def escaped(text: str) -> str:
    """Escape as RE2 does: every ASCII character but letters, digits and _."""

    def one(letter: str) -> str:
        if letter == "\0":
            return r"\x00"
        return letter if letter in _PLAIN or not letter.isascii() else f"\\{letter}"

    return "".join(map(one, text))


def _overlay(text: str, part: str, start: int, count: int | None = None) -> str:
    """Before place 1 nothing is kept; a count below 0 is as none, and then so much is left out as the part has."""
    left_out = len(part) if count is None or count < 0 else count
    return text[: max(start - 1, 0)] + part + text[max(start - 1 + left_out, 0) :]


FUNCTIONS: dict[str, ValueFunction] = {
    "md5": _digest("md5"),
    "sha1": _digest("sha1"),
    "sha256": _digest("sha256"),
    "nfc_normalize": _composed,
    "strip_accents": _without_accents,
    "url_encode": lambda text: quote(text, safe=""),
    "url_decode": _decoded,
    "regexp_escape": escaped,
    "overlay": _overlay,
}

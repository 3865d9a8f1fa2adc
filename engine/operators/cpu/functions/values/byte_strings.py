"""Bytes and their texts: escaped as casts write them, of UTF-8, in base 64, of digits."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode

from .....errors import ConversionError, ExecutionError
from .each_value import ValueFunction

_PLAIN = {b: chr(b) for b in range(32, 127) if chr(b) not in "\\'\""}
_TEXTS = [_PLAIN.get(b, f"\\x{b:02X}") for b in range(256)]
_ESCAPED = re.compile(r"(?:[^\\\x80-\U0010FFFF]|\\x[0-9a-fA-F]{2})*", re.DOTALL)
_ESCAPE = re.compile(rb"\\x(..)", re.DOTALL)


def text_of(value: bytes) -> str:
    """Return bytes as casts to VARCHAR write them: plain ASCII, and all others as escapes of two hexadecimal digits."""
    return "".join([_TEXTS[b] for b in value])


def bytes_of(text: str) -> bytes | None:
    """Return the bytes that a text stands for in a cast; None where it has other than ASCII and escapes."""
    if not _ESCAPED.fullmatch(text):
        return None
    return _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode())


def _decode(value: bytes, errors: str = "strict") -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        if errors.lower() == "ignore":
            return value.decode(errors="ignore")
        if errors.lower() != "strict":  # DuckDB's 'replace' takes valid characters behind, too
            raise ConversionError(
                f"decode does not know '{errors}': use 'strict' or 'ignore'."
            ) from None
        raise ConversionError(
            f"decode('{text_of(value)}') would be no valid UTF-8: cast to VARCHAR to get bytes with escapes."
        ) from None


def _of_digits(text: str, base: int, digits: int, kind: str) -> bytes:
    """Return bytes of so many digits each; the first may have fewer."""
    wrong = next((c for c in text if not (c.isascii() and c.isalnum() and int(c, 36) < base)), None)
    if wrong is not None:
        raise ExecutionError(f"{wrong!r} is no {kind} digit.")
    count = -(-len(text) // digits)
    return int(text or "0", base).to_bytes(count, "big")


def _of_base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ConversionError(
            f"'{text}' is no text in base 64, whose length is a multiple of 4."
        ) from None


FUNCTIONS: dict[str, ValueFunction] = {
    "encode": str.encode,
    "decode": _decode,
    "from_hex": lambda text: _of_digits(text, 16, 2, "hexadecimal"),
    "from_binary": lambda text: _of_digits(text, 2, 8, "binary"),
    "to_base64": lambda value: b64encode(value).decode(),
    "from_base64": _of_base64,
    "blob_concat": lambda *values: b"".join(values),
}

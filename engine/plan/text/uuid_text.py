"""A UUID as text and as the 16 bytes that it is, one or a column of them."""

from __future__ import annotations

import re

import numpy as np

UUID_BYTES = 16
_DIGITS = re.compile(r"[0-9a-fA-F]{32}")
UUID_LETTERS = 36
_PLACES = np.delete(np.arange(UUID_LETTERS), (8, 13, 18, 23))  # of the digits between the dashes


def parse_uuid(text: str) -> bytes | None:
    """Return the bytes of 32 hexadecimal digits with dashes anywhere, perhaps in braces; None for any other text."""
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    digits = inner.replace("-", "")
    return bytes.fromhex(digits) if _DIGITS.fullmatch(digits) else None


def uuid_text(value: bytes) -> str:
    """Return 36 characters: five groups of digits, with dashes between them."""
    return uuid_letters(value, 0, 1).decode()


def uuid_letters(values: bytes | None, first: int, count: int) -> bytes:
    """Return the texts, one behind the other, of some of the UUIDs that lie so in memory; None is a column of NULLs."""
    held = bytes(
        memoryview(b"" if values is None else values)[
            first * UUID_BYTES : (first + count) * UUID_BYTES
        ]
    )
    digits = np.frombuffer(held.ljust(count * UUID_BYTES, b"\0").hex().encode(), np.uint8)
    letters = np.full((count, UUID_LETTERS), ord("-"), np.uint8)
    letters[:, _PLACES] = digits.reshape(count, len(_PLACES))
    return letters.tobytes()

"""LIKE patterns taken apart: runs of text, single wild cards `_`, and wild runs `%`; options of regular expressions."""

from __future__ import annotations

import itertools
import re

from ..errors import ExecutionError
from ..records import dataclass

Part = tuple[str, str]  # ("text", characters), ("one", ""), ("run", "")

KINDS = {"%": "run", "_": "one"}
ANY = b"\xff"  # a byte of no text, which stands for a single wild card where each character is one byte


@dataclass(frozen=True, slots=True)
class Literals:
    """A pattern as bytes: what strings begin with, what follows anywhere in this order, what they end with.

    Without single wild cards, unless they were asked for: then each is `ANY`.
    """

    prefix: bytes
    floating: tuple[bytes, ...]
    suffix: bytes

    @property
    def size(self) -> int:
        """Bytes of the shortest string that matches."""
        return len(self.text)

    @property
    def text(self) -> bytes:
        """All parts, one after the other."""
        return b"".join((self.prefix, *self.floating, self.suffix))

    @property
    def lowered(self) -> Literals:
        """The pattern with small letters of ASCII."""
        floating = tuple(part.lower() for part in self.floating)
        return Literals(self.prefix.lower(), floating, self.suffix.lower())

    @property
    def bounds(self) -> list[int]:
        """Where in `text` each floating part begins, and where the last one ends."""
        return list(itertools.accumulate(map(len, self.floating), initial=len(self.prefix)))


def pattern_parts(pattern: str, escape: str = "") -> list[Part]:
    """Split a pattern; no two texts and no two runs are neighbours.

    Raises `ExecutionError` for an escape string of several characters, and for a pattern that ends with it.

    >>> pattern_parts("%50!%%_", "!")
    [('run', ''), ('text', '50%'), ('run', ''), ('one', '')]
    """
    if len(escape) > 1:
        raise ExecutionError(
            f"Invalid escape string '{escape}': it must be empty or one character."
        )
    parts: list[Part] = []
    letters = iter(pattern)
    for letter in letters:
        kind, literal = KINDS.get(letter, "text"), letter
        if escape and letter == escape:
            kind, literal = "text", next(letters, "")
            if not literal:
                raise ExecutionError(
                    f"The LIKE pattern '{pattern}' must not end with the escape character."
                )
        if kind == "text" and parts and parts[-1][0] == "text":
            parts[-1] = ("text", parts[-1][1] + literal)
        elif kind != "run" or not parts or parts[-1][0] != "run":
            parts.append((kind, literal if kind == "text" else ""))
    return parts


def literals(parts: list[Part], one: bytes | None = None) -> Literals | None:
    r"""Return a pattern as literals with anything between them; None when it has no wild run, or single wild cards and no byte for `one`.

    >>> literals(pattern_parts("a%b%c%"))
    Literals(prefix=b'a', floating=(b'b', b'c'), suffix=b'')
    >>> literals(pattern_parts("_a%b_"), ANY)
    Literals(prefix=b'\xffa', floating=(), suffix=b'b\xff')
    """
    kinds = {kind for kind, _ in parts}
    if "run" not in kinds or (one is None and "one" in kinds):
        return None
    texts = [b""]
    for kind, text in parts:
        if kind == "run":
            texts.append(b"")
        else:
            texts[-1] += (one or b"") if kind == "one" else text.encode()
    prefix, *floating, suffix = texts
    return Literals(prefix, tuple(t for t in floating if t), suffix)


def anywhere(text: str) -> Literals:
    """Return the pattern of strings that contain a text.

    >>> anywhere("")
    Literals(prefix=b'', floating=(), suffix=b'')
    """
    return Literals(b"", (text.encode(),) if text else (), b"")


def quoted(text: str) -> str:
    """Escape what RE2 reads as syntax."""
    return re.sub(r"[\0-\x7f]", lambda m: m[0] if m[0].isalnum() else rf"\x{ord(m[0]):02x}", text)


def with_options(pattern: str, options: str) -> str:
    """Prefix RE2's flags for DuckDB's option letters; the last of contradicting ones counts."""
    flags = {"i": False, "s": False, "m": False}
    for option in options:
        if option in "ic":
            flags["i"] = option == "i"
        elif option in "s":
            flags["s"] = True
        elif option in "mnp":
            flags["s"] = False
        elif option == "l":
            pattern = quoted(pattern)
        elif option not in "g \t\n":
            raise ExecutionError(
                f"Unrecognized regular expression option '{option}': use c, i, l, m, n, p, s or g."
            )
    prefix = "".join(flag for flag, on in flags.items() if on)
    return f"(?{prefix}){pattern}" if prefix else pattern

"""The dialects that a CSV file may have, in the order in which they are tried."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..records import dataclass
from .csv_rows import Dialect, end_of_lines

DELIMS = (",", "|", ";", "\t")
# Quotes with what escapes them
QUOTES = (("", ""), ('"', ""), ('"', '"'), ('"', "'"), ('"', "\\"), ("'", ""), ("'", "'"), ("'", '"'), ("'", "\\"))  # fmt: skip
COMMENTS = ("", "#")


@dataclass(frozen=True)
class Wishes:
    """What the user says of a dialect; None and False where nothing is said."""

    given: Mapping[str, str]  # of delim, quote, escape, comment and new_line
    skip: int | None = None
    columns: int | None = None
    ignores: bool = False
    pads: bool = False
    strict: bool = True
    nulls: tuple[str, ...] = ("",)
    longest: int | None = None  # bytes of a row

    @property
    def takes_most(self) -> bool:
        """Whether the number of values that most rows have is the right one."""
        return self.ignores and not self.pads

    def bars(self, columns: int, ends_empty: bool) -> bool:
        """Whether a row of so many values cannot be read."""
        if self.columns is None or self.ignores or columns == self.columns + ends_empty:
            return False
        return columns != self.columns and not (self.pads and columns < self.columns)


def candidates(text: str, wishes: Wishes) -> Iterator[Dialect]:
    """Yield the dialects that are tried, in DuckDB's order, without those that would find what an earlier one finds."""
    given = wishes.given
    newline = given.get("new_line", end_of_lines(text))
    pairs = _quotes(given)
    if "quote" not in given and "escape" not in given:
        pairs = [(q, e) for q, e in pairs if q in text and (e in ("", q) or e in text)]
    # A comment explains no row where each sign follows a letter or digit: a value precedes it
    behind = "" if given else "(?<![0-9A-Za-z]{0})"
    comments = [c for c in COMMENTS if c in text and re.search(c + behind.format(c), text)]
    comments = [given["comment"]] if "comment" in given else comments
    delims = [given["delim"]] if "delim" in given else DELIMS
    for comment in comments:
        for quote, escape in pairs:
            for delim in delims:
                yield Dialect(delim, quote, escape, comment, newline, wishes.strict)


def alike(dialect: Dialect, text: str, wishes: Wishes) -> Dialect:
    """Return one dialect for all that find the same rows in a text, since it lacks the signs in which they differ."""
    if dialect.is_doubled and dialect.quote * 2 not in text:
        dialect = replace(dialect, escape="")
    if "delim" in wishes.given or dialect.delim in text:
        return dialect
    return replace(dialect, delim=next(delim for delim in DELIMS if delim not in text))


def _quotes(given: Mapping[str, str]) -> list[tuple[str, str]]:
    quote, escape = given.get("quote"), given.get("escape")
    if quote is not None and escape is not None:
        return [(quote, escape)]
    known = [(q, e) for q, e in QUOTES if quote in (None, q) and escape in (None, e)]
    if known:
        return known
    if quote is not None:
        return [(quote, e) for e in (quote, "", "\\", '"', "'")]
    assert escape is not None
    return [(q, escape) for q in (escape, '"', "'")]

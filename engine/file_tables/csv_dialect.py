"""How a CSV file separates and quotes values, found out from its first rows as DuckDB does.

Each candidate reads the sample; one whose rows become shorter is none.  The best one has more than one column and the most rows at the end
that agree in their number, since what precedes these may be notes.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

DELIMS = (",", "|", ";", "\t")
QUOTES = ('"', "'", "")
LONGEST_FIELD = 1 << 27  # characters; Python's reader refuses longer ones than it is told

csv.field_size_limit(LONGEST_FIELD)


class CsvReader(Protocol):
    """What `csv.reader` returns."""

    @property
    def line_num(self) -> int: ...

    def __iter__(self) -> Iterator[list[str]]: ...


@dataclass(frozen=True)
class Dialect:
    """How values are told apart; `skipped` lines of the file precede the first row, which may be the header."""

    delim: str
    quote: str
    escape: str
    skipped: int = 0
    columns: int = 1

    def rows(self, lines: Iterable[str]) -> CsvReader:
        """Return what yields the rows of a text; raises `csv.Error` for quotes that are wrong."""
        doubled = self.escape in ("", self.quote)
        return csv.reader(
            lines,
            delimiter=self.delim,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            doublequote=doubled,
            escapechar=None if doubled else self.escape,
            strict=True,
        )


@dataclass(frozen=True)
class DialectSample:
    """What a candidate makes of the first rows: those that agree, from the first of them to the last."""

    dialect: Dialect
    rows: tuple[tuple[str, ...], ...]
    ends: tuple[int, ...]  # the number of the last line of each row
    quotes: bool  # whether values seem to be quoted so

    @property
    def rank(self) -> tuple[bool, int, int, bool]:
        return self.dialect.columns > 1, len(self.rows), self.dialect.columns, self.quotes


def sniff(
    text: str,
    is_whole: bool,
    given: dict[str, str],
    skip: int,
    most_rows: int,
    columns: int | None,
    lenient: bool = False,
) -> DialectSample | None:
    """Return the best candidate, or None where none fits; `given` has what the user says of delim, quote and escape.

    Where `lenient`, rows of other numbers of columns than the first, or than `columns`, are left out.
    `is_whole` tells whether the text is all of the file, of which the last line else is left out.
    """
    found: list[DialectSample] = []
    delims = [given["delim"]] if "delim" in given else DELIMS
    quotes = [given["quote"]] if "quote" in given else QUOTES
    for quote in quotes:
        escapes = (
            [given["escape"]]
            if "escape" in given
            else [quote, *(["\\"] if quote and "\\" in text else [])]
        )
        for delim in delims:
            if delim == quote:
                continue
            for escape in escapes:
                dialect = Dialect(delim, quote, escape, skip)
                sample = _sample(
                    dialect, text, is_whole, most_rows, (columns or 0) if lenient else None
                )
                if sample is not None and columns in (None, sample.dialect.columns):
                    found.append(sample)
    return max(found, key=lambda sample: sample.rank, default=None)


def _sample(
    dialect: Dialect, text: str, is_whole: bool, most_rows: int, fixed: int | None
) -> DialectSample | None:
    rows: list[tuple[str, ...]] = []
    ends: list[int] = []
    lines = io.StringIO(text, newline="")
    for _ in range(dialect.skipped):
        lines.readline()
    reader = dialect.rows(lines)
    count = fixed or 0
    before = 0  # lines of notes
    try:
        for row in reader:
            if len(rows) >= most_rows:
                break
            # A comment, or one delimiter too many: no column, and an error when it is read
            extra = len(row) == count + 1 and not row[-1]
            if rows and count > 1 and (extra or "".join(row).startswith("#")):
                continue
            if fixed is not None and count and row and len(row) != count:
                continue
            if len(row) > count:
                if rows:
                    before = ends[-1]
                rows, ends, count = [], [], len(row)
            elif row and len(row) < count:
                return None
            if row or count <= 1:  # an empty line of a file of one column is a row
                rows.append(tuple(row or [""]))
                ends.append(reader.line_num)
    except csv.Error:
        return None
    if not is_whole and rows:
        rows, ends = rows[:-1], ends[:-1]
    made = replace(dialect, skipped=dialect.skipped + before, columns=max(count, 1))
    quote, delim = re.escape(dialect.quote), re.escape(dialect.delim)
    quotes = bool(quote) and re.search(rf"(?:^|{delim}){quote}", text, re.MULTILINE) is not None
    return DialectSample(made, tuple(rows), tuple(ends), quotes)


def names_of(header: Sequence[str]) -> list[str]:
    """Return the names in a header: without blanks around them, and with one where there is none."""
    return [name.strip() or f"column{number}" for number, name in enumerate(header)]

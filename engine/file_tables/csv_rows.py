"""The rows of CSV text, split as DuckDB's reader does it, with all that it forgives and refuses.

Arrow splits most files, many times as fast.  This reader serves the sample that tells the dialect, the dialects that Arrow does not
have (comments, several characters between values, ragged rows), and errors, which name the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ..records import dataclass

UNQUOTED = "UNQUOTED VALUE"
INVALID = "INVALID STATE"
TOO_LONG = "LINE SIZE OVER MAXIMUM"
LONGEST_ROW = 1 << 27  # characters, where max_line_size says nothing
LONGEST_LINE = 4096  # characters in which the end of a line is looked for at once


@dataclass(frozen=True)
class Dialect:
    """How values are told apart: empty texts are signs that a file does not use."""

    delim: str
    quote: str
    escape: str
    comment: str = ""
    newline: str = ""  # the only end of lines that a strict reader takes; any where it is empty
    strict: bool = True

    @cached_property
    def is_doubled(self) -> bool:
        """Whether a quote inside of quotes is written twice."""
        return bool(self.quote) and self.escape == self.quote

    @cached_property
    def splits_lines(self) -> bool:
        """Whether a line without quotes is a row, and splits at its delimiters."""
        return self.newline == "\n" and not self.comment and not self._bare_escape

    @cached_property
    def opens_value(self) -> re.Pattern[str]:
        """A quote that begins a value of a line."""
        return re.compile(rf"(?:\A|{re.escape(self.delim)}){self.opening.pattern}")

    @cached_property
    def plain_row(self) -> re.Pattern[str]:
        """A row without values in quotes, escapes and comments, with the end of its line."""
        signs = "".join(re.escape(s) for s in (self.comment, *self._bare_escape))
        if not self.quote or len(self.delim) > 1:
            return re.compile(rf"([^\r\n{re.escape(self.quote)}{signs}]*)(\r\n|\r|\n|\Z)")
        return self._row_of(rf"(?!{self.opening.pattern})[^\r\n{re.escape(self.delim)}{signs}]*+")

    @cached_property
    def quoted_row(self) -> re.Pattern[str] | None:
        """A row with values in quotes and no comments, with the end of its line; None where rows are split value by value."""
        if not (self.strict and self.quote and len(self.delim) == 1):
            return None
        delim, comment = re.escape(self.delim), re.escape(self.comment)
        quoted = self.quoted_field.pattern.replace("(", "(?:", 1)
        bare = rf"(?!{self.opening.pattern})[^\r\n{delim}{comment}]*+"
        return self._row_of(rf"(?:{quoted}(?![^\r\n{delim}])|{bare})")

    def _row_of(self, value: str) -> re.Pattern[str]:
        return re.compile(rf"({value}(?:{re.escape(self.delim)}{value})*+)(\r\n|\r|\n|\Z)")

    @cached_property
    def values(self) -> re.Pattern[str]:
        """What is in the quotes of a value, which are the first group, or the value without them; a delimiter follows."""
        delim, blanks = re.escape(self.delim), self._blanks
        quoted = self.quoted_field.pattern.removeprefix(blanks).removesuffix(blanks)
        sign = re.escape(self.quote)
        opened = quoted.replace(sign, f"({sign})", 1)
        return re.compile(rf"(?:({blanks}){opened}({blanks})|([^\r\n{delim}]*+)){delim}")

    @cached_property
    def bare_field(self) -> re.Pattern[str]:
        """A value without quotes around it, up to what ends it."""
        stops = rf"\r\n{re.escape(self.comment)}"
        escaped = "".join(rf"|{re.escape(e)}(?s:.)" for e in self._bare_escape)
        inner = stops + "".join(map(re.escape, self._bare_escape))
        if len(self.delim) == 1:
            return re.compile(rf"(?:[^{inner}{re.escape(self.delim)}]{escaped})*")
        return re.compile(rf"(?:(?!{re.escape(self.delim)})[^{inner}]{escaped})*")

    @cached_property
    def opening(self) -> re.Pattern[str]:
        return re.compile(rf"{self._blanks}{re.escape(self.quote)}")

    @cached_property
    def quoted_field(self) -> re.Pattern[str]:
        """A value in quotes, and the blanks around them."""
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        if self.is_doubled:
            body = rf"[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+"
        elif self.escape:
            body = rf"[^{quote}{escape}]*+(?:{escape}(?s:.)[^{quote}{escape}]*+)*+"
        else:
            body = rf"[^{quote}]*+"
        return re.compile(rf"{self._blanks}{quote}({body}){quote}{self._blanks}")

    @property
    def _blanks(self) -> str:
        return "" if " " in (self.delim, self.quote, self.escape, self.comment) else " *+"

    @property
    def _bare_escape(self) -> tuple[str, ...]:
        """The sign that escapes outside of quotes too, which it does for a lenient reader."""
        return () if self.strict or self.escape in ("", self.quote) else (self.escape,)

    def escapes_in(self, body: str) -> bool:
        """Whether an escape in quotes stands before a quote; a lenient reader takes it before any sign."""
        if not self.escape:
            return False
        return (self.escape + (self.quote if self.strict else "")) in body

    def unescaped(self, body: str) -> str:
        if self.is_doubled:
            return body.replace(self.quote * 2, self.quote)
        if self.escape and self.escape in body:
            return re.sub(rf"{re.escape(self.escape)}((?s:.))", r"\1", body)
        return body


class CsvRow(NamedTuple):
    """A row as it is in the file; `fault` says why it is none."""

    fields: Sequence[str | None]  # None where padding stands for a value
    text: str
    line: int  # in which it begins, from 1
    end_line: int
    number: int  # how many rows there were with it, empty lines and comments among them
    start: int  # bytes before it, were the file UTF-8
    quoted: tuple[int, ...] = ()  # which fields stand in quotes
    escaped: bool = False
    spaced: bool = False  # whether blanks stand around quotes
    comment: str = (
        ""  # "line" where nothing precedes the sign, "start" where no bare value does, else "end"
    )
    fault: str = ""


LINES_ALONE = Dialect("\0", "", "", strict=False)  # each line is a row
# Values, where the text ends, where the next row begins, and the last members of a CsvRow
Found = tuple[Sequence[str], int, int, tuple[int, ...], bool, bool, str, str]


def rows_of(
    dialect: Dialect,
    chunks: Iterable[str],
    skip: int = 0,
    longest: int = LONGEST_ROW,
    split: Mapping[int, Found] | None = None,
) -> Iterator[CsvRow]:
    """Yield the rows behind the first `skip` lines of a text that comes in parts.

    Of one with more than `longest` characters the end is not looked for: it is a row with a fault.  `split` has rows that are known, by
    their places in a text of one part.
    """
    source = iter(chunks)
    text, at, passed, final = "", 0, 0, False
    line, number = 1, 0
    while True:
        current = dialect if line > skip else LINES_ALONE
        found = split.get(at) if split and at < len(text) and not final else None
        if found is None and at < len(text):
            found = row_at(current, text, at, final)
        if found is None and not final and len(text) - at <= longest:
            rest = [text[at:]]
            wanted, size = len(rest[0]), 0
            for more in source:
                rest.append(more)
                size += len(more)
                if size > wanted:
                    break
            text, at, final = "".join(rest), 0, size == 0
            continue
        if found is None and at >= len(text):
            return
        fields, stop, end, quoted, escaped, spaced, comment, fault = found or unended(text)
        row_text = text[at:stop]
        ends = 1 if end - stop == 1 and not quoted else lines_in(text, at, end)
        number += 1
        if line > skip:
            last = line + max(ends, 1) - 1
            yield CsvRow(
                fields,
                row_text,
                line,
                last,
                number,
                passed,
                quoted,
                escaped,
                spaced,
                comment,
                fault,
            )
        line += ends
        size = (
            0
            if row_text.isascii()
            else len(row_text.encode(errors="surrogateescape")) - len(row_text)
        )
        passed += end - at + size
        at = end


def unended(text: str) -> Found:
    return [], len(text), len(text), (0,), False, False, "", UNQUOTED


def lines_in(text: str, start: int, end: int) -> int:
    feeds = text.count("\n", start, end)
    returns = text.count("\r", start, end)
    return feeds + returns - text.count("\r\n", start, end) if returns else feeds


def row_at(dialect: Dialect, text: str, at: int, final: bool) -> Found | None:
    """Return the row at a place and where the next one begins; None where the text ends before the row does.

    Most rows are lines without quotes, which are found without a regular expression: rows of lineitem take 4 to 6 us instead of 5 to 9.
    """
    if dialect.splits_lines:
        stop = text.find("\n", at, at + LONGEST_LINE)
        if -1 < stop < len(text) - 1:
            line = text[at:stop]
            found = None if "\r" in line else _values_of_line(dialect, line)
            if found is not None:
                return found[0], stop, stop + 1, found[1], False, False, "", ""
    plain = dialect.plain_row.match(text, at)
    if plain is not None:
        end = plain.end()
        if end == len(text) and not final:
            return None
        line, line_end = plain[1], plain[2]
        fault = "" if _is_end(dialect, line_end, line) else INVALID
        return line.split(dialect.delim), plain.end(1), end, (), False, False, "", fault
    row = dialect.quoted_row.match(text, at) if dialect.quoted_row else None
    if row is None:
        return _row_of_fields(dialect, text, at, final)
    return None if row.end() == len(text) and not final else _row_of_values(dialect, row)


def _values_of_line(dialect: Dialect, line: str) -> tuple[list[str], tuple[int, ...]] | None:
    """Return the values of a line, and which stand in quotes; None where quotes stand otherwise than alone around values."""
    quote, delim, escape = dialect.quote, dialect.delim, dialect.escape
    if not quote or quote not in line:
        return line.split(delim), ()
    parts = line.split(quote)
    if len(parts) % 2 == 0 or len(delim) > 1 or (escape not in ("", quote) and escape in line):
        return None
    fields: list[str] = []
    quoted: list[int] = []
    last = len(parts) - 1
    for number in range(0, last + 1, 2):
        part = parts[number]
        if not part and number not in (0, last):
            return None
        if part:
            if (number and part[0] != delim) or (number < last and part[-1] != delim):
                return None
            if part != delim or number in (0, last):
                fields += part[number > 0 : len(part) - (number < last)].split(delim)
        if number < last:
            quoted.append(len(fields))
            fields.append(parts[number + 1])
    return fields, tuple(quoted)


def _row_of_values(dialect: Dialect, row: re.Match[str]) -> Found:
    """Return a row with values in quotes, all of which end as they should."""
    found = dialect.values.findall(row[1] + dialect.delim)
    text, quote = row[1], dialect.quote
    quoted = tuple([number for number, value in enumerate(found) if value[1]])
    fields = [bare or body for _, _, body, _, bare in found]
    escaped = spaced = False
    if f" {quote}" in text or f"{quote} " in text:
        spaced = any(found[number][0] or found[number][3] for number in quoted)
    if dialect.escape and dialect.escape * (1 + dialect.is_doubled) in text:
        escaped = any(dialect.escapes_in(found[number][2]) for number in quoted)
        for number in quoted:
            fields[number] = dialect.unescaped(fields[number])
    fault = "" if _is_end(dialect, row[2], row[1]) else INVALID
    return fields, row.end(1), row.end(), quoted, escaped, spaced, "", fault


def _is_end(dialect: Dialect, found: str, line: str) -> bool:
    """Whether a line may end so: as the first one does, or behind an empty value."""
    any_end = not (dialect.strict and found and dialect.newline)
    return any_end or found == dialect.newline or line.endswith(dialect.delim)


def _row_of_fields(dialect: Dialect, text: str, at: int, final: bool) -> Found | None:
    fields: list[str] = []
    quoted: list[int] = []
    escaped = spaced = False
    comment = fault = ""
    place = at
    while True:
        found = dialect.quoted_field.match(text, place) if dialect.quote else None
        if found is not None:
            body = found[1]
            spaced = spaced or found.end() - found.start() > len(body) + 2 * len(dialect.quote)
            value = dialect.unescaped(body)
            escaped = escaped or dialect.escapes_in(body)
            quoted.append(len(fields))
        elif dialect.quote and dialect.opening.match(text, place):
            if not final:
                return None
            return fields, len(text), len(text), (0,), False, False, "", UNQUOTED
        else:
            found = dialect.bare_field.match(text, place)
            assert found is not None, "it may be empty"
            value = found[0]
            if dialect._bare_escape:
                value = dialect.unescaped(value)
        start, place = place, found.end()
        if place < len(text) and not _ends_value(dialect, text, place):
            if dialect.strict:
                fault = UNQUOTED
            place = dialect.bare_field.match(text, place).end()  # type: ignore[union-attr]
            value = text[start:place].strip(" ")[
                1:-1
            ]  # as DuckDB does for both signs, whatever they are
        fields.append(value)
        if place >= len(text):
            break
        if text.startswith(dialect.delim, place) and not fault:
            place += len(dialect.delim)
            continue
        if dialect.comment and text.startswith(dialect.comment, place):
            bare = quoted[-1:] != [len(fields) - 1] and bool(value)
            comment = "line" if place == at else "end" if bare else "start"
        break
    end = _LINE_END.search(text, place)
    if end is None or (end.end() == len(text) and not final):
        if not final:
            return None
        stop = after = len(text)
    else:
        stop, after = end.start(), end.end()
        fault = fault or ("" if _is_end(dialect, end[0], text[at:stop]) else INVALID)
    return fields, stop, after, tuple(quoted), escaped, spaced, comment, fault


_LINE_END = re.compile(r"\r\n|\r|\n")


def _ends_value(dialect: Dialect, text: str, place: int) -> bool:
    return (
        text[place] in "\r\n"
        or text.startswith(dialect.delim, place)
        or (bool(dialect.comment) and text.startswith(dialect.comment, place))
    )


def end_of_lines(text: str) -> str:
    """Return what ends the first line."""
    found = _LINE_END.search(text)
    return found[0] if found else ""


def is_text(text: str) -> bool:
    """Whether no bytes of a text are none of the encoding."""
    return text.isascii() or not any("\udc80" <= sign <= "\udcff" for sign in text)


def is_row_of_null(columns: int, nulls: Sequence[str]) -> bool:
    """Whether an empty line is a row, whose only value is NULL; any other is read over."""
    return columns == 1 and "" in nulls


def fitted_row(
    row: CsvRow, columns: int, pads: bool, nulls: Sequence[str] = ("",)
) -> CsvRow | None:
    """Return a row with so many fields, or None for one of another number; fields that are NULL may follow the last."""
    fields = row.fields
    if row.fault or (not row.text and not is_row_of_null(columns, nulls)):
        return None
    if len(fields) == columns:
        return row
    if len(fields) > columns and all(f in nulls for f in fields[columns:]):
        return row._replace(fields=fields[:columns])
    if len(fields) < columns and pads:
        return row._replace(fields=[*fields, *[None] * (columns - len(fields))])
    return None

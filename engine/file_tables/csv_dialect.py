"""How a CSV file separates and quotes values, found out from its first rows as DuckDB does.

Each candidate splits the sample.  One is fit whose rows agree in their number of values from some row on, since what precedes may be
notes; of those that are fit the order of `Contest.offer` chooses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import islice

from ..records import dataclass
from .csv_candidates import Wishes, alike, candidates
from .csv_rows import CsvRow, Dialect, Found, fitted_row, is_text, rows_of
from .csv_shapes import RowShape, shapes_of

FIRST_ROWS = 10_240  # of each candidate; the rest of the sample is for those that are left
LEAST_COMMENTS = 0.6  # of the rows with a sign, which a comment has to explain


@dataclass(frozen=True)
class DialectSample:
    """A dialect, and what it makes of the first rows: those that agree, the header among them."""

    dialect: Dialect
    columns: int
    rows: tuple[CsvRow, ...]
    is_regular: bool  # whether Arrow splits such rows as this reader does
    # The first one that is in another encoding, and how many precede it
    no_text: tuple[int, CsvRow] | None = None

    @property
    def skipped(self) -> int:
        """How many lines precede the first row."""
        return self.rows[0].line - 1 if self.rows else 0


@dataclass
class _Candidate:
    """A dialect with the shape that its rows have."""

    dialect: Dialect
    rows: list[RowShape]
    ends_empty: list[bool] = field(default_factory=list)  # whether all rows from here on end so
    columns: int = 1
    agreeing: int = 0  # rows that have as many values as the others, or would after padding
    padded: int = 0
    left_out: int = 0
    notes: int = 0  # rows before those that agree
    comments: int = 0
    first: int = 0  # the number of the first row that agrees
    before: int = 0  # rows before those, comments too
    is_barred: bool = False

    @property
    def quoted(self) -> bool:
        return any(row.quoted for row in self.rows)

    @property
    def escaped(self) -> bool:
        return any(row.escaped for row in self.rows)

    @property
    def is_consistent(self) -> bool:
        return self.agreeing + self.notes + self.comments == len(self.rows)


def sniff(text: str, is_whole: bool, wishes: Wishes, most_rows: int) -> DialectSample | None:
    """Return the best dialect with its rows, or None where none fits.

    `is_whole` tells whether the text is all of the file, of which the last row else is left out.
    """
    skip = skipped_lines(text, is_whole, wishes)
    if skip is None:
        return None
    contest = Contest(wishes)
    first = _Head(text, is_whole, skip, FIRST_ROWS)
    measured: dict[Dialect, _Candidate | None] = {}
    for dialect in candidates(text, wishes):
        same = alike(dialect, text, wishes)
        if same not in measured:
            rows = first.rows(same, wishes)
            measured[same] = None if rows is None else _measured(same, rows, wishes)
        found = measured[same]
        if found is not None:
            contest.offer(replace(found, dialect=dialect))
    head = replace(first, most=most_rows)
    best = _refined(contest.best, head, wishes)
    return None if best is None else _sample(best, head, wishes)


_Shapes = tuple[list[RowShape], Iterator[RowShape]]  # those that are known, and the others


@dataclass(frozen=True)
class _Head:
    """The text that candidates split: some rows behind some lines."""

    text: str
    is_whole: bool
    skip: int
    most: int
    known: dict[Dialect, _Shapes] = field(default_factory=dict)
    split: dict[Dialect, dict[int, Found]] = field(default_factory=dict)

    def shapes(self, dialect: Dialect) -> list[RowShape]:
        """Return those of the first rows, each of which is looked at once."""
        if dialect not in self.known:
            split = self.split[dialect] = {}
            self.known[dialect] = [], shapes_of(dialect, self.text, self.skip, split)
        found, rest = self.known[dialect]
        found += islice(rest, max(self.most - len(found), 0))
        return found[: self.most]

    def rows(self, dialect: Dialect, wishes: Wishes) -> list[RowShape] | None:
        """Return the shapes of the rows but empty lines; None where one is none."""
        found = self.shapes(dialect)
        if not self.is_whole and len(found) < self.most:
            found = found[:-1]
        if any(row.fault for row in found) or self._has_long_rows(dialect, len(found), wishes):
            return None
        return [row for row in found if row.has_text]

    def _has_long_rows(self, dialect: Dialect, count: int, wishes: Wishes) -> bool:
        rows = islice(rows_of(dialect, [self.text], self.skip), count)
        return wishes.longest is not None and any(
            len(row.text.encode(errors="surrogateescape")) >= wishes.longest for row in rows
        )


def skipped_lines(text: str, is_whole: bool, wishes: Wishes) -> int | None:
    """Return how many lines the rows take that the user skips; None where there are not as many.  Comments are no rows."""
    left = wishes.skip or 0
    if not left:
        return 0
    given = wishes.given
    quote = given.get("quote", '"')
    signs = Dialect(given.get("delim", ","), quote, quote, given.get("comment", ""), strict=False)
    for row in rows_of(signs, [text]):
        left -= row.comment != "line"
        if not left:
            return row.end_line
    return None if is_whole else text.count("\n")


def _measured(dialect: Dialect, rows: list[RowShape], wishes: Wishes) -> _Candidate:
    found = _Candidate(dialect, rows)
    ends = True
    for row in reversed(rows):
        ends = ends and row.ends_empty
        found.ends_empty.append(ends)
    found.ends_empty = found.ends_empty[::-1]
    counts = [row.width for row in rows]
    if not counts:
        return found
    found.columns = columns = counts[0]
    if wishes.takes_most:
        often = Counter(counts)
        found.columns = columns = max(often, key=lambda n: (often[n], n))
    if wishes.bars(columns, found.ends_empty[0]):
        found.is_barred = True
        return found
    head, is_started = 0, False
    for number, (row, count, ends) in enumerate(zip(rows, counts, found.ends_empty, strict=True)):
        if wishes.bars(count, ends):
            found.is_barred = True
            return found
        if row.comment in ("line", "start"):
            found.comments += 1
        elif ends and count == counts[head] + 1:  # a delimiter behind each row but the header
            found.agreeing += 1
        elif (
            count > columns
            and (wishes.skip is None or found.comments)
            and (wishes.columns is None or wishes.pads)
            and not (is_started and wishes.takes_most)
        ):
            found.first = number if not is_started else found.first
            is_started, found.padded, columns = True, 0, count
            found.notes, head, found.agreeing = number - found.comments, number, 1
            found.before = number
        elif count == columns or wishes.takes_most:
            if not is_started:
                is_started, columns = True, count
                found.first, found.before = number, number
                found.notes = number - found.comments
            found.left_out += count != columns
            found.agreeing += 1
        elif count < columns:
            found.padded += 1
    found.columns = columns
    found.agreeing += found.padded
    return found


class Contest:
    """The candidates that are best so far, which agree in how many columns and rows they find."""

    def __init__(self, wishes: Wishes) -> None:
        self.wishes = wishes
        self.best: list[_Candidate] = []
        self._agreeing = self._columns = self._padded = self._left_out = 0

    def offer(self, new: _Candidate) -> None:
        """Let a candidate take the place of those before, stand beside them, or neither."""
        wishes = self.wishes
        fits = wishes.columns is None or new.columns - wishes.columns in (
            0,
            bool(new.ends_empty and new.ends_empty[0]),
        )
        is_padded = new.padded > 0 and not wishes.pads
        if new.is_barred or not fits or is_padded or not self._explains_comments(new):
            return
        consistent = new.is_consistent or (wishes.columns is not None and wishes.ignores)
        if consistent and self._is_ahead(new):
            self._take(new)
        elif self._is_equal(new):
            self.best.append(new)

    def _is_ahead(self, new: _Candidate) -> bool:
        first_of_several = self._columns < 2 and new.columns > self._columns * len(self.best)
        more = new.agreeing > self._agreeing and new.columns >= self._columns
        wider = new.agreeing == self._agreeing and new.columns > self._columns
        return (
            first_of_several
            or ((more or wider) and new.padded <= self._padded)
            or (new.columns > 1 and new.padded < self._padded)
            or (new.quoted and (not new.comments or "comment" in self.wishes.given))
        )

    def _is_equal(self, new: _Candidate) -> bool:
        return (
            new.agreeing > 1
            and new.columns > 1
            and new.columns == self._columns
            and new.padded <= self._padded
            and new.is_consistent
            and bool(self.best)
            and new.before <= self.best[0].notes
            and not self._is_behind_notes(new)
        )

    def _is_behind_notes(self, new: _Candidate) -> bool:
        """Whether notes precede the rows although the user says what to skip."""
        wishes = self.wishes
        return wishes.skip is not None and new.notes > 0 and not (wishes.pads or wishes.ignores)

    def _take(self, new: _Candidate) -> None:
        wishes, best, strict = self.wishes, self.best, self.wishes.strict
        if (
            best
            and wishes.columns is not None
            and self._columns == wishes.columns
            and new.agreeing <= self._agreeing
            and (best[0].quoted or not new.quoted)
        ):
            return
        if best and best[0].quoted:
            if not new.quoted or (strict and best[0].escaped and not new.escaped):
                return
            if self._agreeing == new.agreeing and new.columns >= self._columns:
                if not self._is_behind_notes(new):
                    best.append(new)
                    self._columns = new.columns
                return
        if self._columns == new.columns and new.left_out > self._left_out:
            return
        lenient = wishes.pads or wishes.ignores
        if lenient and new.columns > self._columns > 1 and new.agreeing < self._agreeing // 2:
            return
        if new.quoted and new.columns < self._columns:
            escaped = new.escaped and strict
            if any(c.quoted and (c.escaped or not escaped) for c in best):
                return
        if self._is_behind_notes(new):
            return
        self._agreeing, self._columns = new.agreeing, new.columns
        self._padded, self._left_out = new.padded, new.left_out
        self.best = [new]

    def _explains_comments(self, new: _Candidate) -> bool:
        """Whether rows that a sign of comments ends are no rows of values."""
        if "comment" in self.wishes.given or not new.dialect.comment:
            return True
        signs = [row for row in new.rows if row.comment]
        whole = sum(r.comment != "end" and r.width != new.columns for r in signs)
        padded = self.wishes.pads
        behind = sum(
            r.comment == "end" and (r.width == new.columns or (padded and r.width < new.columns))
            for r in signs
        )
        return whole > 0 and (whole + behind) / len(signs) >= LEAST_COMMENTS


def _refined(left: list[_Candidate], head: _Head, wishes: Wishes) -> _Candidate | None:
    """Return the candidate that goes on as it began: one with escapes, else one with quotes."""
    goes_beyond = bool(left) and len(left[0].rows) >= FIRST_ROWS // 2 and head.most > FIRST_ROWS
    if len(left) > 1 and goes_beyond:
        left = [c for c in left if _goes_on(c, head, wishes)]
    if not left:
        return None
    escaped = [c for c in left if c.quoted and c.escaped]
    if escaped:
        return escaped[0]
    left = [c for c in left if c.quoted] or left
    doubled = (c for c in left if c.dialect.is_doubled and goes_beyond)
    return next(doubled, left[0])


def _goes_on(candidate: _Candidate, head: _Head, wishes: Wishes) -> bool:
    rows = head.rows(alike(candidate.dialect, head.text, wishes), wishes)
    if rows is None:
        return False
    lenient = wishes.pads or wishes.ignores
    later = rows[FIRST_ROWS:]
    return lenient or all(r.comment or r.width == candidate.columns for r in later)


def _sample(best: _Candidate, head: _Head, wishes: Wishes) -> DialectSample:
    """Return the rows of the sample that agree, from the header on."""
    first = best.rows[best.first] if best.rows else None
    columns = best.columns
    if first is not None and columns > 1 and not wishes.pads and best.ends_empty[best.first]:
        # A delimiter stands behind the last value of each row
        extra = columns == first.width + 1 or columns == (wishes.columns or 0) + 1
        columns -= extra and best.ends_empty[0]
    kept: list[CsvRow] = []
    regular, no_text = True, None
    same = alike(best.dialect, head.text, wishes)
    numbers = (n for n, row in enumerate(head.known[same][0], head.skip + 1) if row.has_text)
    begin = 0 if wishes.pads else next(islice(numbers, best.first, None), 0)
    for row in rows_of(same, [head.text], head.skip, split=head.split.get(same)):
        if row.number < begin or row.comment == "line":
            continue
        if len(kept) >= head.most:
            break
        fitted = fitted_row(row, columns, wishes.pads, wishes.nulls)
        if fitted is None:
            continue
        if not is_text(row.text):
            no_text = no_text or (len(kept), row)
            continue
        regular = regular and not (fitted is not row or row.comment or row.spaced)
        kept.append(fitted)
    if not head.is_whole and len(kept) < head.most:
        kept = kept[:-1]
    return DialectSample(best.dialect, columns, tuple(kept), regular, no_text)


def names_of(header: Sequence[str | None]) -> list[str]:
    """Return the names in a header: without blanks around them, and with one where there is none."""
    return [(name or "").strip() or numbered(i, len(header)) for i, name in enumerate(header)]


def numbered(number: int, columns: int) -> str:
    """Return the name of a column without one: `column07` of a hundred."""
    return f"column{number:0{len(str(columns - 1))}}"

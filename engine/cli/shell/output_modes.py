"""Where the shell writes - the terminal, a pager or a file - and how rows are written: as a table that fits the terminal, or a line, record or object after the other."""

from __future__ import annotations

import html
import io
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import BinaryIO

from ...frame.fitted_table import WIDEST, TableLayout, cell, fitted, json_objects, one_line
from ...frame.python_values import Row
from ...plan.types import DataType
from ...records import dataclass
from ...storage.tables.access import AccessRules
from ...writing.new_files import NewFiles

TABLE = "table"
OTHER_NAMES = {
    "box": TABLE,
    "duckbox": TABLE,
    "vertical": "line",
    "ndjson": "jsonlines",
    "tabs": "tsv",
}


@dataclass(frozen=True)
class Header:
    """What rows are written with: the names and types of columns, what stands for NULL, None for what the mode has, and whether names are written."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    null: str | None = None
    named: bool = True

    def texts(self, row: Row, null: str = "NULL") -> list[str]:
        shown = null if self.null is None else self.null
        return [shown if value is None else cell(value) for value in row]


def table_text(
    header: Header, rows: Sequence[Row], layout: TableLayout, note: str | None, colours: bool
) -> str:
    """Return a table as text, with the escapes that colour it if there is a terminal."""
    from rich.console import Console

    out = io.StringIO()
    width = WIDEST if layout.width is None else layout.width
    console = Console(file=out, width=width, force_terminal=colours or None, highlight=False)
    console.print(fitted(header.names, header.types, rows, layout, note))
    return out.getvalue()


def _markdown(header: Header, rows: Iterable[Row]) -> Iterator[str]:
    def line(texts: Iterable[str]) -> str:
        cells = (one_line(text).replace("|", "\\|") for text in texts)
        return f"| {' | '.join(cells)} |\n"

    yield line(header.names)
    yield line("--:" if t.is_numeric else "---" for t in header.types)
    for row in rows:
        yield line(header.texts(row))


def _line(header: Header, rows: Iterable[Row]) -> Iterator[str]:
    width = max(map(len, header.names), default=0)
    before = ""
    for row in rows:
        yield before
        for name, text in zip(header.names, header.texts(row), strict=True):
            yield f"{name:>{width}} = {one_line(text)}\n"
        before = "\n"


def _json(header: Header, rows: Iterable[Row]) -> Iterator[str]:
    before = "["
    for text in json_objects(header.names, rows):
        yield f"{before}{text}"
        before = ",\n "
    yield "[]\n" if before == "[" else "]\n"


def _json_lines(header: Header, rows: Iterable[Row]) -> Iterator[str]:
    for text in json_objects(header.names, rows):
        yield f"{text}\n"


def _separated(separator: str, header: Header, rows: Iterable[Row]) -> Iterator[str]:
    """Quote what would be read as something else: another value or line, and a text that stands for NULL."""
    null = "" if header.null is None else header.null
    special = {separator, '"', "\n", "\r"}

    def field(text: str) -> str:
        quoted = text == null or not special.isdisjoint(text)
        return f'"{text.replace(chr(34), chr(34) * 2)}"' if quoted else text

    if header.named:
        yield f"{separator.join(map(field, header.names))}\n"
    for row in rows:
        texts = (null if value is None else field(cell(value)) for value in row)
        yield f"{separator.join(texts)}\n"


def _list(header: Header, rows: Iterable[Row]) -> Iterator[str]:
    if header.named:
        yield f"{'|'.join(header.names)}\n"
    for row in rows:
        yield f"{'|'.join(header.texts(row))}\n"


def _html(header: Header, rows: Iterable[Row]) -> Iterator[str]:
    def line(tag: str, texts: Iterable[str]) -> str:
        cells = "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts)
        return f"<tr>{cells}</tr>\n"

    yield "<table>\n"
    if header.named:
        yield line("th", header.names)
    for row in rows:
        yield line("td", header.texts(row))
    yield "</table>\n"


def _trash(header: Header, rows: Iterable[Row]) -> Iterator[str]:
    """Write nothing: for what is only to run."""
    for _ in rows:
        pass
    yield ""


ROW_MODES: dict[str, Callable[[Header, Iterable[Row]], Iterator[str]]] = {
    "markdown": _markdown,
    "line": _line,
    "json": _json,
    "jsonlines": _json_lines,
    "csv": lambda header, rows: _separated(",", header, rows),
    "tsv": lambda header, rows: _separated("\t", header, rows),
    "list": _list,
    "html": _html,
    "trash": _trash,
}
MODES = (TABLE, *ROW_MODES)


MOST_PAGED = 4_000_000  # characters that wait for a pager; what is longer is printed


class ShellOutput:
    """A file, which has its name when it is closed, or standard output; `pages` says whether long answers go to the system's pager."""

    def __init__(self, pages: bool) -> None:
        self.pages = pages
        self._file: BinaryIO | None = None
        self._files = ExitStack()
        self._once = False

    @property
    def is_terminal(self) -> bool:
        return self._file is None and sys.stdout.isatty()

    @property
    def width(self) -> int | None:
        """The characters of a line; None where there is no end to it."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    def redirect(self, path: str, rules: AccessRules, once: bool = False) -> None:
        """Write to a file from now on, or the next answer alone; raises `AccessDenied` and `FileError`."""
        self.close()
        files = self._files.enter_context(NewFiles(rules))
        place = files.resolved(path)
        self._file = self._files.enter_context(files.opened(place, path))
        self._once = once

    def close(self) -> None:
        """Go back to standard output; the file gets its name."""
        self._file, self._once = None, False
        self._files.close()

    def end_of_answer(self) -> None:
        if self._once:
            self.close()

    def write(self, pieces: Iterable[str]) -> None:
        """Write an answer."""
        if self._file is not None:
            for piece in pieces:
                self._file.write(piece.encode("utf-8", "surrogateescape"))
        elif self.pages and self.is_terminal and sys.stdin.isatty():
            self._page(pieces)
        else:
            sys.stdout.writelines(pieces)
            sys.stdout.flush()

    def _page(self, pieces: Iterable[str]) -> None:
        """Show what is longer than the terminal in the pager that PAGER names, or less."""
        waiting: list[str] = []
        size = lines = 0
        rest = iter(pieces)
        for piece in rest:
            waiting.append(piece)
            size, lines = size + len(piece), lines + piece.count("\n")
            if size > MOST_PAGED:
                sys.stdout.writelines(waiting)
                sys.stdout.writelines(rest)
                return
        text = "".join(waiting)
        if lines >= shutil.get_terminal_size().lines:
            import pydoc

            pydoc.pager(text)
        else:
            sys.stdout.write(text)
            sys.stdout.flush()

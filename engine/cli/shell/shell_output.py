"""Where the shell writes: the terminal, a pager, or a file that `.output` or `.once` names."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from typing import BinaryIO

from ...storage.tables.access import AccessRules
from ...writing.new_files import NewFiles

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

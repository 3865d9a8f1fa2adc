"""The bar that shows how far a query is: in terminals on standard error, in notebooks below the cell.

A thread draws it, and only of queries that take longer than `progress_bar_time`; it is gone when the answer is there.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Protocol, TypeVar

from .run_progress import Progress, QueryProgress

T = TypeVar("T")

SECONDS_BETWEEN = 0.1  # two looks
TEXT_WIDTH = 40  # of the node that runs


class _Drawing(Protocol):
    """What shows a bar somewhere."""

    def draw(self, progress: QueryProgress) -> None: ...

    def remove(self) -> None: ...


def with_bar(work: Callable[[], T], progress: Progress, after: float) -> T:
    """Do work, and draw its progress as soon as it has taken so many seconds; nothing where nobody would see it."""
    make = _drawing()
    if make is None:
        return work()
    done = threading.Event()
    thread = threading.Thread(target=_draw, args=(make, progress, after, done), daemon=True)
    thread.start()
    try:
        return work()
    finally:
        done.set()
        thread.join()


def _draw(
    make: Callable[[], _Drawing], progress: Progress, after: float, done: threading.Event
) -> None:
    if done.wait(after):
        return
    drawing = make()
    try:
        while True:
            drawing.draw(progress.snapshot())
            if done.wait(SECONDS_BETWEEN):
                break
    finally:
        drawing.remove()


def _drawing() -> Callable[[], _Drawing] | None:
    """Return what draws here: in a notebook's kernel or in a terminal."""
    notebook = _notebook()
    if notebook is not None:
        return lambda: _NotebookBar(notebook)
    return _TerminalBar if sys.stderr is not None and sys.stderr.isatty() else None


def _notebook() -> ModuleType | None:
    """Return IPython's display module, if this process is the kernel of a notebook; it is there only if somebody imported it."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    if found is None or getattr(found, "kernel", None) is None:
        return None
    from importlib import import_module

    return import_module("IPython.display")


def summary(progress: QueryProgress) -> str:
    """Return what is said beside the bar: the node that runs, what was read, and about how long it goes on."""
    node = progress.current
    parts = [f"{progress.rows:,} rows"] if progress.rows else []
    if progress.bytes:
        parts.append(f"{progress.bytes / 1e6:,.0f} MB")
    if progress.remaining is not None and progress.percentage > 1:
        parts.append(f"{progress.remaining:,.0f} s left")
    text = "" if node is None else node.text
    shown = text if len(text) <= TEXT_WIDTH else f"{text[: TEXT_WIDTH - 3]}..."
    return "  ".join([shown, ", ".join(parts)]).strip()


class _TerminalBar:
    """A bar of rich on standard error."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress as Bar, TaskProgressColumn, TextColumn

        columns = BarColumn(), TaskProgressColumn(), TextColumn("{task.description}", markup=False)
        console = Console(stderr=True)
        self._bar = Bar(*columns, console=console, auto_refresh=False, transient=True)
        self._task = self._bar.add_task("", total=100.0)
        self._bar.start()

    def draw(self, progress: QueryProgress) -> None:
        self._bar.update(
            self._task,
            completed=progress.percentage,
            description=summary(progress),
            refresh=True,
        )

    def remove(self) -> None:
        self._bar.stop()


class _NotebookBar:
    """An HTML element below the cell that asked."""

    def __init__(self, display: ModuleType) -> None:
        self._display = display
        self._handle = display.display(display.HTML(""), display_id=True)

    def draw(self, progress: QueryProgress) -> None:
        self._handle.update(self._display.HTML(bar_html(progress)))

    def remove(self) -> None:
        self._handle.update(self._display.HTML(""))


def bar_html(progress: QueryProgress) -> str:
    """Return the bar as HTML, all text escaped."""
    from html import escape

    percent = progress.percentage
    return f'<progress max="100" value="{percent:.1f}"></progress> {percent:.0f} % <small>{escape(summary(progress))}</small>'

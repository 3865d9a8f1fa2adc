"""Runs statements of the shell, and writes what they give in the mode of now."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from ...errors import FuselineError
from ...fence import fence
from ...frame.fitted_table import TableLayout, rows_of, rows_of_batches
from ...records import dataclass
from ...settings import debug_level
from .output_modes import ROW_MODES, TABLE, Header, ShellOutput, table_text

if TYPE_CHECKING:
    from pathlib import Path

    from ...connection import Connection
    from ...frame.frame import Frame
    from ...frame.python_values import Row
    from ...sql import Piece

SHOWN_ROWS = 40
MOST_LOOKED_AT = 10_000  # rows of which the last ones are shown; of more only the first
DONE, WRITTEN = ["Success"], ["Count"]  # columns of statements that are not asked for rows


@dataclass
class ShellState:
    """What commands of the shell change: where and how answers are written, and what is written beside them.

    `people`: somebody types; `run_lines` runs a script.  `healthy`: nothing has failed yet.  `null` None is what each mode has for NULL, `maxwidth` 0 the terminal's.
    """

    connection: Connection
    people: bool
    run_lines: Callable[[ShellState, Iterable[str]], bool]
    output: ShellOutput
    mode: str = TABLE
    headers: bool = True
    null: str | None = None
    maxrows: int | None = SHOWN_ROWS
    maxwidth: int = 0
    widths: tuple[int, ...] = ()
    timer: bool = False
    profile: bool = False
    echo: bool = False
    healthy: bool = True
    left: bool = False
    last: Frame | None = None
    reading: list[Path] = field(default_factory=list)  # the files that `.read` is in

    def fail(self, error: FuselineError) -> None:
        """Tell of an error: with answers where people read both, else beside them."""
        self.healthy = False
        print(f"{type(error).__name__}: {error}", file=sys.stdout if self.people else sys.stderr)
        if debug_level():
            traceback.print_exception(error)


def run_text(state: ShellState, text: str) -> bool:
    """Run the statements of a text one after the other up to one that fails; whether none did."""
    from ...sql import split

    try:
        for piece in split(text):
            _run(state, piece)
    except FuselineError as error:
        state.fail(error)
    except KeyboardInterrupt:
        state.healthy = False
        print("stopped", file=sys.stdout if state.people else sys.stderr)
    else:
        return True
    finally:
        state.output.end_of_answer()
    return False


def _run(state: ShellState, piece: Piece) -> None:
    from ...sql import starts_query

    text = piece.sql.strip()
    if state.echo:
        state.output.write([f"{text};\n"])
    start = time.perf_counter()
    with fence(BrokenPipeError):
        frame = state.connection.sql(text)
        if starts_query(piece) or frame.columns not in (DONE, WRITTEN):
            write_frame(state, frame)
        elif state.people and frame.columns == WRITTEN:
            print(f"{frame.fetchall()[0][0]:,} rows")
    seconds = time.perf_counter() - start
    if state.timer:
        print(f"{seconds * 1e3:.1f} ms on the {state.connection.device}")
    if state.profile and state.last is not None:
        write_profile(state)


def write_frame(state: ShellState, frame: Frame) -> None:
    """Run a frame and write its rows."""
    names = tuple(column.name for column in frame.plan.columns)
    types = tuple(column.type for column in frame.plan.columns)
    header = Header(names, types, state.null, state.headers)
    state.last = frame
    if len(names) == 2 and names[0] == "explain_key":
        state.output.write(_plan_texts(frame))
    elif state.mode == TABLE:
        rows, note = _few(state, frame)
        state.output.write([table_text(header, rows, _layout(state), note, _colours(state))])
    else:
        with frame.to_batches() as batches:
            state.output.write(ROW_MODES[state.mode](header, rows_of_batches(batches, types)))


def write_profile(state: ShellState) -> None:
    """Write what the last query did."""
    from ...observe.explain import analyzed

    assert state.last is not None
    state.output.write([f"{analyzed(state.last.profile)}\n"])


def _few(state: ShellState, frame: Frame) -> tuple[list[Row], str | None]:
    """Return the rows of a table, and what is to be said of others: of very many no more than some are made."""
    types = [column.type for column in frame.plan.columns]
    if state.maxrows is None:
        return rows_of(frame.to_arrow(), types), None
    most = max(MOST_LOOKED_AT, state.maxrows)
    few = frame.limit(most + 1)
    table = few.to_arrow()
    state.last = few
    if table.num_rows <= most:
        return rows_of(table, types), None
    shown = state.maxrows
    note = f"the first {shown:,} of more than {most:,} rows; .maxrows all shows them"
    return rows_of(table.slice(0, shown), types), note


def _layout(state: ShellState) -> TableLayout:
    width = state.maxwidth or state.output.width
    null = "NULL" if state.null is None else state.null
    return TableLayout(width, state.maxrows, null, state.widths)


def _colours(state: ShellState) -> bool:
    return state.output.is_terminal and not state.output.pages


def _plan_texts(frame: Frame) -> Iterator[str]:
    for _, text in frame.fetchall():
        yield f"{text}\n"

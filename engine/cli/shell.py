"""The interactive prompt: history, statements over several lines, timing."""

from __future__ import annotations

import contextlib
import re
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FuselineError
from ..fence import fence
from ..frame.display import print_table
from ..settings import debug_level, history_file

if TYPE_CHECKING:
    from ..connection import Connection

PROMPT, CONTINUED = "fuseline> ", "      ... "
SHOWN_ROWS = 40
LEAVE = (".quit", ".exit", "quit", "exit")
HELP = """.tables    the tables and views
.quit      leave, as Ctrl-D does
DESCRIBE name; shows the columns of a table, EXPLAIN ANALYZE query; what a query spent its time on.
Ctrl-C stops a query, or forgets a statement that is not finished."""
# Strings, quoted names and comments; a quote or comment that does not end reaches to the end of the text.
_QUOTED = re.compile(
    r"""'(?:[^']|'')*(?:'|\Z)|"(?:[^"]|"")*(?:"|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|\$\$.*?(?:\$\$|\Z)""",
    re.DOTALL,
)


def run_shell(connection: Connection) -> bool:
    """Read statements until end of input or `.quit`; an error is printed and the next prompt follows.

    Input from a pipe has no prompts and no history, and its last statement needs no `;`.  Returns whether all went well.
    """
    people = sys.stdin.isatty()
    history = history_file()
    if people:
        _load_history(history)
        print("Fuseline: a statement ends with ';', .help lists what else there is.")
    pending: list[str] = []
    healthy = True
    while True:
        try:
            line = input((CONTINUED if pending else PROMPT) if people else "")
        except EOFError:
            break
        except KeyboardInterrupt:
            print()
            pending = []
            continue
        word = line.strip().rstrip(";").lower()
        if not pending and word in LEAVE:
            break
        if not pending and (word.startswith(".") or not word):
            _command(connection, word)
            continue
        pending.append(line)
        if ends_statement("\n".join(pending)):
            healthy &= _answer(connection, "\n".join(pending))
            pending = []
    if pending and not people:
        healthy &= _answer(connection, "\n".join(pending))
    if people:
        _save_history(history)
    return healthy


def ends_statement(text: str) -> bool:
    """Whether the last line of a text ends with a `;` that is not in a string, a name or a comment.

    >>> ends_statement("select ';"), ends_statement("select 1 -- ;"), ends_statement("select ';';")
    (False, False, True)
    """
    return _QUOTED.sub(" ", text).rstrip().endswith(";")


def _command(connection: Connection, word: str) -> None:
    """Carry out a line that begins with a dot; an empty line does nothing."""
    if word == ".help":
        print(HELP)
    elif word == ".tables":
        _answer(connection, "SHOW TABLES")
    elif word:
        print(f'There is no command "{word}": .help lists them.')


def _answer(connection: Connection, text: str) -> bool:
    """Run a text and print its last result; False when it failed."""
    start = time.perf_counter()
    try:
        with fence(BrokenPipeError):
            frame = connection.sql(text)
            table = frame.limit(SHOWN_ROWS + 1).to_arrow()
            seconds = time.perf_counter() - start
            if table.num_columns:
                print_table(table, [c.type for c in frame.plan.columns], SHOWN_ROWS)
            print(f"{seconds * 1e3:.1f} ms on the {connection.device}")
    except FuselineError as error:
        print(f"{type(error).__name__}: {error}")
        if debug_level():
            traceback.print_exception(error)
        return False
    except KeyboardInterrupt:
        print("stopped")
        return False
    return True


def _load_history(path: Path) -> None:
    with contextlib.suppress(ImportError, OSError):
        import readline

        readline.read_history_file(path)


def _save_history(path: Path) -> None:
    with contextlib.suppress(ImportError, OSError):
        import readline

        path.parent.mkdir(parents=True, exist_ok=True)
        readline.write_history_file(path)

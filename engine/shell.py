"""The interactive prompt: history, statements over several lines, timing."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .display import print_table
from .errors import FuselineError
from .settings import history_file

if TYPE_CHECKING:
    from .connection import Connection

PROMPT, CONTINUED = "fuseline> ", "      ... "
SHOWN_ROWS = 40


def run_shell(connection: Connection) -> None:
    """Read statements until end of input or `.quit`; an error is printed and the next prompt follows."""
    history = history_file()
    _load_history(history)
    print("Fuseline: a statement ends with ';', .quit leaves.")
    pending: list[str] = []
    while True:
        try:
            line = input(CONTINUED if pending else PROMPT)
        except EOFError:
            break
        except KeyboardInterrupt:
            print()
            pending = []
            continue
        if not pending and line.strip() in (".quit", ".exit"):
            break
        if line.strip() or pending:
            pending.append(line)
        if line.rstrip().endswith(";"):
            _answer(connection, "\n".join(pending))
            pending = []
    _save_history(history)


def _answer(connection: Connection, text: str) -> None:
    start = time.perf_counter()
    try:
        frame = connection.sql(text)
        table = frame.limit(SHOWN_ROWS + 1).to_arrow()
    except FuselineError as error:
        print(f"{type(error).__name__}: {error}")
        return
    except KeyboardInterrupt:
        print("stopped")
        return
    seconds = time.perf_counter() - start
    if table.num_columns:
        print_table(table, [c.type for c in frame.plan.columns], SHOWN_ROWS)
    print(f"{seconds * 1e3:.1f} ms on the {connection.device}")


def _load_history(path: Path) -> None:
    with contextlib.suppress(ImportError, OSError):
        import readline

        readline.read_history_file(path)


def _save_history(path: Path) -> None:
    with contextlib.suppress(ImportError, OSError):
        import readline

        path.parent.mkdir(parents=True, exist_ok=True)
        readline.write_history_file(path)

"""`fuseline shell`: what it begins with, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .shell.dot_commands import read_script, run_command
from .shell.output_modes import ShellOutput
from .shell.read_statements import run_lines, run_pipe, run_prompt
from .shell.run_answers import ShellState

if TYPE_CHECKING:
    from ..connection import Connection


def run_shell(
    connection: Connection,
    *,
    begin_with: Mapping[str, object],
    init: Sequence[Path] = (),
    commands: Sequence[str] = (),
    files: Sequence[Path] = (),
    plain: bool = False,
) -> bool:
    """Run files and texts, else what people type or a pipe brings; whether nothing failed that nobody saw.

    Files and texts end with what fails.  The connection, or the one that `.open` put in its place, is closed at the end.
    """
    asked = bool(commands or files)
    people = not asked and sys.stdin.isatty() and sys.stdout.isatty()
    state = ShellState(connection, people, run_lines, ShellOutput(pages=people), timer=people)
    try:
        _begin(state, begin_with)
        if people and "enable_progress_bar" not in begin_with:
            connection.set_option("enable_progress_bar", True)
        for path in init:
            if not run_lines(state, read_script(path, str(path)).splitlines()) and not people:
                return False
        for text in commands:
            if not run_lines(state, text.splitlines()):
                return False
        for path in files:
            if not run_lines(state, read_script(path, str(path)).splitlines()):
                return False
        if people:
            _ask(state, plain)
        elif not asked:
            run_pipe(state)
        return people or state.healthy
    finally:
        state.output.close()
        if not state.connection.is_closed:
            state.connection.close()


def _ask(state: ShellState, plain: bool) -> None:
    from .shell.prompts import new_prompt

    prompt = new_prompt(plain)
    try:
        run_prompt(state, prompt)
    finally:
        prompt.close()


def _begin(state: ShellState, given: Mapping[str, object]) -> None:
    for name, value in given.items():
        text = ("on" if value else "off") if isinstance(value, bool) else f'"{value}"'
        run_command(state, f".{name} {text}")

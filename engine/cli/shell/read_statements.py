"""The loop of the shell: lines become statements, which end with `;`, and commands, which are a line."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .dot_commands import is_command, run_command
from .run_answers import ShellState, run_text

if TYPE_CHECKING:
    from .prompts import Prompt

GREETING = "Fuseline: a statement ends with ';', .help lists what else there is."
LEAVE = ("quit", "exit")


class Lines:
    """Lines that have come, of which the last ones may be the start of a statement."""

    def __init__(self, state: ShellState) -> None:
        self._state = state
        self._waiting: list[str] = []

    @property
    def is_waiting(self) -> bool:
        """Whether a statement has begun that does not end yet."""
        return bool(self._waiting)

    def add(self, line: str) -> bool:
        """Take a line, and run what it completes; whether that went well."""
        if not self._waiting:
            word = line.strip()
            if not word:
                return True
            if word.rstrip(";").rstrip().lower() in LEAVE:
                self._state.left = True
                return True
            if is_command(word):
                return run_command(self._state, word)
        self._waiting.append(line)
        return self.end() if is_complete("\n".join(self._waiting), line) else True

    def end(self) -> bool:
        """Run what has come, which need not end with `;`."""
        text, self._waiting = "\n".join(self._waiting), []
        return run_text(self._state, text) if text.strip() else True

    def forget(self) -> None:
        self._waiting = []


def is_complete(text: str, last: str) -> bool:
    """Whether a text ends a statement; `last` is its last line, which has to have the `;`."""
    from ...sql import ends_statement

    return ";" in last and ends_statement(text)


def run_lines(state: ShellState, lines: Iterable[str]) -> bool:
    """Run a script up to what fails; whether nothing did."""
    reader = Lines(state)
    for line in lines:
        if not reader.add(line):
            return False
        if state.left:
            return True
    return reader.end()


def run_pipe(state: ShellState) -> None:
    """Run what comes from a pipe: what fails is told, and the next statement follows."""
    reader = Lines(state)
    for line in sys.stdin:
        reader.add(line.rstrip("\n"))
        if state.left:
            return
    reader.end()


def run_prompt(state: ShellState, prompt: Prompt) -> None:
    """Ask people for lines until they leave."""
    print(GREETING)
    reader = Lines(state)
    while not state.left:
        try:
            text = prompt.read(state, reader.is_waiting)
        except EOFError:
            return
        except KeyboardInterrupt:
            reader.forget()
            continue
        for line in text.split("\n"):
            reader.add(line)

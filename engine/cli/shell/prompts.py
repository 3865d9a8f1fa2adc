"""How people are asked for statements: with prompt_toolkit where it is installed, else by `input` and readline.

prompt_toolkit (the extra `shell`: 1.2 MB of wheels, too much for a base install that servers share) edits several lines, pastes
them as they are, searches the history and completes names.
"""

from __future__ import annotations

import contextlib
import os
import stat
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...errors import redacted
from ...settings import history_file
from .completions import completions
from .read_statements import LEAVE, is_complete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from .run_answers import ShellState

PROMPT, CONTINUED = "fuseline> ", "      ... "
FOR_TOOLKIT = "-lines"  # behind the name of the history: its entries have several lines


class Prompt(Protocol):
    """What asks for lines."""

    def read(self, state: ShellState, continued: bool) -> str:
        """Return a line, or several; raises EOFError at the end and KeyboardInterrupt for Ctrl-C."""
        ...

    def close(self) -> None: ...


def new_prompt(plain: bool = False) -> Prompt:
    """Return the best prompt that there is."""
    if plain or find_spec("prompt_toolkit") is None:
        return PlainPrompt(history_file())
    path = history_file()
    return ToolkitPrompt(path.with_name(path.name + FOR_TOOLKIT))


def make_private(path: Path) -> bool:
    """Make a file that only its user may read, or take the right from others; False where that cannot be."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            is_file = stat.S_ISREG(os.fstat(handle).st_mode)  # of a pipe no reader sees the end
            if is_file:
                os.fchmod(handle, 0o600)
            return is_file
        finally:
            os.close(handle)
    except OSError:
        return False


class PlainPrompt:
    """A line at a time, with readline's history where Python has it."""

    def __init__(self, history: Path) -> None:
        self._history = history
        with contextlib.suppress(ImportError, OSError):
            import readline

            if make_private(history):
                readline.read_history_file(history)

    def read(self, state: ShellState, continued: bool) -> str:
        try:
            line = input(CONTINUED if continued else PROMPT)
            if redacted(line) != line:
                _forget_last_line()
            return line
        except KeyboardInterrupt:
            print()
            raise

    def close(self) -> None:
        with contextlib.suppress(ImportError, OSError):
            import readline

            if make_private(self._history):
                readline.write_history_file(self._history)


def _forget_last_line() -> None:
    """Take a line out of the history that has what a secret hides."""
    with contextlib.suppress(ImportError, ValueError):
        import readline

        readline.remove_history_item(readline.get_current_history_length() - 1)


def kept_history(path: Path) -> History:
    """Return a history in a file, if it can be kept there, without statements that have what a secret hides."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if not make_private(path):
        return InMemoryHistory()

    class WithoutSecrets(FileHistory):
        def store_string(self, string: str) -> None:
            if redacted(string) == string:
                super().store_string(string)

    return WithoutSecrets(str(path))


class ToolkitPrompt:
    """Statements of several lines, which Enter ends behind their `;`; Tab completes, Ctrl-R searches the history."""

    def __init__(self, history: Path) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer

        self._state: ShellState | None = None
        self._session: PromptSession[str] = PromptSession(
            history=kept_history(history),
            lexer=PygmentsLexer(SqlLexer),
            completer=_completer(self),
            complete_while_typing=False,
            enable_history_search=True,
            enable_open_in_editor=True,
            multiline=True,
            key_bindings=_bindings(),
            prompt_continuation=CONTINUED,
        )

    @property
    def state(self) -> ShellState | None:
        return self._state

    def read(self, state: ShellState, continued: bool) -> str:
        self._state = state
        return str(self._session.prompt(CONTINUED if continued else PROMPT))

    def close(self) -> None:
        pass


def is_entered(text: str) -> bool:
    """Whether Enter hands a text over: it is a command, ends a statement, or is nothing."""
    word = text.strip()
    last = word.rpartition("\n")[2]
    leaves = word.rstrip(";").lower() in LEAVE
    return not word or word.startswith(".") or leaves or is_complete(word, last)


def _bindings() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion:
            buffer.complete_state = None  # takes what is chosen
        elif is_entered(buffer.text) and not buffer.document.text_after_cursor.strip():
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


def _completer(prompt: ToolkitPrompt) -> Completer:
    from prompt_toolkit.completion import Completer, Completion

    class OfShell(Completer):
        """Names that fit the text before the cursor."""

        def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
            if prompt.state is not None:
                before = document.text_before_cursor
                start, words = completions(before, prompt.state.connection)
                for word in words:
                    yield Completion(word, start_position=start - len(before))

    return OfShell()

"""The shell in a terminal, typed into as people do: few tests, since each starts a process."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

SECONDS = 45.0  # for a busy machine
# Blanks too: a prompt may move the cursor instead of writing them
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>])|\s")
ENDLESS = "with recursive r(n) as (select 1 union all select n + 1 from r where n < 90000000) select max(n) from r;"


class Typed:
    """A shell in a terminal of 100 characters and 40 lines."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        environment = {
            **os.environ,
            "TERM": "xterm-256color",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "XDG_STATE_HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder),
            "FUSELINE_DEVICE": "cpu",
        }
        its_own = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"  # for Ctrl-C
        program = f"{its_own}; from fuseline.cli import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, "shell", *options],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def expect(self, text: str, again: str | None = None) -> None:
        """Wait until a text is on the screen, behind what was waited for before; type `again` every now and then."""
        end, text = time.monotonic() + SECONDS, text.replace(" ", "")
        while text not in self._seen:
            assert time.monotonic() < end, f"{text!r} did not come:\n{self._seen[-3000:]}"
            ready, _, _ = select.select([self._ours], [], [], 0.5)
            if ready:
                with suppress(OSError):  # the other end is gone
                    self._seen = ESCAPES.sub(
                        "", self._seen + os.read(self._ours, 65536).decode(errors="replace")
                    )
            elif again is not None:
                self.type(again)
        self._seen = self._seen.partition(text)[2]

    def end(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS)
        os.close(self._ours)


@pytest.fixture(params=["plain", "prompt_toolkit"])
def typed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Typed]:
    if request.param == "prompt_toolkit" and find_spec("prompt_toolkit") is None:
        pytest.skip("prompt_toolkit is not installed: pip install 'fuseline[shell]'")
    shell = Typed(tmp_path, *(["--plain"] if request.param == "plain" else []))
    yield shell
    shell.end()


def test_a_session(typed: Typed, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Statements of several lines, completion, a paste, Ctrl-C amid a query and the next query, and the history."""
    completes = "prompt_toolkit" in request.node.name
    typed.expect("fuseline> ")
    typed.type("create table sales as select range as sold from range(5);\r")
    typed.expect("5 rows")
    typed.expect("fuseline> ")
    typed.type("from sales s where s.so\t" if completes else "from sales s where s.sold")
    typed.expect("s.sold")  # Tab looks for names while more is typed
    typed.type(" = 3\r")
    typed.type(";\r")
    typed.expect("│ 3 │")
    typed.expect("fuseline> ")
    typed.type("\x1b[200~select 20,\n 22;\x1b[201~\r" if completes else "select 20,\r 22;\r")
    typed.expect("│ 20 │ 22 │")
    typed.expect("fuseline> ")
    typed.type(f"{ENDLESS}\r")
    typed.expect("stopped", again="\x03")
    typed.expect("fuseline> ")
    typed.type("select 41 + 1;\r")
    typed.expect("│ 42 │")
    typed.type("quit\r")
    assert typed.process.wait(SECONDS) == 0
    (history,) = (tmp_path / "fuseline").iterdir()
    assert history.stat().st_mode & 0o777 == 0o600
    assert "create table sales" in history.read_text()

"""docs/shell.md says what is there: its example prints what it says, its file is read, and it names each command and mode."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fuseline
from fuseline.cli.configuration import SHELL_KEYS, configured
from fuseline.cli.shell.dot_commands import COMMANDS
from fuseline.cli.shell.output_modes import MODES, OTHER_NAMES
from fuseline.cli.shell_commands import run_shell
from tests.test_layout import ROOT

TEXT = (ROOT / "docs/shell.md").read_text()


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    given, printed = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)[:2]
    assert run_shell(fuseline.connect("cpu"), begin_with={}, commands=[given])
    assert capsys.readouterr().out == printed


def test_the_file_is_read(tmp_path: Path) -> None:
    (content,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "fuseline.toml").write_text(content)
    found = configured(tmp_path / "fuseline.toml")
    assert (found.settings.memory_limit, found.settings.statement_timeout) == (4 * 10**9, 60.0)
    assert found.shell == {"mode": "markdown", "maxrows": 100}


def test_each_command_mode_and_key_is_named() -> None:
    assert [c for c in COMMANDS if f"`{c}" not in TEXT and c != ".exit"] == []
    known = ("duckbox", "ndjson", "tabs")  # as others call them
    assert [m for m in (*MODES, *OTHER_NAMES) if f"`{m}`" not in TEXT and m not in known] == []
    assert [key for key in SHELL_KEYS if key not in TEXT] == []


def test_the_example_for_notebooks_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    *before, last = code.strip().split("\n")
    known: dict[str, object] = {}
    exec("\n".join(before), known)  # as cells run
    frame = eval(last, known)
    assert "100 rows × 2 columns" in frame._repr_html_()
    frame._connection.close()

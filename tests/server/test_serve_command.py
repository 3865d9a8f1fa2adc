"""`fuseline serve` as a process, asked as docs/server.md says, and ended by signals."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from fuseline.cli.commands import app
from tests.test_layout import ROOT

SALES = pa.table({"city": ["Oslo", "Rome", "Oslo"], "sold": [3, 5, 4]})
PAGE = (ROOT / "docs/server.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@contextmanager
def started(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and what it printed at its start."""
    pq.write_table(SALES, folder / "sales.parquet")
    command = [sys.executable, "-m", "fuseline", "serve", "--set", "device=cpu", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--table", "sales=sales.parquet", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, "".join(iter(process.stdout.readline, "Ctrl-C ends it.\n"))
    finally:
        process.kill()
        process.communicate()


def test_the_page_and_the_end_of_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(BLOCKS) == 2
    with started(tmp_path) as (process, said):
        assert "read only" in said
        address = said.split()[1]
        for block in BLOCKS:
            exec(block.replace("grpc://127.0.0.1:31337", address), {})
        printed = capsys.readouterr().out
        assert '["Oslo","Rome"]' in re.sub(r"\s", "", printed)
        assert "{'healthy': True}" in printed
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=20) == ("", "")
        assert process.returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "0.0.0.0"), "--tls-cert"),
        (("--limit", "query=1"), "There is no limit"),
        (("--set", "theads=1"), 'setting "theads"'),
        (("--token-file", "nowhere"), "cannot be read"),
    ],
)
def test_a_wrong_option_is_one_line(
    options: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["serve", "--set", "device=cpu", *options])
    assert found.exit_code == 1
    assert message in found.stderr
    assert found.stderr.count("\n") == 1

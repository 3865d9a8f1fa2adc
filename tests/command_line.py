"""The command line in processes that are forked from one in which Fuseline is imported, as importing takes most of a small command's time.

A command has its own standard files, environment and folder, and ends as any process does.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from fuseline import import_ahead

ROOT = Path(__file__).parent.parent
SECONDS = 120
IMPORTED = (
    *("fuseline.cli.commands", "fuseline.cli.configuration", "fuseline.cli.write_results"),
    *("fuseline.connection", "fuseline.frame.fitted_table", "fuseline.frame.fitted_table"),
    *(f"fuseline{name}" for name in import_ahead.MODULES),
    *("fuseline.operators.cpu", "fuseline.observe.profile", "pandas", "pyarrow.parquet"),
)


def run(
    *arguments: str, stdin: str = "", cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run `fuseline` with arguments."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("stdin", "stdout", "stderr")]
        for file in files:
            file.write_bytes(stdin.encode() if file.name == "stdin" else b"")
        job = {
            "arguments": arguments,
            "files": [str(file) for file in files],
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
        }
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(
            arguments, code, files[1].read_bytes(), files[2].read_bytes()
        )


@cache
def _server() -> subprocess.Popen[str]:
    """The process that is forked; it ends when its standard input does."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.command_line"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.communicate)
    return server


def serve() -> bool:
    """Fork a process for each line of standard input; return in it, with True, and at the end."""
    answers = os.fdopen(os.dup(1), "w")  # a command has its own standard output
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            begin(job)
            return True
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        answers.flush()
    return False


def begin(job: Any) -> None:
    """Make this the process of a command."""
    signal.alarm(SECONDS)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    for descriptor, (name, mode) in enumerate(zip(job["files"], "rww", strict=True)):
        with Path(name).open(mode) as file:
            os.dup2(file.fileno(), descriptor)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, closefd=False) for number, mode in enumerate("rww")
    )
    sys.argv = ["fuseline", *job["arguments"]]


if __name__ == "__main__":
    for name in IMPORTED:
        import_module(name)
    gc.freeze()  # so that no command looks through all of it when it ends
    if serve():
        from fuseline.cli import main

        main()

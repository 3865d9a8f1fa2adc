"""sqlglot's compiled build, which Fuseline cannot extend, is refused by its name."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sqlglot.parsers.duckdb as module
module.__file__ = "duckdb.cpython-311-x86_64-linux-gnu.so"
import fuseline
try:
    fuseline.connect(device="cpu").sql("select 1")
except fuseline.errors.Unsupported as error:
    print(error)
"""


def test_the_compiled_build_is_refused_by_its_name() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("pip uninstall sqlglotc.")

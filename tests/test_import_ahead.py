"""The modules of the first query are imported while its tables are opened."""

from __future__ import annotations

import subprocess
import sys

from fuseline.import_ahead import MODULES


def _printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_thread_imports_them_and_no_compiler() -> None:
    code = (
        "import sys, fuseline; from fuseline.import_ahead import import_ahead; "
        "fuseline.connect(device='cpu'); import_ahead('cpu').join(); "
        f"print([m for m in {MODULES} if 'fuseline' + m not in sys.modules], 'numba' in sys.modules)"
    )
    assert _printed(code) == "[] False"


def test_there_is_one_thread_for_all_connections() -> None:
    code = (
        "import fuseline; from fuseline.import_ahead import import_ahead; "
        "fuseline.connect(device='cpu'); first = import_ahead('cpu'); "
        "fuseline.connect(device='cpu'); print(import_ahead('cpu') is first)"
    )
    assert _printed(code) == "True"


def test_a_query_may_come_at_once() -> None:
    code = (
        "import fuseline; "
        "print(fuseline.connect(device='cpu').sql('SELECT 6 * 7 AS answer').fetchall())"
    )
    assert _printed(code) == "[(42,)]"

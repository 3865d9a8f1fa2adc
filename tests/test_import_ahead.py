"""The modules of the first query are imported while its tables are opened."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fuseline.import_ahead import MODULES
from tests.test_layout import ENGINE, ROOT

MOST_MODULES = 530  # of ours, for one sum over a file


def _printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_thread_imports_them_and_neither_a_compiler_nor_pandas() -> None:
    code = (
        "import sys, fuseline; from fuseline.import_ahead import import_ahead; "
        "fuseline.connect(device='cpu'); import_ahead('cpu').join(); "
        f"print([m for m in {MODULES} if 'fuseline' + m not in sys.modules], "
        "[m for m in ('numba', 'pandas') if m in sys.modules])"
    )
    assert _printed(code) == "[] []"


def test_a_process_that_compiles_imports_nothing_of_plans() -> None:
    code = (
        "import sys; from fuseline.codegen.compile import compile_worker, compiler; "
        "print([m for m in sys.modules if m.startswith('fuseline.plan')])"
    )
    assert _printed(code) == "[]"


def test_a_query_of_one_kernel_imports_none_of_the_functions_of_the_cpu(tmp_path: Path) -> None:
    """With those and what only they need, 579 modules were imported; who adds one to them looks whether the first query needs it."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": range(10)}), path)
    code = (
        "import sys, fuseline; "
        f"print(fuseline.connect(device='cpu', fuse='always').sql(\"SELECT sum(x) FROM '{path}' WHERE x > 3\").fetchall()); "
        "own = [m for m in sys.modules if m.startswith('fuseline.')]; "
        "print([m for m in own if '.cpu.functions.kernel_table' in m or '.cpu.functions.json' in m]); "
        "print(len(own))"
    )
    answer, functions, count = _printed(code).splitlines()
    assert (answer, functions) == ("[(39,)]", "[]")
    assert int(count) <= MOST_MODULES


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


def test_nobody_waits_for_a_thread_that_waits_for_him() -> None:
    """Who asks for a module of a package holds it while the package is imported, and its import asks for that module."""
    inside = "|".join(re.escape(name[1:]) for name in MODULES)
    pattern = re.compile(rf"^\s*from \.+({inside})\.[.\w]+ import", re.MULTILINE)
    own = {ROOT / "sql", *(ROOT / "engine" / name[1:] for name in MODULES)}
    outside = [path for path in ENGINE if own.isdisjoint(path.parents)]
    assert len(outside) > 100
    assert [path.name for path in outside if pattern.search(path.read_text())] == []

"""The kernels of some queries as people read them: tests/golden/kernels_cpu.txt; `--rewrite-goldens` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

from tests.compare import connected

GOLDEN = Path(__file__).parent.parent / "golden" / "kernels_cpu.txt"


def _table() -> pa.Table:
    """Four columns of few values, one of them with NULLs."""
    return pa.table(
        {
            "quantity": pa.array([1, 50, None, 7] * 3),
            "price": pa.array([100, 250, 9900, 1] * 3, pa.int64())
            .cast(pa.decimal128(21, 2))
            .cast(pa.decimal128(12, 2)),
            "flag": ["A", "N", "R", "N"] * 3,
            "shipped": pa.array([9000, 9500, 10_000, 9100] * 3, pa.int32()).cast(pa.date32()),
        }
    )


def _kernel(query: str, directory: Path) -> str:
    """The query's kernel, without the plan at the head of its docstring."""
    with connected({"t": _table()}, fuse="always", cache_dir=directory) as connection:
        frame = connection.sql(query)
        frame.to_arrow()
        (note,) = [n.note for n in frame.profile.nodes if n.name == "Pipeline"]
    source = (directory / note.removeprefix("kernel ")).read_text()
    _, docstring, statements = source.split('"""')
    return f"{docstring.partition(chr(10) * 2)[2]}\n{statements.strip()}"


def test_kernels_read_as_expected(tmp_path: Path, rewrite_goldens: bool) -> None:
    found = []
    for block in re.split(r"^=== ", GOLDEN.read_text(), flags=re.MULTILINE)[1:]:
        title, rest = block.split("\n", 1)
        query = rest.split("\n\n", 1)[0].strip()
        found.append(f"=== {title}\n{query}\n\n{_kernel(query, tmp_path)}\n")
    text = "\n".join(found)
    if rewrite_goldens:
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()

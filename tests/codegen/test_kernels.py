"""The kernels of some queries as people read them: tests/golden/kernels_<target>.txt; `--rewrite-goldens` writes them anew.

A file holds cases: a title, the query, and its kernels in the order in which they run.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from tests.compare import connected
from tests.kernel_replay import kernels_of

GOLDEN = Path(__file__).parent.parent / "golden"
PRICES = pa.array([100, 250, 9900, 1] * 3, pa.int64()).cast(pa.decimal128(21, 2))
TABLES = {
    "t": pa.table(
        {
            "quantity": pa.array([1, 50, None, 7] * 3),
            "price": PRICES.cast(pa.decimal128(12, 2)),
            "flag": ["A", "N", "R", "N"] * 3,
            "shipped": pa.array([9000, 9500, 10_000, 9100] * 3, pa.int32()).cast(pa.date32()),
            "item": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8],
        }
    ),
    "items": pa.table(
        {
            "id": range(1, 9),
            "kind": ["nut", "nut", None, "bolt", "gear", "nut", "gear", "bolt"],
            "weight": [0.5, 1.5, 2.0, None, 8.0, 0.25, 4.0, 1.0],
        }
    ),
    "far": pa.table({"id": [5, 10**12, 3, -(10**15), 8], "shop": ["a", "b", "c", "d", "e"]}),
}


def cases(target: str) -> list[tuple[str, str]]:
    """The title and query of each case."""
    blocks = re.split(r"^=== ", (GOLDEN / f"kernels_{target}.txt").read_text(), flags=re.MULTILINE)
    heads = (block.split("\n\n", 1)[0].split("\n", 1) for block in blocks[1:])
    return [(title, query.strip()) for title, query in heads]


def shown(source: str) -> str:
    """A kernel without the plan at the head of its docstring."""
    _, docstring, statements = source.split('"""', 2)
    return f"{docstring.partition(chr(10) * 2)[2]}\n{statements.strip()}\n"


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_kernels_read_as_expected(target: str, tmp_path: Path, rewrite_goldens: bool) -> None:
    found = []
    for title, query in cases(target):
        with connected(TABLES, fuse="always", cache_dir=tmp_path) as connection:
            made = kernels_of(connection, title, query)
        sources = [shown(source) for name, source in made.items() if f" {target} " in name]
        found.append("\n".join([f"=== {title}\n{query}\n", *sources]))
    text, golden = "\n".join(found), GOLDEN / f"kernels_{target}.txt"
    if rewrite_goldens:
        golden.write_text(text)
    assert text == golden.read_text()


def test_both_targets_show_the_same_cases() -> None:
    assert cases("cpu") == cases("cuda")

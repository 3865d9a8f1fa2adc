"""The pages for those who come from another library: each example gives there what it gives here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import fuseline
from tests.test_layout import ROOT


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / f"docs/{name}.md").read_text(), re.DOTALL)


def rows(found: Any) -> list[tuple[Any, ...]]:
    """Return the names and rows of whichever kind of table, in an order of their own."""
    if isinstance(found, pd.DataFrame):
        found = found.reset_index(drop=True)
    columns = pa.table(found).to_pydict()
    return [tuple(columns), *sorted(zip(*columns.values(), strict=True), key=repr)]


def pairs(name: str) -> Iterator[tuple[Any, Any]]:
    known: dict[str, Any] = {}
    for block in blocks(name):
        exec(block, known)
        if "before" in known:
            yield known.pop("before"), known.pop("after")


@pytest.mark.parametrize(("name", "count"), [("from-pandas", 4), ("from-polars", 4), ("from-ibis", 1)])  # fmt: skip
def test_the_examples_give_the_same_rows(name: str, count: int) -> None:
    found = [(rows(before), rows(after)) for before, after in pairs(name)]
    assert [before for before, _ in found] == [after for _, after in found]
    assert len(found) == count


def test_the_first_steps_work_with_the_import_changed() -> None:
    (block,) = blocks("from-duckdb")
    here: dict[str, Any] = {}
    there: dict[str, Any] = {}
    exec(block, here)
    exec(block.replace("import fuseline as engine", "import duckdb as engine"), there)
    assert there["engine"] is duckdb
    assert here["result"] == there["result"]


def test_calls_that_the_tables_name_are_there() -> None:
    """Words before a parenthesis in the right columns, as methods of frames, of expressions or of the module."""
    frame = fuseline.from_df(pd.DataFrame({"a": [1]}))
    places = (fuseline, frame, fuseline.col("a"), fuseline.col("a").str, fuseline.col("a").dt, fuseline.connect(device="cpu"))  # fmt: skip
    for name in ("from-pandas", "from-polars"):
        table = (ROOT / f"docs/{name}.md").read_text().partition("|---|---|\n")[2]
        right = " ".join(line.split(" | ")[1] for line in table.strip().splitlines())
        called = re.findall(r"(?:[` .])([a-z_]+)\(", right)
        assert len(called) > 4
        assert [word for word in called if not any(hasattr(p, word) for p in places)] == []

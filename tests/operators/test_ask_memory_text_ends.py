"""Results with more text than 32-bit offsets address come in chunks, each as large as may be."""

import pyarrow as pa
import pytest

from fuseline.operators import cpu
from fuseline.operators.cpu.memory.ask_memory import text_ends
from fuseline.operators.cpu.table import Table
from fuseline.plan.expr import new_column
from fuseline.plan.types import VARCHAR

MOST = 100
TEXTS = ["", "a" * 99, None, "bb", "c" * 100, "d" * 101, "", "e" * 50, "f" * 50, "g", None] * 3


def forms(values):
    plain = pa.array(values, pa.large_string())
    return [plain, pa.array(values, pa.string()).dictionary_encode()]


@pytest.mark.parametrize(
    "values", [TEXTS, ["a"] * 101, [None] * 300, ["x" * 101], [None, "y" * 300]]
)
@pytest.mark.parametrize("start", [0, 1, 5])
def test_each_chunk_has_as_much_text_as_it_may(values, start, monkeypatch):
    monkeypatch.setattr(cpu, "STRING_LIMIT", MOST)
    column = new_column("s", VARCHAR)
    for whole in forms(values):
        array = whole.slice(start)
        found = cpu.to_arrow(Table({column.id: array}, len(array)), (column,)).column(0)
        assert found.to_pylist() == values[start:]
        sizes = [sum(len(v or "") for v in chunk.to_pylist()) for chunk in found.chunks]
        assert all(size <= MOST or len(c) == 1 for size, c in zip(sizes, found.chunks, strict=True))
        starts = [len((chunk[0].as_py()) or "") for chunk in found.chunks if len(chunk)]
        assert all(a + b > MOST for a, b in zip(sizes, starts[1:], strict=False))


@pytest.mark.parametrize("values", [[], ["a"], [None], ["a" * 100], [None] * 100])
def test_few_bytes_are_one_chunk(values):
    for array in forms(values):
        assert (text_ends(array, 10_000) or [len(array)]) == [len(array)]

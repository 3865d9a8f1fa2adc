"""The listing of a program: what FUSELINE_DEBUG=5 shows of a pipeline."""

from __future__ import annotations

import pyarrow as pa

from fuseline.codegen.emit import listing, operations
from tests.compare import connected

TABLE = pa.table(
    {"key": ["a", "b", "a", None], "cents": [100, 200, 20100, 100], "share": [0.5, 1.5, 2.5, 3.5]}
)


def shown(query: str) -> str:
    with connected({"t": TABLE}, fuse="always") as connection:
        frame = connection.sql(query)
        frame.to_arrow()
        (node,) = frame.profile.pipelines
        assert node.receipt is not None
        made = node.receipt.program
        assert node.receipt.operations == operations(made)
        return listing(made)


def test_loads_constants_statements_and_accumulators_in_order() -> None:
    text = shown("select key, sum(cents * 2), max(share) from t where cents > 150 group by key")
    assert text.splitlines() == [
        "scan_filter_group: 8 operations a row",
        "  load cents: 1 byte, 100 + code * 100, so 100 to 20100",
        "  load v_key: 1 byte and a validity bit, code of 2 sorted values",
        "  load share: 8 bytes, float64",
        *("  given c0: int32 = 0", "  given c1: int32 = 2"),
        *("  given c2: int32 = 100", "  given c3: int32 = 100", "  given c4: int32 = 2"),
        "  keep: bool_ = (cents_code > c0)  # filter cents > constant",
        "  argument: int32 = np.int32(np.int32(np.int32(cents_code * c2) + c3) * c4)  # argument = cents * constant",
        "  slot = (v_key_code if v_key_valid else c1)  # key of 3",
        "  a0 int64 add np.int64(argument)",
        "  a1 int64 max order_of_double(share_code)",
    ]


def test_a_selection_has_no_accumulators() -> None:
    text = shown("select key, cents from t where share > 1 and cents < 300")
    assert text.startswith("scan_filter: ")
    assert text.endswith("\n  rows where keep")


def test_a_hashed_group_says_so() -> None:
    table = pa.table({"x": pa.array([0, 3, 2**40], pa.int64()), "y": [0, 1, 2**20]})
    with connected({"t": table}, fuse="always") as connection:
        frame = connection.sql("select x, count(*) from t group by x")
        frame.to_arrow()
        (node,) = frame.profile.pipelines
        assert node.receipt is not None
        assert "a key of a hash table" in listing(node.receipt.program)

"""Groups of a few rows that lie as in registers: they are those that the host's operator makes, or are left to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.groups.results import Registers
from fuseline.operators import cpu
from fuseline.operators.context import Context
from fuseline.operators.cpu.pipeline.finish import of_registers
from fuseline.operators.cpu.table import Table
from fuseline.operators.gpu.group_few_rows import grouped
from fuseline.operators.gpu.memory.host_table import HostColumns
from fuseline.plan import physical as p
from fuseline.plan.expr import AggregateCall, Column, ColumnRef, Literal, new_column
from fuseline.plan.functions import AGGREGATE
from fuseline.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, HUGEINT, VARCHAR, DataType, decimal
from fuseline.storage.columns.cache import ColumnCache

WORDS = pa.array(["", "a", "b", "zz", "ä"])
TYPES = {
    "k": BIGINT, "t": VARCHAR, "b": BOOLEAN, "v": BIGINT, "d": decimal(15, 2), "w": decimal(38, 2), "h": HUGEINT, "day": DATE,
}  # fmt: skip
COLUMNS = {name: new_column(name, kind) for name, kind in TYPES.items()}
CALLS = [
    ("count_star", None), ("count", "v"), ("count", "t"), ("sum", "v"), ("sum", "w"), ("sum", "h"), ("min", "d"), ("max", "day"), ("min", "t"),
    ("max", "t"), ("bit_xor", "v"),
]  # fmt: skip


def rows(count: int, seed: int = 0, nulls: bool = True) -> dict[Column, Registers]:
    draw = np.random.default_rng(seed)
    found = {}
    for name, column in COLUMNS.items():
        low, high = {"k": (-2, 3), "t": (0, len(WORDS)), "b": (0, 2)}.get(name, (-90_000, 90_000))
        valid = draw.random(count) > 0.3 if nulls else None
        # Codes of texts are narrow
        values = draw.integers(low, high, count).astype(np.int16 if name == "t" else np.int64)
        found[column] = Registers(values, valid, column.type, WORDS if name == "t" else None)
    return found


def node_of(keys: Sequence[str], calls: Sequence[tuple[str, str | None]]) -> p.HashAggregate:
    made = []
    for name, read in calls:
        args = () if read is None else (ColumnRef(COLUMNS[read]),)
        found = AGGREGATE[name].resolve([a.type for a in args])
        assert found is not None
        made.append((new_column(name, found[1]), AggregateCall(name, args, found[1])))
    source = p.ValuesScan(tuple(COLUMNS.values()), ())
    return p.HashAggregate(source, tuple(COLUMNS[key] for key in keys), tuple(made))


def here(columns: dict[Column, Any]) -> HostColumns:
    return HostColumns(columns.items(), lambda arrays: {})


def shown(columns: Sequence[Column], arrays: Sequence[pa.Array]) -> list[tuple[Any, ...]]:
    assert [str(a.type) for a in arrays]
    return sorted(zip(*(a.to_pylist() for a in arrays), strict=True), key=str)


@pytest.mark.parametrize("nulls", [True, False])
@pytest.mark.parametrize("keys", [(), ("k",), ("t", "k"), ("b", "t"), ("day",)])
@pytest.mark.parametrize("count", [1, 7, 60])
def test_groups_are_the_operators(keys: tuple[str, ...], count: int, nulls: bool) -> None:
    node, columns = node_of(keys, CALLS), rows(count, nulls=nulls)
    found = grouped(node, here(columns), count)
    assert found is not None
    assert [column for column, _ in found] == list(node.columns)
    given = Table({c.id: of_registers(held) for c, held in columns.items()}, count)
    context = Context(ColumnCache(0), lambda: None, 1)
    wanted = cpu.to_arrow(cpu.operate(node, (given,), context), node.columns)
    arrays = [held.array() for _, held in found]
    plain = [column.combine_chunks() for column in wanted.columns]
    assert [array.type for array in arrays] == [array.type for array in plain]
    assert shown(node.columns, arrays) == shown(node.columns, plain)


def test_distinct_rows() -> None:
    found = grouped(node_of(("k", "b"), ()), here(rows(200)), 200)
    assert found is not None
    assert len(found[0][1]) == 6 * 3


def changed(kind: DataType, values: Any) -> dict[Column, Any]:
    return {**rows(3), COLUMNS["v"]: Registers(np.array(values), None, kind)}


@pytest.mark.parametrize(
    "columns",
    [
        changed(BIGINT, [2**62, 2**62, -5]),
        changed(BIGINT, [-(2**63), 0, 0]),
        changed(DOUBLE, [0.5, 1.0, 2.0]),
    ],
)
def test_what_64_bits_may_not_hold_and_no_integers_are_left_to_the_operator(columns: Any) -> None:
    assert grouped(node_of(("k",), [("sum", "v")]), here(columns), 3) is None


def test_other_calls_are_left_to_the_operator() -> None:
    columns = here(rows(3))
    for name in ("avg", "stddev_samp", "first", "bool_and"):
        assert (
            grouped(node_of(("k",), [(name, "b" if name == "bool_and" else "v")]), columns, 3)
            is None
        )
    node = node_of(("k",), [("sum", "v")])
    ((made, call),) = node.aggregates
    for other in (
        AggregateCall("sum", call.args, call.type, distinct=True),
        AggregateCall("sum", call.args, call.type, filter=ColumnRef(COLUMNS["b"])),
        AggregateCall("sum", (Literal(1, BIGINT),), call.type),
    ):
        assert grouped(p.HashAggregate(node.input, node.keys, ((made, other),)), columns, 3) is None
    assert grouped(node, columns, 0) is None

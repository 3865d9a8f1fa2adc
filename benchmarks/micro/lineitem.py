"""Lineitem on the device: TPC-H's columns and their domains, uniformly random, or Parquet files of the real table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

PART_ROWS = (
    10_000_000  # made on the host and repeated on the device: 300 million would take minutes
)
DECIMAL = pa.decimal128(15, 2)
DATE, BIGINT, INTEGER, VARCHAR = pa.date32(), pa.int64(), pa.int32(), pa.string()


@dataclass(frozen=True)
class Spec:
    """A column's values: low, low + step, ... high as unscaled integers or days, or some words."""

    type: pa.DataType
    low: int = 0
    high: int = 0
    step: int = 1
    words: tuple[str, ...] = ()


SPECS = {
    "l_orderkey": Spec(BIGINT, 1, 300_000_000),
    "l_partkey": Spec(BIGINT, 1, 10_000_000),
    "l_suppkey": Spec(BIGINT, 1, 500_000),
    "l_linenumber": Spec(INTEGER, 1, 7),
    "l_quantity": Spec(DECIMAL, 100, 5000, 100),
    "l_extendedprice": Spec(DECIMAL, 90_000, 10_494_950),
    "l_discount": Spec(DECIMAL, 0, 10),
    "l_tax": Spec(DECIMAL, 0, 8),
    "l_returnflag": Spec(VARCHAR, words=("A", "N", "R")),
    "l_linestatus": Spec(VARCHAR, words=("F", "O")),
    "l_shipdate": Spec(DATE, 8036, 10_561),
    "l_commitdate": Spec(DATE, 8065, 10_530),
    "l_receiptdate": Spec(DATE, 8037, 10_591),
    "l_shipmode": Spec(VARCHAR, words=("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")),
}


def register_synthetic(connection: Any, rows: int, seed: int) -> None:
    """Put a table `lineitem` of random rows into a connection, with its columns in device memory."""
    from fuseline.storage.tables.device_table import DeviceTable
    from fuseline.storage.tables.memory_table import MemoryTable

    class Lineitem(DeviceTable):
        """A table on the device whose decimals have the digits of TPC-H, which libcudf does not keep."""

        def __init__(self, columns: dict[str, Any]) -> None:
            empty = pa.table({name: pa.array([], spec.type) for name, spec in SPECS.items()})
            MemoryTable.__init__(self, "lineitem", empty)
            self.device_columns = columns
            self._rows = rows

    connection.catalog.put(Lineitem(dict(_columns(rows, seed))))


def _columns(rows: int, seed: int) -> Iterator[tuple[str, Any]]:
    import pylibcudf as plc

    from fuseline.operators.gpu.columns import reinterpret
    from fuseline.operators.gpu.dictionaries import encoded
    from fuseline.operators.gpu.table import device_type
    from fuseline.plan.arrow.arrow_types import from_arrow

    random = np.random.default_rng(seed)
    for name, spec in SPECS.items():
        part = plc.Column.from_arrow(_values(spec, min(rows, PART_ROWS), random))
        if not spec.words:
            part = reinterpret(part, device_type(from_arrow(spec.type)))
        pieces = [part] * (rows // part.size())
        if rows % part.size():
            pieces += plc.copying.slice(part, [0, rows % part.size()])
        whole = plc.concatenate.concatenate(pieces)
        yield name, encoded(whole)


def _values(spec: Spec, rows: int, random: np.random.Generator) -> pa.Array:
    """Random values as integers of the width that the physical form has."""
    if spec.words:
        return pa.array(np.array(spec.words)[random.integers(0, len(spec.words), rows)])
    narrow = spec.type in (DATE, INTEGER)
    count = (spec.high - spec.low) // spec.step + 1
    codes = random.integers(0, count, rows, dtype=np.int32).astype(np.int64)
    values = codes * spec.step + spec.low
    return pa.array(values.astype(np.int32) if narrow else values)


# Queries


def random_queries(count: int, seed: int) -> list[str]:
    """Return queries that filter by one to three columns and sum one or two expressions."""
    random = np.random.default_rng(seed)
    return [_query(random) for _ in range(count)]


def _query(random: np.random.Generator) -> str:
    columns = random.permutation(list(SPECS))[: random.integers(1, 4)]
    conditions = [_condition(str(c), SPECS[str(c)], random) for c in columns]
    sums = [f"sum({_expression(random)}) as s{i}" for i in range(random.integers(1, 3))]
    return f"select {', '.join(sums)} from lineitem where {' and '.join(conditions)}"


def _condition(name: str, spec: Spec, random: np.random.Generator) -> str:
    if spec.words:
        chosen = random.permutation(list(spec.words))[: random.integers(1, len(spec.words))]
        return f"{name} in ({', '.join(repr(str(w)) for w in sorted(chosen))})"
    low, high = sorted(int(v) for v in random.integers(spec.low, spec.high + 1, 2))
    match random.integers(0, 3):
        case 0:
            return f"{name} < {_literal(high, spec)}"
        case 1:
            return f"{name} >= {_literal(low, spec)}"
    return f"{name} between {_literal(low, spec)} and {_literal(high, spec)}"


def _literal(value: int, spec: Spec) -> str:
    if spec.type == DATE:
        return f"date '{np.datetime64(value, 'D')}'"
    return f"{value / 100:.2f}" if spec.type == DECIMAL else str(value)


def _expression(random: np.random.Generator) -> str:
    return str(
        random.choice(
            [
                "l_quantity",
                "l_extendedprice",
                "l_linenumber",
                "l_discount",
                "l_extendedprice * l_discount",
                "l_extendedprice * (1 - l_discount)",
                "l_extendedprice * (1 + l_tax)",
                "l_quantity * l_linenumber",
            ]
        )
    )

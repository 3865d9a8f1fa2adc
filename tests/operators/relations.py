"""Small tables for operator tests: run a node on a backend, and the same thing as SQL on DuckDB."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from fuseline.operators.context import Context
from fuseline.plan import physical as p
from fuseline.plan.arrow.arrow_types import from_arrow
from fuseline.plan.expr import AggregateCall, Column, ColumnRef, Literal, SortKey, new_column
from fuseline.plan.types import VARCHAR, DataType
from fuseline.storage.columns.cache import ColumnCache
from tests import slices
from tests.compare import Ordering, difference, run_duckdb


@dataclass(frozen=True)
class Relation:
    """An Arrow table whose columns have plan identities; `r["x"]` is the column named x."""

    data: pa.Table
    columns: tuple[Column, ...]

    def __getitem__(self, name: str) -> Column:
        return next(c for c in self.columns if c.name == name)

    @property
    def scan(self) -> p.MemoryScan:
        """A leaf that stands for this relation; `run` takes its rows from the relation itself."""
        names = tuple(c.name for c in self.columns)
        return p.MemoryScan(table=None, made=self.columns, sources=names)  # type: ignore[arg-type]

    def order(self, name: str, descending: bool = False, nulls_first: bool = False) -> p.Order:
        return p.Order(self[name], descending, nulls_first)


def relation(data: Mapping[str, Any] | pa.Table) -> Relation:
    table = data if isinstance(data, pa.Table) else pa.table(dict(data))
    return Relation(table, tuple(new_column(f.name, from_arrow(f.type)) for f in table.schema))


def call(
    function: str,
    *args: Column | Literal,
    type: DataType,
    distinct: bool = False,
    filter: Column | None = None,
    order: Sequence[p.Order] = (),
) -> tuple[Column, AggregateCall]:
    exprs = tuple(a if isinstance(a, Literal) else ColumnRef(a) for a in args)
    keys = tuple(SortKey(ColumnRef(o.column), o.descending, o.nulls_first) for o in order)
    where = None if filter is None else ColumnRef(filter)
    return new_column(function, type), AggregateCall(function, exprs, type, distinct, where, keys)


def text(value: str) -> Literal:
    return Literal(value, VARCHAR)


def run(backend: str, node: p.Physical, *inputs: Relation, sliced: bool = False) -> pa.Table:
    """Return the node's columns, in its order, named c0, c1, ...; `sliced`: over parts of longer tables."""
    module = importlib.import_module(f"fuseline.operators.{backend}")
    reason = module.unsupported(node)
    assert reason is None, reason
    tables = tuple(module.from_arrow(r.data, r.columns) for r in inputs)
    if sliced:
        tables = tuple(slices.held(backend, table) for table in tables)
    context = Context(ColumnCache(1 << 20), lambda: None, threads=2)
    result = module.OPERATORS[type(node)](node, tables, context)
    assert result.num_rows >= 0
    return _numbered(module.to_arrow(result, node.columns))


def query(sql: str, **inputs: Relation) -> pa.Table:
    """DuckDB's answer, with the columns named c0, c1, ..."""
    return _numbered(run_duckdb(sql, {name: source.data for name, source in inputs.items()}))


def assert_node(
    backend: str, node: p.Physical, sql: str, *, ordered: bool = False, **inputs: Relation
) -> None:
    """The node over `inputs` (in the order given) makes the rows that DuckDB makes of `sql` over tables of those names."""
    expected = query(sql, **inputs)
    for sliced in (False, True):
        actual = run(backend, node, *inputs.values(), sliced=sliced)
        problem = difference(expected, actual, Ordering(ordered))
        assert problem is None, f"{problem}\n{sql}" + "\nover slices" * sliced


def decimals(values: Sequence[Any], precision: int, scale: int) -> pa.Array:
    exact = [None if v is None else Decimal(v) for v in values]
    return pa.array(exact, pa.decimal128(precision, scale))


def dictionary(values: Sequence[str | None]) -> pa.Array:
    """Strings as Parquet scans bring them; the dictionary's order depends on the values."""
    return pa.array(values, pa.string()).dictionary_encode()


def _numbered(table: pa.Table) -> pa.Table:
    return table.rename_columns([f"c{i}" for i in range(table.num_columns)])

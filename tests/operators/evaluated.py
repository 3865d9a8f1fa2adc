"""SQL expressions over one Arrow table, by the CPU's kernels alone and by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fuseline.errors import FuselineError
from fuseline.operators.cpu.functions.expressions import evaluate_all, selection
from fuseline.operators.cpu.table import Table, to_logical, to_physical
from fuseline.plan.arrow.arrow_types import from_arrow
from fuseline.plan.changes.catalog_objects import SessionObjects
from fuseline.plan.expr import Column, Expr
from fuseline.plan.logical import Filter, Logical, Project, Scan, TableStatistics
from fuseline.plan.statements import Query
from fuseline.plan.types import DataType, to_arrow
from fuseline.sql import plan_sql
from tests.compare import Ordering, difference, run_duckdb
from tests.unplaced_tables import UnplacedTables


@dataclass(frozen=True, eq=False)
class Rows:
    """The table `t` of a test, as binding sees it."""

    arrow: pa.Table
    name: str = "t"
    identity: None = None

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]:
        return tuple((f.name, from_arrow(f.type, f.name)) for f in self.arrow.schema)

    def statistics(self) -> TableStatistics:
        return TableStatistics(self.arrow.num_rows, {})


class OneTable(UnplacedTables):
    """A catalog with the table `t`."""

    timezone = "UTC"
    session = SessionObjects()

    def __init__(self, arrow: pa.Table) -> None:
        self.rows = Rows(arrow)

    def table(self, name: str) -> Rows | None:
        return self.rows if name == "t" else None

    def view(self, name: str) -> None:
        return None

    def names(self) -> list[str]:
        return ["t"]

    def read_files(self, form: str, paths: list[str], options: dict[str, object]) -> Any:
        raise AssertionError("no files here")


def plan_of(query: str, arrow: pa.Table) -> Logical:
    (statement,) = plan_sql(query, OneTable(arrow))
    assert isinstance(statement, Query)
    return statement.plan


def items_of(plan: Logical) -> tuple[tuple[Column, Expr], ...]:
    assert isinstance(plan, Project)
    return plan.items


def physical(plan: Logical, arrow: pa.Table) -> Table:
    """The rows of `t` under the column ids of a plan."""
    node = plan
    while node.children:
        (node,) = node.children
    arrays = {}
    if isinstance(node, Scan):
        for column, source in zip(node.made, node.sources, strict=True):
            arrays[column.id] = to_physical(arrow.column(source), column.type)
    return Table(arrays, arrow.num_rows)


ONE_ROW = pa.table({"x": pa.array([0], pa.int64())})


def evaluated(expressions: Sequence[str], arrow: pa.Table = ONE_ROW) -> pa.Table:
    """The values of SQL expressions over the table, in result types."""
    aliased = ", ".join(f"{e} as c{i}" for i, e in enumerate(expressions))
    plan = plan_of(f"select {aliased} from t", arrow)
    items = items_of(plan)
    arrays = evaluate_all([expr for _, expr in items], physical(plan, arrow))
    names = [column.name for column, _ in items]
    logical = [to_logical(a, c.type) for a, (c, _) in zip(arrays, items, strict=True)]
    return pa.table(logical, names)


def selected(predicate: str, arrow: pa.Table) -> list[int]:
    """The numbers of the rows for which the predicate is TRUE."""
    plan = plan_of(f"select * from t where {predicate}", arrow)
    while not isinstance(plan, Filter):
        (plan,) = plan.children
    found = selection(plan.predicate, physical(plan, arrow))
    return found.nonzero()[0].tolist() if found.dtype == bool else found.tolist()


def assert_expressions(expressions: Sequence[str], arrow: pa.Table = ONE_ROW) -> None:
    """Each expression has DuckDB's type and values in every row."""
    aliased = ", ".join(f"{e} as c{i}" for i, e in enumerate(expressions))
    expected = run_duckdb(f"select {aliased} from t", {"t": arrow})
    actual = evaluated(expressions, arrow)
    for i, expression in enumerate(expressions):
        problem = difference(expected.select([i]), actual.select([i]), Ordering(True))
        assert problem is None, f"{expression}: {problem}"


def assert_rows(expressions: Sequence[str], arrow: pa.Table) -> None:
    """Each row by itself has DuckDB's value, or raises where DuckDB does; so have all rows together."""
    tried = ", ".join(f"try({e}) as c{i}" for i, e in enumerate(expressions))
    # The optimizer drops what it knows to be NULL from statistics, and its errors with it.
    setup = ["pragma disable_optimizer"]
    expected = run_duckdb(f"select {tried} from t", {"t": arrow}, setup=setup)
    for i, expression in enumerate(expressions):
        plan = plan_of(f"select {expression} as c{i} from t", arrow)
        ((column, expr),) = items_of(plan)
        whole = physical(plan, arrow)
        ones = [
            Table({key: a.slice(row, 1) for key, a in whole.arrays.items()}, 1)
            for row in range(arrow.num_rows)
        ]
        results = [_tried(expr, column, one) for one in ones]
        failed = any(result is None for result in results)
        nothing = pa.nulls(1, to_arrow(column.type))
        together = None if failed else _tried(expr, column, whole)
        assert failed or together is not None, f"{expression} raises over all rows"
        for arrays in [[nothing if r is None else r for r in results], [together]]:
            if arrays == [None]:
                continue
            made = pa.table({f"c{i}": pa.chunked_array(arrays, to_arrow(column.type))})
            problem = difference(expected.select([i]), made, Ordering(True))
            assert problem is None, f"{expression}: {problem}"


def _tried(expr: Expr, column: Column, table: Table) -> pa.Array | None:
    try:
        return to_logical(evaluate_all([expr], table)[0], column.type)
    except FuselineError:
        return None


def error_of(expression: str, arrow: pa.Table = ONE_ROW) -> FuselineError:
    """The error of an expression."""
    try:
        values = evaluated([expression], arrow)
    except FuselineError as error:
        return error
    raise AssertionError(f"{expression} gave {values.column(0).to_pylist()}")

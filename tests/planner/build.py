"""Tables that are nothing but statistics, and plans over them: planning reads no data."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any
from unittest import mock

import pyarrow as pa

from fuseline import planner
from fuseline.plan.changes.catalog_objects import SessionObjects
from fuseline.plan.composed.sampling import DEFAULTS, SortDefaults
from fuseline.plan.dialect import SqlReading
from fuseline.plan.logical import ColumnStatistics, Logical, TableStatistics
from fuseline.plan.node import Node
from fuseline.plan.physical import Physical
from fuseline.plan.statements import Query
from fuseline.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    VARCHAR,
    DataType,
    Kind,
    decimal,
    to_arrow,
)
from fuseline.planner import optimizer, plan_query
from fuseline.planner.optimizer import RULES, optimize
from fuseline.planner.pipelines import fuse as fusion
from fuseline.planner.rewrite import Fixpoint, Rule
from fuseline.settings import FuseChoice
from fuseline.sql import plan_sql
from tests.unplaced_tables import UnplacedTables

PRICE = decimal(15, 2)


@dataclass(frozen=True, eq=False)
class StatisticsTable:
    """A table of which only the schema and the statistics exist."""

    name: str
    fields: tuple[tuple[str, DataType], ...]
    known: TableStatistics
    identity: None = None

    def statistics(self) -> TableStatistics:
        return self.known


def table(name: str, rows: int | None, **columns: Any) -> StatisticsTable:
    """Describe a table: a column is a type, or (type, low, high), in which case it has no NULLs."""
    fields, known = [], {}
    for column, spec in columns.items():
        data_type, *bounds = spec if isinstance(spec, tuple) else (spec,)
        fields.append((column, data_type))
        if bounds:
            known[column] = ColumnStatistics(low=bounds[0], high=bounds[1], nulls=0)
    return StatisticsTable(name, tuple(fields), TableStatistics(rows, known))


TABLES = (
    table("t", 1_000, a=INTEGER, b=INTEGER, c=DOUBLE, s=VARCHAR, f=BOOLEAN),
    table("u", 10_000, k=INTEGER, x=INTEGER, y=INTEGER),
    table("w", 100, p=INTEGER, q=INTEGER),
    table("days", 365, d=(DATE, date(2024, 1, 1), date(2024, 12, 31)), n=(INTEGER, 1, 366)),
    table("nation", 25, n_nationkey=(INTEGER, 0, 24), n_name=VARCHAR, n_regionkey=(INTEGER, 0, 4)),
    table("customer", 150_000, c_custkey=(BIGINT, 1, 150_000), c_nationkey=(INTEGER, 0, 24), c_mktsegment=VARCHAR),
    table("orders", 1_500_000, o_orderkey=(BIGINT, 1, 6_000_000), o_custkey=(BIGINT, 1, 149_999), o_orderdate=(DATE, date(1992, 1, 1), date(1998, 8, 2))),
    table("lineitem", 6_000_000, l_orderkey=(BIGINT, 1, 6_000_000), l_partkey=(BIGINT, 1, 200_000), l_quantity=(PRICE, 1, 50), l_shipdate=(DATE, date(1992, 1, 2), date(1998, 12, 1))),
    table("sales", 600_000_000, item=(BIGINT, 1, 20_000_000), shop=(BIGINT, 1, 1_000_000), amount=(PRICE, 1, 50)),
    table("stock", 80_000_000, item=(BIGINT, 1, 20_000_000), shop=(BIGINT, 1, 1_000_000), cost=(PRICE, 1, 50)),
    table("items", 20_000_000, item=(BIGINT, 1, 20_000_000), kind=VARCHAR),
    table("people", 200_000, id=(BIGINT, 1, 200_000), surname=VARCHAR, street=VARCHAR, town=VARCHAR, motto=(VARCHAR, "a", "z"), born=(DATE, date(1930, 1, 1), date(2010, 1, 1))),
    table("part", 200_000, p_partkey=(BIGINT, 1, 200_000), p_brand=VARCHAR, p_size=(INTEGER, 1, 50)),
)  # fmt: skip


def rows(count: int = 40) -> dict[str, pa.Table]:
    """Draw rows for each table: few different values within its bounds, and NULLs where it has none."""
    draw = random.Random(7)

    def value(kind: Kind, known: ColumnStatistics | None) -> Any:
        if known is None and draw.random() < 0.2:
            return None
        low, step = known.low if known else 0, draw.randrange(9)
        match kind:
            case Kind.VARCHAR:
                return ("a", "ab", "b")[step % 3]
            case Kind.BOOLEAN:
                return step > 3
            case Kind.DATE:
                return low + timedelta(300 * step)
        return low + step

    return {
        described.name: pa.table(
            {
                name: pa.array([value(kind.kind, described.known.columns.get(name)) for _ in range(count)], to_arrow(kind))
                for name, kind in described.fields
            }
        )
        for described in TABLES
    }  # fmt: skip


@dataclass
class Tables(UnplacedTables):
    """A catalog of tables by name, without views and files."""

    by_name: dict[str, StatisticsTable] = field(default_factory=lambda: {t.name: t for t in TABLES})
    timezone: str = "UTC"
    sort_defaults: SortDefaults = DEFAULTS
    dialect: SqlReading = SqlReading()  # noqa: RUF009
    session: SessionObjects = field(default_factory=SessionObjects)

    def table(self, name: str) -> StatisticsTable | None:
        return self.by_name.get(name.lower())

    def view(self, name: str) -> None:
        return None

    def names(self) -> list[str]:
        return list(self.by_name)

    def read_files(self, form: str, paths: list[str], options: dict[str, Any]) -> StatisticsTable:
        raise AssertionError(f"no test here reads {paths}")


def bound(query: str, tables: Tables | None = None) -> Logical:
    """Return the plan of a query as the SQL front end made it."""
    (statement,) = plan_sql(query, tables or Tables())
    assert isinstance(statement, Query)
    return statement.plan


def steps(query: str) -> list[tuple[str, Node]]:
    """Return the bound plan and what each rule that changed it made of it."""
    plan = bound(query)
    found: list[tuple[str, Node]] = [("bind", plan)]
    optimize(plan, observer=lambda name, node: found.append((name, node)), check=True)
    return found


def optimized(query: str, tables: Tables | None = None) -> Logical:
    return optimize(bound(query, tables), check=True)


def physical(
    query: str,
    device: Any = "cpu",
    unsupported: Callable[[Physical], str | None] = lambda node: None,
    tables: Tables | None = None,
    fuse: FuseChoice = "never",
) -> Physical:
    plan = bound(query, tables)
    return plan_query(plan, device=device, unsupported=unsupported, check=True, fuse=fuse)


def rules() -> list[Rule]:
    """Return each rule of the optimizer once, in order."""
    found: dict[str, Rule] = {}
    for entry in RULES:
        for rule in entry.rules if isinstance(entry, Fixpoint) else (entry,):
            found.setdefault(rule.name, rule)
    return list(found.values())


PHYSICAL = (
    (optimizer, "PHYSICAL_RULES"),
    (fusion, "PIPELINE_RULES"),
    (fusion, "CHAIN_RULES"),
    (fusion, "BODY_RULES"),
)


def physical_rules() -> list[Rule]:
    return [rule for module, name in PHYSICAL for rule in getattr(module, name)]


def physical_steps(query: str, device: str = "gpu") -> list[tuple[str, Node, Node]]:
    """Return what each rule of physical plans that changed something got and gave."""
    found: list[tuple[str, Node, Node]] = []

    def recorded(apply: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(apply)
        def record(before: Node, *context: Any) -> Any:
            after = apply(before, *context)
            if after is not None and after != before:
                found.append((apply.__name__, before, after))
            return after

        return record

    with ExitStack() as patches:
        for module, name in PHYSICAL:
            made = [replace(rule, apply=recorded(rule.apply)) for rule in getattr(module, name)]
            for user in {module, planner} if hasattr(planner, name) else {module}:
                patches.enter_context(mock.patch.object(user, name, tuple(made)))
        physical(query, device=device, fuse="auto" if device == "gpu" else "always")
    return found

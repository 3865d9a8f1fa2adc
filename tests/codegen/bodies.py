"""Bodies of pipelines made by hand, over tables that are no more than descriptions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from fuseline.codegen.compile_pipeline import Limits, Stages, stages
from fuseline.codegen.loop import Statement
from fuseline.codegen.program import Program
from fuseline.codegen.typed_values import Input, NotFusable
from fuseline.plan.expr import AggregateCall, Call, Column, ColumnRef, Expr, Literal, new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.physical import (
    ComputeColumns,
    FilterRows,
    HashAggregate,
    HashJoin,
    MemoryScan,
    Physical,
    Stored,
)
from fuseline.plan.pipeline_steps import steps_of
from fuseline.plan.types import BIGINT, BOOLEAN, DOUBLE, HUGEINT, VARCHAR, DataType
from fuseline.storage.columns.encodings import TRUTHS, Dictionary, Narrow, Plain

LIMITS = Limits(1 << 14)

# What a column holds: the ends of an interval, strings, floats or text without an encoding; NULLs where `nullable`
Held = tuple[int, int] | list[str] | type[float] | type[str]


@dataclass
class Tables:
    """Tables and their rows; a `codegen.row_sources.LeafColumns` that knows nothing else."""

    rows_of: dict[str, int] = field(default_factory=dict)
    held: dict[Column, Held] = field(default_factory=dict)
    nullable: set[Column] = field(default_factory=set)
    repeating: Collection[int] = ()
    derivations: list[Expr] = field(default_factory=list)
    text_tables: int = 1
    has_vectors: bool = True

    def scan(self, name: str, rows: int, nullable: str = "", /, **columns: Held) -> MemoryScan:
        made = tuple(self.column_of(n, held, nullable) for n, held in columns.items())
        self.rows_of[name] = rows
        table: Any = SimpleNamespace(name=name, identity=None)
        return MemoryScan(table, made, tuple(columns))

    def stored(self, number: int, rows: int, **columns: Held) -> Stored:
        self.rows_of[f"stored{number}"] = rows
        return Stored(number, tuple(self.column_of(n, held, "") for n, held in columns.items()))

    def column_of(self, name: str, held: Held, nullable: str) -> Column:
        column = new_column(name, _type(held))
        self.held[column] = held
        if name in nullable.split():
            self.nullable.add(column)
        return column

    # What `Source` asks for

    def rows(self, leaf: Physical) -> int:
        if isinstance(leaf, Stored):
            return self.rows_of[f"stored{leaf.number}"]
        assert isinstance(leaf, MemoryScan)
        return self.rows_of[leaf.table.name]

    def column(self, leaf: Physical, column: Column) -> Input:
        held, nullable = self.held[column], column in self.nullable
        if held is float:
            return Input(column, Plain(8), nullable)
        if isinstance(held, list):
            return Input(column, Dictionary(pa.array(sorted(held)), 1), nullable, len(held))
        if not isinstance(held, tuple):
            raise NotFusable(f"{column.name} has no encoding")
        low, high = held
        return Input(column, Narrow(low, 1, 4), nullable, high - low + 1)

    def derived(self, leaf: Physical, expr: Expr) -> Input:
        self.derivations.append(expr)
        return Input(new_column("derived", expr.type), TRUTHS, False, 2)

    def fold(self, expr: Expr, source: Input) -> Any:
        assert source.codes is not None
        return pa.array([True] * (source.codes + 1))

    def varies(self, leaf: Physical) -> bool:
        return False

    def repeated(self, index: int) -> bool:
        return index in self.repeating


def _type(held: Held) -> DataType:
    if held is float:
        return DOUBLE
    return BIGINT if isinstance(held, tuple) else VARCHAR


def made(body: Physical, tables: Tables, limits: Limits = LIMITS) -> Stages:
    return stages(steps_of(body), tables, limits)


def refusal(body: Physical, tables: Tables) -> str:
    """Why no kernels hold a body."""
    try:
        stages(steps_of(body), tables, LIMITS)
    except NotFusable as reason:
        return reason.message
    raise AssertionError("the body was fused")


def column(node: Physical, name: str) -> Column:
    (found,) = (c for c in node.columns if c.name == name)
    return found


def call(name: str, *args: Expr | Column | int, type: DataType = BOOLEAN) -> Call:
    return Call(name, tuple(map(expr, args)), type)


def expr(value: Expr | Column | int | str) -> Expr:
    match value:
        case Column():
            return ColumnRef(value)
        case int():
            return Literal(value, BIGINT)
        case str():
            return Literal(value, VARCHAR)
    return value


def where(below: Physical, name: str, *args: Any) -> FilterRows:
    """Keep rows for which a function holds; strings among the arguments name columns."""
    given = [column(below, a) if isinstance(a, str) else a for a in args]
    return FilterRows(below, call(name, *given))


def join(left: Physical, right: Physical, on: str, kind: str = "inner", **details: Any) -> HashJoin:
    """Join on "x = y, ..."."""
    pairs = [pair.split(" = ") for pair in on.split(", ")]
    mark = new_column("mark", BOOLEAN) if kind == "mark" else None
    return HashJoin(
        left,
        right,
        JoinKind(kind),
        tuple(column(left, a) for a, _ in pairs),
        tuple(column(right, b) for _, b in pairs),
        details.pop("null_equal", (False,) * len(pairs)),
        mark=mark,
        **details,
    )


def compute(below: Physical, **made: Expr) -> ComputeColumns:
    """All columns, and computed ones."""
    items = [(c, ColumnRef(c)) for c in below.columns]
    new = [(new_column(name, e.type), e) for name, e in made.items()]
    return ComputeColumns(below, (*items, *new))


def grouped(below: Physical, keys: str, *sums: str) -> HashAggregate:
    """GROUP BY keys with sums of columns and a count."""
    calls = [
        (new_column(f"sum_{s}", HUGEINT), AggregateCall("sum", (expr(column(below, s)),), HUGEINT))
        for s in sums
    ]
    count = (new_column("rows", BIGINT), AggregateCall("count_star", (), BIGINT))
    return HashAggregate(below, tuple(column(below, k) for k in keys.split()), (*calls, count))


def kinds(program: Program) -> list[str]:
    return [type(s).__name__ for s in program.body]


def statement(program: Program, kind: type[Statement]) -> Any:
    """The only statement of a kind."""
    (found,) = (s for s in program.body if isinstance(s, kind))
    return found


def names(program: Program) -> list[str]:
    """What the kernel reads of each relation: elements as relation.column."""
    rows = [r.row.removesuffix("_row") for r in program.relations]
    return [f"{rows[e.relation]}.{program.names[e.input.column]}" for e in program.elements]

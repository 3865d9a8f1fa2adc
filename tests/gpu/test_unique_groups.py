"""Groups of rows of which no two have the same keys: the answer is that of the aggregate, which nobody has to look for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.context import Context
from fuseline.plan import physical as p
from fuseline.plan.expr import AggregateCall, Cast, Column, ColumnRef, new_column
from fuseline.plan.types import BIGINT, HUGEINT, SMALLINT, VARCHAR, decimal
from fuseline.storage.columns.cache import ColumnCache
from fuseline.storage.columns.encodings import REGISTER
from tests.compare import assert_same
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu

RELATION, GROUPS = 60, 40
UNIQUE = [f"name {i:03d}" for i in range(RELATION)]
NAME, GRADE = new_column("name", VARCHAR), new_column("grade", VARCHAR)
COUNT, AMOUNT = new_column("n", BIGINT), new_column("amount", decimal(38, 2))


@pytest.fixture(autouse=True)
def on_the_device(limits: SetLimits) -> None:
    limits(few_rows__MOST_ROWS=0)  # as of groups too many for the host


def groups(
    names: list[str | None], origin: object, distinct: bool = True, bounds: bool = True
) -> Any:
    """What a kernel leaves of groups by the row of a relation: row numbers, and accumulators as in registers."""
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.late_materialization import Fetch, LateColumns, Places
    from fuseline.operators.gpu.pipeline.finish import from_registers

    def register(values: list[int | None], column: Column) -> Fetch:
        lying = gpu.device_type(column.type)
        known = [v for v in values if v is not None]
        return Fetch(
            gpu.plc.Column.from_arrow(pa.array(values, pa.int64())),
            REGISTER,
            lambda registers: from_registers(registers, lying),
            bounds=(min(known), max(known)) if bounds else None,
        )

    rows = np.random.default_rng(1).permutation(RELATION)[:GROUPS].astype(np.int32)
    place = Places(gpu.plc.Column.from_arrow(pa.array(rows)), False, distinct)
    texts = gpu.to_device(pa.array(names), VARCHAR)
    grades = gpu.to_device(pa.array([f"g{i % 3}" for i in range(RELATION)]), VARCHAR)
    counts: list[int | None] = [None if i == 7 else i * i - 100 for i in range(GROUPS)]
    amounts: list[int | None] = [i * 10**15 for i in range(GROUPS)]
    fetches = {
        NAME.id: (0, Fetch(texts, None, lambda lying: lying, origin=origin)),
        GRADE.id: (0, Fetch(grades, None, lambda lying: lying, origin="grades")),
        COUNT.id: (1, register(counts, COUNT)),
        AMOUNT.id: (1, register(amounts, AMOUNT)),
    }
    return gpu.Table(LateColumns({}, [place, Places(None, False)], fetches), GROUPS)


def aggregate(*keys: Column) -> p.HashAggregate:
    calls = {
        "sum": AggregateCall("sum", (ColumnRef(COUNT),), HUGEINT),
        "most": AggregateCall("max", (ColumnRef(COUNT),), BIGINT),
        "total": AggregateCall("sum", (ColumnRef(AMOUNT),), AMOUNT.type),
    }
    made = tuple((new_column(name, call.type), call) for name, call in calls.items())
    below = p.ValuesScan((NAME, GRADE, COUNT, AMOUNT), ())
    return p.HashAggregate(below, keys, made)


def grouped(node: p.HashAggregate, table: Any) -> tuple[Any, bool]:
    """The groups on the host, and whether each row was taken for one."""
    from fuseline.operators import gpu

    context = Context(ColumnCache(1 << 30), lambda: None, 1)
    found = gpu.OPERATORS[type(node)](node, (table,), context)
    rows = gpu.to_arrow(found, node.columns)
    return rows.sort_by([(rows.column_names[0], "ascending")]), id(node) in context.remarks


def there(table: Any) -> Any:
    """The same rows as columns of which nothing is known."""
    from fuseline.operators.gpu.table import Table

    return Table({i: table.columns[i] for i in (NAME.id, GRADE.id, COUNT.id, AMOUNT.id)}, GROUPS)


@pytest.mark.parametrize(("names", "alone"), [
    (UNIQUE, True), ([None, *UNIQUE[1:]], True),
    ([None, None, *UNIQUE[2:]], False),
    ([*UNIQUE[:-1], UNIQUE[0]], False),
    (["same"] * RELATION, False),
])  # fmt: skip
@pytest.mark.parametrize("keys", [(NAME,), (GRADE, NAME)])
def test_rows_of_different_names_are_groups(
    names: list[str | None], alone: bool, keys: tuple[Column, ...]
) -> None:
    node = aggregate(*keys)
    table = groups(names, ("version", *map(str, names)))
    found, each = grouped(node, table)
    assert each is alone
    again, each = grouped(node, groups(names, ("version", *map(str, names))))
    assert each is alone
    wanted, each = grouped(node, there(table))
    assert not each
    by = [(column.name, "ascending") for column in keys]
    assert_same(wanted.sort_by(by), found.sort_by(by))
    assert_same(wanted.sort_by(by), again.sort_by(by))


@pytest.mark.parametrize("names", [UNIQUE, [None, *UNIQUE[1:]]], ids=["texts", "NULL"])
@pytest.mark.parametrize("keys", [(NAME,), (GRADE, NAME)], ids=str)
@pytest.mark.parametrize("calls", [True, False], ids=["aggregates", "distinct"])
def test_rows_of_names_that_come_once_stand_for_them(
    calls: bool, keys: tuple[Column, ...], names: list[str | None]
) -> None:
    """Rows of a relation several times, as other workers have sent them: groups are found by row numbers, and names stay to be fetched."""
    from fuseline.operators import gpu
    from fuseline.operators.gpu.late_materialization import LateColumns, Places

    node = aggregate(*keys)
    if not calls:
        node = p.HashAggregate(node.input, keys, ())
    given = groups(names, ("version", *map(str, names)))
    rows = np.random.default_rng(3).integers(0, 10, GROUPS).astype(np.int32)
    place = Places(gpu.table.plc.Column.from_arrow(pa.array(rows)), False)
    late = given.columns
    table = gpu.table.Table(
        LateColumns({}, [place, *late.places[1:]], late.fetches), given.num_rows
    )
    context = Context(ColumnCache(0), lambda: None, 1)
    found = gpu.OPERATORS[type(node)](node, (table,), context)
    assert found.columns.late(NAME.id) is not None
    assert id(node) not in context.remarks
    by = [(column.name, "ascending") for column in keys]
    wanted, _ = grouped(node, there(table))
    assert_same(wanted.sort_by(by), gpu.to_arrow(found, node.columns).sort_by(by))


def test_what_is_not_known_is_looked_for() -> None:
    node = aggregate(NAME)
    wanted, _ = grouped(node, there(groups(UNIQUE, None)))
    for table in (
        groups(UNIQUE, None),
        groups(UNIQUE, "twice", distinct=False),
        groups(UNIQUE, "anywhere", bounds=False),
    ):
        found, alone = grouped(node, table)
        assert not alone
        assert_same(wanted, found)
    assert not grouped(aggregate(GRADE), groups(UNIQUE, "names"))[1]


def test_other_types_of_the_same_integers() -> None:
    from fuseline.errors import ConversionError
    from fuseline.operators import gpu

    context = Context(ColumnCache(1 << 30), lambda: None, 1)
    table = groups(UNIQUE, "types")
    below = p.ValuesScan((NAME, GRADE, COUNT, AMOUNT), ())

    def computed(source: Column, target: Any) -> Any:
        made = new_column("made", target)
        node = p.ComputeColumns(
            below, ((NAME, ColumnRef(NAME)), (made, Cast(ColumnRef(source), target)))
        )
        return made, gpu.OPERATORS[type(node)](node, (table,), context)

    for target in (HUGEINT, BIGINT, SMALLINT):
        made, found = computed(COUNT, target)
        assert made.id not in found.columns.there, "a pass over the column"
        expected = [None if i == 7 else i * i - 100 for i in range(GROUPS)]
        assert gpu.to_arrow(found, [made]).column(0).to_pylist() == expected
    made, found = computed(AMOUNT, decimal(20, 4))
    assert gpu.to_arrow(found, [made]).column(0).to_pylist()[3] == 30 * 10**12
    with pytest.raises(ConversionError):
        computed(AMOUNT, decimal(16, 2))

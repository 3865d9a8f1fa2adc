"""Rows that one kernel brings to the host: what libcudf's gathers and copies bring, from wherever columns lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.plan.expr import Column, new_column
from fuseline.plan.types import BIGINT, VARCHAR, decimal
from fuseline.storage.columns.encodings import Narrow
from tests.compare import assert_same, assert_same_as_duckdb
from tests.limits import SetLimits

from .plans import TYPES, column, scan
from .test_host_table import device_table
from .test_late_materialization import ROWS, tables

pytestmark = pytest.mark.gpu

Fetched = Callable[..., Any]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: Any) -> Path:
    """The kernel is compiled once."""
    made: Path = tmp_path_factory.mktemp("kernels")
    return made


@pytest.fixture
def fetched(directory: Path) -> Iterator[Fetched]:
    from fuseline.operators.gpu.memory import fetch_rows
    from fuseline.operators.gpu.memory.device import kernel_files

    def fetch(table: Any, columns: list[Column], picked: Any = None, most: int = 1 << 22) -> Any:
        kernel_files.place = directory, "always"  # an operator that made the table had another one
        return fetch_rows.fetched(table, columns, most, picked)

    before, kernel_files.place = kernel_files.place, None
    yield fetch
    kernel_files.place = before


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("picked", ["all", "device", "slice", "host", "one"])
def test_late_columns_come(optional: bool, picked: str, fetched: Fetched) -> None:
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.late_materialization import together

    there, late, columns = tables(optional)
    more = [column(kind, kind) for kind in TYPES]
    values = device_table(scan(np.random.default_rng(5), ROWS, more, nulls=0.2)).columns
    columns = [*columns, *more]
    whole = gpu.Table({**there.columns, **values}, ROWS)
    table = gpu.Table(together(late.columns, values), ROWS)
    numbers = np.random.default_rng(6).integers(0, ROWS, 70)
    numbers = numbers[:1] if picked == "one" else numbers
    rows: Any = numbers
    if picked in ("device", "slice"):
        rows = gpu.plc.Column.from_arrow(pa.array(numbers, pa.int32()))
    if picked == "slice":
        (rows,) = gpu.plc.copying.slice(rows, [13, 46])
        numbers = numbers[13:46]
    held = fetched(table, columns, None if picked == "all" else rows)
    assert held is not None
    expected = gpu.to_arrow(whole, columns)
    if picked != "all":
        expected = expected.take(pa.array(numbers))
    assert_same(expected, held.to_arrow(columns))
    assert not set(table.columns.there) - set(values)  # nothing has been gathered


def test_codes_come_as_what_they_stand_for(fetched: Fetched) -> None:
    from fuseline.operators.gpu import dictionaries, table as gpu
    from fuseline.operators.gpu.late_materialization import Fetch, LateColumns, Places

    codes = pa.array([0, 3, None, 255, 7], pa.uint8())
    keys = gpu.to_device(pa.array(["", "a", "bc"]), VARCHAR)
    few = gpu.plc.Column.from_arrow(pa.array([2, 0, 1, None, 2], pa.int8()))
    number, price, text = (
        new_column("n", BIGINT),
        new_column("p", decimal(12, 2)),
        column("t", "varchar"),
    )
    lying = gpu.plc.Column.from_arrow(codes)
    fetches = {
        number.id: (0, Fetch(lying, Narrow(-5, 3, 1), lambda c: c)),
        price.id: (0, Fetch(lying, Narrow(100, 1, 1), lambda c: c)),
        text.id: (1, Fetch(few, None, lambda c: dictionaries.Coded(c, keys), keys=keys)),
    }
    places = [
        Places(gpu.plc.Column.from_arrow(pa.array(rows, pa.int32())), True)
        for rows in ([4, 3, -1, 2, 1], [0, 3, 2, -7, 1])
    ]
    held = fetched(gpu.Table(LateColumns({}, places, fetches), 5), [number, price, text])
    assert held is not None
    assert [held.array(c).to_pylist() for c in (number, text)] == [
        [16, 760, None, None, 4],
        ["bc", None, "a", None, ""],
    ]
    cents = [None if p is None else int(p * 100) for p in held.array(price).to_pylist()]
    assert cents == [107, 355, None, None, 103]


def test_texts_longer_than_expected_take_a_second_run(fetched: Fetched) -> None:
    from fuseline.operators.gpu import table as gpu

    text = new_column("t", VARCHAR)
    strings = ["x"] * 5000 + ["ü" * 50_000, "", "y" * 30_000]
    table = gpu.Table({text.id: gpu.to_device(pa.array(strings), VARCHAR)}, len(strings))
    rows = np.array([5002, 1, 5001, 5000, 5000])
    held = fetched(table, [text], rows)
    assert held is not None
    assert held.array(text).to_pylist() == [strings[r] for r in rows]
    assert fetched(table, [text], rows, most=200_000) is None
    assert held.take(np.array([1, 3, 1])).array(text).to_pylist() == ["x", strings[5000], "x"]
    assert held.take(slice(1, 3)).array(text).to_pylist() == ["x", ""]


def test_what_cannot_be_fetched(fetched: Fetched) -> None:
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.memory import fetch_rows
    from fuseline.operators.gpu.memory.device import kernel_files

    number = new_column("n", BIGINT)
    table = gpu.Table({number.id: gpu.to_device(pa.array(range(50_000)), BIGINT)}, 50_000)
    assert fetched(table, [number]) is None  # too many rows
    assert fetched(table, [number], np.zeros(0, np.int32)) is None
    assert fetched(table, [number], np.arange(3)).array(number).to_pylist() == [0, 1, 2]
    assert not fetch_rows.saves(table, [number])
    text = new_column("t", VARCHAR)
    strings = gpu.Table({text.id: gpu.to_device(pa.array(["a"] * 10_000), VARCHAR)}, 10_000)
    assert fetched(strings, [text]) is None  # too many texts
    assert fetched(strings, [text], np.zeros(9, np.int32)).array(text).to_pylist() == ["a"] * 9
    for place in (None, (Path("kernels"), "never"), (Path(), "always")):
        kernel_files.place = place
        assert fetch_rows.fetched(table, [number], 1 << 22, np.arange(3)) is None


QUERIES = (
    "select c.name, c.note, o.amount, o.day, c.score from o join c on o.customer = c.id "
    "order by o.amount desc, c.name, o.day, o.number limit 30",
    "select c.name, c.note, o.number, c.score from o left join c on o.customer = c.id and c.score > 0 "
    "order by o.number desc limit 50 offset 3",
    "select c.name, c.note from o join c on o.customer = c.id where o.amount > 5 "
    "order by length(c.note) desc, o.number limit 9",
    "select c.note, c.name from o join c on o.customer = c.id where o.number < 40 order by c.note, o.number",
    "select c.name, c.note from o join c on o.customer = c.id where o.number = 11 order by c.name",
    "select c.name, c.note from o join c on o.customer = c.id where o.number < 0 order by c.name limit 3",
    "select c.name, a.note, c.note, o.number from o join c on o.customer = c.id "
    "left join c as a on a.id = c.other order by c.name nulls first, o.number limit 25",
    "select c.id, c.name, c.note, sum(o.amount) as total from o join c on o.customer = c.id "
    "group by c.id, c.name, c.note order by total desc, c.id limit 20",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("few", [True, False])
def test_queries(query: str, few: bool, monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> None:
    """With few rows on the host at most, the first by one key are looked for on the device; strings then are no codes."""
    from fuseline.operators.gpu.memory import fetch_rows

    if few:
        limits(
            dictionaries__MOST_KEYS=0,
            device_encode__MOST_STRINGS=0,
            host_table__MOST_ROWS=200,
            LED_ROWS=60,
        )
    runs: list[int] = []
    exchange = fetch_rows.exchanged
    monkeypatch.setattr(
        fetch_rows, "exchanged", lambda *given: runs.append(given[-1]) or exchange(*given)
    )
    rng = np.random.default_rng(8)
    customers, orders = 300, 5000
    names = [None if i % 17 == 0 else f"name {i * 7919 % 1000:04d} Ä" for i in range(customers)]
    notes = [(f"note {i}", "", None, "long " * (i * 20), "Ärger")[i % 5] for i in range(customers)]
    c = {
        "id": pa.array(rng.permutation(customers), pa.int64()),
        "name": pa.array(names),
        "note": pa.array(notes),
        "score": pa.array([None if i % 11 == 0 else i % 7 - 3.5 for i in range(customers)]),
        "other": pa.array(rng.integers(0, 2 * customers, customers)),
    }
    o = {
        "number": pa.array(range(orders)),
        "customer": pa.array(rng.integers(0, customers + 40, orders)),
        "amount": pa.array(rng.integers(0, 100, orders), pa.int16()),
        "day": pa.array(rng.integers(9000, 9100, orders), pa.int32()).cast(pa.date32()),
    }
    tables_ = {"c": pa.table(c), "o": pa.table(o)}
    expected = assert_same_as_duckdb(query, tables_, backend="gpu", fuse=("always",))
    assert bool(runs) == bool(expected.num_rows)


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("descending", [False, True])
def test_the_first_rows_are_found_without_a_sort(
    kind: str, descending: bool, directory: Path
) -> None:
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.memory import fetch_rows
    from fuseline.operators.gpu.memory.device import kernel_files

    rows, rng = 3000, np.random.default_rng(2)
    values = rng.permutation(rows).astype(kind) - 1000
    number, text = new_column("n", BIGINT), new_column("t", VARCHAR)
    strings = pa.array([None if i % 5 == 0 else f"text {i}" for i in range(rows)])
    table = gpu.Table(
        {
            number.id: gpu.to_device(pa.array(range(rows)), BIGINT),
            text.id: gpu.to_device(strings, VARCHAR),
        },
        rows,
    )
    kernel_files.place = directory, "always"

    def found(keys: Any, count: int, most: int = 1 << 22) -> Any:
        lying = gpu.plc.Column.from_arrow(pa.array(keys))
        (lying,) = gpu.plc.copying.slice(lying, [0, rows])
        return fetch_rows.leading(table, [number, text], lying, descending, count, most)

    first = np.argsort(-values if descending else values, kind="stable")[:20]
    held = found(values, 20)
    numbers = held.array(number).to_pylist()
    assert set(first.tolist()) <= set(numbers)
    assert len(numbers) < 100
    assert numbers == sorted(numbers), "equal keys would change places"
    assert held.array(text).to_pylist() == strings.take(pa.array(numbers)).to_pylist()
    assert found(values, 20, most=1000) is None
    assert found(values // 1000, 20) is None, "more are equal than there is room for"
    assert found(values, rows + 1) is None

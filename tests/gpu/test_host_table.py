"""Small tables on the device: they come to the host in one turn, are sorted there, and nodes over few rows run there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.context import Context
from fuseline.plan import physical as p
from fuseline.plan.expr import Column, new_column
from fuseline.plan.types import VARCHAR
from fuseline.storage.columns.cache import ColumnCache
from tests.compare import assert_same, connected
from tests.limits import SetLimits

from .plans import TYPES, column, run, scan, scan_of

pytestmark = pytest.mark.gpu


def device_table(node: p.MemoryScan) -> Any:
    from fuseline.operators import gpu

    return gpu.OPERATORS[type(node)](node, (), Context(ColumnCache(1 << 30), lambda: None, 1))


def all_columns() -> list[Column]:
    return [column(kind, kind) for kind in TYPES]


@pytest.mark.parametrize("rows", [0, 1, 7, 64, 1000])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_every_type_comes_to_the_host(rows: int, nulls: float) -> None:
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.memory.to_host import on_host

    columns = all_columns()
    table = device_table(scan(np.random.default_rng(rows), rows, columns, nulls=nulls))
    held = on_host(table, columns)
    assert held is not None
    assert_same(gpu.to_arrow(table, columns), held.to_arrow(columns))


@pytest.mark.parametrize("offset", [1, 8, 13])
def test_slices_come_to_the_host(offset: int) -> None:
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.memory.to_host import on_host

    columns = all_columns()
    table = device_table(scan(np.random.default_rng(3), 100, columns))
    part = gpu.slice_rows(table, offset, 41)
    held = on_host(part, columns)
    assert held is not None
    assert_same(gpu.to_arrow(table, columns).slice(offset, 41), held.to_arrow(columns))


def test_large_tables_stay() -> None:
    from fuseline.operators.gpu.memory.to_host import MOST_BYTES, on_host
    from fuseline.operators.gpu.table import from_arrow

    text = new_column("s", VARCHAR)
    long = pa.table({"s": [f"{i:01000d}" for i in range(MOST_BYTES // 900)]})
    table = from_arrow(long, [text])
    assert on_host(table, [text]) is None
    assert on_host(table, [text], most_rows=5) is None


@pytest.mark.parametrize("kind", list(TYPES))
@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_order(
    kind: str, moved: bool, descending: bool, nulls_first: bool, limits: SetLimits
) -> None:
    from fuseline.operators import cpu, gpu

    if not moved:
        limits(to_host__MOST_BYTES=-1)  # the device sorts
    key, second, place = column("k", kind), column("t", "varchar"), column("n", "bigint")
    rows = 700
    random = scan(np.random.default_rng(5), rows, [key, second], values=30)
    data = random.table.data
    node: p.Physical = scan_of(
        {"k": data.column("k"), "t": data.column("t"), "n": list(range(rows))}, [key, second, place]
    )
    keys = (p.Order(key, descending, nulls_first), p.Order(second, not descending, nulls_first))
    for plan in (
        p.SortRows(node, keys),
        p.TopK(node, keys, 40, 0),
        p.TopK(node, keys, 10, 5),
        p.TopK(node, keys, 600, 90),
    ):
        expected, found = run(plan, cpu), run(plan, gpu)
        assert found.column("n").to_pylist() == expected.column("n").to_pylist()


@pytest.mark.parametrize("rows", [5000, 30_000, 40_000])
@pytest.mark.parametrize("lead", ["integer", "decimal", "double", "varchar", "wide"])
def test_the_first_of_more_rows(rows: int, lead: str) -> None:
    from fuseline.operators import cpu, gpu

    key, second, place = column("k", lead), column("t", "varchar"), column("n", "bigint")
    random = scan(np.random.default_rng(rows), rows, [key, second], values=200, nulls=0.01)
    data = random.table.data
    node = scan_of(
        {"k": data.column("k"), "t": data.column("t"), "n": list(range(rows))}, [key, second, place]
    )
    keys = (p.Order(key, True, False), p.Order(second, False, False), p.Order(place, False, False))
    for plan in (p.TopK(node, keys, 20, 0), p.TopK(node, keys, 700, 3), p.SortRows(node, keys)):
        expected, found = run(plan, cpu), run(plan, gpu)
        assert found.column("n").to_pylist() == expected.column("n").to_pylist()


@pytest.mark.parametrize("kind", list(TYPES))
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("nulls", [0.0, 0.2, 1.0])
def test_the_first_by_one_key_hold_the_first_by_all(
    kind: str, descending: bool, nulls_first: bool, nulls: float, limits: SetLimits
) -> None:
    from fuseline.operators import cpu, gpu

    limits(host_table__MOST_ROWS=24, LED_ROWS=12, TOP_K_SHARE=2)
    key, second, place = column("k", kind), column("t", "varchar"), column("n", "bigint")
    rows = 120
    random = scan(np.random.default_rng(11), rows, [key, second], nulls=nulls, values=40).table.data
    node = scan_of(
        {"k": random.column("k"), "t": random.column("t"), "n": list(range(rows))},
        [key, second, place],
    )
    keys = (p.Order(key, descending, nulls_first), p.Order(second, not descending, nulls_first))
    for chosen in (keys, keys[:1]):
        for count, offset in ((1, 0), (3, 0), (2, 3), (6, 0), (7, 0), (0, 2), (5, 118), (5, 120)):
            plan = p.TopK(node, chosen, count, offset)
            expected, found = run(plan, cpu), run(plan, gpu)
            assert found.column("n").to_pylist() == expected.column("n").to_pylist()


@pytest.mark.parametrize("kind", ["bigint", "double", "varchar"])
def test_ties_at_the_end_of_the_first_are_looked_for(
    kind: str, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    from fuseline.operators import cpu, gpu
    from fuseline.operators.gpu.sort import sort

    limits(host_table__MOST_ROWS=24, LED_ROWS=12, TOP_K_SHARE=2)
    tried: list[Any] = []
    try_led = sort.led
    monkeypatch.setattr(sort, "led", lambda *given: tried.append(try_led(*given)) or tried[-1])
    key, second = column("k", kind), column("n", "bigint")
    rows = 120
    for equal in (1, 3, 11, 12, 13, 120):  # rows that have the smallest value
        values = [0] * equal + [1 + i for i in range(rows - equal)]
        cells = [f"{v:03d}" for v in values] if kind == "varchar" else values
        node = scan_of({"k": cells[::-1], "n": list(range(rows))}, [key, second])
        plan = p.TopK(node, (p.Order(key, False, False), p.Order(second, True, False)), 2, 1)
        expected, found = run(plan, cpu), run(plan, gpu)
        assert found.column("n").to_pylist() == expected.column("n").to_pylist()
        assert (tried.pop() is not None) == (equal < 12)


@pytest.mark.parametrize(
    "kinds", [("tinyint", "integer"), ("date", "decimal"), ("utinyint", "tinyint")]
)
@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize("descending", [False, True])
def test_first_rows_by_a_short_key_and_the_next_one(
    kinds: tuple[str, str], nulls: float, descending: bool, limits: SetLimits
) -> None:
    """Of a key of few values too many rows are equal: the next one chooses among them within the kernels."""
    from fuseline.operators import cpu, gpu

    limits(host_table__MOST_ROWS=24, LED_ROWS=12, TOP_K_SHARE=2, packed_keys__LEAST_ROWS=1)
    columns = [column(f"k{i}", kind) for i, kind in enumerate(kinds)]
    place, rows = column("n", "bigint"), 3000
    data = scan(np.random.default_rng(4), rows, columns, nulls=nulls, values=60).table.data
    cells = {c.name: data.column(c.name) for c in columns}
    node = scan_of({**cells, "n": list(range(rows))}, [*columns, place])
    for nulls_first in (False, True):
        keys = [p.Order(c, descending == (c is columns[0]), nulls_first) for c in columns]
        for chosen in ([*keys, p.Order(place, False, False)], keys[::-1], keys[:1]):
            plan = p.TopK(node, tuple(chosen), 5, 2)
            expected, found = run(plan, cpu), run(plan, gpu)
            assert found.column("n").to_pylist() == expected.column("n").to_pylist()


KEYS = [
    ("integer", "varchar", "date"), ("decimal", "boolean"),
    ("utinyint", "timestamp", "tinyint"), ("time", "nanos", "zoned"),
    ("bigint", "integer"), ("float", "tinyint"), ("ubigint", "tinyint"), ("wide", "tinyint"),
]  # fmt: skip


@pytest.mark.parametrize("kinds", KEYS, ids="-".join)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_keys_in_one_number(
    kinds: tuple[str, ...],
    nulls: float,
    descending: bool,
    nulls_first: bool,
    limits: SetLimits,
) -> None:
    from fuseline.operators import cpu, gpu

    limits(packed_keys__LEAST_ROWS=1, to_host__MOST_BYTES=-1)  # the device sorts
    columns = [column(f"k{i}", kind) for i, kind in enumerate(kinds)]
    place, rows = column("n", "bigint"), 60
    data = scan(np.random.default_rng(2), rows, columns, nulls=nulls, values=4).table.data
    cells = {c.name: data.column(c.name) for c in columns}
    node = scan_of({**cells, "n": list(range(rows))}, [*columns, place])
    keys = tuple(
        p.Order(c, descending == (i % 2 == 0), nulls_first == (i < 2))
        for i, c in enumerate(columns)
    )
    for chosen in (keys, keys[::-1], keys[:1]):
        plan = p.SortRows(node, chosen)
        expected, found = run(plan, cpu), run(plan, gpu)
        assert found.column("n").to_pylist() == expected.column("n").to_pylist()


EXTREMES = (-(2**63), -(2**63) + 1, -1, 0, 2**63 - 2, 2**63 - 1)


@pytest.mark.parametrize("low", EXTREMES)
@pytest.mark.parametrize("high", EXTREMES)
def test_keys_of_any_size_in_one_number(low: int, high: int, limits: SetLimits) -> None:
    from fuseline.operators import cpu, gpu

    limits(packed_keys__LEAST_ROWS=1, to_host__MOST_BYTES=-1)
    first, second = column("a", "bigint"), column("b", "tinyint")
    node = scan_of({"a": [low, None, high, low, None], "b": [1, None, 2, -1, 3]}, [first, second])
    for flag in ((False, False), (True, False), (False, True), (True, True)):
        plan = p.SortRows(node, (p.Order(first, *flag), p.Order(second, *flag)))
        assert run(plan, gpu).equals(run(plan, cpu))


def test_a_key_with_one_place_more_than_an_integer_has_numbers(
    limits: SetLimits,
) -> None:
    from fuseline.operators import cpu, gpu

    limits(packed_keys__LEAST_ROWS=1, to_host__MOST_BYTES=-1)
    first, second = column("a", "tinyint"), column("b", "bigint")
    node = scan_of({"a": [1, 1, 1], "b": [2**63 - 2, -1, 5]}, [first, second])
    for descending in (False, True):
        plan = p.SortRows(node, (p.Order(first, False, False), p.Order(second, descending, False)))
        assert run(plan, gpu).equals(run(plan, cpu))


QUERIES = (
    ("select sum(a) * 2.5 / count(*) as x, max(s) || '!' as y from t", 1),
    (
        "select s, sum(a) as x from t group by s having sum(a) > 100 and s <> 'x1' order by x desc, s",
        1,
    ),
    (  # no pipeline ends in a condition on text
        "select s, sum(a) as x from t group by s having max(s) <> 'x1' order by x desc, s",
        2,
    ),
    (
        "select count(*), max(x), sum(x), avg(x), min(s) from (select s, sum(a) as x from t group by s)",
        1,
    ),
    (
        "select x % 5 as k, count(*), sum(x) from (select s, sum(a) as x from t group by s) group by k order by k",
        1,
    ),
    ("select s, sum(a) as x from t group by s union all select 'all', sum(a) from t", 1),
    ("select s, a % 3 as k, avg(a), count(*) from t group by rollup (s, k)", 2),
    ("select s from t group by s except select s from t where a < 3 group by s", 1),
    ("select s, sum(a) from t group by s intersect all select s, sum(a) from t group by s", 1),
    (
        "from (select s, sum(a) as x from t group by s) l full join "
        "(select s as z, max(a) as y from t where a > 4990 group by s) r on l.s = r.z and x > y",
        1,
    ),
    (
        "select s, x, rank() over (order by x desc) from (select s, sum(a) as x from t group by s)",
        1,
    ),
    (
        "select distinct on (x % 3) x % 3, x from (select s, sum(a) as x from t group by s) order by x",
        1,
    ),
)


@pytest.mark.parametrize(("query", "least"), QUERIES)
def test_nodes_over_few_rows_run_on_the_host(query: str, least: int) -> None:
    table = pa.table(
        {"a": range(5000), "s": [f"x{i % 11}" if i % 13 else None for i in range(5000)]}
    )
    answers, notes = [], {}
    for device, fuse in (("cpu", "never"), ("gpu", "never"), ("gpu", "always")):
        with connected({"t": table}, device, fuse=fuse) as connection:
            frame = connection.sql(query)
            answers.append(frame.to_arrow())
            notes[fuse] = [str(n.note) for n in frame.profile.nodes]
    assert sum("on the host" in note for note in notes["always"]) >= least, notes
    assert_same(answers[0], answers[1])
    assert_same(answers[0], answers[2])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("broken", [False, True])
def test_texts_that_lie_in_order(
    descending: bool,
    nulls_first: bool,
    broken: bool,
    monkeypatch: pytest.MonkeyPatch,
    limits: SetLimits,
) -> None:
    from fuseline.operators import cpu, gpu
    from fuseline.operators.gpu.memory import host_table
    from fuseline.operators.gpu.sort import sort

    limits(dictionaries__MOST_KEYS=10)  # or they would be codes
    found_so: list[bool] = []
    look = sort._lie_in_order
    monkeypatch.setattr(
        sort, "_lie_in_order", lambda *given: found_so.append(look(*given)) or found_so[-1]
    )
    rows = host_table.MOST_ROWS + 10
    key, place = column("k", "varchar"), column("n", "bigint")
    cells: list[str | None] = [f"name {i // 2:05d}" for i in range(rows - 3)]
    cells = cells[::-1] if descending else cells
    cells = [None] * 3 + cells if nulls_first else cells + [None] * 3
    if broken:
        cells[7], cells[-9] = cells[-9], cells[7]
    node = scan_of({"k": cells, "n": list(range(rows))}, [key, place])
    plan = p.SortRows(node, (p.Order(key, descending, nulls_first),))
    expected, found = run(plan, cpu), run(plan, gpu)
    assert found.column("n").to_pylist() == expected.column("n").to_pylist()
    assert (found.column("n").to_pylist() == list(range(rows))) is not broken
    assert found_so == [not broken]
    for other in ((not descending, nulls_first), (descending, not nulls_first)):
        plan = p.SortRows(node, (p.Order(key, *other),))
        assert run(plan, gpu).column("n").to_pylist() == run(plan, cpu).column("n").to_pylist()

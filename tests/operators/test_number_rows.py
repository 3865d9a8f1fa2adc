"""Numbers of rows by their values: alike by kernels, by Arrow while they are compiled, and in one part or many."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline import stopping
from fuseline.errors import Interrupted
from fuseline.operators.cpu.memory import chunks
from fuseline.operators.cpu.sort import number_rows as numbering, ordering
from fuseline.operators.cpu.sort.ordering import Ints
from fuseline.stopping import Stop
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits
from tests.operators.test_ordering import ENDS, RANDOM, ROWS, VALUES

FOUND = "kernels", "kernel of one part", "arrow", "few rows"


@pytest.fixture(params=FOUND, autouse=True)
def how(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> Iterator[str]:
    """What is done for millions of rows is done for hundreds."""
    if request.param != "few rows":
        limits(MOST_AT_ONCE=100, BUCKET_ROWS=60, ARROW_ROWS=0)
        for module in (numbering, ordering, chunks):
            monkeypatch.setattr(module, "CHUNK_ROWS", 256)
    if request.param == "kernels":
        limits(PART_ROWS=60)
    if request.param.startswith("kernel"):
        numbering.KERNELS.started().result()
    else:
        monkeypatch.setattr(numbering.KERNELS, "_found", Future[Any]())
    return request.param


def assert_numbers(words: list[Ints]) -> None:
    found = numbering.number_rows(words)
    rows = list(zip(*(word.tolist() for word in words), strict=True))
    firsts: dict[Any, int] = {}
    for i, row in enumerate(rows):
        firsts.setdefault(row, i)
    numbers = {row: found.codes[i] for row, i in firsts.items()}
    assert found.size == len(firsts)
    assert set(numbers.values()) == set(range(found.size))
    assert [numbers[row] for row in rows] == found.codes.tolist()
    if found.firsts is not None:
        assert [firsts[rows[i]] for i in found.firsts] == found.firsts.tolist()
        assert found.codes[found.firsts].tolist() == list(range(found.size))


@pytest.mark.parametrize("name", VALUES)
def test_numbers_of_one_key(name: str) -> None:
    assert_numbers([VALUES[name]])


@pytest.mark.parametrize("second", ["random", "few", "ends"])
def test_numbers_of_several_keys(second: str) -> None:
    assert_numbers([VALUES["ends"], VALUES[second]])
    assert_numbers([VALUES["few"], VALUES[second], VALUES["mostly one"]])


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_hardly_any_rows(rows: int) -> None:
    assert_numbers([VALUES["random"][:rows]])
    assert_numbers([VALUES["random"][:rows], VALUES["one"][:rows]])


def test_colliding_keys() -> None:
    """The hash of a first word, in place of the second: what is hashed at last is 0 for all keys."""
    first = np.arange(1500)
    hashes = first.astype(np.uint64)
    for step in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashes ^= hashes >> np.uint64(33)
        hashes *= np.uint64(step)
    hashes ^= hashes >> np.uint64(33)
    twice = np.tile(first, 2), np.tile(hashes.view(np.int64), 2)
    assert_numbers([*twice])


@pytest.mark.by_day(3)
@pytest.mark.parametrize("build", VALUES)
@pytest.mark.parametrize("probe", ["random", "few", "ends"])
@pytest.mark.parametrize("nulls", [False, True])
def test_numbers_of_two_sides(build: str, probe: str, nulls: bool) -> None:
    ours, theirs = VALUES[build], VALUES[probe][:3000]
    valid = RANDOM.random(ROWS) < 0.5 if nulls else np.ones(ROWS, bool)
    mine, others, size = numbering.number_distinct(ours, valid if nulls else None, theirs)
    known = {int(v): int(n) for v, n, ok in zip(ours, mine, valid, strict=True) if ok}
    assert len(set(known.values())) == len(known)
    assert all(0 <= n < size for n in known.values())
    assert [known.get(int(v), -1) for v in theirs] == others.tolist()
    assert all(known[int(v)] == n for v, n, ok in zip(ours, mine, valid, strict=True) if ok)


def test_two_sides_of_which_one_is_empty() -> None:
    none, some = np.zeros(0, np.int64), np.array([ENDS.min, 0])
    assert numbering.number_distinct(none, None, some)[1].tolist() == [-1, -1]
    assert sorted(numbering.number_distinct(some, None, none)[0].tolist()) == [0, 1]
    _, theirs, size = numbering.number_distinct(some, np.zeros(2, bool), some)
    assert (theirs.tolist(), size) == ([-1, -1], 1)


def test_a_stop_between_parts(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how in ("few rows", "kernel of one part"):
        pytest.skip("is quick")
    stop, calls = Stop(), []
    name = "_table" if how == "kernels" else "_encoded"
    inner = getattr(numbering, name)

    def ask(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            stop.ask()
        return inner(*arguments)

    monkeypatch.setattr(numbering, name, ask)
    with pytest.raises(Interrupted), stopping.Stoppable(stop):
        numbering.number_rows([VALUES["random"]])
    assert len(calls) < 8


QUERIES = [
    "select distinct x, y, z from t",
    "select x, y, count(*) as n, sum(z) as total from t group by x, y",
    "select count(distinct x) as n from t",
    "select x, y, z from t except select x, y, z from u",
    "select x, y from t intersect select x, y from u",
    "select x from t except all select x from u",
    "select count(*) as n from t join u on t.x = u.x and t.y = u.y and t.z = u.z",
    "select v, count(*) as n, count(distinct y) as ys, count(distinct x) filter (where y < 0) as xs from t group by v",
    "select count(distinct v) as n, count(distinct y) as ys, count(distinct z) filter (where x > 0) as zs from t",
    "select count(distinct v) as n, count(distinct x) as xs from t where y = 5",
    "select x, y from t where x > 1e300 except select x, y from u where x > 1e305 and y is null",
]


@pytest.mark.parametrize("query", QUERIES)
def test_wide_keys(query: str) -> None:
    """NULL, NaN, both zeros and the ends of each type are values as in DuckDB."""
    rows = 400
    random = np.random.default_rng(5)
    chosen: dict[str, list[Any]] = {
        "x": [None, float("nan"), 0.0, -0.0, 1.7e308, -1.7e308, float("inf"), 5e-324],
        "y": [None, ENDS.min, ENDS.max, 0, -1],
        "v": [ENDS.min, ENDS.max, *range(-(10**18), 10**18, 10**16)],
        "z": [None, *(Decimal(f"{s}{'9' * 30}") for s in "+-"), Decimal(0)],
    }
    types = {"x": pa.float64(), "y": pa.int64(), "v": pa.int64(), "z": pa.decimal128(38, 0)}
    t, u = (
        pa.table(
            {
                name: pa.array([values[i] for i in random.integers(0, len(values), n)], types[name])
                for name, values in chosen.items()
            }
        )
        for n in (rows, 40)
    )
    assert_same_as_duckdb(query, {"t": t, "u": u}, backend="cpu", fuse=("never",))

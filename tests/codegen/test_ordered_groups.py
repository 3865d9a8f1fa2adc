"""Groups in the order of their rows: the CUDA kernel that makes them without a table, simulated here, against the CPU's groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cuda import emit_cuda, emit_sorted
from fuseline.codegen.cuda.emit_sorted import COUNT, TOO_LONG
from fuseline.codegen.groups.conditions import Condition, condition_of
from fuseline.codegen.groups.ordered import coming_out, has_all_rows, in_order, key_of
from fuseline.codegen.program import Program
from fuseline.plan.physical import FilterRows, Pipeline
from tests.codegen import simulator
from tests.codegen.machine_code import assembly_of
from tests.codegen.simulated import Runs, ran, recorded_runs
from tests.compare import connected
from tests.limits import SetLimits

DYNAMIC_SHIFT = re.compile(r"shr\.[us]\d+\s+%\w+, %\w+, %")
ROWS = 203  # words of 8 or 4 rows, and some after the last
MADE = np.random.default_rng(3)
DOMAIN = 300  # of keys, whose numbers then have 32 bits
KEYS_OF: dict[str, Any] = {
    "each row its own": np.arange(ROWS),
    "short groups": np.sort(MADE.integers(0, 60, ROWS)),
    "a word each": np.arange(ROWS) // 8,
    "half a word each": np.arange(ROWS) // 4,
    "longer than a word": np.arange(ROWS) // 11,
    "of any length": np.repeat(np.arange(10), [1, 40, 2, 7, 8, 9, 16, 17, 100, 3]),
    "all equal": np.full(ROWS, 5),
    "all but the first": np.minimum(np.arange(ROWS), 1),
    "all but the last": np.arange(ROWS) // (ROWS - 1),
    "one row": np.zeros(1, np.int64),
    "a word": np.arange(8) // 3,
    "a word and a row": np.arange(9) // 3,
}
ALL = (
    "count(*), count(v), sum(v), avg(v), min(v), max(v), sum(f), min(f), max(f), bool_or(v > 0), bit_and(v), "
    "bit_or(v), bit_xor(v), sum(w), avg(w), count(*) filter (where v > 5), min(day)"
)


def table(keys: Any, far: int = 1) -> pa.Table:
    """Keys in order, times `far`, before one that makes the domain large; values that are NULL in many rows, or may be large.

    They are the same whatever tests ran before, and some are always NULL.
    """
    rows, made = len(keys) + 1, np.random.default_rng(5)
    values = made.integers(-(10**5), 10**5, rows)
    missing = (made.random(rows) < 0.4) | (values % 5 == 0)
    missing[0] = True
    return pa.table(
        {
            "k": np.append(keys * far, DOMAIN * far + (far > 1)) - 7,
            "v": pa.array(values, mask=missing),
            "w": values * 10**13,
            "f": pa.array(made.integers(-8, 8, rows) / 4, mask=made.random(rows) < 0.3),
            "day": pa.array(values % 9000, pa.int32()).cast(pa.date32()),
            "n": made.integers(1, 51, rows).astype(np.int8),
        }
    )


def simulated(
    program: Program,
    columns: list[Any],
    rows: int,
    memory: Mapping[str, Any] | None = None,
    room: int | None = None,
) -> tuple[dict[int, tuple[Any, ...]], int, bool, bool]:
    """Run a kernel; return the accumulators that came out by key, how many groups should have, and the two flags."""
    assert program.grouping is not None
    assert program.grouping.ordered is not None
    condition = program.grouping.ordered.condition
    room = rows if room is None else room
    numbers, counter, doubt = np.full(room, -77), np.zeros(2, np.int64), np.zeros(1, np.int64)
    given: dict[str, Any] = {"numbers": numbers, "counter": counter, "out_i": doubt}
    out = {
        n: np.full(room, -77, program.accumulators[n].machine.value) for n in coming_out(program)
    }
    given |= {f"out_a{n}": array for n, array in out.items()}
    for p in () if condition is None else condition.parameters:
        given[emit_sorted.given(p.name)] = getattr(np, p.machine.value)(p.value)
    simulator._launch(program, columns, rows, 2, {**given, **(memory or {})})
    made = min(int(counter[COUNT]), room)
    found = {
        int(number): tuple(out[n][at] for n in out) for at, number in enumerate(numbers[:made])
    }
    assert len(found) == made, "a group came out twice"
    assert (numbers[made:] == -77).all()
    return found, int(counter[COUNT]), bool(counter[TOO_LONG]), bool(doubt[0])


def expected(program: Program, outcome: Any) -> dict[int, tuple[Any, ...]]:
    """The groups that the CPU has made."""
    assert program.grouping is not None
    arrays, numbers = outcome.arrays, outcome.numbers
    if numbers is None:
        numbers = np.flatnonzero(arrays[program.grouping.rows] > 0)
        arrays = [array[numbers] for array in arrays]
    (key,) = program.grouping.keys
    return {
        int(number) + key.moved: tuple(arrays[n][at] for n in coming_out(program))
        for at, number in enumerate(numbers)
    }


def with_order(program: Program, condition: Condition | None = None) -> Program:
    key = key_of(program)
    assert key is not None
    return in_order(program, key, condition)


@pytest.fixture(autouse=True)
def small_blocks(limits: SetLimits) -> None:
    limits(cuda__BLOCK_THREADS=32)


@pytest.mark.by_day
@pytest.mark.parametrize("aggregates", [ALL, "sum(n)", "count(*)", "max(w)"])
@pytest.mark.parametrize("keys", KEYS_OF)
def test_all_groups_come_out(keys: str, aggregates: str) -> None:
    query = f"select k, {aggregates} from t group by k"
    program, columns, rows, outcome = ran(query, {"t": table(KEYS_OF[keys])})[-1]
    found, count, too_long, doubt = simulated(with_order(program), columns, rows)
    assert (found, count) == (expected(program, outcome), len(found))
    assert not too_long
    assert not doubt


@pytest.mark.parametrize("far", [10**11, 3])
def test_numbers_that_a_hash_table_would_hold(far: int) -> None:
    made = {"t": table(KEYS_OF["of any length"], far)}
    program, columns, rows, outcome = ran("select k, sum(v) from t group by k", made)[-1]
    assert program.grouping is not None
    assert program.grouping.hashed == (far > 3)
    found, count, _, _ = simulated(with_order(program), columns, rows)
    assert (found, count) == (expected(program, outcome), len(found))


HAVING = {
    "sum(n) > 100": lambda g: g["n"] > 100, "count(*) > 3": lambda g: g["rows"] > 3, "count(*) >= 0": lambda g: True,
    "max(w) < 0": lambda g: g["w"] < 0, "sum(n) > 100000": lambda g: False,
    "k < 40 and count(*) > 1 or max(w) = k": lambda g: ((g["k"] < 40 and g["rows"] > 1) or g["w"] == g["k"]),
}  # fmt: skip
FILTERS = ["true", "f > 0", "v is null", "n < 0", "f > 0 and v > 0 or n > 30"]


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("having", HAVING)
@pytest.mark.parametrize("keys", ["short groups", "of any length", "a word each", "one row"])
def test_groups_that_stay_come_out(keys: str, having: str, where: str) -> None:
    """Of rows that pass a filter; a group of none is no group, whatever the condition says of it."""
    query = f"select k, sum(n), count(*), max(w), sum(v) from t where {where} group by k"
    made = {"t": table(KEYS_OF[keys])}
    program, columns, rows, outcome, condition = conditioned(f"{query} having {having}", made)
    found, count, _, _ = simulated(with_order(program, condition), columns, rows)
    names = dict(zip(("n", "rows", "w"), (f.accumulators[0] for f in program.folded), strict=False))
    places = list(coming_out(program))
    assert set(names.values()) <= set(places)
    stays = HAVING[having]
    kept = {
        key: values
        for key, values in expected(program, outcome).items()
        if stays({"k": key} | {name: values[places.index(n)] for name, n in names.items()})
    }
    assert (found, count) == (kept, len(kept))


def conditioned(
    query: str, tables: Mapping[str, pa.Table]
) -> tuple[Program, list[Any], int, Any, Condition]:
    """Run a query with a condition on groups; return what its kernel did before that, and the condition."""
    with recorded_runs() as kept, connected(tables, fuse="always") as connection:
        frame = connection.sql(query)
        frame.to_arrow()
    bodies = [n.node.body for n in frame.profile.nodes if isinstance(n.node, Pipeline)]
    (body,) = [body for body in bodies if isinstance(body, FilterRows)]
    program, columns, rows, outcome = kept[-1]
    return program, columns, rows, outcome, condition_of(body.predicate, program)


def test_rows_that_find_a_row_elsewhere(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes ask nothing for rows of groups that are another thread's, and nothing behind the last row."""
    few = pa.table({"d": np.arange(0, 60, 2), "x": np.arange(30) * 5})
    joined = pa.array(MADE.integers(0, 60, ROWS + 1))
    made = table(KEYS_OF["short groups"]).append_column("d", joined)
    monkeypatch.setattr(runs, "main", lambda *given: None)  # which knows no condition
    query = "select k, sum(x), count(*) from t join u using (d) group by k having count(*) > 1"
    program, columns, rows, outcome, condition = conditioned(query, {"t": made, "u": few})
    found, count, _, _ = simulated(with_order(program, condition), columns, rows, runs.memory)
    place = list(coming_out(program)).index(program.folded[1].accumulators[0])
    stay = {k: v for k, v in expected(program, outcome).items() if v[place] > 1}
    assert (found, count) == (stay, len(stay))
    assert 0 < len(stay) < len(expected(program, outcome))


@pytest.mark.parametrize(("keys", "least"), [("short groups", 1), ("longer than a word", 4)])
def test_rows_that_look_around_them(
    keys: str, least: int, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one key are found without an index, by the number of the row."""
    monkeypatch.setattr(runs, "main", lambda *given: None)  # which knows no condition
    query = (
        "select k, sum(n), count(*) from t a where exists "
        f"(select * from t b where b.k = a.k and b.n > a.n + 20) group by k having count(*) > {least}"
    )
    program, columns, rows, outcome, condition = conditioned(query, {"t": table(KEYS_OF[keys])})
    assert not program.buffers
    found, count, _, _ = simulated(with_order(program, condition), columns, rows)
    place = list(coming_out(program)).index(program.folded[1].accumulators[0])
    stay = {k: v for k, v in expected(program, outcome).items() if v[place] > least}
    assert (found, count) == (stay, len(stay))
    assert 0 < len(stay) < len(expected(program, outcome))


@pytest.mark.parametrize("side", ["u", "(select * from u where x > 9) u"])
def test_nothing_is_looked_for_behind_the_last_row(
    side: str, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a join that keeps all rows, whose index has all numbers of the key: what lies there is none of them."""
    few = pa.table({"d": np.arange(60)[::-1], "x": np.arange(60) * 5})
    made = table(KEYS_OF["a word and a row"]).append_column("d", pa.array(np.arange(10) * 6))
    monkeypatch.setattr(runs, "main", lambda *given: None)
    query = f"select k, sum(x), count(*) from t left join {side} using (d) group by k"
    program, columns, rows, outcome = ran(query, {"t": made, "u": few})[-1]
    assert has_all_rows(program)
    found, count, _, _ = simulated(with_order(program), columns, rows, runs.memory)
    assert (found, count) == (expected(program, outcome), len(found))


def test_room_for_fewer_groups() -> None:
    """All are counted."""
    program, columns, rows, outcome = ran(
        "select k, sum(n) from t group by k", {"t": table(KEYS_OF["half a word each"])}
    )[-1]
    found, count, _, _ = simulated(with_order(program), columns, rows, room=7)
    assert count == len(expected(program, outcome))
    assert len(found) == 7
    assert found.items() <= expected(program, outcome).items()


@pytest.mark.parametrize("length", [15, 16, 17, 23, 24, 25, 32, 33])
def test_a_group_of_many_rows_makes_the_kernel_give_up(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below that it comes out, however it lies."""
    monkeypatch.setattr(emit_sorted, "LONGEST", 16)
    monkeypatch.setattr(emit_sorted, "FOLDED", 32)
    for before in (0, 1, 7, 8):
        keys = np.repeat([0, 1, 2, 3], [before, length, 1, 9])
        program, columns, rows, outcome = ran(
            "select k, sum(n) from t group by k", {"t": table(keys)}
        )[-1]
        found, _, too_long, _ = simulated(with_order(program), columns, rows)
        assert too_long or found == expected(program, outcome)
        assert not too_long or length > 16
        assert too_long or length <= 32


def test_a_value_near_64_bits_is_a_doubt() -> None:
    """Rows in the middle of a word and the last one, but not what lies behind that."""
    at = np.arange(41)
    values = {"v": np.where(at == 5, 2**62 + 5, -3), "w": np.where(at == 9, 2**62 + 5, -3)}
    made = {"t": pa.table({"k": at // 3 * 5000, **values})}
    program, columns, rows, _ = ran("select k, max(v + w) from t group by k", made)[-1]
    assert program.doubts
    named = {i.column.name: held for i, held in zip(program.inputs, columns, strict=True)}
    for place in (17, 40, None):
        for name, first in (("v", 5), ("w", 9)):
            held = named[name]
            held[:] = np.roll(held, (first if place is None else place) - int(held.argmax()))
        assert simulated(with_order(program), columns, rows)[3] == (place is not None)


@pytest.mark.parametrize(
    ("aggregates", "having"),
    [
        ("sum(n), min(day)", "sum(n) > 100"),
        ("sum(n), min(day)", None),
        ("avg(v), count(*), max(w), sum(f)", "count(*) > 3 or max(w) < 5"),
    ],
)
def test_the_kernel_compiles_for_a_gpu(aggregates: str, having: str | None) -> None:
    made = {"t": table(KEYS_OF["short groups"])}
    query = f"select k, {aggregates} from t group by k"
    condition = None
    if having is None:
        program = ran(query, made)[-1][0]
    else:
        program, *_, condition = conditioned(f"{query} having {having}", made)
    program = with_order(program, condition)
    ptx = assembly_of(program)
    # Bits of NULLs are shifted by where in their byte a word of rows begins
    nullable = any(i.nullable for i in program.inputs)
    assert nullable or not DYNAMIC_SHIFT.search(ptx), (
        "codes are not taken out of words at known places"
    )


def test_constants_of_a_condition_are_parameters() -> None:
    made, sources = {"t": table(KEYS_OF["short groups"])}, set()
    for least in (3, 4):
        query = f"select k from t group by k having count(*) > {least} and sum(n) > {least}"
        program, *_, condition = conditioned(query, made)
        sources.add(emit_cuda.source(with_order(program, condition), ""))
    assert len(sources) == 1


REFUSED = {
    "select s, sum(n) from t group by s": "strings, which are few",
    "select k, n, sum(v) from t group by k, n": "another key, whose values change within those of the first",
    "select m, sum(v) from t group by m": "NULL may lie anywhere",
    "select k * k, sum(v) from t group by 1": "rises after it falls",
    "select k, count(distinct n) from t group by k": "groups within groups",
    "select sum(v) from t": "no key",
}


@pytest.mark.parametrize("query", REFUSED)
def test_groups_that_have_no_order_of_their_own(query: str) -> None:
    made = table(KEYS_OF["short groups"])
    nullable = pa.array([*made["k"].to_pylist()[:-1], None])
    made = made.append_column("m", nullable).append_column("s", pa.array(["x", "y"] * 102))
    assert key_of(ran(query, {"t": made})[-1][0]) is None


@pytest.mark.parametrize("key", ["k", "k::bigint"])
def test_keys_in_the_order_of_a_column(key: str) -> None:
    program = ran(f"select {key} x, sum(v) from t group by x", {"t": table(np.arange(50) // 3)})[
        -1
    ][0]
    assert key_of(program) is not None

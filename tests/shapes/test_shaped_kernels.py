"""Kernels that were made for one text serve others with their constants as arguments, and answer as DuckDB does where they do and where they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.tpch import parameters
from fuseline.operators.cpu.pipeline import pipeline
from tests.compare import assert_same_as_duckdb, connected
from tests.work import calls_of

ROWS = 600
TABLES = {
    "t": pa.table(
        {
            "k": pa.array(range(ROWS), pa.int32()),
            "x": pa.array([None if n % 50 == 7 else n % 97 * 3 - 40 for n in range(ROWS)], pa.int64()),
            "d": pa.array([Decimal(n % 211) / 4 for n in range(ROWS)], pa.decimal128(9, 2)),
            "f": pa.array([[0.5, -0.0, float("nan"), 1e9][n % 4] * n for n in range(ROWS)]),
            "s": pa.array([None if n % 40 == 3 else ["ab", "cd", "ef", "gh"][n % 4] * (n % 3) for n in range(ROWS)]),
            "long": pa.array([f"row {n} of {n * n % 1013} words" for n in range(ROWS)]),
            "day": pa.array([date(1994, 1, 1) + timedelta(n * 3) for n in range(ROWS)]),
        }
    ),
    "u": pa.table({"k": pa.array(range(0, ROWS, 2), pa.int32()), "y": pa.array(range(ROWS // 2))}),
}  # fmt: skip

# Texts one after the other: the kernels of the first serve the others, where their plan does, but for those with `!`
TEXTS: dict[str, Sequence[str]] = {
    "a bound of a narrow column": ("where x > 11", "where x > 12", "where x > 250", "where x > -41"),
    "codes with a step": ("where x = 11", "where x = 12", "where x = 14", "where x = -400000"),
    "a decimal": ("where d <= 3.25", "where d <= 3.26", "where d <= 52.50"),
    "a date": ("where day < date '1995-01-01'", "where day < date '1995-02-03'"),
    "a double": ("where f < 2.5e0", "where f < 1e300", "where f < -1e0"),
    "a text": ("where s = 'ab'", "where s = 'ghgh'", "where s = 'none'"),
    "a pattern": ("where s like '%b%'", "where s like '%h%'"),
    "long text": ("where long like '%1 w%'", "where long like '%22%'"),
    "a list": ("where x in (2, 5, 8)", "where x in (11, 6, 17)"),
    "a list of texts": ("where s in ('ab', 'cd')", "where s in ('ef', 'none')"),
    "two columns": ("where x + k > 100", "where x + k > 333", "!where x + k > 5000000000"),
    "zero and one": ("where x + k > 7", "!where x + k > 0"),
    "arithmetic": ("where x * 5 > k and d < 3", "where x * 5 > k and d < 4", "!where x * 7 > k and d < 3"),
    "a case": ("where case when s = 'ab' then x else k end > 9", "where case when s = 'cd' then x else k end > 44"),
    "a length": ("where substring(s, 1, 2) = 'ab'", "where substring(s, 1, 2) = 'ef'"),
}  # fmt: skip


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Grows by one whenever kernels are generated."""
    found: list[object] = []
    plain = pipeline.Attempt.compile

    def noted(self: Any, slotted: Any) -> Any:
        found.append(self)
        return plain(self, slotted)

    monkeypatch.setattr(pipeline.Attempt, "compile", noted)
    return found


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with connected(TABLES, fuse="always", check=True) as found:
        yield found


def check(connection: Any, texts: Sequence[str], query: str, generated: list[object]) -> None:
    served = 0
    for text in texts:
        generated.clear()
        whole = query.format(text.removeprefix("!"))
        frame = connection.sql(whole)
        frame.to_arrow()
        if text.startswith("!"):
            assert generated, text
        elif frame.profile.plan_origin == "shape":  # and not a plan for another selectivity
            assert not generated, text
            served += 1
        assert_same_as_duckdb(whole, TABLES, connection=connection)
    assert served


@pytest.mark.by_day(2)
@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_conditions(connection: Any, texts: Sequence[str], generated: list[object]) -> None:
    query = "select s, count(*) as n, sum(k) as total, max(x) as most from t {} group by s"
    check(connection, texts, query, generated)


@pytest.mark.parametrize(
    "query",
    [
        "select t.k, x, y + 5 as z from t join u on t.k = u.k where x < {} order by t.k",
        "select count(*) as n, sum(x) as total from t left join u on t.k = u.k and y < {}",
        "select sum(case when d > {} then x end) as r, min(long) as least from t",
        "select s, sum(k) as total from t group by s having sum(k) > {} order by s",
        "select k, s, long from t where x > {} order by k",
        "select count(*) as n from t where k in (select k from u where y > {})",
    ],
)
def test_steps(connection: Any, query: str, generated: list[object]) -> None:
    check(connection, ("17", "18", "163", "24", "19"), query, generated)


STORED = "(select k % 150 as r, max(y) + 0 as most from u where y < {} group by k % 150)"


INNER = (
    f"select t.s, sum(t.x) as n, max(most) as m from t join {STORED} v on t.k = v.most group by t.s"
)
MORE = (
    f"select t.k, most from t left join {STORED} v on t.k = v.r where t.k < 300 order by t.k",
    f"select count(*) as n, sum(most) as m from t left join {STORED} v on t.k = v.most",
    f"select count(*) as n from t where k not in (select most from {STORED})",
    f"select v.most, count(x) as n from {STORED} v join t on v.r = t.k group by v.most order by all",
)


@pytest.mark.parametrize(
    "query", [INNER, MORE[0], *(pytest.param(q, marks=pytest.mark.nightly) for q in MORE[1:])]
)
def test_rows_that_other_pipelines_leave(
    connection: Any, query: str, generated: list[object]
) -> None:
    """How many there are, and between which numbers, depends on constants: kernels serve others within limits, none and one apart."""
    taken = []
    for bound in (150, 149, 160, 151, 155, 20, 21, 3, 1, 0, 2, 158, 140, 33, 36):
        generated.clear()
        frame = connection.sql(query.format(bound))
        frame.to_arrow()
        taken.append(len(generated))
        assert_same_as_duckdb(query.format(bound), TABLES, connection=connection)
    assert sum(map(bool, taken)) < len(taken) - 4, taken


def test_receipts_tell_the_rows_that_there_are(connection: Any) -> None:
    built = []
    for bound in (31, 38, 36):
        frame = connection.sql(INNER.format(bound))
        frame.to_arrow()
        built += [b.rows for p in frame.profile.pipelines for b in p.receipt.builds]
    assert built == [31, 38, 36]


@pytest.mark.parametrize(
    ("first", "more", "until"), [(1, 1, 20), (2, 3, 20), (1, 3, 15), (0, 1, 5)]
)
def test_kernels_that_run_while_a_text_is_planned(
    connection: Any, first: int, more: int, until: int
) -> None:
    """Those of WITH RECURSIVE read the constants of the text that is being planned."""
    query = (
        f"with recursive r(n, f) as (select {first}, 1::bigint union all "
        f"select n + {more}, f + n * 7 from r where n < {until} and n <> 4) select max(f) as m, count(*) as c from r"
    )
    assert_same_as_duckdb(query, TABLES, connection=connection)


MOST = 3_500  # calls more than for the repeated texts; where kernels are generated anew it is 13,000 and more


def test_new_constants_take_few_calls(tpch_tables: dict[str, Path]) -> None:
    """Of queries of TPC-H: what is looked up and put together for constants that no text had yet."""
    names = ("q01", "q03", "q04", "q05")
    new = again = 0
    with connected(tpch_tables, fuse="always") as fresh:
        for stream in range(3):
            texts = parameters.queries(0.01, stream)
            for name in names:
                run = lambda text=texts[name]: fresh.sql(text).to_arrow()  # noqa: E731
                taken = calls_of(run)
                if stream == 2:
                    new, again = new + taken, again + calls_of(run)
    assert new < again + MOST, (new, again)

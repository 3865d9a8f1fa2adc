"""Text of many values that come again: codes of a dictionary while it is in memory, and the same answers."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import fuseline
from fuseline.operators.cpu.scan.encoded import with_dictionary
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

DRAW = random.Random(7)
TEXTS = [
    "", "a", "a\0", "é", "日本", "https://www.example.org/", *(f"https://www.example.org/{n:03}" for n in range(60)),
    *("x" * 400 + str(n) for n in range(20)), *("x" * n for n in range(1, 12)),
]  # fmt: skip
ROWS = 400
DATA = {
    "t": pa.table({
        "s": DRAW.choices([*TEXTS, None], k=ROWS), "u": DRAW.choices(TEXTS, k=ROWS),
        "k": pa.array([DRAW.choice([1, 2, 3, 10**12, None]) for _ in range(ROWS)], pa.int64()),
        "n": pa.array(range(ROWS), pa.int64()),
        "mostly": [f"text {n // 2 if n < 100 else n}" for n in range(ROWS)],
    })
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(limits: SetLimits) -> None:
    """What is done for thousands of values is done for a hundred, and nothing else makes dictionaries."""
    limits(FEW_REPEATED=10, TEXTS_SAMPLED=50, SHARE_OF_SAMPLE=0.95, TEXTS_AT_ONCE=64)
    limits(DISTINCT_SAMPLE=16, DISTINCT_SHARE=0.0, REPEATED_SHARE=0.0, LOOKUP_LIMIT=10)


QUERIES = [
    "select s, count(*) as c from t group by s order by c desc, s limit 5",
    "select s, u, k, count(*), sum(n), min(u), max(s) from t group by s, u, k",
    "select k, count(distinct s), count(distinct u) filter (where n > 50), avg(length(u)) from t group by k",
    "select count(distinct s), min(s), max(u), sum(length(s)), avg(strlen(u)) from t",
    "select count(*), sum(n) from t where s like '%/0%' and u <> '' and not starts_with(s, 'x')",
    "select s, n from t where s >= 'a' and u < 'x' order by s desc, n limit 7",
    "select regexp_replace(s, '^[a-z]+://([^/]+)/.*$', '\\1') as site, count(*), min(u) from t group by site having count(*) > 1",
    "select a.s, count(*) from t a join t b on a.s = b.u where b.n < 90 group by a.s",
    "select s from t except select u from t",
    "select distinct upper(s) || 'é' as x, u is null from t where k = 2",
    "select s, row_number() over (partition by s order by u, n) as r from t",
    "select s = u, s is not distinct from u, coalesce(s, u), concat(s, '-', k) from t",
    "select count(*) from t where s in (select u from t where n < 20)",
    "select k, count(*) from t where s = 'no such text' group by k",
]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES)
def test_answers(query: str) -> None:
    assert_same_as_duckdb(query, DATA, fuse=("auto", "always", "never"))


@pytest.mark.parametrize("limit", [None, "300kB"])
def test_with_and_without_memory(limit: str | None) -> None:
    with fuseline.connect("cpu", memory_limit=limit, fuse="always") as connection:
        connection.register("t", DATA["t"])
        for query in QUERIES[:4]:
            assert_same_as_duckdb(query, DATA, connection=connection)


def test_what_is_in_memory() -> None:
    with connected(DATA, fuse="always") as connection:
        connection.table("t").select("s", "u", "mostly").cache()
        held = connection.sql(
            "select column_name, encoding, distinct_count from fuseline_columns() order by 1, 2"
        )
        found = {name: (kind, count) for name, kind, count in held.fetchall()}
    different = {name: len(set(DATA["t"][name].to_pylist()) - {None}) for name in "su"}
    assert found["s"] == (f"dictionary values={different['s']} width=1", different["s"])
    assert found["u"] == (f"dictionary values={different['u']} width=1", different["u"])
    assert found["mostly"][0].startswith("arrow")


@pytest.mark.parametrize("data_type", [pa.string(), pa.large_string()], ids=str)
def test_codes_have_the_order_of_texts(data_type: pa.DataType) -> None:
    texts = pa.array(["in front", *DATA["t"]["s"].to_pylist()], data_type).slice(1)
    made = with_dictionary(texts)
    assert pa.types.is_dictionary(made.type)
    assert made.to_pylist() == texts.to_pylist()
    assert made.dictionary.to_pylist() == sorted({*texts.to_pylist()} - {None}, key=str.encode)


@pytest.mark.parametrize(
    "texts", [[], [None] * 100, [str(n) for n in range(100)], [str(n // 3 * 2) for n in range(100)]]
)
def test_what_has_no_dictionary(texts: list[str | None], limits: SetLimits) -> None:
    """No values, no value twice, or fewer rows for each than are wanted."""
    limits(SHARE_OF_ROWS=0.2)
    array = pa.array(texts, pa.string())
    assert with_dictionary(array) is array


MANY = [f"{n:03}" for n in range(100)]


@pytest.mark.parametrize(
    "values",
    [["a", "b", "c"], ["b", "c", "a"], ["a", "a", "b"], ["a", None, "b"], ["a"], MANY, [*MANY, "0", "a"]],
    ids=["sorted", "unsorted", "one twice", "NULL", "one", "many", "many, the last ones unsorted"],
)  # fmt: skip
def test_dictionaries_in_any_order(values: list[str | None]) -> None:
    codes = pa.array([None if n % 7 == 3 else n % len(values) for n in range(300)], pa.int32())
    table = pa.table(
        {"s": pa.DictionaryArray.from_arrays(codes, pa.array(values)), "n": range(300)}
    )
    for query in (
        "select s, count(*), min(s) from t group by s",
        "select s, n from t order by s desc nulls first, n",
        "select n % 3 as k, max(s), count(distinct s) from t group by k",
        "select a.n from t a join t b on a.s = b.s and a.n = b.n + 1",
    ):
        assert_same_as_duckdb(query, {"t": table}, fuse=("never",))

"""Expressions over one column of few codes are evaluated on its values once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.codegen.fused import assert_fused, assert_fused_joins, assert_not_fused, notes
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

WORDS = {"t": pa.table({"s": ["b", None, "a", "", "é"] * 3, "k": [1, 2, 3, None, 5] * 3})}


@pytest.mark.by_day(2)
@pytest.mark.parametrize("predicate", [
    "s like '%b%'", "s not like 'a'", "upper(s) in ('A', 'É')", "s || 'x' = 'bx'", "coalesce(s, 'none') = 'none'",
    "regexp_matches(s, '[ab]')", "s > 'a'", "k % 2 = 1", "s is not distinct from 'a'",
])  # fmt: skip
def test_a_predicate_of_one_column(predicate: str) -> None:
    assert_fused(f"select count(*), sum(k) from t where {predicate}", WORDS)


@pytest.mark.parametrize(
    "key", ["upper(s)", "length(s)", "substring(s, 1, 1)", "sqrt(k) > 1", "k % 3"]
)
def test_a_group_key_of_one_column(key: str) -> None:
    assert_fused(f"select {key} as x, count(*) from t group by 1", WORDS)


def test_a_column_of_too_many_values_is_evaluated_on_its_rows() -> None:
    table = pa.table({"k": pa.array(range(70_000))})
    assert_fused("select count(*) from t where sqrt(k) > 3", {"t": table})


def test_an_error_on_a_value_is_left_to_the_operators() -> None:
    table = {"t": pa.table({"s": ["1", "x"], "k": [1, 2]})}
    assert_not_fused(
        "select sum(s::int) from t where k = 1 and s <> 'x'", table, "fails on a value"
    )


# Pieces of long texts

HEADS = ["13", "1", "", "31x", "9é-", "é", "ab\x00", "\x00", "zz", None]


def _long(heads: list[str | None], rows: int = 10_000) -> dict[str, pa.Table]:
    """Texts that mostly differ, too many for a dictionary, and a number each."""
    texts = []
    for i in range(rows):
        head = heads[i % len(heads)]
        whole = head is None or i % 100 < 10  # also what is shorter than any piece
        texts.append(head if whole else f"{head}-{i:07}")
    return {"t": pa.table({"s": texts, "k": pa.array(range(rows), pa.int64())})}


ALL, ASCII = _long(HEADS), _long([h for h in HEADS if h is None or h.isascii()])


@pytest.mark.by_day(2)
@pytest.mark.parametrize("tables", [ALL, ASCII], ids=["all", "ascii"])
@pytest.mark.parametrize("expr", [
    "substring(s, 1, 2)", "substring(s, 3, 1)", "left(s, 2)", "right(s, 1)", "upper(left(s, 3))", "left(upper(s), 3)",
    "split_part(s, '-', 1)", "substring(s, 0, 2)", "substring(s, -2, 1)", "substring(s, 4, 3)", "left(s, 0)",
])  # fmt: skip
def test_a_piece_of_long_texts(expr: str, tables: dict[str, pa.Table]) -> None:
    assert_fused(f"select {expr} as x, count(*), sum(k) from t group by 1", tables)
    assert_fused(
        f"select count(*), sum(k) from t where {expr} in ('13', 'é', '', 'ab\x00')", tables
    )


@pytest.mark.parametrize("predicate", [
    "substring(s, 1, 2) like '1%'", "substring(s, 1, 2) || 'x' = '13x'",
    "try_cast(substring(s, 1, 2) as int) between 1 and 20",
    "left(s, 1) is null", "coalesce(left(s, 1), '9') = '9'", "left(s, 2) = right(s, 2)", "left(s, 1) || s > '1'",
    "substring(s, 1, 2) in ('13', 'zz', 'é') and s like '%1'",
])  # fmt: skip
def test_what_is_made_of_a_piece(predicate: str) -> None:
    assert_fused(f"select count(*), sum(k) from t where {predicate}", ALL)


def test_a_piece_of_many_values_is_left_to_the_whole_expression() -> None:
    table = pa.table({"s": [f"{i:08}" for i in range(70_000)]})
    assert_fused("select count(*) from t where left(s, 8) like '%77'", {"t": table})


@pytest.mark.parametrize("join", ["left", "inner"])
def test_a_piece_of_what_a_join_finds(join: str) -> None:
    right = pa.table({"k": pa.array(range(0, 9_000, 3), pa.int64()), "v": range(3_000)})
    tables = {"a": right, **ALL}
    assert_fused_joins(
        f"""select left(s, 2) || '!' as x, count(*), sum(v) from a {join} join t
        on a.k + 2000 = t.k group by 1""",
        tables,
    )


@pytest.mark.parametrize(
    "test", ["t.s like '%1-%7'", "t.s not like '%1-%7'", "length(t.s) % 5 = 3"]
)
def test_a_test_of_what_an_outer_join_may_not_find(test: str) -> None:
    left = {"a": pa.table({"k": range(0, 15_000, 5), "v": range(3_000)}), **ALL}
    assert_fused_joins(
        f"select v % 10 as x, count(*) from a left join t on a.k = t.k where {test} or v < 50 group by 1",
        left,
    )


def test_a_piece_is_made_once_for_all_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    from fuseline.operators.cpu.pipeline import pipeline_inputs

    seen, derived = [], pipeline_inputs.derived

    def counted(expr: Any, *rest: Any) -> Any:
        seen.append(expr)
        return derived(expr, *rest)

    monkeypatch.setattr(pipeline_inputs, "derived", counted)
    found = notes(
        """select substring(s, 1, 2) as x, count(*) from t
        where substring(s, 1, 2) in ('13', 'zz') and substring(s, 1, 2) not like '%z'
        group by 1""",
        ALL,
    )
    assert all(note.startswith("kernel ") for note in found)
    assert len(seen) == 1


SHARED = """
    select sum(k) as a, (select count(*) from few) as b, (select max(k) from few) as c from few
    where k < (select avg(k) from few)
"""


@pytest.mark.parametrize("room", [1 << 26, 0])
def test_a_text_is_looked_at_once_for_all_pipelines(
    monkeypatch: pytest.MonkeyPatch, limits: SetLimits, room: int
) -> None:
    from fuseline.operators.cpu.pipeline import pipeline_inputs

    seen, derived = [], pipeline_inputs.derived

    def counted(expr: Any, *rest: Any) -> Any:
        seen.append(expr)
        return derived(expr, *rest)

    limits(MOST_DERIVED=room)
    monkeypatch.setattr(pipeline_inputs, "derived", counted)
    strings = [f"{i * 7919 % 100_003} of many" for i in range(100_003)]
    table = pa.table({"s": strings, "k": range(100_003)})
    query = f"with few as (select k from t where s like '%77%') {SHARED}"
    found = notes(query, {"t": table})
    assert sum(note.startswith("kernel ") for note in found) > 1
    assert len(seen) == 1 if room else len(seen) > 1
    assert_same_as_duckdb(query, {"t": table}, fuse=("always",))

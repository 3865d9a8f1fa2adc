"""BIT: texts of 0 and 1 that are a type of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

EVERY_WAY = ("always", "never")
TABLES = [
    "create table t (i int, b bit)",
    "insert into t values (1, '101'), (2, '001'), (3, null), (4, '1'), (5, '0'), (6, '1010101010'), (7, '101'), (8, '00000000')",
]


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "query",
    [
        "select b, count(*), min(i) from t group by b",
        "select b, i from t order by b desc nulls last, i",
        "select i from t where b = '101' or b > '1010' or b in ('0', '11')",
        "select min(b), max(b), count(distinct b), first(b order by i) from t",
        "select a.i, b.i from t a join t b using (b)",
        "select b, length(b), bit_length(b), octet_length(b), bit_count(b), ~b, b << 1, b >> 2, typeof(b) from t",
        "select b & '101'::bit, b | '010', xor('111'::bit, b) from t where length(b) = 3",
        "select get_bit(b, 0), set_bit(b, 0, 1), bit_position('01', b), bitstring(b, 12), bitstring('11', i + 1) from t",
        "select b::varchar, b::blob, b || 'x', case when i > 3 then b else '1' end, coalesce(b, '11') from t",
        "select bitstring_agg(i, 1, 9), bitstring_agg(i, 0, 8) filter (i % 2 = 0) from t",
        "select b, bitstring_agg(i, 1, 8) from t group by b",
        "select i, bitstring_agg(i, 1, 8) over (order by i) from t",
        "select bit_and(b), bit_or(b), bit_xor(b), bit_xor(distinct b) from t where length(b) = 3",
        "select length(b), bit_and(b), bit_or(b) filter (i > 1), bit_xor(b) from t group by length(b)",
        "select i, bit_or(b) over (order by i), list_bit_xor([b, b, '111'::bit]) from t where length(b) = 3",
        "select bit_and(b) from t where false",
        "select b'101' as x, X'' as y, x'AB12' as z, typeof(B'1'), typeof(X'00')",
    ],
)
def test_columns_of_bits(query: str) -> None:
    assert_same_as_duckdb(query, setup=TABLES, fuse=EVERY_WAY)


@pytest.mark.parametrize(
    "query",
    [
        "select '0101'::bit, ''::bit, 5::tinyint::bit, 5::bit, (-1)::bigint::bit, true::bit, 'a'::blob::bit, (-2)::hugeint::bit",
        "select 1.5::double::bit, 1.5::float::bit, 200::utinyint::bit, try_cast('12' as bit), null::bit",
        "select '1'::bit::tinyint, '11111111'::bit::utinyint, '11111111'::bit::tinyint, '11111111'::bit::smallint, '101'::bit::hugeint",
        "select '0101'::bit::double, '00000000'::bit::boolean, '1'::bit::boolean, ''::bit::blob, try_cast('111111111'::bit as tinyint)",
        "select '101'::bit::varchar, '101'::bit = '0101', concat('1'::bit, 'x'), to_json('1'::bit), json_object('a', '1'::bit)",
    ],
)
def test_casts_of_bits(query: str) -> None:
    assert_same_as_duckdb(query)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select '01x'::bit", "it has 0 and 1 alone"),
        ("select '111111111'::bit::tinyint", "9 bits do not fit into TINYINT, which has 8"),
        ("select 1.5::bit", "cannot be cast to BIT"),
        ("select b'12'", "it has 0 and 1 alone"),
        ("select x'A'", "two hexadecimal digits for each byte"),
        ("select '101'::bit & '01'::bit", "bits of one length, not 3 and 2"),
        ("select bit_and(x) from (values ('1'::bit), ('10')) t(x)", "bits of one length"),
        ("select '101'::bit << -1", "cannot be shifted by -1"),
        ("select get_bit('01'::bit, 2)", "the places go from 0 to 1"),
        ("select set_bit('01'::bit, 0, 2)", "A bit is 0 or 1, and not 2"),
        ("select bitstring('1010', 3)", "the length that bitstring gives them is 3"),
        ("select bitstring_agg(x, 2, 4) from (values (1)) t(x)", "1 is not between 2 and 4"),
        ("select bitstring_agg(x, 4, 2) from (values (1)) t(x)", "No number is at least 4"),
        ("select bitstring_agg(x) from (values (1)) t(x)", "bitstring_agg.integer, min, max."),
        ("select upper('1'::bit)", "does not take .BIT.: cast"),
        ("select hash('1'::bit)", "does not take .BIT.: cast"),
        ("select coalesce('1'::bit, v) from (values ('0')) t(v)", "cast"),
    ],
)
def test_what_bits_do_not_take(query: str, message: str) -> None:
    with pytest.raises(FuselineError, match=message):
        fuseline.connect(device="cpu").sql(query).fetchall()


def test_tables_hold_bits(tmp_path: Path) -> None:
    with fuseline.connect(tmp_path / "db", device="cpu") as connection:
        connection.execute("create table t (b bit, l bit[])")
        connection.execute("insert into t values ('101', ['1', null]), (null, [])")
        connection.execute(f"copy t to '{tmp_path}/t.parquet'")
    with fuseline.connect(tmp_path / "db", device="cpu") as connection:
        rows = connection.sql("select b, l, typeof(b), typeof(l) from t order by b nulls last")
        assert rows.fetchall() == [
            ("101", ["1", None], "BIT", "BIT[]"),
            (None, [], "BIT", "BIT[]"),
        ]
        stored = connection.sql(f"select b from '{tmp_path}/t.parquet' order by b nulls last")
        assert stored.fetchall() == [("101",), (None,)]

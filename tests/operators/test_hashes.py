"""hash(): the numbers that DuckDB gives."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb

TABLES = [
    "create table t (i int, s varchar, l int[], d decimal(9, 2))",
    "insert into t values (1, 'a', [1, 2], 1.5), (2, 'eight by', [], -2.25), (3, 'a text of more than sixteen bytes', [null], null), (4, '', null, 0), (null, null, [1, null, 3], 7)",
]


@pytest.mark.parametrize(
    "query",
    [
        "select hash(i), hash(s), hash(l), hash(d), hash(i, s), hash(i::double), hash({'a': i, 'b': s}) from t",
        "select hash(t) from (select i, s from t) t",
        "select count(*), sum(hash(i) % 7) from t where hash(s) % 2 = 0 or hash(s) > 5",
        "select count(*) from t where i % 2 = 5 and hash(i) = 1",
        "select hash(null), hash(true), hash((-1)::tinyint), hash((-1)::smallint), hash((-1)::bigint), hash(255::utinyint), hash(18446744073709551615)",
        "select hash(0.0::double), hash('-0.0'::double), hash('nan'::double), hash(-'nan'::float), hash('inf'::float), hash(1.5::float)",
        "select hash(1.5), hash(-1.5::decimal(4, 1)), hash(-1.5::decimal(18, 1)), hash(-1.5::decimal(38, 1)), hash((-5)::hugeint)",
        "select hash(date '2024-01-01'), hash(timestamp '1960-01-01 10:00'), hash(time '01:00'), hash(timestamptz '2024-01-01 10:00+00'), hash(timestamp_s '2024-01-01'), hash(timestamp_ns '2024-01-01')",
        "select hash(interval 400 days), hash(interval '-3 months -45 days -30 hours'), hash(interval '1 year 40:00:00.5')",
        "select hash('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid), hash('b'::enum('a', 'b')), hash('\\x00a'::blob), hash('[1]'::json)",
        "select hash(['a', null]), hash([[1], [2, 3], []]), hash({'a': null}), hash((1, 'x')), hash(map {'a': 1}), hash([1, 2]::int[2])",
    ],
)
def test_numbers_are_duckdbs(query: str) -> None:
    assert_same_as_duckdb(query, setup=TABLES, fuse=("always", "never"))

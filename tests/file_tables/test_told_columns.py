"""`filename` and `file_row_number` of files: known where a query names them, and no columns of `*`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compare import assert_same_as_duckdb

QUERIES = """
select filename, a from '{0}/x.parquet'
select * from '{0}/x.parquet' where filename is not null order by file_row_number desc
select *, file_row_number as n from read_parquet('{0}/x.parquet') where file_row_number > 0
select filename, count(*), sum(a) from '{0}/*.parquet' group by filename order by 1
select max(file_row_number), parse_filename(filename) from '{0}/*.parquet' where filename like '%y.%' group by all
select p.filename = q.filename from '{0}/x.parquet' p join '{0}/x.parquet' q using (a)
select count(*) from '{0}/x.parquet' p natural join (select *, filename as f from '{0}/y.parquet') q
select filename, b1 from '{0}/x.parquet' as p(a1, b1)
select filename, a from '{0}/x.csv' union all select filename, a from '{0}/x.json'
select filename from '{0}/own.parquet'
select * from read_parquet('{0}/x.parquet', filename = true)
with c as (select filename as f, a from '{0}/x.parquet') select f, sum(a) from c group by f
select columns('.*'), 'filename' as z from '{0}/x.parquet'
select count(file_row_number) from '{0}/none.parquet' where filename is null
""".strip().splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("told")
    import duckdb

    connection = duckdb.connect()
    connection.execute("create table t as from (values (1, 'x'), (2, null), (null, '')) v(a, b)")
    for query, name in (
        ("from t", "x.parquet"),
        ("from t where a > 1", "y.parquet"),
        ("from t", "x.csv"),
        ("from t", "x.json"),
        ("select 'mine' as filename, a from t", "own.parquet"),
        ("from t where false", "none.parquet"),
    ):
        where = made if name not in ("own.parquet", "none.parquet") else made / "other"
        where.mkdir(exist_ok=True)
        connection.execute(f"copy ({query}) to '{where}/{name}'")
    return made


@pytest.mark.parametrize("query", QUERIES)
def test_told_columns(folder: Path, query: str) -> None:
    text = query.replace("{0}/own", "{0}/other/own").replace("{0}/none", "{0}/other/none")
    assert_same_as_duckdb(text.format(folder), fuse=("always", "never"))

"""Queries over files as DuckDB answers them: folders, partitions, globs, pruned row groups."""

from datetime import date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.compare import assert_same_as_duckdb, connected


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Sales by year and country, a file with several row groups each."""
    folder = tmp_path_factory.mktemp("lake")
    for year in (2023, 2024):
        for country in ("AT", "DE", "__HIVE_DEFAULT_PARTITION__"):
            path = folder / f"year={year}" / f"country={country}"
            path.mkdir(parents=True)
            days = [date(year, 1, 1) + timedelta(days=n) for n in range(300)]
            table = pa.table({
                "day": days,
                "moment": pa.array([datetime(d.year, d.month, d.day, 12) for d in days], pa.timestamp("ms")),
                "amount": pa.array([None if n % 10 == 0 else n * 1.5 for n in range(300)]),
                "item": [f"item {n % 7}" for n in range(300)], "n": pa.array(range(300), pa.uint16()),
            })  # fmt: skip
            pq.write_table(table, path / "part.parquet", row_group_size=50)
    return folder


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_parquet('{lake}')",
        "select year, country, count(*) c, sum(amount) s from read_parquet('{lake}/**/*.parquet') group by all",
        "select count(*) from read_parquet('{lake}') where year = 2024 and country = 'AT'",
        "select count(*) from read_parquet('{lake}') where country is null",
        "select count(*) from read_parquet('{lake}') where country < 'B' or year > 2023",
        "select max(day) from read_parquet('{lake}') where day between date '2023-03-01' and date '2023-03-05'",
        "select item, sum(n) from read_parquet('{lake}') where n in (3, 60, 299, 1000) group by item",
        "select count(*) from read_parquet('{lake}') where moment >= timestamp '2024-10-01 00:00:00'",
        "select count(*) from read_parquet('{lake}') where amount is null and n < 100",
        "select count(*) from read_parquet('{lake}') where n > 1000",
        "select sum(amount) from read_parquet('{lake}') where n > 1000",
        "select * from '{lake}/year=2024/country=AT/part.parquet' where item like 'item 3%' and n > 250",
        "select * from read_parquet('{lake}', hive_partitioning = false) where n = 7",
        "select distinct filename from read_parquet('{lake}/year=2023/*/*.parquet', filename = true)",
        "select count(*) from read_parquet(['{lake}/year=2024/country=AT/part.parquet', "
        "'{lake}/year=2023/country=DE/part.parquet'])",
        "select a.year, count(*) from read_parquet('{lake}') a join read_parquet('{lake}') b "
        "on a.day = b.day and a.country = b.country where b.item = 'item 1' group by 1",
    ],
)
def test_a_query_over_a_folder(backend, lake, query):
    assert_same_as_duckdb(query.format(lake=lake), backend=backend)


@pytest.mark.parametrize("condition", ["> 100", ">= 2", "= 'nan'::double", "<> 1", "< 0"])
def test_nan_is_not_pruned_away(backend, tmp_path, condition):
    """As DuckDB answers over a table; over a file it loses a NaN that the statistics leave out."""
    data = pa.table({"f": [1.0, float("nan"), 2.0, None, -1.0]})
    pq.write_table(data, tmp_path / "x.parquet", row_group_size=2)
    with connected({"t": tmp_path / "x.parquet"}, backend) as connection:
        query = f"select f from t where f {condition}"
        assert_same_as_duckdb(query, {"t": data}, connection=connection)


def test_columns_in_another_order_and_further_ones(backend, tmp_path):
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["z"], "c": [0.5], "a": [3]}), tmp_path / "2.parquet")
    assert_same_as_duckdb(f"select * from '{tmp_path}/*.parquet'", backend=backend)


def test_names_that_differ_in_case_alone(backend, tmp_path):
    pq.write_table(pa.table({"q": [1], "Q": [2]}), tmp_path / "x.parquet")
    assert_same_as_duckdb(f"select * from '{tmp_path}/x.parquet'", backend=backend)


def test_a_file_without_rows(backend, tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.int32()), "s": pa.array([], pa.string())}), path)
    assert_same_as_duckdb(f"select * from '{path}'", backend=backend)
    assert_same_as_duckdb(f"select count(*), min(s) from '{path}' where a > 1", backend=backend)

"""A12, A3: nanoseconds were cut in silence, and INT96 timestamps outside of 1677 to 2262 wrapped."""

from datetime import datetime

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import ConversionError, TypeMismatch
from tests.compare import assert_same_as_duckdb

FINE = pa.array([1, 2, 999, 1000, None], pa.timestamp("ns"))
WHOLE = pa.array([1000, 2000, 999_000, None, -5_000, 10**18], pa.timestamp("ns"))
READS = (
    "select count(distinct t) from p",
    "select count(*) from p where t = timestamp '1970-01-01'",
    "select t from p",
    "select max(t) from p",
)


@pytest.mark.parametrize("query", READS)
@pytest.mark.parametrize("kind", ["arrow", "pandas", "dictionary", "parquet"])
def test_nanoseconds_are_a_type_of_their_own(tmp_path, query, kind):
    source = pa.table({"t": FINE.dictionary_encode() if kind == "dictionary" else FINE})
    if kind == "parquet":
        pq.write_table(source, tmp_path / "fine.parquet")
        source = tmp_path / "fine.parquet"
    elif kind == "pandas":
        frame = pd.DataFrame({"t": np.array([1, 2, 999, 1000], "datetime64[ns]")})
        source = pa.Table.from_pandas(frame)
    assert_same_as_duckdb(query, {"p": source})


def test_other_columns_of_the_table_are_read(connection):
    connection.register("p", pa.table({"t": FINE, "x": [1, 2, 3, 4, 5]}))
    assert connection.sql("select sum(x), count(*) from p").fetchall() == [(15, 5)]


@pytest.mark.parametrize("query", READS)
@pytest.mark.parametrize("in_parquet", [False, True])
def test_whole_microseconds_in_nanoseconds_are_taken(connection, tmp_path, query, in_parquet):
    if in_parquet:
        pq.write_table(pa.table({"t": WHOLE}), tmp_path / "whole.parquet")
        connection.read_parquet(tmp_path / "whole.parquet", "p")
    else:
        connection.register("p", pa.table({"t": WHOLE}))
    with duckdb.connect() as theirs:
        theirs.register("p", pa.table({"t": WHOLE}))
        assert sorted(map(str, connection.sql(query).fetchall())) == sorted(
            map(str, theirs.sql(query).fetchall())
        )


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_moments_beyond_microseconds_are_kept(unit, connection):
    table = pa.table({"t": pa.array([2**40], pa.timestamp(unit))})
    assert_same_as_duckdb("select t, t::varchar from p", {"p": table})
    connection.register("far", pa.table({"t": pa.array([2**62], pa.timestamp(unit))}))
    with pytest.raises(ConversionError, match="out of range for TIMESTAMP"):
        connection.sql("select t > timestamp '2020-01-01' from far").fetchall()


def test_insert_into_a_registered_table_keeps_no_cut_values(connection):
    connection.register("p", pa.table({"t": FINE}))
    connection.execute("insert into p values (timestamp '2024-01-01')")
    found = connection.sql("select t from p").to_arrow().column(0).cast(pa.int64())
    assert found.to_pylist() == [*FINE.cast(pa.int64()).to_pylist(), 1_704_067_200 * 10**9]


@pytest.mark.parametrize(
    "value",
    [np.datetime64(1, "ns"), np.timedelta64(1, "ns"), pd.Timestamp(1), pd.Timedelta(1, "ns")],
)
def test_parameters_are_not_cut(connection, value):
    with pytest.raises(TypeMismatch, match="nanoseconds"):
        connection.sql("select ?", [value])


@pytest.mark.parametrize(
    "value", [np.datetime64(1000, "ns"), pd.Timestamp(5000), np.datetime64("2024-01-01")]
)
def test_parameters_of_whole_microseconds_are_taken(connection, value):
    found = connection.sql("select ?", [value]).fetchall()[0][0]
    assert pd.Timestamp(found) == pd.Timestamp(value)


INT96 = [datetime(3000, 1, 1), datetime(2024, 1, 1, 1, 2, 3, 456789), None, datetime(1000, 1, 1), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]  # fmt: skip


@pytest.mark.parametrize("query", ["select t from p", "select min(t), max(t), count(distinct t) from p", "select count(*) from p where t > timestamp '2500-01-01'"])  # fmt: skip
@pytest.mark.parametrize("fuse", ["auto", "never"])
def test_int96_is_read_over_all_of_its_years(connection, tmp_path, query, fuse):
    path = tmp_path / "old.parquet"
    table = pa.table({"t": pa.array(INT96, pa.timestamp("us"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True, row_group_size=2)
    connection.read_parquet(path, "p")
    connection.set_option("fuse", fuse)
    expected = duckdb.sql(query.replace(" p", f" '{path}' p")).fetchall()
    assert sorted(map(str, connection.sql(query).fetchall())) == sorted(map(str, expected))

"""Objects of other libraries as Arrow tables."""

from datetime import date, time, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import TypeMismatch
from fuseline.interop.ingest import ingest

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pl = pytest.importorskip("polars", reason="Polars is not installed")

TABLE = pa.table({"a": [1, None], "s": ["x", "y"]})


class Stream:
    """Nothing but the capsule."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


def dataset(tmp_path):
    pq.write_table(TABLE, tmp_path / "x.parquet")
    return ds.dataset(tmp_path)


@pytest.mark.parametrize("make", [
    lambda _: TABLE, lambda _: TABLE.to_batches()[0], lambda _: TABLE.to_reader(), dataset,
    lambda _: pd.DataFrame({"a": pd.array([1, None], "Int64"), "s": ["x", "y"]}),
    lambda _: pl.DataFrame({"a": [1, None], "s": ["x", "y"]}),
    lambda _: pl.LazyFrame({"a": [1, None], "s": ["x", "y"]}),
    lambda _: {"a": [1, None], "s": np.array(["x", "y"])},
    lambda _: Stream(),
], ids=["table", "batch", "reader", "dataset", "pandas", "polars", "lazy polars", "dict", "stream"])  # fmt: skip
def test_every_kind_of_table_is_taken(tmp_path, make):
    table = ingest(make(tmp_path))
    assert isinstance(table, pa.Table)
    assert table.to_pydict() == {"a": [1, None], "s": ["x", "y"]}


def test_arrays_of_a_dictionary_keep_their_types():
    table = ingest(
        {
            "i": np.array([1, 2], np.int16),
            "f": np.array([1.5, np.nan]),
            "t": np.array(["2024-01-01", "NaT"], "datetime64[D]"),
            "m": np.ma.masked_array([1, 2], mask=[False, True]),
            "p": pl.Series(["x", None]),
            "d": pd.Series([1.0, 2.0]),
        }
    )
    assert table.schema.field("i").type == pa.int16()
    assert table["t"].to_pylist() == [date(2024, 1, 1), None]
    assert table["m"].to_pylist() == [1, None]
    assert table["p"].to_pylist() == ["x", None]
    assert table["d"].to_pylist() == [1.0, 2.0]


def test_a_pandas_index_is_no_column_and_names_become_texts():
    frame = pd.DataFrame({1: [1, 2], "b": [3, 4]}, index=pd.Index(["x", "y"], name="key"))
    assert ingest(frame).column_names == ["1", "b"]


def test_missing_values_of_pandas_objects_are_null():
    assert ingest(pd.DataFrame({"s": ["x", None, np.nan]}, dtype=object))["s"].null_count == 2


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_are_intervals_as_in_duckdb(unit):
    steps = [timedelta(400, 3, 5), None, timedelta(-1, microseconds=7), timedelta(0), None]
    arrow = pa.table({"d": pa.array([None, *steps], pa.duration(unit))}).slice(1)
    assert ingest(arrow)["d"].type == pa.month_day_nano_interval()
    pandas = pd.DataFrame({"d": pd.to_timedelta(["3 days", None, "-5h", "-1us"])})
    with fuseline.connect(device="cpu") as connection:
        for source in (arrow, pandas, arrow.slice(0, 0)):
            connection.register("steps", source)
            duckdb.register("steps", source)
            query = "SELECT d::varchar, timestamp '2024-01-30' + d FROM steps"
            assert connection.sql(query).fetchall() == duckdb.sql(query).fetchall()
    duckdb.unregister("steps")


MADE = {
    "names that repeat": lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "a Series of pandas": lambda: pd.Series([1, 2], name="a"),
    "a Series of Polars": lambda: pl.Series("a", [1, 2]),
    "several types": lambda: pd.DataFrame({"a": [1, "x", None, 2.5, 1e20, True, date(2024, 1, 31)]}),
    "times of Polars": lambda: pl.DataFrame({"a": [time(1, 2, 3), None]}),
    "runs": lambda: pa.table({"a": pa.RunEndEncodedArray.from_arrays([2, 3], ["x", None])}),
}  # fmt: skip


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_a_table_has_the_rows_that_duckdb_sees_in_it(make):
    found = []
    for module in (fuseline, duckdb):
        with module.connect() as connection:
            connection.register("t", make())
            cursor = connection.execute("select * from t")
            found.append(([column[0] for column in cursor.description], cursor.fetchall()))
    assert found[0] == found[1]


def test_integers_beyond_64_bits_are_decimals_and_nanoseconds_of_times_are_kept():
    assert ingest(pd.DataFrame({"a": [2**70, None]}, dtype=object))["a"].type == pa.decimal128(22)
    nanos = pa.table({"a": pa.array([1], pa.time64("ns"))})
    assert ingest(nanos) == nanos


@pytest.mark.parametrize(("source", "said"), [
    (pa.table({"d": pa.array([10**16], pa.duration("us"))}), '"d" has a duration of more than 292'),
    (5, "An int is no table: give a pyarrow Table"),
    ([1, 2], "list is no table"),
    ({"a": [1], "b": [1, 2]}, "one length"),
    ({"a": np.zeros((2, 2))}, '"a" has 2 dimensions'),
    ({"a": [object()]}, "dict could not be taken"),
    (pd.DataFrame({"a": [[1], ["x"]]}), "pandas.DataFrame could not be taken"),
])  # fmt: skip
def test_what_is_no_table_is_refused_with_the_reason(source, said):
    with pytest.raises(TypeMismatch, match=said):
        ingest(source)

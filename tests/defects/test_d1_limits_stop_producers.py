"""A LIMIT stops what is below it, and count(*) of what has a known size makes no rows: judged by the rows that are made."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.operators.pulling import FIRST_ROWS, MOST_ROWS
from fuseline.runtime.schedule import PULLED_FIRST
from tests.compare import assert_same_as_duckdb, connected

ROWS, GROUP_ROWS = 400_000, 20_000


def write(file, row_group_size):
    numbers = np.arange(ROWS)
    table = pa.table({"n": numbers, "k": numbers % 10, "x": [f"text {n % 97}" for n in numbers]})
    pq.write_table(table, file, row_group_size=row_group_size)
    return file


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("limits") / "t.parquet", GROUP_ROWS)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """All rows in one row group."""
    return write(tmp_path_factory.mktemp("limits") / "large.parquet", ROWS)


def ran(connection, query):
    """The answer, and the rows that all operators made together."""
    frame = connection.sql(query)
    answer = frame.to_arrow()
    return answer, sum(node.rows for node in frame.profile.nodes)


@pytest.mark.parametrize(("query", "rows"), [
    ("select x, y from range(12000) a(x), range(12000) b(y) limit 5", 5),
    ("select count(*) as n from (select 1 from range(90000) a, range(90000) b limit 7)", 1),
    ("select x from range(100000000) a(x) limit 3 offset 70000", 3),
    ("select x * 2 as d from range(500000000) a(x) where x % 7 = 3 limit 4", 4),
    ("select x from range(300000000) a(x) union all select 3 limit 4", 4),
    ("select * from (select x from range(200000000) a(x) limit 9) limit 4 offset 2", 4),
    ("select x from range(1000000) a(x) where exists (select 1 from range(4)) limit 2", 2),
])  # fmt: skip
def test_a_limit_stops_ranges_and_pairs(query, rows, backend):
    with fuseline.connect(backend) as connection:
        answer, made = ran(connection, query)
    assert answer.num_rows == rows
    assert made < 3 * MOST_ROWS


@pytest.mark.parametrize("query", [
    "select * from t limit 10",
    "select n + 1 as m from t where k = 3 limit 10",
    "select t.n, u.n as other from t, t u limit 10",
    "select t.n, z.s from t join (values (3, 'c'), (4, 'd')) z(k, s) on t.k = z.k limit 10",
    "select n from t union all select k from t limit 10 offset 5",
])  # fmt: skip
@pytest.mark.parametrize("fuse", ["never", "auto", "always"])
def test_a_limit_stops_a_scan(query, fuse, path, backend):
    with connected({"t": path}, backend, fuse=fuse) as connection:
        answer, made = ran(connection, query)
        assert answer.num_rows == 10
        # The other side of a join is read whole
        assert made < (ROWS + 4 * MOST_ROWS if " u limit" in query else 4 * GROUP_ROWS)


@pytest.mark.parametrize("query", [
    "create table made as select * from t limit 1000",
    "select * from t limit 1000", "select n, x from t where k = 3 limit 200", "select n from t limit 10 offset 9000",
])  # fmt: skip
def test_a_limit_decodes_a_part_of_a_row_group(query, large, monkeypatch):
    decoded = []
    ours = pq.ParquetFile.iter_batches

    def noted(*args, **options):
        for batch in ours(*args, **options):
            decoded.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", None)
    with connected({"t": large}) as connection:
        connection.sql(query).to_arrow()
    assert 0 < sum(decoded) <= FIRST_ROWS


@pytest.mark.parametrize("offset", [0, 300, 20_000, 399_990])
def test_what_is_decoded_in_parts_is_as_in_duckdb(offset, large):
    query = f"select * from t where k < 9 limit 30000 offset {offset}"
    with connected({"t": large}) as connection:
        connection.sql("select sum(k) from t").fetchall()  # one column is in the cache
        assert_same_as_duckdb(query, {"t": large}, connection=connection, ordered=True)


@pytest.mark.parametrize("fuse", ["never", "auto", "always"])
@pytest.mark.parametrize("offset", [0, 3, 50_000])
def test_a_limit_that_is_reached_late_or_never_has_all_rows(fuse, offset, path, backend):
    query = f"select n from t where n % 1000 = 7 and k = 7 limit 5000 offset {offset}"
    joined = f"select t.n from t join range(5) r(v) on t.k = r.v limit 300000 offset {offset}"
    with connected({"t": path}, backend, fuse=fuse) as connection:
        for _ in range(2):  # the second time it is known that the first rows are too few
            answer = connection.sql(query).to_arrow()
            assert answer["n"].to_pylist() == list(range(7, ROWS, 1000))[offset : offset + 5000]
            count = connection.sql(joined).to_arrow().num_rows
            assert count == max(0, min(300_000, ROWS // 2 - offset))
    assert ROWS > PULLED_FIRST


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from range(20000000)",
        "select count(*), count(*) + 1 from range(-9, 9223372, 3)",
        "select count(*) from range(5, 1)",
        "select count(*) from generate_series(10, 1, -3)",
        "select count(*) from range(3000000) a, range(3) b",
        "select count(*) from (select x + 1 from range(9000000) a(x) limit 17 offset 3)",
        "select count(*) from (select 1 from range(4) limit 17 offset 9)",
        "select (select count(*) from range(1234567)) - count(*) as n from range(7)",
    ],
)
def test_a_count_of_what_is_known_makes_no_rows(query, backend):
    with fuseline.connect(backend) as connection:
        _, made = ran(connection, query)
    assert made < 10
    assert_same_as_duckdb(query, backend=backend)


def test_a_count_of_a_file_reads_the_footer(path, backend, tmp_path):
    file = tmp_path / "grown.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), file)
    with connected({"t": path}, backend) as connection:
        frame = connection.sql("select count(*) from t union all select count(*) from t, t u")
        assert [n for (n,) in frame.fetchall()] == [ROWS, ROWS * ROWS]
        assert frame.profile.bytes_read == 0
        query = f"select count(*) from '{file}'"
        assert connection.sql(query).fetchall() == [(2,)]
        pq.write_table(pa.table({"a": [1, 2, 3]}), file)
        assert connection.sql(query).fetchall() == [(3,)]

"""Options of read_csv, sniff_csv, and dialects that nobody chose: DuckDB's rows and rejects, and a refusal where DuckDB refuses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pytest

import fuseline
from tests.compare import Ordering, connected, difference

from .csv_dialects import DIALECTS, dialect

REJECTS = """select line, column_idx, column_name,
    case error_type::varchar when 'INVALID ENCODING' then 'CAST' else error_type::varchar end
    from reject_errors order by all"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def connection(backend):
    with connected({}, device=backend) as opened:
        yield opened


def write(content: str | bytes, name: str = "f.csv") -> None:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


def check(connection: fuseline.Connection, query: str) -> str:
    """Both give the same rows, or both refuse; tell which."""
    with duckdb.connect() as reference:
        try:
            expected = reference.sql(query).to_arrow_table()
        except duckdb.Error:
            with pytest.raises(fuseline.FuselineError) as refusal:
                connection.sql(query).to_arrow()
            assert not isinstance(refusal.value, fuseline.InternalError)
            return "refused"
        assert difference(expected, connection.sql(query).to_arrow(), Ordering(True)) is None, query
        if "store_rejects" in query and "sniff" not in query:
            expected = reference.sql(REJECTS).fetchall()
            assert connection.sql(REJECTS).fetchall() == expected, query
            connection.sql("drop table temp.reject_errors")
            connection.sql("drop table temp.reject_scans")
    return "read"


def check_dialects(seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    with fuseline.connect(device="cpu") as connection:
        for seed in seeds:
            content, options = dialect(seed)
            write(content, f"f{seed}.csv")
            query = f"select * from read_csv('f{seed}.csv', {options})".replace(", )", ")")
            found[check(connection, query)] += 1
    return found


def test_dialects_that_nobody_chose() -> None:
    found = check_dialects(range(60))
    assert min(found["read"], found["refused"]) >= 20


@pytest.mark.nightly
def test_more_dialects_that_nobody_chose() -> None:
    found = check_dialects(range(60, DIALECTS))
    assert min(found["read"], found["refused"]) >= 100


OPTIONS = [
    ("a,b,c\n1,2\n3\n4,5,6\n", "null_padding = true"),
    ("a,b\n1,2\n3\n4,5,6\n", "null_padding = true"),
    ("a\n1,2\n4,5,6", "null_padding = true, header = false, names = ['x']"),
    ("a,b\n1,2\n4,5,6", "null_padding = true, names = ['x', 'y', 'z', 'w'], header = false"),
    ("a,b\n1,2\n3\n", "null_padding = true, columns = {a: 'INT', b: 'INT', c: 'INT'}, header = true, auto_detect = false"),
    ("# c\na,b\n1,2\n# x\n3,4 # y\n", ""),
    ("# c\na,b\n1,2\n# x\n3,4 # y\n", "comment = '#'"),
    ('a;b\n1;2\n3;"#4"\n', "comment = '#'"),
    ("a;b\n1;2\n3;# x\n", "comment = '#'"),
    ("# x\na,b\n1,2\n", "comment = '#', skip = 1"),
    ("n\n# x\na,b\n1,2\n", "comment = '#', skip = 1, header = true"),
    ("a,b\n1,2\n", "comment = ''"),
    ("a,b\r\n1,2\n3,4\n", ""),
    ("a,b\r\n1,2\r\n", r"new_line = '\n'"),
    ("a,b\r\n1,2\r\n", r"new_line = '\r\n'"),
    ("a,b\r1,2\r4,5\r", r"new_line = '\r'"),
    ("a,b\n1,2\r\n4,5\n", "strict_mode = false"),
    ('a,b\n1,"x"\n3,"4" \n', ""),
    ('a,b\n1, "x" \n3,"4"\n', ""),
    ('a,b\n1,"x"z\n3,"4"\n', "delim = ',', quote = '\"', header = true"),
    ('a,b\n1,"x"zz"y"\n3,"4"\n', "delim = ',', quote = '\"', header = true, strict_mode = false"),
    ('a,b\n1,"x\\ny"\n3,"4"\n', "delim = ',', quote = '\"', escape = '\\', header = true"),
    ('a,b\n1,x\\,y\n2,"t"\n', "escape = '\\', strict_mode = false"),
    ('a,b\n1,"x""y"\n3,"4"\n', "quote = '\"', escape = ''"),
    ("a||b\n1||2\n", "delim = '||'"),
    ("aéb\n1é2\n3é4\n", "delim = 'é'"),
    ("a,b\n1,2,\n3,4,\n", ""),
    ("a,b\n1,2,,\n3,4\n", "columns = {a: 'INT', b: 'INT'}, header = true, auto_detect = false"),
    ("a,b\n1,2,x\n3,4\n", "columns = {a: 'INT', b: 'INT'}, header = true, auto_detect = false"),
    ("a,b\n1,2,3\n4,5\n", "auto_detect = false, columns = {a: 'VARCHAR', b: 'VARCHAR'}, strict_mode = false"),
    ("a;b\n1,000;x\n2,345;y\n", "thousands = ',', delim = ';'"),
    ("a;b\n1.000,5;x\n2.345;y\n", "thousands = '.', decimal_separator = ','"),
    ("a;b\n1,000.55;x\n", "thousands = ',', delim = ';', types = {a: 'DECIMAL(9,2)'}"),
    ("a;b\n,;2020\n", "thousands = ',', delim = ';'"),
    ("a,b\n1,2\n", "thousands = '.'"),
    ("a,b\n,1\nx,\n", "force_not_null = ['a']"),
    ("a,b\nNA,1\nx,NA\n", "force_not_null = ['a'], nullstr = 'NA'"),
    ("a,b\n1,2\n,\n", "force_not_null = ['b'], columns = {a: 'INT', b: 'INT'}"),
    ("a,b\n1,2\n", "force_not_null = 'b'"),
    ("a,b\nNA,\n,NA\nx,y\n", "nullstr = 'NA', all_varchar = true"),
    ('a,b\n"NA",""\n,NA\n', "nullstr = 'NA', all_varchar = true, allow_quoted_nulls = false"),
    ("a,b\n1,\n2,3\n", "nullstr = ['NA', 'x']"),
    ("a,b\n1,2\n3,4\n", "max_line_size = 3"),
    ("a,b\n1,2\n3,4\n", "max_line_size = 4"),
    ("a,b\n1,2\n3,444\n5,6\n", "max_line_size = 4, auto_detect = false, columns = {a: 'INT', b: 'INT'}, header = true, store_rejects = true"),
    ("note\na,b\n1,2\n", "skip = 1, header = true"),
    ("note\na,b\n1,2\n", "skip = 5"),
    ('"multi\nline",z\na,b\n1,2\n', "skip = 1, header = true"),
    ("d\n2020-13-01\n", "dateformat = '%Y-%d-%m'"),
    ("d\n01.02.2020 10h\n", "timestampformat = '%d.%m.%Y %Hh'"),
    ("a,b\n1,2\n", "dtypes = ['INT', 'VARCHAR']"),
    ("a,b\n1,2\n", "column_types = {'b': 'VARCHAR'}"),
    ("a,b\n1,2\n", "types = {'zz': 'INT'}, ignore_errors = true"),
    ("a,b\n1,2\nx\n3,4\ny,5,6\n", "ignore_errors = true"),
    ("a,b\n1,2\n# x\n3,4\n", "ignore_errors = true"),
    (b"a,b\n1,2\n3,\xff\nx,y\n", "ignore_errors = true"),
    (b"a,b\n1,2\n3,\xff\nx,y\n", "store_rejects = true, columns = {a: 'INT', b: 'VARCHAR'}, header = true"),
    ('a,b\n1,2\n"x\ny",z\nu,4,5\n5\nq,1\n', "store_rejects = true, columns = {a: 'VARCHAR', b: 'INT'}, header = true, auto_detect = false"),
    ('a,b\n1,2\n"x\ny"z,3\nu,4\n', "store_rejects = true, columns = {a: 'VARCHAR', b: 'INT'}, header = true, auto_detect = false"),
    ('a,b\n1,2\n"x,3\nu,4\n', "store_rejects = true, columns = {a: 'VARCHAR', b: 'INT'}, header = true, auto_detect = false"),
    ("a,b\n1,2\nx,4,5,6\n", "types = {'a': 'INT', 'b': 'INT'}, store_rejects = true"),
    ("a,b\n1,2,,z\n1,2,z,,\n3,4,,z,\n5,6\n", "header = true, store_rejects = true"),
    ("a,b\n1,2,,\n1,2,x,\n3,4,x,x\n3,4,\n5,6\n", "header = true, nullstr = 'x', store_rejects = true"),
    ("a,b\n1,2\n3\nx,y\nz,z\n", "store_rejects = true, columns = {a: 'INT', b: 'INT'}, header = true, rejects_limit = 2"),
    (",".join("a" * 12) + "\n" + ",".join("1" * 12) + "\n", "header = false"),
    ("a,b\n1,2\n", "union_by_name = true, store_rejects = true"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "options"), OPTIONS)
def test_options(content, options, connection) -> None:
    write(content)
    check(connection, f"select * from read_csv('f.csv', {options})".replace(", )", ")"))


def test_rows_behind_the_sample_are_as_in_it(connection) -> None:
    """Arrow splits the first of them, and what it does not have is split row by row from there on."""
    many = "a,b\n" + "1,x\n" * 25_000
    write(many + "2,y,\n3,z\n")
    query = "select count(*), sum(a), max(b) from 'f.csv'"
    assert connection.sql(query).fetchall() == [(25_002, 25_005, "z")]
    write(many + "2,y,z\n")
    with pytest.raises(fuseline.FuselineError, match=r'line 25002 of the file "f\.csv" has 3'):
        connection.sql(query).fetchall()
    query = "select count(*), max(b) from read_csv('f.csv', ignore_errors = true)"
    assert connection.sql(query).fetchall() == [(25_000, "x")]


def test_rejects_are_tables_of_the_session(connection) -> None:
    write("a,b\n1,2\nx,3\n4,5,6\n7\n")
    write("a,b\n1,2\n3,y\n", "g.csv")
    with duckdb.connect() as reference:
        for runner in (connection, reference):
            for path in ("'f.csv'", "['f.csv', 'g.csv']"):
                read = (
                    f"from read_csv({path}, store_rejects = true, types = {{a: 'INT', b: 'INT'}})"
                )
                runner.sql(read).fetchall()
        for query in ("select * exclude (scan_id) from reject_errors order by all",
                      "select * exclude (scan_id) from reject_scans order by all"):  # fmt: skip
            expected = reference.sql(query).to_arrow_table()
            assert difference(expected, connection.sql(query).to_arrow(), Ordering(True)) is None
    scans = connection.sql("select distinct scan_id from reject_errors order by 1").fetchall()
    assert scans == [(1,), (2,)]
    connection.execute("create temp table mine (a integer)")
    reading = "from read_csv('g.csv', store_rejects = true, rejects_table = 'mine')"
    with pytest.raises(fuseline.FuselineError, match='a table "mine" already'):
        connection.sql(reading).to_arrow()


def test_copy_takes_the_options(connection) -> None:
    write("# note\n7|8|\n\n9\n10|x\n")
    options = (
        "(delim '|', header false, comment '#', null_padding, store_rejects, auto_detect false)"
    )
    with duckdb.connect() as reference:
        for runner in (connection, reference):
            runner.execute("create table t (a integer, b integer)")
            runner.execute(f"copy t from 'f.csv' {options}")
        for query in ("from t", REJECTS):
            assert connection.sql(query).fetchall() == reference.sql(query).fetchall()


def test_folders_of_hive_and_paths_are_columns(connection) -> None:
    for year in (2023, 2024):
        Path(f"year={year}").mkdir()
        write(f"a,x\n{year},9\n", f"year={year}/f.csv")
    for options in (
        "",
        "filename = true",
        "hive_partitioning = false",
        "hive_types = {year: 'VARCHAR'}",
        "hive_types_autocast = false",
        "filename = 'a'",
        "filename = 'path', union_by_name = true",
    ):
        query = f"select * from read_csv('*/f.csv', {options}) order by a".replace(", )", ")")
        check(connection, query)
    write("year\n5\n", "year=2024/f.csv")
    check(connection, "from read_csv('year=2024/f.csv')")


SNIFFED = [
    ("a,b\n1,2\nx,3\n", ""),
    ("d,t\n01/02/2020,01/02/2020 10:00:00\n13/02/2020,13/02/2020 11:00:00\n", "sample_size = 5"),
    ('# hi\nnote\nd|t\n"x|""y"|5\n', ""),
    ("d\tt\r\nx\t5\r\n", "store_rejects = true"),
    ("1,'a'\n2,'b'\n", "names = ['q'], types = ['VARCHAR']"),
    ("a;b\n1;2,5\n", "quote = '\"', escape = '\"', comment = '#', skip = 0, nullstr = ['x', 'y']"),
    ("a,b\n1,2\n", "columns = {a: 'BIGINT', b: 'BIGINT'}"),
    ("a,b\n1,2\n", "columns = {a: 'INTEGER', b: 'BIGINT'}"),
    ("a,b\n1,2\n", "auto_detect = false"),
    ("a,b\n1,2\n3\n", "delim = ','"),
]


@pytest.mark.parametrize(("content", "options"), SNIFFED)
def test_what_is_sniffed_is_told_with_the_call_that_reads_it(content, options, connection) -> None:
    write(content)
    query = f"select * from sniff_csv('f.csv', {options})".replace(", )", ")")
    if check(connection, query) == "read":
        ((prompt,),) = connection.sql(f"select prompt from ({query})").fetchall()
        assert check(connection, prompt.removesuffix(";")) == "read"
    write("a\n1\n", "g.csv")
    assert check(connection, "from sniff_csv('*.csv')") == "refused"

"""read_csv: DuckDB's answers for the same file, and an error with file, line and column for what is none."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from tests.compare import Ordering, connected, difference

from .csv_cases import CASES, HEADERS, generated


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def connection(backend, folder):
    with connected({}, device=backend) as opened:
        yield opened


def write(content: str | bytes, name: str = "f.csv") -> None:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


def same(connection: fuseline.Connection, query: str, refused: bool = True) -> bool:
    """Both give the same rows of the same types, or both refuse (`refused`); return whether there are rows."""
    try:
        expected = duckdb.connect().sql(query).to_arrow_table()
    except duckdb.Error:
        if not refused:
            return False
        with pytest.raises(fuseline.FuselineError):
            connection.sql(query).to_arrow()
        return False
    found = connection.sql(query).to_arrow()
    assert difference(expected, found, Ordering(True)) is None, query
    return True


@pytest.mark.parametrize(("content", "options"), CASES)
def test_a_file_has_the_columns_and_rows_that_duckdb_finds(content, options, connection):
    write(content)
    same(connection, f"select * from read_csv('f.csv', {options})".replace(", )", ")"))


@pytest.mark.parametrize("sign", ["=", ":=", "=>"])
def test_options_are_named_by_each_sign_that_duckdb_takes(sign, connection):
    write("a;b\n1;x\n2;y\n")
    same(
        connection,
        f"from read_csv('f.csv', header {sign} true, types {sign} {{'a': 'double'}})",
        False,
    )
    same(connection, f"from read_csv('f.csv', NAMES {sign} ['q', 'r'], delim {sign} ';')", False)
    same(connection, f"from read_csv('f.csv', nosuch {sign} true)")


def test_a_first_row_is_a_header_where_duckdb_takes_it_for_one(connection):
    for number, (content, options) in enumerate(HEADERS):
        write(content, f"f{number}.csv")
        same(connection, f"from read_csv('f{number}.csv'{', ' * bool(options)}{options})")


def test_names_are_normalized(connection):
    header = "name,Date,count,ORDER,A  B,a_b,__x,x-,-,%,Größe,日本,row,map,1,À la,ﬁ,²,tab\tx"
    Path("names.csv").write_text(f"{header}\n{','.join(map(str, range(19)))}\n")
    for options in ("", ", header = true", ", header = false", ", names = ['Big One', 'select']"):
        same(connection, f"from read_csv('names.csv', normalize_names = true{options})")


def test_dialects_that_nobody_chose(connection):
    check_generated(connection, range(100))


@pytest.mark.nightly
def test_more_dialects_that_nobody_chose(connection):
    check_generated(connection, range(100, 600))


def check_generated(connection, seeds) -> None:
    read = 0
    for seed in seeds:
        content, options = generated(seed)
        write(content, f"f{seed}.csv")
        read += same(connection, f"select * from read_csv('f{seed}.csv', {options})", refused=False)
    assert read > len(seeds) * 0.9


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n1,2\nx,3\n", "types = {'a': 'INT'}", r'"x" is no INTEGER: file "f.csv", line 3, column "a"'),
        ('a,b\n"1\n",2\n\nx,3\n', "types = ['INT']", r'"x" is no INTEGER: file "f.csv", line 5, column "a"'),
        ("i\n" + "1\n" * 30000 + "x\n", "", r'"x" is no BIGINT: file "f.csv", line 30002, column "i"'),
        ("a,b\n" + "1,2\n" * 30000 + "3\n", "", r'row at line 30002 of the file "f.csv" has 1 columns instead of 2'),
        ("a,b\n1,2\n3\n4,5\n", "delim = ','", r"no CSV with the same number of columns in each row for delim = ','"),
        (b"a,b\n1,x\n2,\xff\n", "", r'"f.csv" is not UTF-8, at line 3, column "b"'),
        ("a,b\n" + "1,2\n" * 30000 + "1,2,3\n", "", r"line 30002 .* has 3 columns instead of 2"),
        ("a\n1\n", "foo = 1", r'read_csv has no option "foo"'),
        ("a\n1\n", "delimm = ','", r'Did you mean "delim"'),
        ("a\n1\n", "parallel = false", r"parallel of read_csv is not supported"),
        ("a\n1\n", "buffer_size = 100", r"buffer_size of read_csv is not supported"),
        ("a\n1\n", "delim = 'abcde'", r"takes up to four bytes"),
        ("a\n1\n", "header = 3", r"takes true or false, not 3"),
        ("a\n1\n", "types = {'z': 'INT'}", r'types names the column "z"'),
        ("a\n1\n", "types = {'a': 'NOPE'}", r"NOPE"),
        ("a\n1\n", "types = {'a': 'INTERVAL'}", r"INTERVAL"),
        ("a\n1\n", "types = {'a': 'TIMESTAMP_NS'}", r"TIMESTAMP_NS"),
        ("a\n1\n", "names = ['a', 'b', 'c']", r"names has 3 names"),
        ("a\n1\n", "auto_detect = false", r"needs columns"),
        ("a\n1\n", "skip = -1", r"from 0 on"),
        ("a\n1\n", "sep = ',', delim = ','", r"given twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(content, options, message, connection):
    write(content)
    with pytest.raises(fuseline.FuselineError, match=message):
        connection.sql(f"select * from read_csv('f.csv', {options})".replace(", )", ")")).to_arrow()


def test_paths_are_tables(connection):
    write("city,sold\nOslo,3\nRome,5\n")
    write(gzip.compress(b"city,sold\nBari,1\n"), "g.csv.gz")
    assert same(connection, "select * from 'f.csv' where sold > 3")
    assert same(connection, "from 'g.csv.gz'")
    assert same(connection, "select * from read_csv(['f.csv', 'g.csv.gz'], filename = true)")
    assert (
        same(
            connection, "select f.city from 'f.csv' f join read_csv_auto('g.csv.gz') g using (sold)"
        )
        or True
    )
    assert same(connection, "select count(*) from read_csv('*.csv*')")


def test_files_of_other_columns(connection):
    write("a,b\n1,2\n", "1.csv")
    write("b,a\nx,2.5\n", "2.csv")
    write("a,c\n1,2\n", "3.csv")
    assert same(connection, "from read_csv(['2.csv', '1.csv'])")
    assert same(connection, "from read_csv(['1.csv', '2.csv', '3.csv'], union_by_name = true)")
    for files in ("['1.csv', '2.csv']", "['1.csv', '3.csv']", "['1.csv', 'no.csv']", "'n*.csv'"):
        with pytest.raises(fuseline.FuselineError):
            connection.sql(f"from read_csv({files})").to_arrow()


def test_files_of_other_types_have_one_type_together(connection):
    values = {
        "i": "1", "d": "1.5", "t": "x", "e": "", "day": "2024-01-01", "moment": "2024-01-01 10:00:00", "b": "true",
        "clock": "10:00:00", "big": "99999999999999999999",
    }  # fmt: skip
    for name, value in values.items():
        write(f"a,b\n{value},2\n", f"{name}.csv")
    write("a,b\n", "none.csv")
    together = [
        *(
            "i d",
            "d i",
            "i t",
            "e i",
            "i e",
            "e d",
            "e e",
            "e t i",
            "t e i",
            "i e t",
            "e day",
            "e b",
        ),
        *(
            "day moment",
            "moment day",
            "b i",
            "day i",
            "clock day",
            "big i",
            "big d",
            "none i",
            "i none",
            "none e d",
        ),
    ]
    for files in together:
        paths = [f"{name}.csv" for name in files.split()]
        assert same(connection, f"from read_csv({paths})")
    for files in ("e i", "i d", "i t", "t e i", "day moment", "big d", "none i"):
        paths = [f"{name}.csv" for name in files.split()]
        assert same(connection, f"from read_csv({paths}, union_by_name = true)")
    assert same(connection, "from read_csv(['i.csv', 'd.csv'], types = {'a': 'FLOAT'})")


def test_a_backslash_and_t_are_a_tab(connection):
    write("a\tb\n1\tx,y\n")
    for options in (
        r"delim = '\t'",
        r"sep = '\t', columns = {'a': 'INT', 'b': 'VARCHAR'}",
        "delim = e'\\t'",
    ):
        assert same(connection, f"from read_csv('f.csv', {options})")


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_other_encodings(encoding, connection):
    write("a,b\nå,1\nü,2\n".encode(encoding))
    query = f"from read_csv('f.csv', encoding = '{encoding}')"
    assert connection.sql(query).fetchall() == [("å", 1), ("ü", 2)]


def test_numbers_are_exact(connection):
    write("d,x\n12345678901234567890.123456789012345678,0.1\n1,4.35\n1e2,1e23\n")
    query = "from read_csv('f.csv', types = {'d': 'DECIMAL(38,18)'})"
    assert same(connection, query)


def test_a_file_that_changes_is_read_anew(connection):
    write("a\n1\n")
    frame = connection.read_csv("f.csv", "t")
    assert frame.fetchall() == connection.sql("from t").fetchall() == [(1,)]
    write("a\n1\n22\n")
    assert frame.fetchall() == connection.sql("from t").fetchall() == [(1,), (22,)]
    assert connection.sql("select sum(a) from 'f.csv'").fetchall() == [(23,)]
    write("a\nx\n")
    assert connection.sql("from t").fetchall() == [("x",)]
    with pytest.raises(fuseline.FuselineError, match="no longer BIGINT"):
        frame.fetchall()


def test_views_tables_and_threads_read_files(connection):
    write("a,b\n" + "".join(f"{i},{i % 7}\n" for i in range(5000)))
    connection.sql("create view v as select b, sum(a) as s from 'f.csv' group by b")
    connection.sql("create table t as from 'f.csv'")
    expected = connection.sql("select b, sum(a) from t group by b order by b").fetchall()
    found = []

    def ask() -> None:
        found.append(connection.sql("from v order by b").fetchall())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_what_may_not_be_read_is_refused(folder):
    Path("in").mkdir()
    write("a\n1\n")
    write("a\n2\n", "in/f.csv")
    with fuseline.connect(device="cpu", allowed_paths=["in"], external_access=False) as limited:
        assert limited.sql("from 'in/f.csv'").fetchall() == [(2,)]
        for path in ("f.csv", "in/../f.csv", "*.csv"):
            with pytest.raises(fuseline.FuselineError, match="may not be opened"):
                limited.sql(f"from read_csv('{path}')").to_arrow()
    with fuseline.connect(device="cpu") as free:
        frame = free.read_csv("f.csv")
        assert frame.fetchall() == [(1,)]
        free.set_option("external_access", False)
        with pytest.raises(fuseline.FuselineError, match="may not be opened"):
            frame.fetchall()


def test_more_rows_than_memory(folder):
    write("a,b\n" + "".join(f"{i},text {i % 1000}\n" for i in range(300_000)))
    with fuseline.connect(device="cpu", memory_limit="8MB", spill_dir=str(folder / "s")) as small:
        query = "select b, count(*) as n, sum(a) from 'f.csv' group by b order by b limit 3"
        expected = duckdb.connect().sql(query).fetchall()
        assert small.sql(query).fetchall() == expected
        assert any((folder / "s").iterdir())
    assert list((folder / "s").iterdir()) == []


def test_rows_on_their_way_keep_to_the_limit(folder):
    write("a,b\n" + "".join(f"{i},{'text' * 50}\n" for i in range(30_000)))
    write("a,b\n1," + "x" * 3_000_000 + "\n", "long.csv")
    with fuseline.connect(device="cpu", memory_limit="6MB", spill_dir=str(folder / "s")) as small:
        assert small.sql("select count(b), sum(a) from 'f.csv'").fetchall() == [
            (30_000, 449_985_000)
        ]
        (kept,) = (folder / "s").rglob("*.parquet")
        footer = pq.read_metadata(kept)
        assert footer.num_row_groups == 2
        small.set_option("memory_limit", "2MB")
        with pytest.raises(fuseline.OperationalError, match=r"long\.csv.*more than memory_limit"):
            small.sql("select length(b) from 'long.csv'").fetchall()


@pytest.mark.parametrize("content", ["", "\n", "a\n", "a,b", "\ufeff", "\ufeffa,b\r\n1,2"])
def test_little_content(content, connection):
    write(content)
    assert same(connection, "from 'f.csv'")


def test_many_columns_and_a_long_line(connection):
    write(",".join(f"c{i}" for i in range(3000)) + "\n" + ",".join(map(str, range(3000))) + "\n")
    assert connection.sql("select c0 + c2999 from 'f.csv'").fetchall() == [(2999,)]
    write("a,b\n1," + "x" * 6_000_000 + "\n", "g.csv")
    assert connection.sql("select length(b) from 'g.csv'").fetchall() == [(6_000_000,)]


def test_the_module_reads_too(folder):
    write("a\n1\n")
    assert fuseline.read_csv("f.csv", header=True).fetchall() == [(1,)]
    assert isinstance(fuseline.read_csv(folder / "f.csv").to_arrow(), pa.Table)

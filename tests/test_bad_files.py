"""Files that cannot be read: one error that names the file, and a connection that goes on working."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FileError, Unsupported


@pytest.fixture
def connection():
    with fuseline.connect(device="cpu") as connection:
        yield connection
        assert connection.sql("select 1 + 1").fetchall() == [(2,)]


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.parquet"
    pq.write_table(pa.table({"a": list(range(50_000)), "b": ["x"] * 50_000}), path)
    return path


def refused(connection, path, said, kind=FileError):
    """Neither SQL nor the method reads the file, and both say why."""
    for read in (
        lambda: connection.sql(f"select * from '{path}'").to_arrow(),
        lambda: connection.sql(f"select * from read_parquet('{path}')").to_arrow(),
        lambda: connection.read_parquet(path).to_arrow(),
    ):
        with pytest.raises(kind, match=said) as error:
            read()
        assert "\n" not in error.value.message
        assert path.split("/")[-1] in error.value.message


def test_a_missing_file(connection, tmp_path):
    refused(connection, f"{tmp_path}/none.parquet", "There is no file")


def test_a_glob_without_files(connection, tmp_path):
    refused(connection, f"{tmp_path}/*.none.parquet", "no file that matches")


def test_an_empty_file(connection, tmp_path):
    (tmp_path / "empty.parquet").touch()
    refused(connection, f"{tmp_path}/empty.parquet", "is empty")


def test_a_tiny_file(connection, tmp_path):
    (tmp_path / "tiny.parquet").write_text("PAR1")
    refused(connection, f"{tmp_path}/tiny.parquet", "too few")


def test_a_file_of_another_kind(connection, tmp_path):
    (tmp_path / "text.parquet").write_text("this is a text and no Parquet file")
    refused(connection, f"{tmp_path}/text.parquet", "cannot be read as Parquet")


def test_a_file_that_was_cut_off(connection, good):
    cut = good.parent / "cut.parquet"
    cut.write_bytes(good.read_bytes()[:1000])
    refused(connection, str(cut), "damaged or cut off")


def test_a_footer_full_of_noise(connection, good):
    noisy = good.parent / "noisy.parquet"
    content = bytearray(good.read_bytes())
    content[-400:-8] = bytes(b ^ 0x5A for b in content[-400:-8])
    noisy.write_bytes(content)
    refused(connection, str(noisy), "damaged or cut off")


def test_pages_full_of_noise(connection, good):
    noisy = good.parent / "noisy.parquet"
    content = bytearray(good.read_bytes())
    content[100:20_000] = bytes(b ^ 0x5A for b in content[100:20_000])
    noisy.write_bytes(content)
    refused(connection, str(noisy), "damaged or cut off")


def test_files_of_different_columns(connection, good):
    pq.write_table(pa.table({"a": [1]}), good.parent / "other.parquet")
    with pytest.raises(FileError, match='"b"') as error:
        connection.sql(f"select * from '{good.parent}/*.parquet'").to_arrow()
    assert "other.parquet" in error.value.message
    assert "good.parquet" in error.value.message


def test_files_of_different_types(connection, good):
    pq.write_table(pa.table({"a": [1.5], "b": ["x"]}), good.parent / "other.parquet")
    with pytest.raises(FileError, match=r'"a" is DOUBLE in .*other.parquet.* BIGINT'):
        connection.read_parquet(good.parent)


def test_a_remote_file(connection):
    with pytest.raises(Unsupported, match="are not read"):
        connection.sql("from 'ftp://bucket/x.parquet'")


def test_a_file_that_goes_away_between_queries(connection, good):
    frame = connection.read_parquet(good, "t")
    assert len(connection.sql("from t")) == 50_000
    good.unlink()
    for read in (frame.to_arrow, lambda: connection.sql("from t").to_arrow()):
        with pytest.raises(FileError, match=r"good\.parquet"):
            read()


def test_a_file_that_comes_back_is_read_again(connection, good):
    connection.read_parquet(good, "t")
    content = good.read_bytes()
    good.unlink()
    with pytest.raises(FileError):
        connection.sql("from t").to_arrow()
    good.write_bytes(content)
    assert len(connection.sql("from t")) == 50_000

"""C3: paths outside of allowed_paths, in 50 spellings, at each door that opens or writes a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import FuselineError, InternalError

# Of the file f.x in the folder out, beside the folder in, in which the process is and which alone is allowed
SPELLINGS = """
    {out}/f.x file://{out}/f.x file:{out}/f.x FILE://{out}/f.x file://localhost{out}/f.x ../out/f.x ./../out/f.x
    sub/../../out/f.x {top}/in/../out/f.x {top}/in/link/f.x link/f.x rel/f.x {top}/in/l.x {top}/in//../out/f.x {top}//out/f.x
    {out}/*.x {top}/o*/f.x {top}/[o]ut/f.x {top}/**/f.x **/../../out/f.x l*/f.x link/* [l]ink/f.x ?ink/f.x rel/*.x
    ~/../..{out}/f.x {top}/in2/f.x {top}/in/%2e%2e/out/f.x file://{top}/in/../out/f.x {out}/f.x\0 in\0/../../out/f.x
    /proc/self/root{out}/f.x /proc/self/cwd/../out/f.x /dev/stdin /proc/self/environ /etc/passwd /.{out}/f.x /{out}/f.x
    {out}/f.x/ {out}/f.x/. {out}/./f.x in/../../out/f.x http://127.0.0.1:1{out}/f.x s3://bucket{out}/f.x gs://b{out}/f.x
    hf://b{out}/f.x ftp://h{out}/f.x pipe:{out}/f.x data:,x az://c{out}/f.x zip://{out}/f.x memory://{out}/f.x
"""
READERS = {
    **dict.fromkeys(("read_csv", "sniff_csv", "read_text", "read_blob", "delta_scan"), "csv"),
    **dict.fromkeys(("read_json", "read_json_objects", "iceberg_scan"), "json"),
    **dict.fromkeys(("read_parquet", "parquet_metadata", "parquet_schema"), "parquet"),
    "read_arrow": "arrow",
}
STATEMENTS = {
    "from {}": "csv",
    "from read_csv(['f.csv', {}])": "csv",
    "from query('from ' || quote({}))": "csv",
    "copy (select 1) to {}": "csv",
    "copy (select 1) to {} (format parquet)": "parquet",
    "copy kept from {}": "csv",
    "attach {} as other": "db",
    "summarize {}": "csv",
    "create or replace view v as from {}": "parquet",
    "export database {}": "db",
    "import database {}": "db",
}
DOORS = {**{f"from {name}({{}})": kind for name, kind in READERS.items()}, **STATEMENTS}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = pa.table({"secret": [4711]})
    for name in ("in/sub", "in2", "out/f.db"):
        (tmp_path / name).mkdir(parents=True)
    for folder in ("in", "in2", "out"):
        pq.write_table(table, tmp_path / folder / "f.parquet")
        pyarrow.feather.write_feather(table, tmp_path / folder / "f.arrow")
        (tmp_path / folder / "f.csv").write_text("secret\n4711\n")
        (tmp_path / folder / "f.json").write_text('{"secret": 4711}\n')
    (tmp_path / "in/link").symlink_to(tmp_path / "out")
    (tmp_path / "in/rel").symlink_to("../out")
    for kind in ("csv", "json", "parquet", "arrow", "db"):
        (tmp_path / f"in/l.{kind}").symlink_to(tmp_path / f"out/f.{kind}")
    monkeypatch.chdir(tmp_path / "in")
    return tmp_path


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _answer(run: Callable[[], object]) -> object:
    try:
        return run()
    except InternalError:
        raise
    except FuselineError:
        return []


@pytest.mark.parametrize(("door", "kind"), DOORS.items())
def test_nothing_outside_is_read_or_written(door: str, kind: str, folders: Path) -> None:
    before = {name: _contents(folders / name) for name in ("out", "in2")}
    options = {"external_access": False, "allowed_paths": [str(folders / "in")]}
    with fuseline.connect("cpu", **options) as connection:
        connection.execute("create table kept (secret int)")
        for spelling in SPELLINGS.split():
            path = spelling.replace(".x", f".{kind}").format(out=folders / "out", top=folders)
            text = door.format("'" + path + "'")
            found = _answer(lambda: connection.sql(text).fetchall())  # noqa: B023
            assert not {"4711", "secret"} & set(re.findall(r"\w+", str(found))), path
        assert connection.sql("from kept").fetchall() == []
    assert before == {name: _contents(folders / name) for name in ("out", "in2")}

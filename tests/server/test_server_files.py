"""What clients may not do: open files outside of the list, however their path is written, and run statements that change or reveal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_manager
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import AccessDenied, FileError, FuselineError, NotSupportedError
from fuseline.server import serving
from fuseline.server.shared_tables import ServedConnection
from fuseline.stopping import Stop
from tests.server.serving_here import arrow, client, served

T = pa.table({"a": [1, 2, 3]})
SECRET = 918_273_645


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `open` that clients may read, beside `secret.parquet` and a folder `openly` of which they may not."""
    root = tmp_path_factory.mktemp("places")
    for folder in ("open", "open/deep", "openly"):
        (root / folder).mkdir()
    pq.write_table(T, root / "open/t.parquet")
    hidden = pa.table({"s": [SECRET]})
    for path in ("secret.parquet", "openly/secret.parquet"):
        pq.write_table(hidden, root / path)
    (root / "secret.csv").write_text(f"s\n{SECRET}\n")
    (root / "secret.json").write_text(f'{{"s": {SECRET}}}\n')
    (root / "open/link.parquet").symlink_to(root / "secret.parquet")
    (root / "open/linked").symlink_to(root)
    (root / "open/deep/up.parquet").symlink_to("../../secret.parquet")
    return root


@pytest.fixture(scope="module")
def reader(places: Path) -> Iterator[ServedConnection]:
    """The connection of a server that only reads, for its client."""
    options = serving.ServerOptions(
        tables=(f"t={places / 'open/t.parquet'}",),
        allowed=(str(places / "open"),),
        settings={"device": "cpu"},
    )
    opened = serving._first_connection(options)
    yield opened
    opened.close()


def ask(served_connection: ServedConnection, text: str) -> list[dict[str, Any]]:
    def work(connection: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = connection.sql(text).to_arrow().to_pylist()
        return found

    return served_connection.run(Stop(), work)


PATHS = [
    "{r}/secret.parquet",
    "{r}/open/../secret.parquet",
    "{r}/open/./.././secret.parquet",
    "{r}/open/deep/../../secret.parquet",
    "{r}/open/link.parquet",
    "{r}/open/linked/secret.parquet",
    "{r}/open/linked/open/../secret.parquet",
    "{r}/open/linked/openly/secret.parquet",
    "{r}/open/deep/up.parquet",
    "{r}/openly/secret.parquet",
    "{r}/open*/secret.parquet",
    "{r}/open*/*.parquet",
    "{r}/*.parquet",
    "{r}/**/*.parquet",
    "{r}/open/**/../secret.parquet",
    "{r}/open/link*.parquet",
    "{r}/open/linked/*.parquet",
    "{r}/open/?ink.parquet",
    "{r}/open/[l]ink.parquet",
    "{r}/{{open,.}}/secret.parquet",
    "{r}//secret.parquet",
    "/{r}/secret.parquet",
    "//{r}/secret.parquet",
    "{r}/secret.parquet/",
    "{r}/open/..//secret.parquet",
    "{r}/./secret.parquet",
    "file://{r}/secret.parquet",
    "file:{r}/secret.parquet",
    "file:///{r}/secret.parquet",
    "file://localhost{r}/secret.parquet",
    "FILE://{r}/secret.parquet",
    "file://{r}/open/../secret.parquet",
    "file://{r}/open/%2e%2e/secret.parquet",
    "{r}/open/%2e%2e/secret.parquet",
    "{r}/open/..%2fsecret.parquet",
    "{r}/open/\u2024\u2024/secret.parquet",
    "{r}/open/\uff0e\uff0e/secret.parquet",
    "{r}/open\\..\\secret.parquet",
    "{r}/open/t.parquet\x00/../../secret.parquet",
    "{r}/secret.parquet\x00.parquet",
    "{r}/secret.parquet ",
    " {r}/secret.parquet",
    "{r}/secret.parquet?x=1",
    "{r}/secret.parquet#t",
    "~/../..{r}/secret.parquet",
    "~root/../{r}/secret.parquet",
    "/proc/self/root{r}/secret.parquet",
    "/proc/self/cwd/../../../../../..{r}/secret.parquet",
    "/proc/1/root{r}/secret.parquet",
    "/dev/fd/0",
    "/proc/self/environ",
    "/etc/passwd",
    "./../../../../../../..{r}/secret.parquet",
    "../../../../../../../..{r}/secret.parquet",
    "s3://bucket{r}/secret.parquet",
    "http://127.0.0.1:1{r}/secret.parquet",
    "https://127.0.0.1:1{r}/secret.parquet",
    "hf://{r}/secret.parquet",
    "zip://{r}/secret.parquet",
    "{R}/SECRET.PARQUET",
    "{r}/secret.csv",
    "{r}/secret.json",
]
READS = ["select * from '{}'", "from read_parquet('{}')", "from read_csv('{}')", "from read_json('{}')", "from read_parquet(['{}'])"]  # fmt: skip


NAMES_INSIDE = ("%2e%2e/", "..%2f", "\u2024", "\uff0e")  # which are no way out, and name nothing


def test_there_are_enough_spellings() -> None:
    assert len(set(PATHS)) >= 60


@pytest.mark.parametrize("number", range(len(PATHS)))
def test_a_spelling_of_a_forbidden_path(
    number: int, places: Path, reader: ServedConnection
) -> None:
    path = PATHS[number].format(r=places, R=str(places).upper()).replace("'", "''")
    expected: type[FuselineError] = AccessDenied
    if any(name in path for name in NAMES_INSIDE):
        expected = FileError
    elif path.startswith(("hf:", "zip:")):
        expected = NotSupportedError
    for read in READS:
        with pytest.raises(expected) as error:
            ask(reader, read.format(path))
        assert str(SECRET) not in str(error.value)


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ("/data/t.parquet", "/data/t.parquet"),
        ("/data/*/t.parquet", "/data"),
        ("/data/y=2024/part-?.parquet", "/data/y=2024"),
        ("s3://shop/t.parquet", "s3://shop/t.parquet"),
        ("s3://shop/y=*/t.parquet", "s3://shop/"),
    ],
)
def test_a_table_opens_its_own_place(table: str, place: str) -> None:
    assert serving._readable_place(table) == place


def test_what_may_be_read_is(places: Path, reader: ServedConnection) -> None:
    """The list is not kept by refusing everything."""
    for path in ("t.parquet", "./t.parquet", "deep/../t.parquet", "linked/open/t.parquet"):
        assert len(ask(reader, f"from '{places}/open/{path}'")) == 3
    assert len(ask(reader, "from t")) == 3


SPY = "seen by nobody"
REFUSED = [
    "create table x (a int)",
    "create view v as select 1",
    "insert into t values (1)",
    "delete from t",
    "update t set a = 1",
    "drop table t",
    "alter table t rename to u",
    "copy t to '{r}/open/out.parquet'",
    "copy (select 1) to '{r}/open/out.csv'",
    "set allowed_paths = '/'",
    "set external_access = true",
    "set lock_settings = false",
    "set python_enable_replacements = true",
    "set spill_dir = '{r}'",
    "set threads = 1",
    "reset allowed_paths",
    "pragma threads = 1",
    "attach '{r}/x.db'",
    "attach ':memory:' as other",
    "use memory",
    "detach memory",
    "create schema s",
    "export database '{r}/open/out'",
    "import database '{r}/open'",
    "from glob('{r}/*')",
    "from read_text('{r}/secret.csv')",
    "from read_blob('{r}/secret.csv')",
    "from parquet_schema('{r}/secret.parquet')",
    "from sniff_csv('{r}/secret.csv')",
    "describe select * from '{r}/secret.parquet'",
    "load '{r}/x.so'",
    "begin",
    "commit",
    "prepare p as select 1",
    "set variable v = 1",
    "create macro f(x) as x",
    "select 1; drop table t",
    "explain analyze insert into t values (1)",
    "select * from SPY",
    "select getenv('HOME')",
    "create secret s (type s3, key_id 'x', secret 'y')",
    "create type mood as enum ('sad', 'glad')",
]


@pytest.mark.parametrize("text", REFUSED)
def test_a_statement_that_is_refused(text: str, places: Path, reader: ServedConnection) -> None:
    before = ask(reader, "select name, value from duckdb_settings()")
    with pytest.raises(FuselineError):
        ask(reader, text.format(r=places))
    assert ask(reader, "select name, value from duckdb_settings()") == before
    assert len(ask(reader, "from t")) == 3
    assert not [*(places / "open").glob("out*")]


FOR_THE_OPERATOR = [
    "attach '{r}/x.db'",
    "detach memory",
    "export database '{r}/open/out'",
    "import database '{r}/open'",
    "set threads = 1",
    "set allowed_paths = '/'",
    "create secret s (type s3, key_id 'x', secret 'y')",
    "begin",
]


def test_a_server_that_writes_takes_no_orders(places: Path) -> None:
    options = serving.ServerOptions(
        writable=True, allowed=(str(places / "open"),), settings={"device": "cpu"}
    )
    opened = serving._first_connection(options)
    try:
        for text in FOR_THE_OPERATOR:
            with pytest.raises(FuselineError):
                ask(opened, text.format(r=places))
        assert ask(opened, "create table x as select 1 as a") == [{"Count": 1}]
    finally:
        opened.close()


def test_a_server_that_writes_writes_where_it_may(places: Path, tmp_path: Path) -> None:
    given = {"writable": True, "allowed": (str(tmp_path),)}
    with served(**given) as service, client(service) as connection:
        arrow(connection, f"copy (select 1 as x) to '{tmp_path}/out.parquet'")
        assert pq.read_table(tmp_path / "out.parquet").to_pylist() == [{"x": 1}]
        for place in (places, "/tmp", tmp_path.parent):
            with pytest.raises(adbc_driver_manager.ProgrammingError, match="may not be opened"):
                arrow(connection, f"copy (select 1 as x) to '{place}/out2.parquet'")

"""A folder that keeps tables, served: what clients change is there for the next process, and schemas are told and used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adbc_driver_flightsql as options
import adbc_driver_manager
import pyarrow as pa
import pytest

import fuseline
from tests.server.serving_here import arrow, client, served

T = pa.table({"a": [1, 2, 3]})


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """A folder with tables in two schemas."""
    folder = str(tmp_path / "shop")
    with fuseline.connect(folder, device="cpu") as connection:
        connection.execute("create table sold (city text, n int primary key)")
        connection.execute("insert into sold values ('Oslo', 1), ('Rome', 2)")
        connection.execute("create schema old; create table old.sold as select 'Bergen' as city")
        connection.execute("create macro twice(x) as 2 * x")
    return folder


def kept(folder: str, query: str) -> list[tuple[Any, ...]]:
    """What another opening of the folder answers."""
    with fuseline.connect(folder, read_only=True, device="cpu") as connection:
        rows: list[tuple[Any, ...]] = connection.sql(query).fetchall()
        return rows


def test_a_folder_is_read(shop: str) -> None:
    with served(database=shop) as service, client(service) as connection:
        assert arrow(connection, "select sum(n) as n from sold").to_pylist() == [{"n": 3}]
        assert arrow(connection, "select twice(21) as x").to_pylist() == [{"x": 42}]
        assert arrow(connection, "from shop.old.sold").to_pylist() == [{"city": "Bergen"}]
        with pytest.raises(adbc_driver_manager.ProgrammingError, match="only reads"):
            arrow(connection, "insert into sold values ('Turin', 3)")


def test_changes_are_kept(shop: str) -> None:
    with served(database=shop, writable=True) as service:
        with client(service) as connection, client(service) as other:
            arrow(connection, "insert into sold values ('Turin', 3)")
            assert arrow(other, "select max(n) as n from sold").to_pylist() == [{"n": 3}]
            with other.cursor() as cursor:
                cursor.adbc_ingest("more", T, "create", db_schema_name="old")
                cursor.adbc_ingest("more", T, "append", db_schema_name="old")
            assert arrow(connection, "select count(*) as n from old.more").to_pylist() == [{"n": 6}]
            assert kept(shop, "select count(*) from old.more") == [(6,)]
        with client(service, autocommit=False) as connection:
            arrow(connection, "delete from sold")
            connection.rollback()
            arrow(connection, "insert into sold values ('Nice', 4)")
            assert kept(shop, "select max(n) from sold") == [(3,)]
            connection.commit()
    assert kept(shop, "select max(n), count(*) from sold") == [(4, 4)]


def test_the_first_to_commit_wins_in_a_folder(shop: str) -> None:
    with (
        served(database=shop, writable=True) as service,
        client(service, autocommit=False) as one,
        client(service, autocommit=False) as two,
    ):
        arrow(one, "insert into sold values ('Turin', 3)")
        arrow(two, "insert into sold values ('Nice', 4)")
        one.commit()
        with pytest.raises(adbc_driver_manager.Error):
            two.commit()
    assert kept(shop, "select max(n) from sold") == [(3,)]


def test_files_stand_beside_a_folder(shop: str, tmp_path: Path) -> None:
    with served(tmp_path, {"t": T}, database=shop) as service:
        with client(service) as connection:
            query = "select count(*) as n from t join sold on a = n"
            assert arrow(connection, query).to_pylist() == [{"n": 2}]
        with client(service, autocommit=False) as connection:
            assert arrow(connection, query).to_pylist() == [{"n": 2}]


def test_schemas_are_told_and_used(shop: str) -> None:
    cookies = {options.DatabaseOptions.WITH_COOKIE_MIDDLEWARE.value: "true"}
    with served(database=shop) as service, client(service, cookies) as connection:
        found = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        told = [
            (catalog["catalog_name"], schema["db_schema_name"], table["table_name"])
            for catalog in found
            for schema in catalog["catalog_db_schemas"]
            for table in schema["db_schema_tables"]
        ]
        assert told == [("shop", "main", "sold"), ("shop", "old", "sold")]
        assert connection.adbc_current_catalog == "shop"
        connection.adbc_current_db_schema = "old"
        assert arrow(connection, "from sold").to_pylist() == [{"city": "Bergen"}]
        assert connection.adbc_current_db_schema == "old"
        with pytest.raises(adbc_driver_manager.Error):
            connection.adbc_current_db_schema = "new"


def test_temporary_tables_are_refused(shop: str) -> None:
    with served(database=shop, writable=True) as service, client(service) as connection:
        with pytest.raises(adbc_driver_manager.NotSupportedError, match="Temporary"):
            arrow(connection, "create temp table x as select 1 as x")
        with connection.cursor() as cursor, pytest.raises(adbc_driver_manager.NotSupportedError):
            cursor.adbc_ingest("x", T, "create", temporary=True)

"""The adapter for Harlequin, asked as Harlequin asks it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        find_spec("harlequin") is None,
        reason="Harlequin is not installed: pip install 'fuseline[harlequin]'",
    ),
]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    from fuseline.interop.harlequin_adapter import FuselineAdapter

    connection = FuselineAdapter((str(tmp_path / "shop"),), device="cpu", unknown=1).connect()
    assert (
        connection.execute('create table sales (city varchar, "the price" decimal(9, 2))') is None
    )
    assert connection.execute("insert into sales values ('Oslo', 1.5), ('Rome', null)") is None
    yield connection
    connection.close()


def test_it_is_found_by_its_name() -> None:
    from harlequin import HarlequinAdapter

    (found,) = entry_points(group="harlequin.adapter", name="fuseline")
    assert issubclass(found.load(), HarlequinAdapter)


def test_queries_give_columns_and_rows(opened: Any) -> None:
    cursor = opened.execute(
        'select city, "the price", 1 as city, current_date as d from sales order by 1'
    )
    assert cursor.columns() == [("city", "s"), ("the price", "#.#"), ("city_1", "#"), ("d", "d")]
    assert cursor.fetchall().column("city").to_pylist() == ["Oslo", "Rome"]
    assert opened.execute("from sales").set_limit(1).fetchall().num_rows == 1
    assert opened.execute("from sales where false").fetchall() is None
    assert opened.execute("show tables").fetchall().num_rows == 1


def test_the_catalog_has_databases_schemas_tables_and_columns(opened: Any) -> None:
    opened.execute("create view dear as from sales where city > 'P'")
    (shop,) = opened.get_catalog().items
    (main,) = shop.children
    assert [(item.label, item.type_label) for item in main.children] == [
        ("dear", "v"),
        ("sales", "t"),
    ]
    columns = main.children[1].children
    assert [(c.query_name, c.type_name) for c in columns] == [
        ("city", "VARCHAR"),
        ('"the price"', "DECIMAL(9,2)"),
    ]
    assert opened.execute(f"from {main.children[1].qualified_identifier}").fetchall().num_rows == 2


def test_errors_are_harlequins(opened: Any, tmp_path: Path) -> None:
    from harlequin.exception import HarlequinConnectionError, HarlequinQueryError

    from fuseline.interop.harlequin_adapter import FuselineAdapter

    with pytest.raises(HarlequinQueryError, match="nothing"):
        opened.execute("select nothing")
    with pytest.raises(HarlequinQueryError):
        opened.execute("select cast(city as int) from sales").fetchall()
    with pytest.raises(HarlequinConnectionError):
        FuselineAdapter((str(tmp_path / "none"),), read_only=True).connect()
    assert opened.validate_sql("select 'a") == ""
    assert opened.validate_sql("select 1") == "select 1"
    assert "regexp_matches" in {completion.label for completion in opened.get_completions()}

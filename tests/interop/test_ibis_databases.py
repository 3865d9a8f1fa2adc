"""The Ibis backend: schemas, catalogs, and functions of Python, as its DuckDB backend has them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import fuseline

ibis = pytest.importorskip("ibis")
from ibis import _  # noqa: E402
from ibis.common.exceptions import (  # noqa: E402
    IbisTypeError,
    UnsupportedArgumentError,
    UnsupportedOperationError,
)

pytestmark = pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")


@pytest.fixture
def con() -> Iterator[Any]:
    made = ibis.fuseline.connect(device="cpu")
    yield made
    made.disconnect()


def test_functions_of_python_are_called(con: Any) -> None:
    @ibis.udf.scalar.python
    def twice(x: int) -> int:
        return 2 * x

    @ibis.udf.scalar.pyarrow
    def length(x: str) -> int:
        return pa.compute.utf8_length(x)

    t = con.create_table("t", pa.table({"id": [1, None], "driver": ["Ann", "Çem"]}))
    found = t.select(a=twice(_.id), b=length(_.driver)).to_pyarrow().to_pydict()
    assert found["a"] == [2, None]
    assert found["b"] == [3, 3]

    @ibis.udf.scalar.pandas
    def series(x: int) -> int:
        return x

    with pytest.raises(UnsupportedOperationError, match=r"series.*pyarrow"):
        t.select(a=series(_.id)).execute()


def test_schemas_are_what_ibis_calls_databases(con: Any) -> None:
    con.create_database("shop")
    con.create_database("shop", force=True)
    made = con.create_table("t", {"a": [1, 2]}, schema={"a": "!int64"}, database="shop")
    assert made.schema() == ibis.schema({"a": "!int64"})
    assert con.table("t", database=("memory", "shop")).a.sum().execute() == 3
    con.create_view("v", made, database="shop")
    assert con.list_tables(database="memory.shop") == ["t", "v"]
    assert "t" not in con.list_tables()
    assert "shop" in con.list_databases(catalog="memory")
    assert con.list_databases(catalog="nothing") == []
    assert (con.current_catalog, con.current_database) == ("memory", "main")
    assert "memory" in con.list_catalogs()
    with pytest.raises(fuseline.Error, match="NOT NULL"):
        con.insert("t", {"a": [None]}, database="shop")
    with pytest.raises(UnsupportedArgumentError):
        con.create_table("u", {"a": [1]}, database="memory.shop", temp=True)
    con.drop_view("v", database="shop")
    con.drop_table("t", database="shop")
    con.drop_database("shop")
    con.drop_database("shop", force=True)
    with pytest.raises(fuseline.Error, match="shop"):
        con.drop_database("shop")


def test_a_column_of_null_alone_is_no_table(con: Any) -> None:
    with pytest.raises(IbisTypeError, match="cast a"):
        con.create_table("t", pa.table({"a": pa.nulls(2)}))


def test_ibis_makes_decimals_of_fractions_for_pandas(con: Any) -> None:
    prices = pa.table({"price": pa.array([Decimal("1.02"), Decimal("1.01")], pa.decimal128(9, 2))})
    mean = con.create_table("t", prices).price.mean()
    assert con.execute(mean) == Decimal("1.02")
    assert con.execute(ibis.literal(Decimal("Infinity"), type="decimal")) == Decimal("Infinity")

"""The suites of ClickBench's and of H2O's shape on every backend, fused and unfused, and the data that is generated for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fuseline
from benchmarks import clickbench, data, h2o, zipf
from benchmarks.clickbench import generate, texts
from benchmarks.suites import SUITES
from tests.compare import assert_same_as_duckdb

SCALE, LARGER = 0.01, 0.2  # million rows
EMPTY = {"q38", "q42"}  # their offsets are past what 10,000 rows have of one site

Opened = tuple[Any, data.Tables]


def opened(suite: str, scale: float, folder: Path, backend: str, fuse: str) -> Iterator[Opened]:
    tables = SUITES[suite].tables(scale, data.make_generated(suite, scale, folder / suite))
    with fuseline.connect(backend, fuse=fuse) as connection:
        for name, path in tables.items():
            as_text = {"binary_as_string": True} if suite == "clickbench" else {}
            connection.read_parquet(path, name, **as_text)
        yield connection, tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suites")


@pytest.fixture(scope="module")
def clicks(folder: Path, backend: str, fuse: str) -> Iterator[Opened]:
    yield from opened("clickbench", SCALE, folder, backend, fuse)


@pytest.fixture(scope="module")
def keys(folder: Path, backend: str, fuse: str) -> Iterator[Opened]:
    yield from opened("h2o", SCALE, folder, backend, fuse)


def check(suite: str, name: str, scale: float, found: Opened) -> pa.Table:
    connection, tables = found
    setup = [f"create view {table} as from {data.relation(path)}" for table, path in tables.items()]
    text = SUITES[suite].queries(scale)[name]
    return assert_same_as_duckdb(text, setup=setup, connection=connection)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", clickbench.queries(SCALE))
def test_each_answer_of_clickbenchs_shape_is_duckdbs(name: str, clicks: Opened) -> None:
    assert check("clickbench", name, SCALE, clicks).num_rows > 0 or name in EMPTY


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", h2o.queries(SCALE))
def test_each_answer_of_h2os_shape_is_duckdbs(name: str, keys: Opened) -> None:
    assert check("h2o", name, SCALE, keys).num_rows > 0


@pytest.mark.nightly
@pytest.mark.parametrize("suite", ["clickbench", "h2o"])
def test_the_answers_over_more_rows_are_duckdbs(
    suite: str, backend: str, fuse: str, tmp_path: Path
) -> None:
    for found in opened(suite, LARGER, tmp_path, backend, fuse):
        for name in SUITES[suite].queries(LARGER):
            check(suite, name, LARGER, found)


def test_the_questions_are_as_many_as_the_published_ones() -> None:
    assert len(clickbench.queries(1)) == 43
    parts = [name.rstrip("0123456789") for name in h2o.queries(1)]
    assert [parts.count(part) for part in h2o.PARTS] == [10, 5, 12]


@pytest.mark.parametrize("scale", [0.01, 1, 100])
def test_no_name_in_braces_is_left_in_a_text(scale: float) -> None:
    assert not any("{" in text for text in clickbench.queries(scale).values())


# The data


def test_hits_have_105_columns_and_their_texts_are_bytes(folder: Path) -> None:
    made = data.make_generated("clickbench", SCALE, folder / "clickbench")
    schema = pq.read_schema(made / "hits" / "000.parquet")
    assert len(schema) == 105
    kinds = {str(field.type) for field in schema}
    assert kinds == {"binary", "uint16", "int16", "int32", "int64"}


def test_counts_of_distinct_values_are_those_of_the_published_shape(folder: Path) -> None:
    """Scaled from 100 M rows: 18 M users and URLs, 6 M search phrases of which 87 % are empty, URLs of 40 to 200 bytes."""
    made = data.make_generated("clickbench", SCALE, folder / "clickbench")
    source = data.relation(data.BytesAreText(made / "hits" / "*.parquet"))
    with duckdb.connect() as connection:
        connection.execute(f"create view hits as from {source}")
        (found,) = connection.sql(clickbench.FIGURES).to_arrow_table().to_pylist()
    rows = found["rows"]
    assert rows == SCALE * clickbench.ROWS
    assert found["users"] / rows == pytest.approx(0.18, rel=0.1)
    assert found["URLs"] / rows == pytest.approx(0.18, rel=0.1)
    assert found["search phrases"] / rows == pytest.approx(0.06, rel=0.1)
    assert found["% of phrases empty"] == pytest.approx(87, abs=1)
    assert found["bytes in the shortest URL"] >= texts.SHORTEST
    assert found["in the longest"] <= texts.LONGEST


def test_different_ranks_have_different_texts_where_counts_need_it() -> None:
    numbers = np.concatenate([np.arange(20_000), np.arange(9_000_000, 9_020_000)])
    for made in (texts.addresses, texts.phrases):
        assert pc.count_distinct(made(numbers)).as_py() == len(numbers)


def test_constants_of_the_queries_are_values_of_frequent_rows() -> None:
    found = texts.first_page(texts.SITE_62)
    assert texts.counters(np.array([found]))[0] == 62
    assert found < 10_000


def test_the_same_rows_come_out_again_whatever_was_made_before() -> None:
    whole = generate.row_group(300, 1_000, 200)
    assert whole.equals(generate.row_group(300, 1_000, 200))
    assert not whole.equals(generate.row_group(300, 1_000, 500))


def test_a_law_draws_small_ranks_often() -> None:
    found = zipf.ranks(zipf.generator(1), 100_000, 1_000, 1.0)
    counts = np.bincount(found, minlength=1_000)
    assert found.min() == 0
    assert found.max() == 999
    assert counts[0] > 1.5 * counts[1] > 2 * counts[3]


def test_nine_of_ten_keys_of_a_join_have_a_partner(folder: Path) -> None:
    made = data.make_generated("h2o", SCALE, folder / "h2o")
    left, right = (pq.read_table(made / f"{name}.parquet") for name in ("j", "big"))
    shared = pc.is_in(left["id3"], right["id3"])
    assert pc.mean(shared.cast(pa.int8())).as_py() == pytest.approx(0.9, abs=0.02)
    assert pc.count_distinct(right["id3"]).as_py() == right.num_rows


def test_text_keys_are_written_as_published(folder: Path) -> None:
    made = data.make_generated("h2o", SCALE, folder / "h2o")
    table = pq.read_table(made / "x.parquet")
    assert pc.max(table["id1"]).as_py() == "id100"
    assert pc.max(table["id3"]).as_py() == "id0000000100"

"""Python functions of a text column are called once for each different text, inside a kernel too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuseline
from fuseline import errors
from fuseline.connection import Connection

ROWS = 70_000  # from which texts are numbered
NAMES = ["Ada", "Bo", "Cleo", "Dan", None, "Éa"]
TABLE = pa.table(
    {
        "name": [NAMES[i % 6] for i in range(ROWS)],
        "n": [i % 1000 for i in range(ROWS)],
        "unique": [f"key {i}" for i in range(ROWS)],
    }
)
calls: Counter[str] = Counter()


def letters(name: str) -> int:
    calls[name] += 1
    return len(name)


def initials(names: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(names, 0, 1)


def picky(name: str) -> str:
    if name == "Dan":
        raise ValueError("not him")
    return f"{name}!"


@pytest.fixture(params=["always", "never"])
def texts(request: Any) -> Iterator[Connection]:
    with fuseline.connect(device="cpu", fuse=request.param) as connection:
        connection.register("t", TABLE)
        connection.create_function("letters", letters, ["VARCHAR"], "BIGINT", side_effects=False)
        connection.create_function("initials", initials, ["VARCHAR"], "VARCHAR", type="arrow")
        connection.create_function("picky", picky, ["VARCHAR"], "VARCHAR")
        connection.create_function(
            "or_none", lambda s: s or "none", ["VARCHAR"], "VARCHAR", null_handling="special"
        )
        yield connection


def test_a_function_is_called_once_for_each_text(texts: Connection) -> None:
    calls.clear()
    frame = texts.sql("select count(*), sum(letters(name)), sum(n) from t where letters(name) > 2")
    kept = [i for i in range(ROWS) if len(NAMES[i % 6] or "") > 2]
    expected = (len(kept), sum(len(NAMES[i % 6] or "") for i in kept), sum(i % 1000 for i in kept))
    assert frame.fetchall() == [expected]
    if texts.settings.fuse == "always":
        assert max(calls.values()) <= 4  # by the filter and by the sum
        assert "once for each different text, which the kernel looks up" in frame.explain()
        frame.fetchall()
        assert all(pipeline.receipt.fused for pipeline in frame.profile.pipelines)


def test_values_of_texts_are_keys_and_results(texts: Connection) -> None:
    rows = texts.sql(
        "select initials(name) as i, count(*), min(upper(initials(name))), max(or_none(name)) from t group by i order by i"
    ).fetchall()
    share = len(range(0, ROWS, 6))
    assert [row[0] for row in rows] == ["A", "B", "C", "D", "É", None]
    assert all(abs(row[1] - share) <= 1 for row in rows)
    assert rows[-1][2:] == (None, "none")
    assert texts.sql(
        "select name || initials(name) from t order by n, name limit 2"
    ).fetchall() == [
        ("AdaA",),
        ("AdaA",),
    ]


def test_a_text_that_no_row_has_may_raise(texts: Connection) -> None:
    query = "select count(*) from t where name <> 'Dan' and picky(name) = 'Ada!'"
    assert texts.sql(query).fetchall() == [(len(range(0, ROWS, 6)),)]
    with pytest.raises(errors.ExecutionError, match="not him"):
        texts.sql("select count(*) from t where picky(name) = 'Ada!'").fetchall()


def test_texts_without_a_dictionary_are_called_for_the_rows_that_are_left(
    texts: Connection,
) -> None:
    calls.clear()
    query = 'select sum(letters("unique")) from t where n = 7 and letters("unique") > 3'
    kept = [len(f"key {i}") for i in range(ROWS) if i % 1000 == 7]
    assert texts.sql(query).fetchall() == [(sum(kept),)]
    assert len(calls) == len(kept)

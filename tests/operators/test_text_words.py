"""The first and the last texts by kernels: of groups and of orders that keep few, against Python's bytes and DuckDB."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.cpu.sort import text_words
from fuseline.operators.cpu.sort.text_words import KERNELS, last_rows, rows_up_to
from tests.compare import assert_same_as_duckdb

draw = random.Random(7)
PIECES = ["", "a", "\x00", "é", "日本", "abcdefgh", "zz", "\U0001f600", "x" * 20]
TEXTS: list[str | None] = [
    *("".join(draw.choices(PIECES, k=draw.randrange(5))) for _ in range(700)),
    *("shared beginning " + str(draw.randrange(90)) for _ in range(150)),
    *([None] * 150),
]
draw.shuffle(TEXTS)
FORMS = {
    "string": pa.array(TEXTS, pa.string()),
    "large_string": pa.array(TEXTS, pa.large_string()),
    "slice": pa.array(["before", None, *TEXTS, "behind"], pa.string()).slice(2, len(TEXTS)),
    "without NULL": pa.array([t or "" for t in TEXTS], pa.string()),
    "all NULL": pa.nulls(len(TEXTS), pa.string()),
}


@pytest.fixture(autouse=True)
def kernels_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels are compiled, and serve few rows; threads share a thousand."""
    for kernels in KERNELS.values():
        kernels.started().result()
    for name, value in {"FEW_TEXTS": 0, "CHUNK_ROWS": 100, "SAMPLED": 200}.items():
        monkeypatch.setattr(text_words, name, value)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("groups", [1, 7])
@pytest.mark.parametrize("descending", [False, True])
def test_the_last_text_of_each_group(form: str, groups: int, descending: bool) -> None:
    strings = FORMS[form]
    codes = np.arange(len(strings)) % groups
    found = last_rows(strings, None if groups == 1 else codes, groups, descending)
    assert found is not None
    texts = [None if t is None else t.encode() for t in strings.to_pylist()]
    for group, row in enumerate(found.tolist()):
        members = [(t, n) for n, t in enumerate(texts) if t is not None and n % groups == group]
        wanted = [t for t, _ in members]
        if not wanted:
            assert row == -1
            continue
        extreme = min(wanted) if descending else max(wanted)
        assert row == next(n for t, n in members if t == extreme)


def test_groups_without_rows_have_no_last_text() -> None:
    strings = pa.array(["b", "a"] * 50)
    assert last_rows(strings, np.full(100, 2), 4, False).tolist() == [-1, -1, 0, -1]  # type: ignore[union-attr]
    assert last_rows(strings.slice(0, 3), np.zeros(3, np.int64), 4, False) is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("count", [1, 9, 40])
def test_rows_up_to_a_bound(form: str, descending: bool, nulls_first: bool, count: int) -> None:
    strings = FORMS[form]
    found = rows_up_to(strings, count, descending, nulls_first)
    texts = [None if t is None else t.encode() for t in strings.to_pylist()]
    if found is None:
        assert form == "all NULL"
        return
    rows = found.tolist()
    assert rows == sorted(set(rows))
    valid = [n for n, t in enumerate(texts) if t is not None]
    order = sorted(valid, key=lambda n: texts[n], reverse=descending)  # type: ignore[arg-type, return-value]
    nulls = [n for n, t in enumerate(texts) if t is None]
    first = [*nulls, *order] if nulls_first else [*order, *nulls]
    assert set(first[:count]) <= set(rows)
    assert len(rows) < len(valid) / 2 + (len(nulls) if nulls_first else 0)


QUERIES = (
    "select s, id from t order by s, id limit 9",
    "select s, id from t order by s desc, id limit 9 offset 3",
    "select s, id from t order by s nulls first, id limit 160",
    "select s, id from t order by s desc nulls last, id desc limit 1",
    "select g, min(s), max(s), arg_min(id, s), arg_max(id, s) from t group by g order by g",
    "select min(s), max(s), min(s) filter (where id < 0) from t",
    "select id % 400 as k, min(s) from t group by k order by k",
)


@pytest.mark.parametrize("query", QUERIES)
def test_duckdbs_answers(query: str) -> None:
    rows = len(TEXTS)
    table = pa.table({"s": FORMS["string"], "id": range(rows), "g": [n % 5 for n in range(rows)]})
    assert_same_as_duckdb(query, {"t": table}, fuse=("always", "never"), backend="cpu")

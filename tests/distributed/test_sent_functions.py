"""Python functions of the client's run on workers, which have them from it alone: as they are when a query begins."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuseline
from fuseline import errors
from tests.distributed.conftest import Opened

ROWS = 300
ADDED = 1
WORDS = {"a": "apple", "b": "bear"}
TABLES = {
    "t": pa.table(
        {
            "k": [i % 7 for i in range(ROWS)],
            "x": pa.array([None if i % 11 == 0 else i for i in range(ROWS)]),
            "s": ["ab"[i % 2] for i in range(ROWS)],
        }
    )
}


def more(x: int) -> int:
    return x + ADDED


def word(s: str) -> str:
    return WORDS[s]


@fuseline.udf("VARCHAR", returns="VARCHAR", vectorized=True)
def louder(texts: Any) -> Any:
    return pc.utf8_upper(texts)


total = fuseline.udaf(
    "BIGINT",
    returns="BIGINT",
    initial=0,
    step=lambda state, x: state + x,
    merge=lambda a, b: a + b,
    name="total",
)
latest = fuseline.udaf(
    "BIGINT",
    returns="BIGINT",
    initial=0,
    step=lambda state, x: (state * 3 + x) % 1009,
    merge=lambda a, b: (a + b) % 1009,
    name="latest",
)
QUERIES = [
    "select more(x), count(*) from t where more(x) % 5 > 1 group by all order by all",
    "select k, total(x), total(more(x)) filter (x > 9), sum(more(x)) from t group by k order by k",
    "select total(x) from t",
    "select k, latest(x order by x) from t group by k order by k",
    "select latest(x order by x) from t",
    "select louder(s) as l, word(s), count(*) from t group by all order by all",
    "select word(s) || k from t where more(k) > 3 order by x limit 5",
    "select a.x from t a join t b on more(a.x) = b.x where louder(b.s) = 'A' order by all",
]


def _with_functions(connection: Any) -> Any:
    connection.create_function("more", more, ["BIGINT"], "BIGINT")
    connection.create_function("word", word, ["VARCHAR"], "VARCHAR")
    for name, function in {"louder": louder, "total": total, "latest": latest}.items():
        connection.create_function(name, function)
    return connection


def test_functions_give_what_they_give_on_one_machine(opened: Opened) -> None:
    cluster = _with_functions(opened(TABLES))
    with fuseline.connect("cpu") as connection:
        _with_functions(connection).register("t", TABLES["t"])
        for query in QUERIES:
            assert cluster.sql(query).fetchall() == connection.sql(query).fetchall(), query


def test_what_a_function_reads_is_that_of_now(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no kernel holds it, so that its code does not tell."""
    connection = _with_functions(opened(TABLES))
    asked = connection.sql("select max(more(x)), min(word(s)) from t")
    assert asked.fetchall() == [(ROWS, "apple")]
    monkeypatch.setitem(globals(), "ADDED", 1000)
    assert asked.fetchall() == [(ROWS + 999, "apple")]
    monkeypatch.setitem(WORDS, "a", "ant")
    assert asked.fetchall() == [(ROWS + 999, "ant")]


def test_modules_beside_the_program_go_with_a_function(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers, which began before it was written, cannot import it."""
    (tmp_path / "beside_it.py").write_text("def twice(x):\n    return [x, x]\n")
    monkeypatch.syspath_prepend(tmp_path)
    import beside_it  # type: ignore[import-not-found]

    twice = beside_it.twice
    connection = opened(TABLES)
    connection.create_function("by_name", lambda x: len(twice(x)) + x, ["BIGINT"], "BIGINT")
    connection.create_function(
        "by_module", lambda x: len(beside_it.twice(x)) + x, ["BIGINT"], "BIGINT"
    )
    found = connection.sql("select max(by_name(x)), max(by_module(x)) from t").fetchall()
    assert found == [(ROWS + 1, ROWS + 1)]


def test_what_a_function_raises_has_its_name_and_place(opened: Opened) -> None:
    connection = opened(TABLES)
    connection.create_function("broken", lambda s: {}[s], ["VARCHAR"], "VARCHAR")
    with pytest.raises(errors.ExecutionError, match=r'"broken" raised KeyError'):
        connection.sql("select max(broken(s)) from t").fetchall()
    assert connection.sql("select count(*) from t").fetchall() == [(ROWS,)]


def test_a_function_that_never_ends_is_stopped(opened: Opened) -> None:
    connection = opened(TABLES)

    def endless(s: str) -> str:
        while True:
            s = s[::-1]

    connection.create_function("endless", endless, ["VARCHAR"], "VARCHAR")
    connection.set_option("statement_timeout", 1)
    with pytest.raises(errors.Interrupted):
        connection.sql("select max(endless(s)) from t").fetchall()
    connection.reset_option("statement_timeout")
    assert connection.sql("select count(*) from t").fetchall() == [(ROWS,)]


def test_what_cannot_be_sent_is_refused_by_name(opened: Opened) -> None:
    connection, lock = opened(TABLES), threading.Lock()
    connection.create_function("locked", lambda s: f"{s}{lock}", ["VARCHAR"], "VARCHAR")
    with pytest.raises(errors.Unsupported, match=r"locked cannot be sent .* cannot pickle"):
        connection.sql("select locked(s) from t").fetchall()
    connection.create_function("drawn", lambda: 1, [], "BIGINT", side_effects=True)
    with pytest.raises(errors.Unsupported, match="drawn has side effects, which each worker"):
        connection.sql("select drawn() from t").fetchall()


def test_a_package_that_a_worker_lacks_is_named(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a file beside it says that there are packages, whatever the folder is called."""
    installed = tmp_path / "of packages"
    (installed / "of_the_client-1.0.dist-info").mkdir(parents=True)
    (installed / "of_the_client.py").write_text("def same(s):\n    return s + ''\n")
    monkeypatch.syspath_prepend(installed)
    import of_the_client  # type: ignore[import-not-found]

    connection, same = opened(TABLES), of_the_client.same
    connection.create_function("same", same, ["VARCHAR"], "VARCHAR")
    with pytest.raises(errors.ExecutionError, match="No module named 'of_the_client'"):
        connection.sql("select max(same(s)) from t").fetchall()

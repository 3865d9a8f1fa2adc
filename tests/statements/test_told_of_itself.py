"""version(), current_setting(), PRAGMA, CALL and SHOW, with the names, types and rows that DuckDB gives."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import fuseline
from fuseline.errors import ParseError, UnknownName, Unsupported

from .both_engines import assert_same_steps, outcome

STEPS = [
    "create table t (a int primary key, b varchar default 'x')", "create view v as from t", "create schema z", "create table z.s (c date)", "set variable k = 5",
    "pragma table_info('t')", "pragma table_info(t)", "pragma table_info('main.t')", "call pragma_table_info('t')", "pragma table_info('nope')",
    "pragma show_tables", "pragma show_databases", "pragma show_tables_expanded", "call range(3)", "call generate_series(1, 3)", "CALL range(1, 9, 3);",
    "call pragma_show('t')", "call nix()", "call range(3) r", "call", "show all", "show all tables", "show", "describe", "show tables", "show tables from main",
    "show tables from z", "show tables from nix", "show databases", "show schemas", "show variables", "show t", "show columns from t", "show functions",
    "select typeof(current_setting('threads')) as t", "select typeof(current_setting('TimeZone')) as t", "select current_setting('nix')", "select current_setting(1)",
    "select current_setting()", "set threads = 2", "select current_setting('threads') as n", "select current_setting('threads') + 1 as n from range(2)",
    "set timezone = 'Asia/Tokyo'", "select current_setting('timezone') as z", "select typeof(version()) as t", "select version(1)", "pragma nix", "pragma threads = 2",
    "begin", "call range(1)", "rollback",
    "select current_user, session_user, current_role, user, current_schema, current_catalog", "select Current_Schema, CURRENT_USER",
    "select current_user(), session_user(), current_role(), user(), current_catalog(), current_schema()", "select user from (select 1 as user)",
    "set schema = 'z'", "select current_schema()", "set search_path to 'main'", "select current_schema()", "set search_path = 'memory.z'",
    "select current_schema()", "set schema = nix", "set schema = main", "set preserve_insertion_order = false", "set global enable_object_cache to true",
    "set nested_loop_join_threshold = 3", "set disabled_optimizers = 'join_order'", "set checkpoint_threshold = '1GB'", "set autoload_known_extensions = false",
    "set index_scan_percentage = 0.5", "set streaming_buffer_size = '1MB'", "set partitioned_write_max_open_files = 10", "set nix_threshold = 3",
    "create table w (a int, b varchar default 'd')", "insert into w by position select 5 as b, 'z' as a", "insert into w by position (b) values ('q')", "select * from w order by all",
    "select a.user from (select 1 as b) a", "select user, count(*) from t group by all", "use z", "select current_schema, current_catalog",
]  # fmt: skip


def test_statements_about_a_connection_answer_as_duckdbs_do() -> None:
    assert_same_steps(STEPS, device="cpu", fuse="never")


@pytest.mark.parametrize(
    "text",
    [
        "pragma version",
        "call pragma_version()",
        "pragma database_size",
        "pragma database_list",
        "select version() as v",
    ],
)
def test_what_has_values_of_its_own_has_duckdbs_columns(text: str) -> None:
    with fuseline.connect(device="cpu") as ours, duckdb.connect() as theirs:
        (mine, rows), (yours, others) = outcome(ours, text), outcome(theirs, text)
        assert mine == yours
        assert len(rows) == len(others)


def test_versions_and_sizes_are_true(tmp_path: Path) -> None:
    with fuseline.connect(tmp_path / "shop") as connection:
        connection.execute("create table t as select i from range(100000) r(i); checkpoint")
        ((version,),) = connection.execute("select version()").fetchall()
        assert version == f"v{fuseline.__version__}"
        assert connection.execute("pragma version").fetchall() == [(version, None, "Fuseline")]
        ((name, size, *_, log, _, _),) = connection.execute("pragma database_size").fetchall()
    assert name == "shop"
    assert size.endswith(("KiB", "MiB"))
    assert log.endswith(("bytes", "KiB"))


def test_what_is_wrong_is_said_at_its_place() -> None:
    with fuseline.connect(device="cpu") as connection:
        for text, kind, said in (
            ("select current_setting('thread')", UnknownName, 'Did you mean "threads"'),
            ("call range", ParseError, "is written CALL function"),
            ("show tables from nix", UnknownName, 'no schema "nix"'),
            ("pragma nix", Unsupported, "PRAGMA nix is not supported"),
        ):  # fmt: skip
            with pytest.raises(kind, match=said) as raised:
                connection.execute(text)
            assert raised.value.span is not None

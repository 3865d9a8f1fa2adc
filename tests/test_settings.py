import inspect
import os
from pathlib import Path

import pytest

import fuseline
from fuseline.backends import cache_limits
from fuseline.errors import InvalidQuery, UnknownName, Unsupported
from fuseline.operators.host_memory import host_memory
from fuseline.settings import (
    Settings,
    described_settings,
    history_file,
    parse_bytes,
    parse_seconds,
)


@pytest.mark.parametrize(("text", "expected"), [
    (1000, 1000), ("4GB", 4_000_000_000), ("512 MiB", 512 << 20), ("1.5gb", 1_500_000_000), ("10b", 10), ("7", 7),
    ("auto", None), (None, None),
])  # fmt: skip
def test_bytes_with_units(text, expected):
    assert parse_bytes("memory_limit", text) == expected


@pytest.mark.parametrize("text", ["x", "4XB", "-1", "1.2.3", True, "GB"])
def test_bytes_that_are_none(text):
    with pytest.raises(InvalidQuery, match=r"memory_limit does not take .*'4GB'"):
        parse_bytes("memory_limit", text)


@pytest.mark.parametrize(("text", "expected"), [
    (2, 2.0), (0.25, 0.25), ("500ms", 0.5), ("2 s", 2.0), ("1.5min", 90.0), (0, None), ("0ms", None), ("none", None),
    (None, None),
])  # fmt: skip
def test_seconds_with_units(text, expected):
    assert parse_seconds("statement_timeout", text) == expected


@pytest.mark.parametrize("text", ["x", "-1", "nan", "inf", "2 weeks", True, "1e3", "9" * 12, "s"])
def test_seconds_that_are_none(text):
    with pytest.raises(InvalidQuery, match=r"statement_timeout does not take .*'500ms'"):
        parse_seconds("statement_timeout", text)


GIVEN = {
    "device": ("cpu", "cpu"), "memory_limit": ("1GB", 10**9), "column_cache_limit": ("2GB", 2 * 10**9),
    "host_cache_limit": ("30GB", 30 * 10**9),
    "threads": ("3", 3), "require_gpu": ("on", True), "fuse": ("never", "never"),
    "cache_dir": ("/somewhere/else", Path("/somewhere/else")),
    "column_store": ("/fast/columns", Path("/fast/columns")), "column_store_limit": ("40GB", 40 * 10**9),
    "kernel_cache_limit": ("300MB", 3 * 10**8), "spill_dir": ("/scratch", Path("/scratch")),
    "spill_memory": ("3MB", 3 * 10**6), "placement": ("sharded", "sharded"), "exchange": ("host", "host"),
    "one_worker_below": ("2MB", 2 * 10**6), "replicate_below": ("1MB", 10**6), "worker_grace": ("2s", 2.0), "debug": ("4", 4), "check": ("1", True), "deterministic": ("true", True),
    "timezone": ("europe/berlin", "Europe/Berlin"), "statement_timeout": ("500ms", 0.5), "http_timeout": ("2s", 2.0), "http_retries": ("5", 5), "external_access": ("off", False),
    "allowed_paths": ("/data:/other/data", (Path("/data"), Path("/other/data"))),
    "lock_settings": ("yes", True), "default_order": ("descending", "DESC"), "default_null_order": ("nulls first", "NULLS_FIRST"),
    "error_on_division_by_zero": ("no", False), "python_enable_replacements": ("no", False), "python_scan_all_frames": ("yes", True),
    "recursion_limit": ("500", 500), "integer_division": ("on", True), "lambda_syntax": ("ENABLE_SINGLE_ARROW", "enable_single_arrow"),
    "scalar_subquery_error_on_multiple_rows": ("false", False),
    "enable_progress_bar": ("on", True), "progress_bar_time": ("250", 250),
}  # fmt: skip


def test_the_environment_sets_every_field():
    variables = {f"FUSELINE_{name.upper()}": text for name, (text, _) in GIVEN.items()}
    settings = Settings.from_environment(variables)
    assert {n: getattr(settings, n) for n in Settings.names()} == {
        n: v for n, (_, v) in GIVEN.items()
    }


def test_threads_default_to_the_cores_of_the_process():
    assert Settings().threads == len(os.sched_getaffinity(0))
    assert Settings().with_option("threads", "auto").threads == Settings().threads


@pytest.mark.parametrize(("name", "value", "expected"), [
    ("device", "tpu", "one of auto, gpu, cpu"),
    ("threads", "many", "from 1 to 4096"),
    ("threads", True, "from 1 to 4096"),
    ("threads", 0, "from 1 to 4096"),
    ("debug", 6, "from 0 to 5"),
    ("require_gpu", "maybe", "true or false"),
    ("fuse", "sometimes", "one of auto, always, never"),
])  # fmt: skip
def test_a_value_that_a_setting_does_not_take_says_what_it_takes(name, value, expected):
    with pytest.raises(InvalidQuery, match=f"{name} does not take .*{expected}"):
        Settings().with_option(name, value)


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(UnknownName, match=r'no setting "memory_limits".*"memory_limit"'):
        Settings().with_option("memory_limits", 1)
    with pytest.raises(UnknownName, match="The settings are device, memory_limit"):
        Settings().with_option("zzz", 1)


@pytest.mark.parametrize(("duckdb", "value", "own", "expected"), [
    ("max_memory", "1GB", "memory_limit", 10**9), ("worker_threads", 3, "threads", 3),
    ("temp_directory", "/scratch", "spill_dir", Path("/scratch")),
    ("max_execution_time", 1500, "statement_timeout", 1.5), ("max_execution_time", 0, "statement_timeout", None),
    ("TimeZone", "UTC", "timezone", "UTC"), ("enable_external_access", False, "external_access", False),
    ("lock_configuration", True, "lock_settings", True),
])  # fmt: skip
def test_duckdb_names_mean_the_same(duckdb, value, own, expected):
    assert getattr(Settings().with_option(duckdb, value), own) == expected


def test_a_name_of_duckdb_opens_no_lock():
    with fuseline.connect("cpu") as connection:
        with pytest.raises(
            InvalidQuery,
            match=r"spill_dir is chosen when a connection is made",
        ):
            connection.execute("set temp_directory = '/elsewhere'")
        connection.execute("set max_execution_time = 1500")
        rows = "select name, value from duckdb_settings() where name in ('max_execution_time', 'statement_timeout') order by all"
        assert connection.sql(rows).fetchall() == [
            ("max_execution_time", "1500"),
            ("statement_timeout", "1.5"),
        ]
        connection.execute("set lock_configuration = true")
        with pytest.raises(InvalidQuery, match="locked"):
            connection.execute("set worker_threads = 1")
    with pytest.raises(InvalidQuery, match=r"max_execution_time does not take '2s'.*milliseconds"):
        Settings().with_option("max_execution_time", "2s")


def test_names_are_without_regard_to_case():
    assert Settings().with_option("THREADS", 2).threads == 2


def test_the_history_file_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "fuseline" / "history"
    monkeypatch.setenv("FUSELINE_HISTORY", str(tmp_path / "mine"))
    assert history_file() == tmp_path / "mine"


def test_limits_of_columns_beside_a_gpu_are_two():
    settings = Settings(column_cache_limit=7, host_cache_limit=5)
    assert cache_limits("gpu", settings) == {"gpu": 7, "cpu": 5}
    assert cache_limits("cpu", settings)["cpu"] == 7
    given = cache_limits("gpu", Settings(column_cache_limit=7))
    assert given == {"gpu": 7, "cpu": host_memory() // 2}


def test_descriptions_are_read_of_a_docstring_in_each_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.13 takes the indentation out of docstrings, and -OO all of them."""
    known = described_settings()
    assert all(known.values())
    monkeypatch.setattr(Settings, "__doc__", inspect.cleandoc(Settings.__doc__ or ""))
    assert described_settings() == known
    monkeypatch.setattr(Settings, "__doc__", None)
    assert described_settings() == dict.fromkeys(known, "")


def test_settings_that_have_duckdbs_value_take_no_other() -> None:
    taken = {"default_collation": "", "ieee_floating_point_ops": True}
    with fuseline.connect("cpu", **taken) as connection:
        for statement in (
            "set default_collation = 'binary'",
            "set ieee_floating_point_ops = true",
            "reset default_collation",
            "reset preserve_insertion_order",
        ):
            connection.sql(statement)
        for statement in (
            "set default_collation = 'nocase'",
            "pragma default_collation = 'de'",
            "set ieee_floating_point_ops = false",
        ):
            with pytest.raises(Unsupported, match="keeps its value here") as refused:
                connection.sql(statement)
            assert refused.value.span is not None

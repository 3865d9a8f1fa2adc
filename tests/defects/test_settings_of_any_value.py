"""Each setting with values of each type and extremes, in its four spellings: taken, or refused by a clear error, and the connection goes on."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.cli.configuration import configured
from fuseline.errors import FuselineError, InvalidQuery
from fuseline.settings import Settings


class Unprintable:
    def __repr__(self) -> str:
        raise ValueError("no repr")

    __str__ = __repr__


VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**400, 10**5000),
    *(0.0, -0.0, 1.5, 1e9, 1e300, float("nan"), float("inf"), -float("inf")),
    *(Decimal("1.5"), Decimal("1e30"), Decimal("NaN"), np.int64(3), np.float32(2.5), np.bool_(True)),
    *("", " ", "auto", "default", "none", "true", "4GB", "0.5 GiB", "9" * 30, "9" * 5000, "1e5", "-1", "+1"),
    *("١٢", "４GB", "1_000", "0x10", "NULL", "\ud800", "\0", "a\0b", "'", "x" * 100_000, "\n"),
    *("~", "~nobody-here/x", "../..", "/dev/null", "/proc/1/x", "cpu", "never", "asc", "nulls_last", "5", "5000ms", "UTC"),
    *(b"4GB", bytearray(b"x"), [], [1], {}, {"a": 1}, (), set(), object, object(), Unprintable()),
    *(datetime.date(2024, 1, 1), datetime.timedelta(seconds=1), Path("x"), complex(1, 2), range(3)),
]  # fmt: skip
NAMES = Settings.names()
AT_START = ("cache_dir", "spill_dir")  # that connect and the environment alone choose
ONE_WAY = ("external_access", "allowed_paths", "lock_settings")  # that do not go back


@pytest.fixture(autouse=True)
def _folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where settings that name a folder make one."""
    monkeypatch.chdir(tmp_path)


def shown(value: Any) -> str:
    try:
        return f"{type(value).__name__} {value!r}"[:30]
    except Exception:
        return type(value).__name__


def tried(action: Callable[[], Any]) -> bool:
    """Whether it was taken; what refuses it is an error of ours, of a readable length."""
    try:
        action()
    except FuselineError as error:
        if not 0 < len(str(error)) < 6000:
            raise AssertionError(f"{len(str(error))} characters") from error
        return False
    return True


def runs(connection: Any) -> None:
    """Under the setting a query may fail by it; afterwards none does."""
    tried(lambda: connection.sql("select sum(range) from range(100)").fetchall())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ONE_WAY])
def test_set_option(name: str, connection: Any) -> None:
    taken = [
        shown(v)
        for v in VALUES
        if one(connection, name, lambda v=v: connection.set_option(name, v))
    ]
    assert (name not in AT_START) <= len(taken) < len(VALUES) * 0.75, taken


@pytest.mark.parametrize("name", ONE_WAY)
def test_set_option_that_does_not_go_back(name: str) -> None:
    def change(value: Any) -> None:
        with fuseline.connect(device="cpu") as made:
            try:
                made.set_option(name, value)
            finally:
                runs(made)

    assert 0 < sum(tried(lambda v=v: change(v)) for v in VALUES) < len(VALUES) * 0.75


def one(connection: Any, name: str, change: Callable[[], Any]) -> bool:
    before = getattr(connection.settings, name)
    taken = tried(change)
    if taken:
        runs(connection)
    else:
        assert getattr(connection.settings, name) == before
    connection.reset_option(name)
    assert connection.sql("select 42").fetchall() == [(42,)]
    return taken


SQL_VALUES = [
    *(
        "null",
        "true",
        "0",
        "-1",
        "1",
        "1.5",
        "1e9",
        "1e400",
        "9" * 30,
        "9" * 5000,
        "x",
        "'x'",
        "''",
    ),
    *(
        "auto",
        "default",
        "'4GB'",
        "'\0'",
        "date '2024-01-01'",
        "interval 1 day",
        "[1, 2]",
        "{'a': 1}",
    ),
    *(
        "(select 1)",
        "1 + 1",
        "?",
        "$1",
        '"x"',
        "*",
        "",
        "1, 2",
        f"'{'x' * 100_000}'",
        "'~'",
        "b'x'",
    ),
]


@pytest.mark.parametrize("name", ONE_WAY)
def test_set_in_sql_that_does_not_go_back(name: str) -> None:
    def change(value: str) -> None:
        with fuseline.connect(device="cpu") as made:
            try:
                made.execute(f"set {name} = {value}")
            finally:
                runs(made)

    assert 0 < sum(tried(lambda v=v: change(v)) for v in SQL_VALUES) < len(SQL_VALUES) * 0.75


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ONE_WAY])
def test_set_in_sql(name: str, connection: Any) -> None:
    taken = [
        v
        for v in SQL_VALUES
        if one(connection, name, lambda v=v: connection.execute(f"set {name} = {v}"))
    ]
    assert len(taken) < len(SQL_VALUES) * 0.75, taken


@pytest.mark.parametrize("name", NAMES)
def test_an_argument_of_connect(name: str) -> None:
    def connect(value: Any) -> None:
        given = {"device": "cpu", name: value}
        with fuseline.connect(**given) as made:
            runs(made)

    assert sum(tried(lambda v=v: connect(v)) for v in VALUES) < len(VALUES) * 0.75


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_variable(name: str) -> None:
    texts = [v for v in VALUES if isinstance(v, str) and "\0" not in v]
    variable = f"FUSELINE_{name.upper()}"
    tried_texts = {v: tried(lambda v=v: Settings.from_environment({variable: v})) for v in texts}
    assert tried_texts[""]
    assert any(tried_texts.values())


TOML_VALUES = [
    *(
        "true",
        "0",
        "7",
        '"UTC"',
        "-1",
        "9223372036854775808",
        "1e400",
        "nan",
        "-inf",
        "1.5",
        "9" * 5000,
    ),
    *(
        '""',
        '"auto"',
        '"default"',
        '"asc"',
        '"nulls_last"',
        '"x"',
        '"4GB"',
        '"\\u0000"',
        f'"{"x" * 100_000}"',
        f'"{"9" * 5000}"',
    ),
    *("[]", "[1]", '["/tmp"]', "[" * 50_000, "{}", "{a = 1}", "{a = " * 50_000),
    *("2024-01-01", "2024-01-01T00:00:00Z", "10:00:00", '"~nobody/x"', "", "\0", "\ufeff"),
]


@pytest.mark.parametrize("name", [*NAMES, "nope", "shell", "[shell]\nmode", "[shell]\nmaxrows"])
def test_a_line_of_fuseline_toml(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the user's file and in that of the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("typer.get_app_dir", lambda _: str(tmp_path / "none"))
    given = Path("fuseline.toml")
    taken = 0
    for value in TOML_VALUES:
        given.write_text(f"{name} = {value}\n", encoding="utf-8")
        for path in (given, None):
            taken += tried(lambda path=path: configured(path))
    assert (name != "nope") <= taken < len(TOML_VALUES) * 1.5


@pytest.mark.parametrize(
    "name", [None, 3, "", "x", "\ud800", "Threads ", b"threads", "x" * 10**6, []]
)
def test_a_name_that_is_none(name: Any, connection: Any) -> None:
    for action in (connection.set_option, lambda n, _: connection.reset_option(n)):
        with pytest.raises(FuselineError, match="There is no setting"):
            action(name, 1)


def test_digits_of_other_scripts_are_no_numbers() -> None:
    for text in ("١٢", "４", "²"):
        with pytest.raises(InvalidQuery):
            Settings().with_option("threads", text)


NO_HOME = """
import os, pwd
def nobody(uid):
    raise KeyError(uid)
pwd.getpwuid = nobody
os.environ.pop("HOME", None)
import fuseline
for given in ({{}}, {{"cache_dir": {folder!r}}}):
    print(fuseline.connect(device="cpu", **given).sql("select 42").fetchall())
"""


def test_a_user_without_a_home(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_HOME.format(folder=str(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["[(42,)]", "[(42,)]"], done.stderr

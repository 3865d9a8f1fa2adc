"""Which files queries may open: nothing that SQL says reaches a file outside of the allowed paths, or tells of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.errors import AccessDenied, FileError, FuselineError, InvalidQuery
from fuseline.storage.file_identity import FileIdentity
from fuseline.storage.tables import access
from fuseline.storage.tables.access import Access, AccessRules, opened
from fuseline.storage.tables.files import find_files
from fuseline.storage.tables.parquet import ParquetTable


class Places(NamedTuple):
    """Two folders of the same shape; only `inside` may be read."""

    inside: Path
    outside: Path


def write(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": [value]}), path)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder, value in ((inside, 1), (outside, 2)):
        write(folder / "t.parquet", value)
        write(folder / "hive/year=2024/t.parquet", value)
        write(folder / "hive/year=2025/t.parquet", value)
    monkeypatch.setenv("HOME", str(tmp_path / "outside"))
    monkeypatch.chdir(inside)
    return Places(inside, outside)


@pytest.fixture
def connection(places: Places) -> Iterator[Any]:
    with fuseline.connect("cpu", allowed_paths=[places.inside], external_access=False) as opened:
        yield opened


WAYS: dict[str, Any] = {
    "a table": lambda c, path: c.sql(f"select * from '{path}'").fetchall(),
    "read_parquet": lambda c, path: c.sql(f"select * from read_parquet('{path}')").fetchall(),
    "a list": lambda c, path: c.sql(
        f"select * from read_parquet(['t.parquet', '{path}'])"
    ).fetchall(),
    "a parameter": lambda c, path: c.sql("select * from read_parquet(?)", [path]).fetchall(),
    "Python": lambda c, path: c.read_parquet(path).fetchall(),
    "a named table": lambda c, path: c.read_parquet(path, "t").fetchall(),
    "a view": lambda c, path: c.execute(f"create view v as from '{path}'; from v").fetchall(),
    "a table made of it": lambda c, path: c.execute(f"create table t as from '{path}'"),
    "a subquery": lambda c, path: c.sql(f"select (select count(*) from '{path}')").fetchall(),
    "DESCRIBE": lambda c, path: c.sql(f"describe select * from '{path}'").fetchall(),
    "EXPLAIN": lambda c, path: c.sql(f"explain select * from '{path}'").fetchall(),
}

# Path of a file or folder outside, by the name of a file that may be missing there
PATHS: dict[str, str] = {
    "absolute": "{outside}/{name}", "relative": "../outside/{name}", "from home": "~/{name}",
    "file://": "file://{outside}/{name}", "FILE://": "FILE://{outside}/{name}",
    "out of the folder": "{inside}/../outside/{name}",
    "out of a folder in it": "{inside}/hive/../../outside/{name}",
    "through the file system": "/proc/self/root{outside}/{name}",
    "the folder's name goes on": "{inside}2/{name}",
    "glob": "{outside}/*{name}",
    "folders by a glob": "{inside}/../out*/{name}",
    "glob from the root": "/*/{name}", "any folder": "{outside}/**/{name}", "link": "{inside}/link.parquet",
    "link by a glob": "{inside}/lin*.parquet", "folder by a link": "{inside}/folder/{name}",
    "folder by a link in a glob": "{inside}/fold*/{name}",
    "hive folder by a link": "{inside}/linked/year=*/{name}",
    "out by a glob": "{inside}/hive/*/../../../outside/{name}",
}  # fmt: skip


# Each kind of path in two ways, and each way with three kinds of paths
CASES = [
    (kind, way)
    for kind in PATHS
    for way in WAYS
    if way in ("a table", "Python") or kind in ("absolute", "link", "hive folder by a link")
]


@pytest.mark.parametrize(("kind", "way"), CASES)
def test_no_way_leads_outside(kind: str, way: str, connection: Any, places: Places) -> None:
    """And the error is the same whether the file is there or not."""
    (places.inside / "folder").symlink_to(places.outside)
    (places.inside / "linked").mkdir()
    (places.inside / "linked/year=2024").symlink_to(places.outside / "hive/year=2024")
    errors = []
    for name in ("t.parquet", "x.parquet"):
        (places.inside / "link.parquet").unlink(missing_ok=True)
        (places.inside / "link.parquet").symlink_to(places.outside / name)
        path = PATHS[kind].format(inside=places.inside, outside=places.outside, name=name)
        with pytest.raises(AccessDenied) as caught:
            WAYS[way](connection, path)
        errors.append(caught.value.message.replace(name, "NAME"))
    assert errors[0] == errors[1]


INSIDE = (
    "t.parquet", "*.parquet", "{inside}/../inside/t.parquet", "file://{inside}/t.parquet",
    "{outside}/../inside/t.parquet", "alias.parquet", "hive/year=2024/*", "{outside}/none/../../inside/*.parquet",
)  # fmt: skip


@pytest.mark.parametrize("path", INSIDE)
def test_what_lies_inside_is_read(path: str, connection: Any, places: Places) -> None:
    (places.inside / "alias.parquet").symlink_to(places.inside / "t.parquet")
    given = path.format(inside=places.inside, outside=places.outside)
    rows = connection.sql(f"select distinct a from read_parquet('{given}')").fetchall()
    assert rows == [(1,)]


def test_folders_and_globs_find_the_same_files_as_without_rules(places: Places) -> None:
    rules = AccessRules.of(True, [places.inside])
    for pattern in (
        "hive",
        "hive/",
        "hive/*/*.parquet",
        "**/*.parquet",
        "**/t*",
        "[h]ive/**",
        ".",
        "*",
    ):
        found = find_files([pattern], rules)
        assert found == find_files([pattern])
        assert found


def test_hive_columns_come_from_the_path_as_it_was_written(connection: Any) -> None:
    rows = connection.sql("select year, a from read_parquet('hive') order by 1").fetchall()
    assert rows == [(2024, 1), (2025, 1)]


def test_missing_files_inside_say_so(connection: Any) -> None:
    with pytest.raises(FileError, match="There is no file"):
        connection.sql("select * from 'none.parquet'")
    with pytest.raises(FileError, match="no file that matches"):
        connection.sql("select * from 'none*.parquet'")


def test_a_path_does_not_tell_which_folders_it_leaves(connection: Any, places: Places) -> None:
    messages = set()
    for folder in ("hive", "none"):
        with pytest.raises(FileError) as caught:
            connection.sql(f"select * from '{places.outside}/{folder}/../../inside/x/y.parquet'")
        messages.add(caught.value.message.replace(f"/{folder}/", "/FOLDER/"))
    assert len(messages) == 1


def test_hints_name_no_file(connection: Any) -> None:
    with pytest.raises(FuselineError) as caught:
        connection.sql("select * from outside")
    assert "parquet" not in str(caught.value)


def test_a_link_that_is_changed_after_opening(connection: Any, places: Places) -> None:
    link = places.inside / "link.parquet"
    link.symlink_to(places.inside / "t.parquet")
    connection.read_parquet(str(link), "t")
    frame = connection.sql("select a from t")
    assert frame.fetchall() == [(1,)]
    link.unlink()
    link.symlink_to(places.outside / "t.parquet")
    for ask in (frame.fetchall, lambda: connection.sql("select a from t").fetchall()):
        with pytest.raises(AccessDenied):
            ask()


def test_a_folder_that_is_swapped_between_looking_and_reading(places: Places) -> None:
    """What is read is the file that was judged: another one in its place is refused."""
    table = ParquetTable.open(
        [f"{places.inside}/hive/year=2024/t.parquet"],
        access=Access(AccessRules.of(True, [places.inside])),
    )
    (places.inside / "hive").rename(places.inside / "before")
    (places.inside / "hive").symlink_to(places.outside / "hive")
    with pytest.raises(FileError, match="has changed"), opened(table.files[0]):
        pass


def test_a_folder_that_is_swapped_between_resolving_and_looking(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places.inside / "sub").mkdir()
    resolve = AccessRules.resolve

    def swapping(rules: AccessRules, path: str, asked: str) -> str:
        found = resolve(rules, path, asked)
        if (places.inside / "sub").is_dir():
            (places.inside / "sub").rename(places.inside / "before")
            (places.inside / "sub").symlink_to(places.outside)
        return found

    monkeypatch.setattr(access.AccessRules, "resolve", swapping)
    with pytest.raises(AccessDenied):
        find_files([f"{places.inside}/sub/t.parquet"], AccessRules.of(True, [places.inside]))


def test_stricter_settings_hold_for_what_is_open_already(places: Places) -> None:
    """For tables, views, frames, plans and columns that are kept."""
    with fuseline.connect("cpu") as connection:
        path = places.outside / "t.parquet"
        connection.read_parquet(str(path), "t")
        connection.execute(f"create view v as from '{path}'")
        texts = ["select a from t", "select a from v", f"select a from '{path}'"]
        frames = [connection.sql(text) for text in texts]
        assert [frame.fetchall() for frame in frames] == [[(2,)]] * 3
        connection.execute("set external_access = false")
        for ask in (
            *(frame.fetchall for frame in frames),
            *(lambda t=t: connection.sql(t).fetchall() for t in texts),
        ):
            with pytest.raises(AccessDenied):
                ask()
        assert (
            connection.sql(
                "select * from fuseline_columns() where table_name like '%parquet'"
            ).fetchall()
            == []
        )
        assert connection.sql("select 1").fetchall() == [(1,)]


def test_settings_become_stricter_only(places: Places) -> None:
    with fuseline.connect("cpu", allowed_paths=[places.inside, places.outside]) as connection:
        connection.set_option("allowed_paths", [places.inside / "hive", places.outside])
        connection.execute(f"set allowed_paths = '{places.inside}/hive'")
        with pytest.raises(InvalidQuery):
            connection.execute("set allowed_paths = null")
        connection.execute("set external_access = false")
        for change in ("set external_access = true", "reset external_access", "reset allowed_paths",
                       f"set allowed_paths = '{places.inside}'",
                       "set allowed_paths = '/'", f"set allowed_paths = '{places.inside}/hive/../t.parquet'"):  # fmt: skip
            with pytest.raises(InvalidQuery):
                connection.execute(change)
        assert connection.settings.allowed_paths == (places.inside / "hive",)
        connection.execute("set allowed_paths = ''")
        with pytest.raises(AccessDenied):
            connection.sql("select * from 'hive/*/*'")


def test_without_external_access_no_paths_can_be_added(places: Places) -> None:
    with (
        fuseline.connect("cpu", external_access=False) as connection,
        pytest.raises(InvalidQuery, match="make another connection"),
    ):
        connection.set_option("allowed_paths", [places.inside])


def test_locked_settings_stay(places: Places) -> None:
    with fuseline.connect("cpu", lock_settings=True) as connection:
        for change in ("set threads = 2", "reset threads", "set lock_settings = false", "reset lock_settings", "pragma threads = 1"):  # fmt: skip
            with pytest.raises(InvalidQuery, match="locked"):
                connection.execute(change)
        with pytest.raises(InvalidQuery, match="locked"):
            connection.set_option("lock_settings", False)


@pytest.mark.parametrize("name", ["cache_dir", "spill_dir", "CACHE_DIR"])
def test_folders_are_chosen_when_a_connection_is_made(name: str, tmp_path: Path) -> None:
    with fuseline.connect("cpu") as connection:
        with pytest.raises(InvalidQuery, match=r"connect\("):
            connection.execute(f"set {name} = '{tmp_path}/x'")
        with pytest.raises(InvalidQuery, match=r"connect\("):
            connection.set_option(name, tmp_path)
        connection.execute(f"reset {name}")  # to what it is
        with pytest.raises((InvalidQuery, FuselineError)):
            connection.execute(f"set history = '{tmp_path}/x'")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 10_000_000, "x/" * 3000, "*\0", "\ud800/*", "~nobody9/x"])  # fmt: skip
@pytest.mark.parametrize("restricted", [False, True])
def test_paths_that_no_system_has(path: str, restricted: bool, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"allowed_paths": [tmp_path]} if restricted else {}
    with fuseline.connect("cpu", **settings) as connection:
        with pytest.raises((FileError, AccessDenied)) as caught:
            connection.read_parquet(path)
        assert len(caught.value.message) < 10_000


def test_a_home_that_nobody_knows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: 123456789)
    with (
        fuseline.connect("cpu") as connection,
        pytest.raises(FileError, match="no home"),
    ):
        connection.read_parquet("~/x.parquet")


def test_reading_checks_the_file_before_and_after(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", 1)
    (found,) = find_files([str(tmp_path / "t.parquet")])
    with pytest.raises(FileError, match="has changed"), opened(found.identity):
        os.utime(tmp_path / "t.parquet")
    with pytest.raises(FileError, match="has changed"), opened(found.identity):
        raise AssertionError("it is not opened")


def test_identities_tell_of_another_file_with_the_same_times(tmp_path: Path) -> None:
    write(tmp_path / "t.parquet", 1)
    found = (tmp_path / "t.parquet").stat()
    assert FileIdentity.of("t", found).inode == found.st_ino

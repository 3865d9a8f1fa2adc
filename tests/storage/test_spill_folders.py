"""Spill folders: whose they are, and which of them are swept when a connection begins."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import fuseline
from fuseline.storage.spill_folders import PREFIX, RECORD, Owner, SpillFolder, sweep
from tests.limits import SetLimits

KILLED = """
import os, sys
from pathlib import Path
from fuseline.storage.spill_folders import SpillFolder
folder = SpillFolder(Path(sys.argv[1]))
(folder.path / "0.arrow").write_text("rows")
os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def sweeps_at_once(limits: SetLimits) -> None:
    limits(SECONDS_BETWEEN_SWEEPS=-1)


def left_by(owner: Owner, parent: Path, name: str = "left") -> Path:
    folder = parent / f"{PREFIX}{name}"
    folder.mkdir()
    (folder / RECORD).write_text(json.dumps(asdict(owner)))
    return folder


def ended() -> Owner:
    """A process of this machine that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return replace(Owner.current(), pid=child.pid, started="1")


def test_a_connection_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert list(tmp_path.rglob("*.arrow"))
    with fuseline.connect("cpu", spill_dir=tmp_path):
        assert not list(tmp_path.iterdir())


def test_a_living_owner_keeps_its_folder(tmp_path: Path) -> None:
    mine = SpillFolder(tmp_path)
    assert sweep(tmp_path) == []
    mine.remove()
    assert not list(tmp_path.iterdir())


def test_the_folder_is_for_its_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = SpillFolder(tmp_path / "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder.path / RECORD).stat().st_mode) == 0o600
    assert folder.path.name != SpillFolder(tmp_path).path.name


CHANGES: dict[str, tuple[dict[str, Any], bool]] = {
    "the process has ended": ({}, True),
    "its number is another process's by now": ({"pid": os.getpid()}, True),
    "another boot of this machine": ({"boot": "earlier"}, True),
    "another container, whose lock is gone": ({"namespace": "pid:[1]"}, True),
    "another machine": ({"boot": "theirs", "host": "theirs"}, False),
    "it runs": (asdict(Owner.current()), False),
}


@pytest.mark.parametrize("case", CHANGES)
def test_only_folders_of_dead_owners_go(case: str, tmp_path: Path) -> None:
    changes, goes = CHANGES[case]
    folder = left_by(replace(ended(), **changes), tmp_path)
    assert sweep(tmp_path) == [folder] * goes
    assert folder.exists() is not goes


def test_a_lock_keeps_the_folder_of_another_container(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path)
    record = folder.path / RECORD
    record.write_text(json.dumps(asdict(replace(ended(), namespace="pid:[1]"))))
    assert sweep(tmp_path) == []
    folder.remove()


def test_what_is_not_ours_to_judge_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{PREFIX}file").write_text("")
    (tmp_path / f"{PREFIX}fresh").mkdir()  # its process is about to write the record
    (tmp_path / f"{PREFIX}damaged").mkdir()
    (tmp_path / f"{PREFIX}damaged" / RECORD).write_text("[1]")
    before = sorted(tmp_path.iterdir())
    assert sweep(tmp_path) == []
    folder = left_by(ended(), tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    assert sweep(tmp_path) == []
    assert sorted(tmp_path.iterdir()) == sorted([*before, folder])


def test_an_old_folder_without_a_record_goes(tmp_path: Path) -> None:
    folder = tmp_path / f"{PREFIX}old"
    folder.mkdir()
    os.utime(folder, (0, 0))
    assert sweep(tmp_path) == [folder]


def test_a_folder_that_goes_while_it_is_looked_at_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another connection sweeps too, or a query ends: the rest is swept all the same."""
    left, gone = (left_by(ended(), tmp_path, name) for name in ("left", "gone"))
    look = Path.lstat

    def removed_before(path: Path) -> os.stat_result:
        if path == gone:
            shutil.rmtree(gone)
        return look(path)

    monkeypatch.setattr(Path, "lstat", removed_before)
    assert sweep(tmp_path) == [left]

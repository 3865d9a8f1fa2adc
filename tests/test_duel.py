"""The tool that compares two installations in turn."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import fuseline
from benchmarks.micro import duel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of this package, as `pip install --target` makes one."""
    folder = tmp_path_factory.mktemp("installed")
    package = Path(fuseline.__file__).parent
    shutil.copytree(package, folder / "fuseline")
    if not (folder / "fuseline" / "sql").exists():
        shutil.copytree(package.parent / "sql", folder / "fuseline" / "sql")
    return folder


def run(monkeypatch: pytest.MonkeyPatch, *asked: object) -> int:
    monkeypatch.setattr(sys, "argv", ["duel", *map(str, asked)])
    return duel.main()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


def changed(installed: Path, folder: Path, lines: str) -> Path:
    """Another installation, with lines behind those of `Frame`'s module."""
    shutil.copytree(installed, folder)
    with (folder / "fuseline" / "frame" / "frame.py").open("a") as file:
        file.write(lines)
    return folder


@pytest.mark.by_day(3)
@pytest.mark.parametrize("kind", ["hot", "constants", "cold"])
def test_two_installations_take_turns(
    kind, installed, kernels, tpch_dir, tmp_path, monkeypatch, capsys
):
    report = tmp_path / "duel.json"
    asked = (installed, installed, "--data", tpch_dir, "--queries", "q06", "--kernels", kernels)
    counts = ("--turns", 2, "--runs", 2, "--kind", kind)
    assert run(monkeypatch, *asked, *counts, "--json", report) == 0
    found = json.loads(report.read_text())["q06"]
    assert found["equal"]
    assert len(found["turns"]) == 2
    assert found["quartiles"][0] <= found["ratio"] <= found["quartiles"][1]
    assert "all 1:" in capsys.readouterr().out


OTHER_ROWS = "\nrun = Frame.to_arrow\nFrame.to_arrow = lambda frame: run(frame).slice(1)\n"
ENDS = "\nimport os\nFrame.to_arrow = lambda frame: os._exit(3)\n"


def test_other_answers_are_not_timed(installed, kernels, tpch_dir, tmp_path, monkeypatch, capsys):
    other = changed(installed, tmp_path / "other", OTHER_ROWS)
    ends = changed(installed, tmp_path / "ends", ENDS)
    asked = ("--data", tpch_dir, "--queries", "q06", "--turns", 2, "--kernels", kernels)
    assert run(monkeypatch, installed, other, *asked) == 1
    assert "NOT THE SAME ANSWER" in capsys.readouterr().out
    assert run(monkeypatch, ends, other, *asked) == 0
    assert "before: the process ended" in capsys.readouterr().out

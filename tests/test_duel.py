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


def test_two_installations_take_turns(installed, tpch_dir, tmp_path, monkeypatch, capsys):
    report = tmp_path / "duel.json"
    asked = (installed, installed, "--data", tpch_dir, "--queries", "q06", "--turns", 4)
    assert run(monkeypatch, *asked, "--runs", 2, "--json", report) == 0
    found = json.loads(report.read_text())["q06"]
    assert found["equal"]
    assert found["quartiles"][0] <= found["ratio"] <= found["quartiles"][1]
    assert str(installed / "fuseline") in capsys.readouterr().out


def test_another_answer_is_not_timed(installed, tpch_dir, tmp_path, monkeypatch, capsys):
    other = tmp_path / "other"
    shutil.copytree(installed, other)
    with (other / "fuseline" / "frame" / "frame.py").open("a") as file:
        file.write("\nrun = Frame.to_arrow\nFrame.to_arrow = lambda frame: run(frame).slice(1)\n")
    asked = (installed, other, "--data", tpch_dir, "--queries", "q06", "--turns", 4)
    assert run(monkeypatch, *asked) == 1
    assert "NOT THE SAME ANSWER" in capsys.readouterr().out

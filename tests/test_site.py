"""The documentation's site has each page, and a release is checked before anybody uploads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from release.check_release import faults
from release.site_pages import OF_ROOT, with_site_links
from tests.test_layout import ROOT

CHANGES = "# Changes\n\n## 1.2.0, 2026-03-01\n\n- x\n"
CITED = "version: 1.2.0\nauthors:\n"
BUILT = ["fuseline-1.2.0-py3-none-any.whl", "fuseline-1.2.0.tar.gz"]


def test_the_site_has_each_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]  # fmt: skip
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    wanted = {p.stem for p in ROOT.glob("docs/*.md")} | {
        name.removesuffix(".md") for name in OF_ROOT
    }
    assert wanted - {p.stem for p in tmp_path.glob("*.html")} == set()
    start = (tmp_path / "index.html").read_text()
    assert sorted(name for name in wanted if f'"{name}.html' not in start) == []


@pytest.mark.parametrize(
    ("text", "folder", "expected"),
    [
        ("[a](docs/sql.md#limits)", "", "[a](sql.md#limits)"),
        ("[a](../CHANGELOG.md)", "docs", "[a](CHANGELOG.md)"),
        ("[a](sql.md) [b](#c)", "docs", "[a](sql.md) [b](#c)"),
        ("[a](benchmarks/README.md) [b](https://x.org)", "", "a [b](https://x.org)"),
    ],
)
def test_links_lead_to_pages_of_the_site(text: str, folder: str, expected: str) -> None:
    assert with_site_links(text, folder) == expected


def test_a_release_without_a_fault() -> None:
    assert faults("1.2.0", CHANGES, CITED, BUILT) == []


@pytest.mark.parametrize(
    ("version", "changes", "built", "said"),
    [
        ("1.3.0", CHANGES, BUILT, "no heading of 1.3.0"),
        ("1.2.0", CHANGES.replace("2026-03-01", "not released yet"), BUILT, "write the day"),
        ("1.2.0", "", BUILT, "no heading"),
        ("1.2.0", CHANGES, [*BUILT, "fuseline-1.1.0.tar.gz"], "fuseline-1.1.0.tar.gz"),
        ("1.2.0", CHANGES, [], "nothing"),
    ],
)
def test_what_is_wrong_with_a_release_is_said(
    version: str, changes: str, built: list[str], said: str
) -> None:
    assert said in " ".join(faults(version, changes, CITED.replace("1.2.0", version), built))

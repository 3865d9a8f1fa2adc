"""Libraries of versions that this package does not take are named: by the doctor, and where a query fails."""

from __future__ import annotations

import re
import tomllib

import pytest

from fuseline import requirements
from fuseline.cli.doctor import examine
from fuseline.errors import InternalError
from fuseline.fence import fenced
from tests.test_layout import ROOT

OLD = {"sqlglot": "29.0.1"}


@pytest.fixture
def old_sqlglot(monkeypatch: pytest.MonkeyPatch) -> None:
    found = requirements.version
    monkeypatch.setattr(requirements, "version", lambda package: OLD.get(package) or found(package))


@pytest.mark.parametrize(
    ("versions", "found", "takes"),
    [
        (">=19", "19.0.0", True),
        (">=19", "18.1.0", False),
        ("<3,>=2", "2", True),
        ("<3,>=2.0", "2", True),
        ("<3,>=2", "3.0.0rc1", False),
        ("<31,>=30.30", "30.4.3", False),
        ("==26.10.*", "26.10.2", True),
        ("==26.10.*", "26.1.0", False),
        ("==2026.7.1", "2026.7.2", False),
        ("", "1.0", True),
    ],
)
def test_versions_within_bounds(versions: str, found: str, takes: bool) -> None:
    assert requirements.takes(versions, found) is takes


def test_what_is_installed_here_fits() -> None:
    base = [r for r in requirements.requirements() if r.extra is None]
    assert {"pyarrow", "numpy", "numba", "sqlglot"} <= {r.package for r in base}
    assert [r.misfit for r in base if r.misfit] == []


def test_bounds_are_of_kinds_that_are_read() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(requirements.NOT_FOR_USERS) <= set(extras)
    for text in [*project["dependencies"], *(text for extra in extras.values() for text in extra)]:
        assert re.fullmatch(r"[\w.-]+(\[.*\])?((>=|<|==)[\d.]+(\.\*)?,?)*", text), text


@pytest.mark.faults
@pytest.mark.usefixtures("old_sqlglot")
def test_what_goes_wrong_with_another_version_says_so() -> None:
    @fenced
    def ask() -> None:
        raise AttributeError("module 'sqlglot.expressions' has no attribute 'Expr'")

    with pytest.raises(
        InternalError,
        match=r"sqlglot 29\.0\.1 is installed, and Fuseline needs sqlglot.*: pip install 'sqlglot",
    ):
        ask()


@pytest.mark.usefixtures("old_sqlglot")
def test_the_doctor_warns(capsys: pytest.CaptureFixture[str]) -> None:
    assert examine(device="cpu")
    printed = capsys.readouterr().out
    assert "warning: sqlglot 29.0.1 is installed, and Fuseline needs sqlglot" in printed
    assert "pyarrow 1" in printed or "pyarrow 2" in printed
    assert "cpu: answers queries" in printed

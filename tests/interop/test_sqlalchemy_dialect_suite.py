"""SQLAlchemy's own tests for dialects, `sqlalchemy.testing.suite`: what Fuseline has of what they ask for, they find right."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.test_layout import ROOT

pytest.importorskip("sqlalchemy")
FOLDER = ROOT / "tests/foreign/sqlalchemy_dialects"
# A part for every day: what the dialect writes otherwise than SQLAlchemy, and values that it gives back
SAMPLE = "BitwiseTest or CTETest or DistinctOnTest or RowCountTest or TrueDivTest or DateTimeTZTest or regexp"


def passed(*options: str) -> int:
    """Run the suite in a process of its own and return how many tests passed; fails where one did not."""
    command = [sys.executable, "-m", "pytest", "-c", "setup.cfg", "--rootdir", ".", "-q", "-p"]
    command += ["no:cacheprovider", "--dburi", "fuseline:///?device=cpu", *options, "suite.py"]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
    ran = subprocess.run(
        command, cwd=FOLDER, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
    found = re.search(r"(\d+) passed", ran.stdout)
    assert found is not None
    return int(found[1])


def test_a_part_of_the_suite_passes() -> None:
    assert passed("-k", SAMPLE) > 40


@pytest.mark.nightly
def test_the_suite_passes() -> None:
    assert passed() > 700

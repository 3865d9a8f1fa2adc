"""Runs of tests that compile more kernels than they may fail, however many workers share them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_layout import ROOT

PLUGIN = """
from fuseline.codegen.compile import kernel_files
from tests.kernel_count import KernelCount

kernel_files.compiled = lambda *_: b""

def pytest_configure(config):
    config.pluginmanager.register(KernelCount({}))
"""
TESTS = """
import pytest
from fuseline.codegen.compile import kernel_files

@pytest.mark.parametrize("number", range(4))
def test_a_kernel(number):
    kernel_files.compiled("", "", (), None)
    kernel_files.compiled("", "", (), (9, 0))
"""


@pytest.mark.parametrize(("workers", "most", "code"), [(0, 4, 0), (2, 3, 1)])
def test_kernels_are_counted(workers: int, most: int, code: int, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(PLUGIN.format(most))
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-p", "no:cacheprovider"]
    command += ["-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "4 passed" in ran.stdout
    assert f"4 kernels were compiled, at most {most} may be" in ran.stdout
    assert ran.returncode == code

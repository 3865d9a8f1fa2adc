"""How many kernels for CPUs the tests of all workers have compiled, which is most of what they cost where no kernel is on disk.

A run that compiles more than `MOST` fails.  A test that needs many has fewer of its cases by day (the mark `by_day`), or asks for
several answers in one query: a kernel is compiled for 0.3 s or so.
"""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.codegen.compile import kernel_files

MOST = 2600


class KernelCount:
    """A plugin of pytest; with xdist, that of the process without tests adds up what workers say at their end."""

    def __init__(self, most: int) -> None:
        self.count, self.most = 0, most
        self._compiled = kernel_files.compiled
        kernel_files.compiled = self._counted

    def _counted(
        self, source: str, entry: str, signature: Any, architecture: Any = None, place: Any = None
    ) -> bytes:
        self.count += architecture is None
        return self._compiled(source, entry, signature, architecture, place)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.count += getattr(node, "workeroutput", {}).get("kernels", 0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["kernels"] = self.count
        elif self.count > self.most and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.line(f"{self.count} kernels were compiled, at most {self.most} may be")

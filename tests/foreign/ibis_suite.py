"""A pytest plugin for Ibis's own tests of backends: Fuseline's is set up as their DuckDB backend is."""

from __future__ import annotations

import shutil
import sys
from types import ModuleType

import ibis
from ibis.backends.duckdb.tests.conftest import TestConf as OfDuckDB

from fuseline.interop import ibis_backend


class TestConf(OfDuckDB):
    """Loads the tables that the DuckDB backend loads, by the same statements."""

    deps = ("fuseline",)

    @classmethod
    def name(cls) -> str:
        return "fuseline"

    def preload(self) -> None:
        """Run DuckDB's script as ours; there are no extensions to load."""
        shutil.copy(self.script_dir / "duckdb.sql", self.script_dir / "fuseline.sql")

    @staticmethod
    def connect(*, tmpdir: object, worker_id: str, **settings: object) -> ibis_backend.IbisBackend:
        return ibis.fuseline.connect(device="cpu", **settings)


# Ibis's tests import a backend's settings by its name
conftest = ModuleType("ibis.backends.fuseline.tests.conftest")
conftest.TestConf = TestConf  # type: ignore[attr-defined]
sys.modules["ibis.backends.fuseline"] = ibis_backend
sys.modules["ibis.backends.fuseline.tests"] = ModuleType("ibis.backends.fuseline.tests")
sys.modules[conftest.__name__] = conftest

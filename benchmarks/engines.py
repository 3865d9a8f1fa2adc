"""The engines under test: how each loads the tables, runs a query, and says where it ran.

`load` is timed apart from the queries. `forget` comes before the cold run of each query: an engine that
keeps what it has read begins anew there. `run` ends with the whole answer in host memory as Arrow.
"""

from __future__ import annotations

import importlib.util
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import pyarrow as pa

from benchmarks.data import Tables

INTERVAL = re.compile(r"interval '(\d+)' (day|month|year)")  # Polars wants the unit in the string

COMPILE_SECONDS = 60  # in which a kernel that compiles in the background has to be there


class NotSupported(Exception):
    """A query that this engine's SQL does not cover."""


class Engine(ABC):
    """What an engine has to say and do."""

    exact_types: ClassVar[bool] = True  # DuckDB's types are promised

    @abstractmethod
    def load(self, tables: Tables) -> None:
        """Connect, and make the tables known by name."""

    def forget(self) -> None:  # noqa: B027 - most engines keep nothing
        """Drop what earlier queries left in memory; the operating system's page cache stays."""

    @abstractmethod
    def run(self, query: str) -> pa.Table:
        """The answer, in host memory."""

    def placement(self) -> list[dict[str, Any]]:
        """The plan nodes of the last run with device, seconds, rows and bytes, where the engine tells."""
        return []

    def pipelines(self) -> list[dict[str, Any]]:
        """What each generated kernel of the last query reads and takes, in one more run, where the engine has such."""
        return []

    def settle(self, query: str) -> None:  # noqa: B027 - most engines compile nothing
        """Wait for what the engine prepares in the background."""

    def bandwidth(self) -> dict[str, float]:
        """The copy bandwidth of each device that ran a kernel, bytes a second."""
        return {}

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Give back memory and files."""


class Fuseline(Engine):
    """Fuseline over Parquet; it keeps the columns that queries have touched."""

    def __init__(self, **settings: str) -> None:
        self._settings = settings
        self._tables: Tables = {}
        self._connection: Any = None
        self._frame: Any = None
        self._bandwidth: dict[str, float] = {}

    def load(self, tables: Tables) -> None:
        self._tables = tables
        self._connect()

    def _connect(self) -> None:
        import fuseline

        self._connection = fuseline.connect(**self._settings)
        for name, path in self._tables.items():
            self._connection.read_parquet(path, name)

    def forget(self) -> None:
        self.close()
        self._connect()

    def run(self, query: str) -> pa.Table:
        self._frame = self._connection.sql(query)
        return self._frame.to_arrow()

    def settle(self, query: str) -> None:
        """Run until no kernel of the query is being compiled in the background: a hot run has its kernels."""
        give_up = time.monotonic() + COMPILE_SECONDS
        while time.monotonic() < give_up:
            self.run(query)
            reasons = [n.receipt.reason or "" for n in self._frame.profile.pipelines]
            if not any("being compiled" in reason for reason in reasons):
                return
            time.sleep(0.05)
        raise TimeoutError(f"a kernel was not compiled within {COMPILE_SECONDS} s")

    def placement(self) -> list[dict[str, Any]]:
        kept = ("name", "device", "seconds", "rows", "bytes")
        return [{key: getattr(node, key) for key in kept} for node in self._frame.profile.nodes]

    def pipelines(self) -> list[dict[str, Any]]:
        plan = self._frame.plan
        self._connection.run(plan, timed=True)  # finds the kernels
        profile = self._connection.run(plan, timed=True).profile
        self._bandwidth |= profile.bandwidth
        found = []
        for node in profile.pipelines:
            kept = ("rows", "bytes", "seconds", "operations", "reason")
            kernel = node.receipt.kernel
            row = {key: getattr(node.receipt, key) for key in kept}
            found.append({"device": node.device, "kernel": kernel and kernel.stem, **row})
        return found

    def bandwidth(self) -> dict[str, float]:
        return dict(self._bandwidth)

    def close(self) -> None:
        self._frame = None
        self._connection.close()


class DuckDB(Engine):
    """DuckDB over its own tables in memory, or over Parquet."""

    def __init__(self, own_tables: bool) -> None:
        self._kind = "table" if own_tables else "view"
        self._connection: Any = None

    def load(self, tables: Tables) -> None:
        import duckdb

        self._connection = duckdb.connect()
        for name, path in tables.items():
            text = path.replace("'", "''")
            self._connection.execute(f"create {self._kind} {name} as from read_parquet('{text}')")

    def run(self, query: str) -> pa.Table:
        return self._connection.sql(query).to_arrow_table()

    def close(self) -> None:
        self._connection.close()


class Polars(Engine):
    """Polars' SQL interface over Parquet, which keeps nothing between queries."""

    exact_types = False  # its decimal rules are its own

    def __init__(self, device: str) -> None:
        self._on_gpu = device == "gpu"
        self._context: Any = None

    def load(self, tables: Tables) -> None:
        import polars

        self._context = polars.SQLContext({n: polars.scan_parquet(p) for n, p in tables.items()})

    def run(self, query: str) -> pa.Table:
        import polars
        from polars import exceptions

        refused = (exceptions.SQLInterfaceError, exceptions.SQLSyntaxError)
        try:
            lazy = self._context.execute(INTERVAL.sub(r"interval '\1 \2'", query))
            if self._on_gpu:
                answer = lazy.collect(engine=polars.GPUEngine(raise_on_fail=True))
            else:
                answer = lazy.collect()
        except refused as error:
            raise NotSupported(str(error)) from error
        return answer.to_arrow()


ENGINES: dict[str, Callable[[], Engine]] = {
    "fuseline": Fuseline,
    "fuseline-unfused": lambda: Fuseline(fuse="never"),
    "fuseline-gpu": lambda: Fuseline(device="gpu"),
    "fuseline-cpu": lambda: Fuseline(device="cpu"),
    "duckdb": lambda: DuckDB(own_tables=True),
    "duckdb-parquet": lambda: DuckDB(own_tables=False),
    "polars": lambda: Polars("cpu"),
    "cudf-polars": lambda: Polars("gpu"),
}

NEEDS = {"polars": "polars", "cudf-polars": "cudf_polars"}


def make(name: str) -> Engine:
    """The engine of this name, or an exit that says what is there and what is missing."""
    if name not in ENGINES:
        raise SystemExit(f"There is no engine {name}; there are {', '.join(ENGINES)}.")
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        raise SystemExit(f"The engine {name} needs the package {NEEDS[name]}, which is missing.")
    return ENGINES[name]()

"""The engines under test: how each loads the tables, runs a query, and says where it ran.

`load` is timed apart from the queries. `forget` comes before a cold run: an engine that keeps what it has
read begins anew there. `run` ends with the whole answer in host memory as Arrow.
"""

from __future__ import annotations

import importlib.util
import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from importlib import import_module
from typing import Any

import pyarrow as pa

from benchmarks.data import BytesAreText, Tables, relation
from benchmarks.least_bytes import least_bytes

INTERVAL = re.compile(r"interval '(\d+)' (day|month|year)")  # Polars wants the unit in the string

COMPILE_SECONDS = 60  # in which the kernels that compile in the background should be there
COMPILING = "being compiled"  # a receipt's reason meanwhile


class NotSupported(Exception):
    """A query that this engine's SQL does not cover."""


class Engine(ABC):
    """What an engine has to say and do."""

    exact_types: bool = True  # DuckDB's types are promised

    @abstractmethod
    def load(self, tables: Tables) -> None:
        """Connect, and make the tables known by name."""

    def forget(self) -> None:  # noqa: B027 - most engines keep nothing
        """Drop what earlier queries left in memory; the operating system's page cache stays."""

    @abstractmethod
    def run(self, query: str) -> pa.Table:
        """The answer, in host memory."""

    def timed_run(self, query: str) -> tuple[pa.Table, float]:
        """The answer and the seconds it took."""
        start = time.perf_counter()
        answer = self.run(query)
        return answer, time.perf_counter() - start

    def settle(self, query: str) -> bool:
        """Run until the query's kernels are compiled and in memory; whether they are."""
        return True

    def kernels(self) -> Kernels | None:
        """Where the kernels of the last run came from, where the engine has such."""
        return None

    def in_new_process(self) -> Engine | None:
        """The same engine with its tables in a process that has run nothing; None where a process keeps nothing that counts."""
        return None

    def placement(self) -> list[dict[str, Any]]:
        """The plan nodes of the last run with device, seconds, rows and bytes, where the engine tells."""
        return []

    def receipts(self) -> dict[str, Any]:
        """What the last query read and what took its time, from one more run that waits after each node, where the engine tells."""
        return {}

    def columns(self) -> dict[str, int]:
        """The columns held in memory with their encoded bytes, where the engine keeps such."""
        return {}

    def measure_bandwidth(self) -> dict[str, float]:
        """Measure the copy bandwidth of the engine's device, where it measures its kernels against that; nothing else may run."""
        return {}

    def bandwidth(self) -> dict[str, float]:
        """The copy bandwidth of each device that ran a kernel, bytes a second."""
        return {}

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Give back memory and files."""


@dataclass(frozen=True)
class Kernels:
    """How many kernels of a run were in memory, read from disk or compiled (or are being compiled), and how many pipelines have none."""

    memory: int = 0
    disk: int = 0
    compiler: int = 0
    none: int = 0


class Fuseline(Engine):
    """Fuseline over Parquet; it keeps the columns that queries have touched."""

    def __init__(self, **settings: Any) -> None:
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
            as_text = {"binary_as_string": True} if isinstance(path, BytesAreText) else {}
            self._connection.read_parquet(path, name, **as_text)

    def forget(self) -> None:
        self.close()
        self._connect()

    def run(self, query: str) -> pa.Table:
        self._frame = self._connection.sql(query)
        return self._frame.to_arrow()

    def settle(self, query: str) -> bool:
        give_up = time.monotonic() + COMPILE_SECONDS
        while time.monotonic() < give_up:
            self.run(query)
            if not self.kernels().compiler:
                self.run(query)  # what came from disk is in memory now
                if not self.kernels().compiler:
                    return True
            time.sleep(0.02)
        return False

    def kernels(self) -> Kernels:
        counts = Counter(_origin(node.receipt) for node in self._frame.profile.pipelines)
        return Kernels(**counts)

    def in_new_process(self) -> Engine | None:
        if self._settings.get("fuse") == "never":
            return None  # without kernels
        from benchmarks.isolated import Isolated

        made = Isolated(partial(Fuseline, **self._settings), exact_types=True, limited=False)
        made.load(self._tables)
        return made

    def placement(self) -> list[dict[str, Any]]:
        kept = ("name", "device", "seconds", "rows", "bytes")
        return [{key: getattr(node, key) for key in kept} for node in self._frame.profile.nodes]

    def receipts(self) -> dict[str, Any]:
        from fuseline.observe.roofline import bound

        self._frame.explain("analyze")  # which waits after each node
        profile = self._frame.profile
        self._bandwidth |= profile.bandwidth
        pipelines = []
        for node in profile.pipelines:
            kept = ("rows", "bytes", "seconds", "operations", "reason")
            row = {key: getattr(node.receipt, key) for key in kept}
            kernel, roof = node.receipt.kernel, profile.bandwidth.get(node.device)
            limit = bound(node.receipt, roof, node.device) if roof and node.receipt.fused else None
            row |= {"device": node.device, "kernel": kernel and kernel.stem, "bound": limit}
            row["builds"] = [[b.form, b.rows, b.bytes] for b in node.receipt.builds]
            pipelines.append(row)
        held = self.columns()
        touched = {name: held.get(name) for name in sorted(scanned(profile.nodes[0].node))}
        return {
            "pipelines": pipelines,
            "columns": touched,
            "needed": least_bytes(touched, profile.pipelines),
            "operator_seconds": sum(n.seconds for n in profile.nodes if not _is_kernel(n)),
        }

    def workers(self) -> tuple[Any, ...]:
        """What each worker of a cluster did in the last run."""
        return self._frame.profile.workers

    @property
    def address(self) -> str:
        """That of the cluster's scheduler."""
        return self._connection._runner.crew.client.scheduler.address

    def columns(self) -> dict[str, int]:
        # Not fuseline_columns(), which counts distinct values
        names = self._connection.catalog.identities()
        held: Counter[str] = Counter()
        for column in self._connection.cache.stats():
            if column.source in names:
                held[f"{names[column.source]}.{column.column}"] += column.bytes
        return dict(held)

    def measure_bandwidth(self) -> dict[str, float]:
        from fuseline.observe.roofline import measured

        device, settings = self._connection.device, self._connection.settings
        backend = import_module(f"fuseline.operators.{device}")
        copy = partial(backend.copy_bandwidth, settings.threads)
        with suppress(MemoryError):
            name = backend.device_name(settings.threads)
            return {device: measured(settings.cache_dir, name, copy)}
        return {}

    def bandwidth(self) -> dict[str, float]:
        return dict(self._bandwidth)

    def close(self) -> None:
        self._frame = None
        self._connection.close()


def _origin(receipt: Any) -> str:
    if receipt.reason is None:
        return str(receipt.origin)
    return "compiler" if COMPILING in receipt.reason else "none"


def _is_kernel(node: Any) -> bool:
    return node.receipt is not None and node.receipt.fused


def scanned(plan: Any) -> set[str]:
    """`table.column` of all that a physical plan reads, wherever in its nodes the scans are."""
    found, seen, todo = set(), set(), [plan]
    while todo:
        node = todo.pop()
        if isinstance(node, tuple):
            todo.extend(node)
        elif is_dataclass(node) and id(node) not in seen:
            seen.add(id(node))
            if hasattr(node, "sources") and hasattr(node, "table"):
                found |= {f"{node.table.name}.{source}" for source in node.sources}
            else:
                todo.extend(getattr(node, field.name) for field in fields(node))
    return found


class DuckDB(Engine):
    """DuckDB over its own tables in memory, or over Parquet."""

    def __init__(self, own_tables: bool) -> None:
        self._kind = "table" if own_tables else "view"
        self._connection: Any = None

    def load(self, tables: Tables) -> None:
        import duckdb

        self._connection = duckdb.connect()
        for name, path in tables.items():
            self._connection.execute(f"create {self._kind} {name} as from {relation(path)}")

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


def _isolated(device: str) -> Engine:
    """Its SQL makes cross joins of what stands between commas, which can take all memory."""
    from benchmarks.isolated import Isolated

    return Isolated(partial(Polars, device), exact_types=False, limited=device == "cpu")


ENGINES: dict[str, Callable[[], Engine]] = {
    "fuseline": Fuseline,
    "fuseline-unfused": lambda: Fuseline(fuse="never"),
    "fuseline-gpu": lambda: Fuseline(device="gpu"),
    "fuseline-cpu": lambda: Fuseline(device="cpu"),
    "duckdb": lambda: DuckDB(own_tables=True),
    "duckdb-parquet": lambda: DuckDB(own_tables=False),
    "polars": lambda: _isolated("cpu"),
    "cudf-polars": lambda: _isolated("gpu"),
}

NEEDS = {"polars": "polars", "cudf-polars": "cudf_polars"}


def chosen(names: str) -> list[str]:
    """The names of a list with commas; `all` stands for those that are here, each of Fuseline's devices once."""
    if names != "all":
        return names.split(",")
    twice = {"fuseline-gpu", "fuseline-cpu"}
    return [name for name in ENGINES if name not in twice and _is_here(name)]


def _is_here(name: str) -> bool:
    return name not in NEEDS or importlib.util.find_spec(NEEDS[name]) is not None


def make(name: str) -> Engine:
    """The engine of this name, or an exit that says what is there and what is missing."""
    if name not in ENGINES:
        raise SystemExit(f"There is no engine {name}; there are {', '.join(ENGINES)}.")
    if not _is_here(name):
        raise SystemExit(f"The engine {name} needs the package {NEEDS[name]}, which is missing.")
    return ENGINES[name]()

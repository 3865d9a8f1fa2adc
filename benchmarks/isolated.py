"""An engine in a process of its own: one that runs out of memory or time loses a query, not the run.

Seconds are measured in there, so that an answer's way to this process does not count.
"""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.data import Tables
from benchmarks.engines import Engine, Kernels, NotSupported

QUERY_SECONDS = 120  # to load the tables, or to answer
MEMORY_SHARE = 0.7  # of what is free


class Isolated(Engine):
    """Passes each call on; starts the process again after it ended. `limited`: with a limit to its address space, which CUDA exceeds."""

    def __init__(self, made: Callable[[], Engine], exact_types: bool, limited: bool) -> None:
        self.exact_types = exact_types
        self._made, self._limited = made, limited
        self._tables: Tables = {}
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def load(self, tables: Tables) -> None:
        self._tables = tables
        self._ask("load", tables)

    def forget(self) -> None:
        self._ask("forget")

    def run(self, query: str) -> pa.Table:
        return self.timed_run(query)[0]

    def timed_run(self, query: str) -> tuple[pa.Table, float]:
        return self._ask("timed_run", query)

    def settle(self, query: str) -> bool:
        return bool(self._ask("settle", query))

    def kernels(self) -> Kernels | None:
        found: Kernels | None = self._ask("kernels")
        return found

    def columns(self) -> dict[str, int]:
        found: dict[str, int] = self._ask("columns")
        return found

    def close(self) -> None:
        if self._pipe is not None:
            with suppress(OSError):
                self._pipe.send(None)
        self._end(patience=5)

    def _ask(self, method: str, *arguments: Any) -> Any:
        if self._process is None:
            self._start()
            if method != "load":
                self._ask("load", self._tables)
        assert self._pipe is not None
        self._pipe.send((method, arguments))
        if not self._pipe.poll(QUERY_SECONDS):
            self._end(patience=0)
            raise TimeoutError(f"no answer within {QUERY_SECONDS} s")
        try:
            kind, value = self._pipe.recv()
        except EOFError:
            self._end(patience=5)
            raise MemoryError("its process ended, most likely for want of memory") from None
        if kind == "answer":
            return value
        raise NotSupported(value) if kind == "unsupported" else RuntimeError(value)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        work = (theirs, self._made, _memory_limit() if self._limited else None)
        self._process = context.Process(target=_serve, args=work, daemon=True)
        self._process.start()
        theirs.close()

    def _end(self, patience: float) -> None:
        if self._process is not None:
            self._process.join(patience)
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


def _memory_limit() -> int:
    """Bytes, the page cache counted as free."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(line for line in lines if line.startswith("MemAvailable"))
    return int(MEMORY_SHARE * 1024 * int(available.split()[1]))


def _serve(pipe: Connection, made: Callable[[], Engine], limit: int | None) -> None:
    """Answer calls until None comes."""
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    engine = made()
    while (call := pipe.recv()) is not None:
        method, arguments = call
        try:
            reply = ("answer", getattr(engine, method)(*arguments))
        except NotSupported as error:
            reply = ("unsupported", str(error))
        except Exception as error:
            reply = ("error", f"{type(error).__name__}: {error}")
        pipe.send(reply)

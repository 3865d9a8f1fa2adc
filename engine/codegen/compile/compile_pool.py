"""Processes that compile kernels, a few for all connections of this process: compiling keeps Python's lock for seconds, and a compiler
that crashes takes its process with it.

A thread here serves each process: it takes the next job, writes it to the process and waits for the answer.  Processes begin with the
first job that finds none idle, end after a minute without work or with this process, and nobody waits for that.  Kernels for a folder
are finished after this process has ended, and kept there for the next one.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import field
from functools import cache

from ... import stopping
from ...records import dataclass
from ...settings import usable_cores
from .compile_worker import DONE, LENGTH, message
from .compiler import NotCompiled

IDLE_SECONDS = 60.0
MOST_SECONDS = 300.0  # for one kernel: the largest seen took 30
# Of many cores half: with 8 processes on 16 cores all kernels of TPC-H at SF100 are there after 24 s, with 4 after 36
PROCESSES, MOST_PROCESSES = 4, 8
LEFT_BYTES = 32 << 10  # of sources, which a pipe takes at once: an ending process does not wait
UNCLAIMED = 16  # jobs of queries that were stopped, done, which may be asked for again

# `-P`: no module comes from the folder that this process happens to work in
_BEGIN = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {} import main; main()"

Job = tuple[str, str, tuple[tuple[str, str], ...], tuple[int, int] | None]
# A folder of kernels, a name in it, a key's digits, and the folder's limit in bytes
Place = tuple[str, str, str, int]


class CompilerEnded(NotCompiled):
    """The compiler's process crashed, was killed or took too long; another one may do better."""


def compiled(
    source: str,
    entry: str,
    signature: Sequence[tuple[str, str]],
    architecture: tuple[int, int] | None = None,
    place: Place | None = None,
) -> bytes:
    """Return what another process makes of a source, as `compiler.compile_host` does, or for an architecture `compile_device`.

    Where this process ends before, it is kept in a `place`.

    Raises `NotCompiled`, `CompilerEnded`, and what the query's stop raises; then the process goes on, for the query may be asked again.
    """
    return pool().compiled((source, entry, tuple(signature), architecture), place)


@cache
def pool() -> CompilePool:
    """The pool of this process; a forked one has its own."""
    cores = usable_cores()
    made = CompilePool(max(1, min(cores - 1, PROCESSES), min(cores // 2, MOST_PROCESSES)))
    atexit.register(made.leave)
    os.register_at_fork(after_in_child=made.forget)
    return made


@dataclass(eq=False)
class _Task:
    """A job that is waiting, running or done; `wanted` counts who waits for it, and a query among them makes it `urgent`."""

    job: Job
    place: Place | None = None
    future: Future[bytes] = field(default_factory=Future)
    wanted: int = 0
    urgent: bool = False
    process: _Process | None = None

    @property
    def request(self) -> bytes:
        given = dict(zip(("source", "entry", "signature", "architecture"), self.job, strict=True))
        return message(json.dumps({**given, "place": self.place}).encode())


class CompilePool:
    """At most `most` processes; may be used by several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._ended = False
        self._tasks: dict[Job, _Task] = {}
        self.forget()

    def forget(self) -> None:
        """Begin anew: after a fork, processes and threads are the parent's."""
        for process in getattr(self, "_processes", ()):
            process.let_go()
        self._changed = threading.Condition()
        self._tasks.clear()
        self._waiting: deque[_Task] = deque()
        self._threads = self._idle = 0
        self._processes: set[_Process] = set()

    def compiled(self, job: Job, place: Place | None = None) -> bytes:
        """Return the machine code of a job, which several may ask for at the same time."""
        with self._changed:
            if self._ended:
                raise CompilerEnded("this process is ending")
            task = self._tasks.get(job) or self._added(job, place)
            task.wanted += 1
            task.urgent |= stopping.current() is not None
        try:
            code = stopping.wait(task.future)
        finally:
            with self._changed:
                task.wanted -= 1
                if task.future.done():
                    self._tasks.pop(job, None)
                elif not task.wanted and task in self._waiting:
                    self._waiting.remove(task)
                    self._tasks.pop(job, None)
        return code

    def _added(self, job: Job, place: Place | None) -> _Task:
        task = self._tasks[job] = _Task(job, place)
        done = [t.job for t in self._tasks.values() if t.future.done()]
        for old in done[:-UNCLAIMED]:
            del self._tasks[old]
        self._waiting.append(task)
        if self._idle >= len(self._waiting):
            self._changed.notify()
        elif self._threads < self._most:
            self._begin(task)
        else:
            self._kill_unwanted()
        return task

    def _begin(self, task: _Task) -> None:
        """Start a thread; where the system gives none, those there are will do, or the task is refused."""
        try:
            threading.Thread(target=self._serve, name="fuseline-compile", daemon=True).start()
        except RuntimeError as error:
            if not self._threads:
                self._waiting.remove(task)
                del self._tasks[task.job]
                raise CompilerEnded(str(error)) from error
        else:
            self._threads += 1

    def _kill_unwanted(self) -> None:
        """End a process that compiles for a query which was stopped, since another one waits."""
        for task in self._tasks.values():
            if task.process is not None and not task.wanted:
                task.process.kill()
                return

    def kill(self) -> None:
        """End all processes at once, whatever they do, for good."""
        self._ended = True
        for process in list(self._processes):
            process.kill()

    def leave(self) -> None:
        """End with this process, but for kernels of a folder: a process that compiles one finishes it and those that wait, and keeps them there."""
        self._ended = True
        waiting = [task.request for task in list(self._waiting) if task.place is not None]
        for process in list(self._processes):
            running = [t for t in list(self._tasks.values()) if t.process is process and t.place]
            if not running or not process.leave(waiting):
                process.kill()
            waiting = []

    def _serve(self) -> None:
        """Give jobs to a process, one after the other, until there has been none for a while."""
        process: _Process | None = None
        while (task := self._next()) is not None:
            try:
                if process is None:
                    process = _Process()
                    self._processes.add(process)
                with self._changed:
                    task.process = process
                code = process.answer(task.request)
            except Exception as error:  # also of the system, which may refuse another process
                with self._changed:
                    task.process = None
                    self._tasks.pop(task.job, None)  # the next one that asks tries again
                given = isinstance(error, NotCompiled)
                task.future.set_exception(error if given else CompilerEnded(str(error)))
            else:
                with self._changed:
                    task.process = None
                task.future.set_result(code)
            if process is not None and not process.lives:
                self._let_end(process)
                process = None
        if process is not None:
            self._let_end(process)

    def _let_end(self, process: _Process) -> None:
        """End a process and close its pipes, also of one that was killed just after its answer."""
        self._processes.discard(process)
        process.end()

    def _next(self) -> _Task | None:
        """Wait for a job, the first one that a query waits for, if any; None ends the thread."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._waiting, IDLE_SECONDS)
            self._idle -= 1
            if self._waiting and not self._ended:
                task = next((t for t in self._waiting if t.urgent), self._waiting[0])
                self._waiting.remove(task)
                return task
            self._threads -= 1
            return None


class _Process:
    """A process that compiles; `lives` says that it can take the next job."""

    def __init__(self) -> None:
        paths = [path for path in sys.path if path]
        begin = _BEGIN.format(f"{__package__}.compile_worker")
        self.lives, self._left = True, False
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", begin, json.dumps(paths)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C in a terminal is for the query
            bufsize=0,
        )

    def answer(self, request: bytes) -> bytes:
        """Return the machine code of a job; raises `NotCompiled` or `CompilerEnded`."""
        try:
            self._write(request)
            body = self._read(time.monotonic() + MOST_SECONDS)
        except OSError:
            body = None
        if body is None:
            code = self.end()
            how = f"signal {-code}" if code < 0 else f"code {code}"
            raise CompilerEnded(f"the compiler's process ended with {how}")
        if body[:1] != DONE:
            raise NotCompiled(body[1:].decode(errors="replace"))
        return body[1:]

    def _write(self, body: bytes) -> None:
        assert self._process.stdin is not None
        left = memoryview(body)
        while left:
            left = left[os.write(self._process.stdin.fileno(), left) :]

    def _read(self, deadline: float) -> bytes | None:
        """Return an answer, None when the process ended or took too long."""
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        ready = select.poll()
        ready.register(output, select.POLLIN)
        found, wanted = b"", LENGTH.size
        while len(found) < wanted:
            left = deadline - time.monotonic()
            if left <= 0 or not ready.poll(left * 1000):
                return None
            more = os.read(output, 1 << 20)
            if not more:
                return None
            found += more
            if len(found) >= LENGTH.size:
                wanted = LENGTH.size + LENGTH.unpack_from(found)[0]
        return found[LENGTH.size :]

    def leave(self, requests: Sequence[bytes]) -> bool:
        """Let it finish its job and, where they are not long, others, when this process has ended; whether it was told."""
        given = b"".join(requests)
        try:
            self._write((given if len(given) < LEFT_BYTES else b"") + message(b""))
        except OSError:
            return False
        self._left, self._process.returncode = True, 0
        return True

    def end(self) -> int:
        """End the process and return how it ended."""
        self.kill()
        code = self._process.wait()
        self._close()
        return code

    def kill(self) -> None:
        """End the process, without waiting for that; a thread that waits for its answer gets none."""
        self.lives = False
        if not self._left:
            with suppress(OSError):
                self._process.kill()

    def let_go(self) -> None:
        """Forget a process that is the parent's: without this end of its pipes it ends with the parent."""
        self._process.returncode = 0
        self._close()

    def _close(self) -> None:
        for file in (self._process.stdin, self._process.stdout):
            if file is not None:
                file.close()

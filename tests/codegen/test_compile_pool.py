"""Processes that compile: crashed, killed, stopped, given up, and gone with the process that asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fuseline import stopping
from fuseline.codegen.compile.compile_pool import (
    CompilePool,
    CompilerEnded,
    Job,
    NotCompiled,
    _Process,
)
from fuseline.codegen.compile.compile_worker import NICENESS
from fuseline.codegen.compile.native import NativeKernel
from fuseline.errors import Interrupted
from fuseline.stopping import Stop
from tests.compare import connected

TWICE = "def twice(x):\n    return 2 * x\n"
HANGS = "while True: pass\n"


def job(source: str) -> Job:
    return source, "twice", (("x", "int64"),), None


@pytest.fixture
def pool() -> Iterator[CompilePool]:
    made = CompilePool(1)
    yield made
    made.kill()


def answer(code: bytes) -> int:
    return NativeKernel(code, [("x", "int64")])(21)


def begun(pool: CompilePool, source: str) -> Any:
    """Wait until a process has a job."""
    while True:
        time.sleep(0.01)
        task = pool._tasks.get(job(source))
        if task is not None and task.process is not None:
            return task.process


def alive(process: Any) -> bool:
    return process._process.poll() is None


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def test_another_process_compiles(pool):
    assert answer(pool.compiled(job(TWICE))) == 42
    assert answer(pool.compiled(job("print('not an answer')\n" + TWICE))) == 42


def test_what_the_compiler_refuses_is_told_and_the_process_goes_on(pool):
    with pytest.raises(NotCompiled, match="ZeroDivisionError"):
        pool.compiled(job("1 / 0\n"))
    (process,) = pool._processes
    assert answer(pool.compiled(job(TWICE))) == 42
    assert pool._processes == {process}


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 11)"])
def test_a_crash_refuses_its_kernel_once(pool, end, tmp_path):
    once = tmp_path / "crashed"
    source = (
        f"import os, pathlib\np = pathlib.Path({str(once)!r})\n"
        f"if not p.exists():\n    p.touch()\n    {end}\n{TWICE}"
    )
    with pytest.raises(CompilerEnded, match=r"process ended with (code 3|signal 11)"):
        pool.compiled(job(source))
    assert answer(pool.compiled(job(source))) == 42


def test_several_that_want_one_kernel_have_it_compiled_once(pool, tmp_path):
    counted = tmp_path / "compiled"
    source = f"with open({str(counted)!r}, 'a') as file: file.write('.')\n{TWICE}"
    threads = [in_thread(lambda: pool.compiled(job(source))) for _ in range(5)]
    for thread, _ in threads:
        thread.join()
    assert len({found[0] for _, found in threads}) == 1
    assert counted.read_text() == "."


def test_what_a_query_waits_for_is_compiled_before_what_none_does(pool, tmp_path):
    go, order = tmp_path / "go", tmp_path / "order"
    held = f"import pathlib\nwhile not pathlib.Path({str(go)!r}).exists(): pass\n{TWICE}"
    first, later, urgent = (
        f"{start}with open({str(order)!r}, 'a') as file: file.write({name!r})\n{TWICE}"
        for name, start in (("1", held), ("2", ""), ("3", ""))
    )

    def wait() -> object:
        with stopping.Stoppable(Stop()):
            return pool.compiled(job(urgent))

    threads = [in_thread(lambda: pool.compiled(job(first)))]
    begun(pool, first)
    threads.append(in_thread(lambda: pool.compiled(job(later))))
    while job(later) not in pool._tasks:
        time.sleep(0.01)
    threads.append(in_thread(wait))
    while job(urgent) not in pool._tasks or not pool._tasks[job(urgent)].urgent:
        time.sleep(0.01)
    go.touch()
    for thread, _ in threads:
        thread.join()
    assert order.read_text() == "132"


def test_a_compiler_gives_way_and_ctrl_c_passes_it_by(pool):
    thread, _ = in_thread(lambda: pool.compiled(job(HANGS)))
    process = begun(pool, HANGS)._process.pid
    least = min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)
    while os.getpriority(os.PRIO_PROCESS, process) < least:
        time.sleep(0.01)
    assert os.getpgid(process) != os.getpgrp()
    assert os.getsid(process) == os.getsid(0)  # Linux weighs sessions before it weighs processes
    pool.kill()
    thread.join()


def test_a_stop_is_heard_while_the_compiler_works_on(pool):
    stop = Stop()

    def wait() -> object:
        with stopping.Stoppable(stop):
            return pool.compiled(job(HANGS))

    thread, found = in_thread(wait)
    process = begun(pool, HANGS)
    stop.ask()
    thread.join()
    assert isinstance(found[0], Interrupted)
    assert alive(process)
    # Nobody waits for it any more, and somebody for another one
    assert answer(pool.compiled(job(TWICE))) == 42
    assert not alive(process)


def test_a_kernel_that_was_given_up_is_there_for_the_next_who_asks(pool, tmp_path):
    go, counted = tmp_path / "go", tmp_path / "compiled"
    source = (
        f"import pathlib\nwhile not pathlib.Path({str(go)!r}).exists(): pass\n"
        f"with open({str(counted)!r}, 'a') as file: file.write('.')\n{TWICE}"
    )
    stop = Stop()

    def wait() -> object:
        with stopping.Stoppable(stop):
            return pool.compiled(job(source))

    thread, found = in_thread(wait)
    begun(pool, source)
    stop.ask()
    thread.join()
    go.touch()
    assert isinstance(found[0], Interrupted)
    assert answer(pool.compiled(job(source))) == 42
    assert counted.read_text() == "."


def test_without_a_thread_a_kernel_is_refused_and_the_next_one_compiled(pool, monkeypatch):
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        for _ in range(2):
            with pytest.raises(CompilerEnded, match="new thread"):
                pool.compiled(job(TWICE))
    assert answer(pool.compiled(job(TWICE))) == 42


def test_idle_processes_end(pool, monkeypatch, limits):
    limits(IDLE_SECONDS=0.01)
    pool.compiled(job(TWICE))
    while pool._processes or pool._threads:
        time.sleep(0.01)
    monkeypatch.undo()
    assert answer(pool.compiled(job(TWICE))) == 42


def test_a_process_killed_just_after_its_answer_is_closed(pool, monkeypatch):
    answered, processes = _Process.answer, []

    def answer_and_die(self: _Process, asked: Job) -> bytes:
        code = answered(self, asked)
        processes.append(self._process)
        self.kill()
        return code

    monkeypatch.setattr(_Process, "answer", answer_and_die)
    assert answer(pool.compiled(job(TWICE))) == 42
    assert answer(pool.compiled(job("# another\n" + TWICE))) == 42  # by another process
    first = processes[0]
    assert first.returncode == -signal.SIGKILL
    assert first.stdin.closed
    assert first.stdout.closed


def test_a_query_goes_on_without_the_compiler(tmp_path: Path, monkeypatch: Any) -> None:
    with connected({"t": {"a": list(range(100))}}, fuse="always", cache_dir=tmp_path) as connection:
        query = connection.sql("select sum(a)::int as total from t where a > 90")
        expected = [(sum(range(91, 100)),)]

        def ended(*_: object) -> bytes:
            raise CompilerEnded("the compiler's process ended with signal 9")

        monkeypatch.setattr(CompilePool, "compiled", ended)
        assert query.fetchall() == expected
        assert "signal 9" in query.explain("analyze")
        monkeypatch.undo()
        assert query.fetchall() == expected
        assert "_filter_aggregate_" in query.explain("analyze")


AT_ITS_END = """
import os, sys, threading, time
import fuseline
from fuseline.codegen.compile import compile_pool
connection = fuseline.connect("cpu", fuse="auto", cache_dir=sys.argv[1])
connection.register("t", {"a": list(range(300_000))})
assert connection.sql("select sum(a)::int from t where a < 10").fetchall() == [(45,)]
while not compile_pool.pool()._processes:
    time.sleep(0.01)
others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
idle = ("fuseline-imports", "fuseline-expressions", "fuseline-rows", "fuseline-kernel")
print([t.name for t in others if not t.name.startswith(idle)], flush=True)
(process,) = compile_pool.pool()._processes
print(process._process.pid)
connection.close()
"""


def at_its_end(script: str, folder: Path) -> tuple[Any, str, int]:
    """Run a script; how it ended, what threads were left, and the process that compiled."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    threads, process = done.stdout.split("\n")[:2]
    return done, threads, int(process)


def is_gone(process: int) -> bool:
    """Wait until the system has no such process, nor one that has ended and is not yet cleared away."""
    status = Path(f"/proc/{process}/status")
    while True:
        try:
            if "State:\tZ" in status.read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)


def test_a_process_ends_while_its_kernels_are_compiled(tmp_path):
    done, threads, process = at_its_end(AT_ITS_END, tmp_path)
    assert (done.returncode, threads) == (0, "[]")
    assert is_gone(process)


def test_the_next_process_finds_kernels_that_were_being_compiled(tmp_path):
    folder = tmp_path / "kernels"
    _, _, process = at_its_end(AT_ITS_END, folder)
    assert is_gone(process)
    asked = f"""
import fuseline
connection = fuseline.connect("cpu", fuse="auto", cache_dir={str(folder)!r})
connection.register("t", {{"a": list(range(300_000))}})
query = connection.sql("select sum(a)::int from t where a < 11")
assert query.fetchall() == [(55,)]
print([p.receipt.fused for p in query.profile.pipelines], end="")
"""
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[True]", "")


def test_a_folder_that_is_removed_with_its_process_does_not_come_back(tmp_path):
    folder = tmp_path / "kernels"
    removed = "connection.close(); import shutil; shutil.rmtree(sys.argv[1])"
    _, _, process = at_its_end(AT_ITS_END.replace("connection.close()", removed), folder)
    assert is_gone(process)
    assert not folder.exists()


def test_a_killed_process_takes_its_compilers_with_it(tmp_path):
    killed = "sys.stdout.flush(); os.kill(os.getpid(), 9)"
    done, _, process = at_its_end(AT_ITS_END.replace("connection.close()", killed), tmp_path)
    assert done.returncode == -9
    assert is_gone(process)

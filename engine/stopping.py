"""Stopping a query: from another thread, after a time, or by Ctrl-C.

The thread that runs a query has one `Stop`, and whatever works for the query asks it: `check()`, at most some 50 ms apart.  It belongs
to the thread, so that kernels ask it without being handed it; a thread that works for another one carries that one's (`carried`).
Work that cannot ask, as a compiler, is waited for together with the stop (`wait`).  Parsing and planning, which build trees in
pure Python and hold nothing, end at any instruction (`anywhere`).  Functions of users do so too, in a thread that the query leaves
behind where they do not (`apart`).
"""

from __future__ import annotations

import contextvars
import ctypes
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, ClassVar, ParamSpec, TypeVar

from .errors import Interrupted

P = ParamSpec("P")
T = TypeVar("T")

# What `signal` wraps: as members of enumerations its handlers cost each query 15 us, a twentieth of a short one
_signal: Any = importlib.import_module("_signal")
_Lock = type(threading.RLock())  # which `threading.RLock` takes a further call to make

AGAIN_SECONDS = 0.02
MOST_SECONDS = 1.0  # between two tries to end work that comes to no instruction of Python
WAIT_SECONDS = 0.02  # between two looks at the stop while a thread waits


class _Now(BaseException):
    """Raised by another thread inside `anywhere`, which makes of it what the stop raises; no `except Exception` takes it."""


class Stop:
    """Whether work is to end: because it was asked to, or its time is over; `limit` is in seconds, None is no limit."""

    __slots__ = (
        "_deadline",
        "_left",
        "_lock",
        "_sent",
        "_thread",
        "asked",
        "by_keyboard",
        "is_apart",
        "limit",
        "progress",
    )

    def __init__(self, limit: float | None = None) -> None:
        self.asked = self.by_keyboard = self._sent = False
        self.is_apart = False  # it belongs to work of `apart`
        self._lock = _Lock()  # a handler of signals may run amid any method
        self._thread: int | None = None  # the one that is inside `anywhere`
        self.limit = limit
        self.progress: Any = None  # a `progress.run_progress.Progress`, which the work counts in
        self._deadline: float | None = None
        self._left: float | None = None  # seconds, while the time stands still
        if limit is not None:
            self.restart()

    def restart(self) -> None:
        """Count the time from now on: another statement begins."""
        if self.limit is not None:
            self._deadline = time.monotonic() + self.limit

    def pause(self) -> None:
        """Let the time stand still until `resume`: nothing is done for the query meanwhile."""
        if self._deadline is not None and self._left is None:
            self._left = self._deadline - time.monotonic()

    def resume(self) -> None:
        if self._left is not None:
            self._deadline, self._left = time.monotonic() + self._left, None

    def ask(self, by_keyboard: bool = False) -> None:
        """Have the work end where it next looks; for which nobody waits."""
        with self._lock:
            self.by_keyboard = self.by_keyboard or by_keyboard
            self.asked = True
        self._send()

    def check(self) -> None:
        """Raise `Interrupted`, or after Ctrl-C `KeyboardInterrupt`, when the work is to end."""
        if self.asked:
            if self.by_keyboard:
                raise KeyboardInterrupt
            raise Interrupted("The query was stopped by interrupt().")
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise Interrupted(
                f"The query was stopped after {self.limit:g} s, which is its statement_timeout: "
                "SET statement_timeout = 'none' takes the limit away."
            )

    def anywhere(self, work: Callable[[], T]) -> T:
        """Return what `work` makes, ended at any instruction when it is to end."""
        if self._thread is not None:
            return work()
        timer = self._timer()  # before `_Now` may come: amid its start its lock would stay taken
        try:
            try:
                with self._lock:
                    self._thread = threading.get_ident()
                self.check()
                return work()
            finally:
                self._leave()
        except _Now:
            self._leave_at_last()
            self.check()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _timer(self) -> threading.Timer | None:
        """A thread that ends the work inside `anywhere` when its time is over."""
        if self._deadline is None:
            return None
        timer = threading.Timer(max(self._deadline - time.monotonic(), 0.0), self._send)
        timer.daemon = True
        timer.start()
        return timer

    def leave_anywhere(self) -> bool:
        """Let work look at the stop itself from here on, where this thread is inside `anywhere`; returns whether it is."""
        if self._thread is None or self._thread != threading.get_ident():
            return False
        try:
            self._leave()
        except _Now:
            self._leave_at_last()
        return True

    def enter_anywhere(self) -> None:
        """Go on inside of `anywhere`, which this thread has left for a while."""
        with self._lock:
            self._thread = threading.get_ident()
        if self.asked:
            self._send()

    def _send(self, again_after: float = AGAIN_SECONDS) -> None:
        """Raise `_Now` in the thread that is inside `anywhere`; again after a while, since a finalizer may have swallowed it."""
        with self._lock:
            if self._thread is None:
                return
            if not self._sent:
                self._sent = True
                _hushed.enter()
            _raise_in(self._thread, _Now)
        later = min(2 * again_after, MOST_SECONDS)
        again = threading.Timer(again_after, self._send, (later,))
        again.daemon = True
        again.start()

    def _leave(self) -> None:
        with self._lock:
            self._thread = None  # from here on nothing is sent
        if self._sent:
            _await_now()
            with self._lock:
                self._sent = False
                _hushed.leave()

    def _leave_at_last(self) -> None:
        """Leave also where `_Now` came amid leaving; none comes any more afterwards."""
        while self._thread is not None or self._sent:
            with suppress(_Now):
                self._leave()


class _Hushed:
    """Says nothing of a `_Now` that a finalizer swallowed, while one may come; Python writes it to standard error otherwise."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = threading.RLock(), 0, sys.unraisablehook

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before, sys.unraisablehook = sys.unraisablehook, self._say

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and sys.unraisablehook == self._say:
                sys.unraisablehook = self._before

    def _say(self, raised: sys.UnraisableHookArgs) -> None:
        if raised.exc_type is not _Now:
            self._before(raised)


_hushed = _Hushed()


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


def _await_now() -> None:
    """Let a `_Now` that may be on its way to this thread arrive here.

    Taken back, CPython before 3.13 would look for it before each call for good, and hang in the first function that is traced.
    """
    with suppress(_Now):
        _raise_in(threading.get_ident(), _Now)
        while True:
            pass


class _OfThread(threading.local):
    stop: Stop | None = None


_of_thread = _OfThread()


def current() -> Stop | None:
    """The stop of what this thread works for."""
    return _of_thread.stop


def check() -> None:
    """Raise when what this thread works for is to end."""
    stop = _of_thread.stop
    if stop is not None and (stop.asked or stop.limit is not None):
        stop.check()


def advance(count: int) -> None:
    """Note that so many rows of a stage are done, and raise when what this thread works for is to end."""
    stop = _of_thread.stop
    if stop is not None:
        if stop.asked or stop.limit is not None:
            stop.check()
        if stop.progress is not None:
            stop.progress.advance(count)


def anywhere(work: Callable[[], T]) -> T:
    """Return what `work` makes, ended at any instruction when this thread is to end.

    For pure Python that holds nothing and leaves nothing half changed.
    """
    stop = _of_thread.stop
    return work() if stop is None else stop.anywhere(work)


class Stoppable:
    """Has the work inside end with `stop`, which is in `running` meanwhile.

    In the main thread Ctrl-C asks it too, so that `KeyboardInterrupt` comes where the work looks, and no lock, cache or file is
    left half done.  A second Ctrl-C raises at once.
    """

    __slots__ = ("_before", "_listens", "_running", "_stop", "_within")

    def __init__(self, stop: Stop, running: set[Stop] | None = None) -> None:
        self._stop = stop
        self._running = set() if running is None else running

    def __enter__(self) -> Stop:
        # A query that a user's function runs holds locks and caches
        self._within = self._stop._thread is not None and self._stop.leave_anywhere()
        self._before, _of_thread.stop = _of_thread.stop, self._stop
        self._running.add(self._stop)
        self._listens = self._before is None and _listen(self._stop)
        return self._stop

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _of_thread.stop = self._before
        self._running.discard(self._stop)
        if self._within:
            self._stop.enter_anywhere()
        if self._listens:
            _signal.signal(signal.SIGINT, signal.default_int_handler)
            if kind is None and self._stop.by_keyboard:  # it came when the work no longer looked
                raise KeyboardInterrupt


def _listen(stop: Stop) -> bool:
    """Have Ctrl-C ask `stop`; False in other threads, and where a program handles Ctrl-C itself."""
    if _signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False

    def ask(number: int, frame: object) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.ask(by_keyboard=True)

    try:
        _signal.signal(signal.SIGINT, ask)
    except ValueError:  # in another thread, or an interpreter below the main one
        return False
    return True


def carried(work: Callable[P, T]) -> Callable[P, T]:
    """Return work that another thread may do and that ends with what this thread works for."""
    stop = _of_thread.stop
    if stop is None:
        return work

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        before, _of_thread.stop = _of_thread.stop, stop
        try:
            stop.check()
            return work(*args, **kwargs)
        finally:
            _of_thread.stop = before

    return run


def wait(future: Future[T]) -> T:
    """Return what another thread or process makes, or raise when this thread is to end before that."""
    stop = _of_thread.stop
    if stop is None:
        return future.result()
    while True:
        try:
            return future.result(WAIT_SECONDS)
        except TimeoutError:
            if future.done():
                return future.result()
        stop.check()


class _Caller:
    """A thread that does one piece of work after the other; it is a daemon, since one of them may never end."""

    idle: ClassVar[list[_Caller]] = []

    def __init__(self) -> None:
        self.work: SimpleQueue[Callable[[], object]] = SimpleQueue()
        threading.Thread(target=self._run, name="fuseline-apart", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.work.get()()
            self.idle.append(self)


os.register_at_fork(after_in_child=_Caller.idle.clear)


def apart(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what work of a user makes, done in another thread; when this one is to end, it raises whatever that work does.

    The work is ended at its next instruction of Python.  Where it comes to none, as in a call of C that waits, its thread remains
    until it does.  Inside of such work this is a plain call.
    """
    stop = _of_thread.stop
    if stop is None or stop.is_apart:
        return work(*args, **kwargs)
    inner, result = Stop(), Future[T]()
    inner.is_apart, inner.progress = True, stop.progress
    call = partial(contextvars.copy_context().run, work, *args, **kwargs)

    def run() -> None:
        _of_thread.stop = inner
        try:
            result.set_result(inner.anywhere(call))
        except BaseException as error:  # handed on, whatever it is
            result.set_exception(error)
        finally:
            _of_thread.stop = None

    try:
        caller = _Caller.idle.pop()
    except IndexError:
        caller = _Caller()
    caller.work.put(run)
    try:
        return wait(result)
    except BaseException:
        inner.ask()
        raise

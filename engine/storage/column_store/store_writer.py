"""The thread that writes columns while queries go on: it lives as long as there is something to write."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from ...threads.fork_locks import new_lock

# Bytes of columns that wait, beyond which a further one is left for another time
MOST_WAITING = 1 << 30
SECONDS_AT_CLOSE = 10.0  # in which what waits is still written

Check = Callable[[], None]
Work = Callable[[Check], None]


class Ended(Exception):
    """Who waits for the work waits no longer."""


class StoreWriter:
    """Pieces of work by name, done one after the other; a later one of a name takes the place of one that waits.

    A process that ends without `close` waits for its thread, as for any other.
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most = most
        self._waiting: OrderedDict[str, tuple[int, Work]] = OrderedDict()
        self._bytes = 0  # of what waits and what is written
        self._thread: threading.Thread | None = None
        self._closed = self._ended = False
        self._lock = new_lock()

    def submit(self, name: str, nbytes: int, work: Work) -> bool:
        """Take work, which gets a function to call now and then; False where too much waits, or nothing is taken any more."""
        with self._lock:
            before = self._waiting.get(name, (0, work))[0]
            waits = self._bytes - before
            if self._closed or (waits and waits + nbytes > self._most):
                return False
            self._bytes = waits + nbytes
            self._waiting[name] = nbytes, work
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="fuseline-column-store")
                self._thread.start()
            return True

    def close(self, seconds: float = SECONDS_AT_CLOSE) -> None:
        """Write what waits, as far as there is time, and end; a file that is half written goes."""
        with self._lock:
            self._closed, thread = True, self._thread
        if thread is None:
            return
        try:
            thread.join(seconds)
        finally:
            self._ended = True
            thread.join()

    def _check(self) -> None:
        if self._ended:
            raise Ended

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or self._ended:
                    self._thread = None
                    self._waiting.clear()
                    return
                _, (nbytes, work) = self._waiting.popitem(last=False)
            try:
                work(self._check)
            except Ended:
                pass
            finally:
                del work  # which has the column
                with self._lock:
                    self._bytes -= nbytes

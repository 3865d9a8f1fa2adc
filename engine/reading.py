"""An answer while it is read: each step of its run ends with what stops the query, and what it holds goes with its reader."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from .deep import deeply, is_deep
from .errors import ExecutionError, FuselineError, Interrupted
from .fence import fenced
from .stopping import Stop, Stoppable, current

if TYPE_CHECKING:
    import pyarrow as pa

    from .runtime.in_pieces import Stream

SECONDS_TO_END = 5.0  # that `close` waits for a step in another thread, which it has asked to end
CLOSED = "This answer is closed: run the query again."
FAILED = "Reading this answer ended with an error: run the query again."


class Reading(Iterator["pa.Table"]):
    """The tables of a stream; the first is made at once, so that what fails at the start fails where the query is run.

    Any thread may read, one at a time.  `is_made`: all rows are there; those that are still to be made end with the query's own stop,
    for which no time passes between two reads.  `stoppable` lets what stops the query stop other work on its rows.
    """

    def __init__(
        self,
        stream: Stream,
        text: str | None,
        stop: Stop,
        running: set[Stop],
        stoppable: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.is_made = stream.num_rows is not None
        self.num_rows = stream.num_rows
        self.profile, self.hold = stream.profile, stream.hold
        self._tables = stream.tables
        self._text, self._stop, self._running, self._anew = text, stop, running, stoppable
        self._lock = threading.RLock()  # a handler of signals may close it amid a step
        self._deep = is_deep() and not self.is_made
        self._stepping = False
        self._ended: FuselineError | None = None
        first = self._step()
        assert first is not None
        self._first: pa.Table | None = first
        self.schema: pa.Schema = first.schema
        self._missing = self.num_rows  # of those that are made
        if not self.is_made:
            stop.pause()

    def __next__(self) -> pa.Table:
        table = self._table()
        if table is None:
            raise StopIteration
        return table

    @property
    def stop(self) -> Stop:
        return self._stop

    def stoppable(self) -> AbstractContextManager[object]:
        return self._anew() if self.is_made else self._resumed()

    def close(self, refusal: FuselineError | None = None) -> None:
        """Let go of everything; a step in another thread is asked to end, and reading raises `refusal` from now on."""
        self._ended = self._ended or refusal or ExecutionError(CLOSED)
        own = self._lock.acquire(blocking=False)
        if not own:
            self._stop.ask()
            own = self._lock.acquire(timeout=SECONDS_TO_END)
        if not own:
            return
        try:
            if self._stepping:  # below this call: it lets go when it ends
                self._stop.ask()
            else:
                self._release()
        finally:
            self._lock.release()

    def __del__(self) -> None:
        if getattr(self, "_deep", False):  # else it goes by itself
            with suppress(Exception):
                self.close()

    @fenced
    def _table(self) -> pa.Table | None:
        """Return the next table, None after the last."""
        with self._lock:
            if self._ended is not None:
                raise self._refusal(self._ended)
            if self._missing == 0:
                return None
            table, self._first = self._first, None
            if table is None:
                table = self._step()
            if table is not None and self._missing is not None:
                self._missing -= table.num_rows
                if not self._missing:  # to look for another table would cost a scope
                    self._release()
            return table

    def _step(self) -> pa.Table | None:
        table = None
        self._stepping = True
        try:
            with self.stoppable():
                table = self._advanced()
        except BaseException as error:
            closed, self._ended = self._ended, self._ended or ExecutionError(FAILED)
            if closed is not None and isinstance(error, Interrupted):
                raise self._refusal(closed) from None
            if isinstance(error, FuselineError):
                error.with_text(self._text)
            raise
        finally:
            self._stepping = False
            if table is None or self._ended is not None:
                self._release()
        return table

    def _advanced(self) -> pa.Table | None:
        def step() -> pa.Table | None:
            return next(self._tables, None)

        return deeply(step) if self._deep else step()

    @contextmanager
    def _resumed(self) -> Iterator[None]:
        """Let the query's own stop end the work inside."""
        outer = current()
        if outer is self._stop:
            yield
            return
        if outer is not None:
            outer.check()
        self._stop.resume()
        try:
            with Stoppable(self._stop, self._running):
                yield
        except (Interrupted, KeyboardInterrupt):
            if not self._stepping:  # amid other work on its rows
                self.close(ExecutionError(FAILED))
            raise
        finally:
            self._stop.pause()

    def _release(self) -> None:
        tables, self._tables, self._first = self._tables, _none(), None
        if self._deep:
            deeply(tables.close)
        else:
            tables.close()

    @staticmethod
    def _refusal(known: FuselineError) -> FuselineError:
        return type(known)(known.message)


def _none() -> Generator[pa.Table]:
    yield from ()

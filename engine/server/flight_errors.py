"""How errors reach clients: as the status of Flight that tells whose fault it was, and never as a traceback of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isgeneratorfunction
from types import FunctionType
from typing import Protocol, TypeVar, cast

import pyarrow as pa
from pyarrow import flight

from ..errors import (
    AccessDenied,
    FuselineError,
    InternalError,
    Interrupted,
    NotSupportedError,
    OperationalError,
    TransactionError,
)
from ..fence import translated
from .logins import NotLoggedIn
from .turns import ServerBusy


class CountsFailures(Protocol):
    """What answers calls, and counts those that fail."""

    def failed(self, error: BaseException) -> None: ...


F = TypeVar("F", bound=Callable[..., object])

# The first that fits: what a client did wrong is INVALID_ARGUMENT, of which pyarrow has no error class of Flight
STATUS: tuple[tuple[type[FuselineError], Callable[[str], Exception]], ...] = (
    (NotLoggedIn, flight.FlightUnauthenticatedError),
    (AccessDenied, flight.FlightUnauthorizedError),
    (ServerBusy, flight.FlightUnavailableError),
    (NotSupportedError, pa.ArrowNotImplementedError),
    (TransactionError, pa.ArrowInvalid),
    (OperationalError, flight.FlightServerError),
    (InternalError, flight.FlightInternalError),
    (FuselineError, pa.ArrowInvalid),
)


def on_wire(error: BaseException) -> Exception | None:
    """Return what a client gets for an error; None for what has to pass, as the end of the process."""
    if isinstance(error, flight.FlightError):
        return error
    found = error if isinstance(error, FuselineError) else translated(error)
    if found is None:
        return None
    if isinstance(found, Interrupted):
        timed_out = "statement_timeout" in found.message
        return (flight.FlightTimedOutError if timed_out else flight.FlightCancelledError)(
            found.message if timed_out else "The query was cancelled."
        )
    text = found.message if isinstance(found, InternalError) else str(found)
    return next(status(text) for kind, status in STATUS if isinstance(found, kind))


def answered(function: F) -> F:
    """Give what a handler of calls raises to the client, and count it."""

    @wraps(function)
    def called(self: CountsFailures, *args: object) -> object:
        try:
            return function(self, *args)
        except BaseException as error:
            found = on_wire(error)
            if found is None:
                raise
            self.failed(error)
        raise found.with_traceback(None)

    @wraps(function)
    def iterated(self: CountsFailures, *args: object) -> Iterator[object]:
        try:
            yield from cast("Iterator[object]", function(self, *args))
            return
        except BaseException as error:
            found = on_wire(error)
            if found is None:
                raise
            self.failed(error)
        raise found.with_traceback(None)

    chosen = cast("FunctionType", iterated if isgeneratorfunction(function) else called)
    # pyarrow sends the traceback along, whose one frame is this: without the file's path and line
    chosen.__code__ = chosen.__code__.replace(co_filename="<fuseline>")
    return cast("F", chosen)

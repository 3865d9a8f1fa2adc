"""How errors reach clients: as the status of Flight that tells whose fault it was, and never as a traceback of the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from inspect import isgeneratorfunction
from types import FunctionType
from typing import Protocol, TypeVar, cast

import pyarrow as pa
from pyarrow import flight

from .. import errors as err
from ..fence import translated
from .logins import NotLoggedIn
from .turns import ServerBusy

CALL = "call"  # the middleware that knows a call


class CountsFailures(Protocol):
    """What answers calls, and counts those that fail."""

    def failed(self, error: BaseException) -> None: ...


ERROR_HEADER = "x-fuseline-errors"  # of clients that give errors their classes back
_SIGN = "\x1e"  # around what they read
_TOLD = re.compile(f"{_SIGN}(\\w+):(\\d+){_SIGN}(.*?){_SIGN}", re.DOTALL)
F = TypeVar("F", bound=Callable[..., object])

# The first that fits: what a client did wrong is INVALID_ARGUMENT, of which pyarrow has no error class of Flight
STATUS: tuple[tuple[type[err.FuselineError], Callable[[str], Exception]], ...] = (
    (NotLoggedIn, flight.FlightUnauthenticatedError),
    (err.AccessDenied, flight.FlightUnauthorizedError),
    (ServerBusy, flight.FlightUnavailableError),
    (err.NotSupportedError, pa.ArrowNotImplementedError),
    (err.TransactionError, pa.ArrowInvalid),
    (err.OperationalError, flight.FlightServerError),
    (err.InternalError, flight.FlightInternalError),
    (err.FuselineError, pa.ArrowInvalid),
)


def told_class(said: str) -> tuple[str, str, str] | None:
    """Return the class of an error, its sentence, and the sentence with the place, from what `on_wire` made of it."""
    found = _TOLD.search(said)
    if found is None:
        return None
    return found[1], found[3][: int(found[2])], found[3]


def on_wire(error: BaseException, tells_class: bool = False) -> Exception | None:
    """Return what a client gets for an error; None for what has to pass, as the end of the process.

    `tells_class`: the client is ours, and makes the error anew.
    """
    if isinstance(error, flight.FlightError):
        return error
    found = error if isinstance(error, err.FuselineError) else translated(error)
    if found is None:
        return None
    if isinstance(found, err.Interrupted):
        timed_out = "statement_timeout" in found.message
        return (flight.FlightTimedOutError if timed_out else flight.FlightCancelledError)(
            found.message if timed_out else "The query was cancelled."
        )
    text = found.message if isinstance(found, err.InternalError) else str(found)
    if tells_class:
        text = f"{_SIGN}{type(found).__name__}:{len(found.message)}{_SIGN}{text}{_SIGN}"
    return next(status(text) for kind, status in STATUS if isinstance(found, kind))


def answered(function: F) -> F:
    """Give what a handler of calls raises to the client, and count it."""

    @wraps(function)
    def called(self: CountsFailures, *args: object) -> object:
        try:
            return function(self, *args)
        except BaseException as error:
            found = on_wire(error, _tells_class(args))
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
            found = on_wire(error, _tells_class(args))
            if found is None:
                raise
            self.failed(error)
        raise found.with_traceback(None)

    chosen = cast("FunctionType", iterated if isgeneratorfunction(function) else called)
    # pyarrow sends the traceback along, whose one frame is this: without the file's path and line
    chosen.__code__ = chosen.__code__.replace(co_filename="<fuseline>")
    return cast("F", chosen)


def _tells_class(args: Sequence[object]) -> bool:
    """Whether the call that a handler answers, its first argument, is of a client that reads classes of errors."""
    context = args[0] if args else None
    call = context.get_middleware(CALL) if isinstance(context, flight.ServerCallContext) else None
    return bool(getattr(call, "tells_class", False))

"""A call while it is answered: who calls, and whether anybody still listens.

gRPC tells nobody when a client vanishes while its query runs, so one thread asks for all calls, and stops the queries of those that are gone.
What a call holds is let go of at its end, however it ends, and earlier where its client has not gone on reading for too long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from pyarrow import flight

from ..errors import FuselineError
from ..stopping import Stop
from .flight_errors import ERROR_HEADER
from .logins import Logins, NotLoggedIn

COOKIE = "arrow_flight_session_id"
CLIENT_LOOK_SECONDS = 0.02  # between two looks whether clients are still there
SWEEP_SECONDS = 0.5


class ServerCall(flight.ServerMiddleware):
    """One call of a client; `session` is what its cookie names.  `token`: to be sent back, for a password that was right."""

    def __init__(self, client: str | None, refusal: str, session: bytes, token: str) -> None:
        self._client, self._refusal, self.session, self._token = client, refusal, session, token
        self._lock = threading.RLock()
        self._at_end: list[Callable[[], object]] = []
        self._context: flight.ServerCallContext | None = None
        self._stop: Stop | None = None
        self._ended = False
        self.waits_since: float | None = None  # for its client to read
        self.tells_class = False  # whether errors name their classes, for a client that reads them

    @property
    def client(self) -> str:
        """Who calls; raises `NotLoggedIn`."""
        if self._client is None:
            raise NotLoggedIn(self._refusal)
        return self._client

    def check_login(self) -> None:
        """Raise `NotLoggedIn` where nobody knows who calls."""
        _ = self.client

    def sending_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._token}"} if self._token else {}

    def watch(self, context: flight.ServerCallContext, stop: Stop) -> None:
        """Let `stop` be asked when the client is gone."""
        self._context, self._stop = context, stop

    def at_end(self, work: Callable[[], object]) -> None:
        """Do something when the call ends; at once where it has ended."""
        with self._lock:
            if not self._ended:
                self._at_end.append(work)
                return
        work()

    def look(self, idle_seconds: float) -> None:
        """Stop what nobody waits for."""
        with self._lock:  # the context goes away with the call
            if self._ended or self._stop is None:
                return
            if self._context is not None and self._context.is_cancelled():
                self._stop.ask()
        since = self.waits_since
        if since is not None and time.monotonic() - since > idle_seconds:
            self._stop.ask()
            self.release()

    def release(self) -> None:
        with self._lock:
            ends, self._at_end = self._at_end[::-1], []
        for end in ends:
            try:  # noqa: SIM105 - `suppress` makes three calls for each of what a call holds
                end()
            except FuselineError:
                pass

    def call_completed(self, exception: BaseException | None) -> None:
        with self._lock:
            self._ended = True
        self.release()


class Calls(flight.ServerMiddlewareFactory):
    """Makes the `ServerCall` of each call, and watches those that are being answered."""

    def __init__(self, logins: Logins, idle_seconds: float, sweep: Callable[[], object]) -> None:
        """`sweep` is called now and then."""
        self._logins, self._idle_seconds, self._sweep = logins, idle_seconds, sweep
        self._open: set[ServerCall] = set()
        self._ended = threading.Event()
        self.refused = 0
        self._thread = threading.Thread(target=self._watch, name="fuseline-calls", daemon=True)
        self._thread.start()

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, Sequence[str]]) -> ServerCall:
        client, refusal, token = None, "", ""
        try:
            client = self._logins.client(_text(headers, "authorization"))
            if info.method == flight.FlightMethod.HANDSHAKE and self._logins.are_asked_for:
                token = self._logins.new_token(client)
        except NotLoggedIn as error:
            self.refused += 1
            refusal = error.message
            # Only an action may be for everyone
            if info.method != flight.FlightMethod.DO_ACTION:
                raise flight.FlightUnauthenticatedError(refusal) from None
        call = ServerCall(client, refusal, _cookie(_text(headers, "cookie")), token)
        call.tells_class = bool(_text(headers, ERROR_HEADER))
        self._open.add(call)
        call.at_end(lambda: self._open.discard(call))
        return call

    def stop_all(self) -> None:
        for call in [*self._open]:
            if call._stop is not None:
                call._stop.ask()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        swept = time.monotonic()
        while not self._ended.wait(CLIENT_LOOK_SECONDS):
            for call in [*self._open]:
                call.look(self._idle_seconds)
            if time.monotonic() - swept > SWEEP_SECONDS:
                self._sweep()
                swept = time.monotonic()


def _text(headers: Mapping[str, Sequence[str | bytes]], name: str) -> str:
    """Return a header by its name in small letters, as HTTP/2 sends it."""
    found = headers.get(name)
    if not found:
        return ""
    parts = [v.decode("latin-1") if isinstance(v, bytes) else str(v) for v in found]
    return ("; " if name == "cookie" else "").join(parts)


def _cookie(text: str) -> bytes:
    """Return the session's handle in the header with cookies, none where there is none."""
    for part in text.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            with suppress(ValueError):
                return bytes.fromhex(value.strip('"'))
    return b""

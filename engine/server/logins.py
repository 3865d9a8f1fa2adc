"""Who may call: tokens that the operator chose, and users with passwords, who get a token for some time.

Only digests of tokens and passwords are kept, and all of them are compared, in a time that does not tell which one was near.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import AccessDenied, FileError, InvalidQuery
from ..threads.fork_locks import new_lock
from .turns import ANYONE

OTHERS = stat.S_IRWXG | stat.S_IRWXO


class NotLoggedIn(AccessDenied):
    """A call without a token, or with one that is wrong or over."""


class Logins:
    """The tokens and passwords of a server; without any, everyone may call."""

    def __init__(
        self,
        tokens: Iterable[str] = (),
        passwords: Mapping[str, str] | None = None,
        lifetime: float = 86_400.0,
    ) -> None:
        """`lifetime`: the seconds that a token lasts which a password got."""
        self._tokens = {_digest(token): f"token {i}" for i, token in enumerate(tokens, 1)}
        self._passwords = {user: _digest(word) for user, word in (passwords or {}).items()}
        self._lifetime = lifetime
        self._given: dict[bytes, tuple[str, float]] = {}  # digest -> user, when it ends
        self._lock = new_lock()

    @property
    def are_asked_for(self) -> bool:
        return bool(self._tokens or self._passwords)

    def client(self, authorization: str) -> str:
        """Return who calls with this header; raises `NotLoggedIn`."""
        if not self.are_asked_for:
            return ANYONE
        kind, _, given = authorization.strip().partition(" ")
        if kind.lower() == "basic":
            return self._user(given.strip())
        if kind.lower() != "bearer" or not given.strip():
            raise NotLoggedIn(
                "This server asks for a token or a password: give the client one (in ADBC username and password, or "
                '"adbc.flight.sql.authorization_header" = "Bearer ...").'
            )
        return self._holder(given.strip())

    def new_token(self, user: str) -> str:
        """Return a token for a user whose password was right."""
        token = secrets.token_urlsafe(32)
        now = time.monotonic()
        with self._lock:
            self._given = {d: g for d, g in self._given.items() if g[1] > now}
            self._given[_digest(token)] = user, now + self._lifetime
        return token

    def _holder(self, token: str) -> str:
        own = _digest(token)
        with self._lock:
            given = dict(self._given)
        found = None
        for digest, name in self._tokens.items():
            if hmac.compare_digest(digest, own):
                found = name
        for digest, (user, ends) in given.items():
            if hmac.compare_digest(digest, own) and time.monotonic() < ends:
                found = user
        if found is None:
            raise NotLoggedIn("The token is wrong, or its time is over: log in again.")
        return found

    def _user(self, given: str) -> str:
        try:
            padded = given + "=" * (-len(given) % 4)  # Go's clients leave it away
            name, separator, word = base64.b64decode(padded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            name, separator, word = "", "", ""
        # A user that is not there takes as long as one that is
        expected = self._passwords.get(name, _digest(secrets.token_hex()))
        right = hmac.compare_digest(expected, _digest(word))
        if not (separator and right and name in self._passwords):
            raise NotLoggedIn("The user's name or password is wrong.")
        return f"user {name}"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def secret_lines(path: Path) -> list[str]:
    """Return the lines of a file of secrets, without empty ones; raises `FileError` where others may read it."""
    try:
        if path.stat().st_mode & OTHERS:
            raise FileError(
                f'"{path}" may be read by others than its owner: chmod 600 takes that away.'
            )
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f'"{path}" cannot be read: {error}.') from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def passwords_of(lines: Iterable[str]) -> dict[str, str]:
    """Return users and their passwords from lines name:password."""
    found = {}
    for number, line in enumerate(lines, 1):
        name, separator, word = line.partition(":")
        if not (name and separator and word):
            raise InvalidQuery(f"Line {number} of the users is not name:password.")
        found[name] = word
    return found

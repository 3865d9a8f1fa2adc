"""What `connect` makes of the address of a server and what it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ..catalog import Catalog
from ..errors import FileError, WrongArguments, nearest, shown
from ..settings import Settings
from .remote_runner import RemoteRunner
from .server_calls import Login

SCHEMES = ("grpc://", "grpc+tls://")
_KNOWN = ("token", "user", "password", "certificates")


def open_remote(
    address: str, login: object, others: tuple[object, ...]
) -> Callable[[Catalog, Settings], RemoteRunner]:
    """Return what makes the runner of a connection to a server; raises `WrongArguments` and `FileError`.

    `others` are arguments of `connect` that do not go with an address.
    """
    if any(others):
        raise WrongArguments(
            "The address of a server goes with login= and settings of this process, without read_only, cluster and workers."
        )
    scheme, _, place = address.partition("://")
    if f"{scheme.lower()}://" not in SCHEMES or not place.strip("/"):
        raise WrongArguments(
            f'A server\'s address is "grpc://host:port" or "grpc+tls://host:port", not {shown(address)}.'
        )
    location = f"{scheme.lower()}://{place.rstrip('/')}"
    return partial(RemoteRunner, address=location, login=_login(login))


def _login(login: object) -> Login:
    if not isinstance(login, Mapping | None):
        raise WrongArguments(f"login= is a dictionary, not {shown(login)}.")
    given = dict(login or {})
    for name, value in given.items():
        if name not in _KNOWN or not isinstance(value, str):
            hint = nearest(str(name), _KNOWN) or f" It has {', '.join(_KNOWN)}."
            raise WrongArguments(f"login= has no text {shown(name)}.{hint}")
    if ("user" in given) != ("password" in given) or {"token", "user"} <= given.keys():
        raise WrongArguments("login= has a token, or a user with a password.")
    path = given.pop("certificates", None)
    certificates = None
    if path is not None:
        try:
            certificates = Path(path).read_bytes()
        except OSError as error:
            raise FileError(f'The file "{path}" cannot be read: {error}.') from error
    return Login(**given, certificates=certificates)

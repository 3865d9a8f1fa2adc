"""A server of files for each test, and connections that know it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import fuseline
from tests.storage.remote.object_server import ObjectServer, serving

CLOUD = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")  # fmt: skip
Opened = Callable[..., fuseline.Connection]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    pytest.importorskip("obstore", reason="the extra remote is not installed")
    for name in CLOUD:
        monkeypatch.delenv(name, raising=False)
    with serving() as found:
        yield found


@pytest.fixture
def opened(server: ObjectServer) -> Iterator[Opened]:
    """Open connections with a secret of the server's address."""
    with ExitStack() as stack:

        def open_one(keys: str = "key_id 'AKEY', secret 'hush'", **settings: object) -> fuseline.Connection:  # fmt: skip
            settings = {"http_timeout": "5s", "http_retries": 1, **settings}
            made = stack.enter_context(fuseline.connect(device="cpu", **settings))
            made.execute(
                f"create secret (type s3, endpoint '{server.address}', url_style path, {keys})"
            )
            return made

        yield open_one


@pytest.fixture
def here(opened: Opened) -> fuseline.Connection:
    return opened()

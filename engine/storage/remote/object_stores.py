"""What answers for remote files: a bucket, container or web server, by obstore, with its errors in our words.

A request that fails on the way or at the server is tried again `retries` times; what an answer says beside its status is not passed on,
since services quote keys and signatures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ...errors import FileError, install
from ...records import dataclass
from ...stopping import wait
from ...threads.together import shared_threads
from ..file_identity import changed, shortened

if TYPE_CHECKING:
    from obstore import ObjectMeta


CONNECTIONS = 16  # requests that wait at a time
PART_BYTES = 8 << 20  # that one request of an upload has
MOST_RETRY_SECONDS = 120.0

Item = TypeVar("Item")
T = TypeVar("T")


class Found(NamedTuple):
    """What a store says of an object; without an ETag nothing tells that it is still the same."""

    key: str
    size: int
    e_tag: str | None
    modified_ns: int


class Patience(NamedTuple):
    """For how many seconds a request may take, and how often it is tried again."""

    seconds: float = 30.0
    retries: int = 3

    def options(self) -> dict[str, object]:
        """Return what obstore's stores call so."""
        backoff = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5)}
        waited = min(MOST_RETRY_SECONDS, self.seconds * (self.retries + 1))
        retry = {"max_retries": self.retries, "retry_timeout": timedelta(seconds=waited)}
        return {"retry_config": {**retry, "backoff": backoff}}


def requests() -> ThreadPoolExecutor:
    """The threads that wait for answers, so that who asked can be stopped meanwhile."""
    return shared_threads("fuseline-remote", CONNECTIONS)


def together(work: Callable[[Item], T], items: Sequence[Item]) -> list[T]:
    """Return what `work` makes of each, done at the same time; ends with what this thread works for."""
    futures = [requests().submit(work, item) for item in items]
    try:
        return [wait(future) for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def obstore() -> ModuleType:
    """Return the library; raises `FileError` where it is not installed."""
    try:
        import obstore as library
    except ModuleNotFoundError as error:
        raise FileError(f"Remote paths need obstore: {install('remote')}.") from error
    return library


@dataclass(frozen=True, eq=False)
class ObjectStore:
    """A bucket, container or server; `place` is its address, which tells two of the same name apart."""

    place: str
    root: str  # what comes before a key in messages
    patience: Patience
    store: object = field(repr=False)

    def look(self, key: str) -> Found:
        """Return what is there; raises `FileError`."""
        with self.errors(key):
            return _found(obstore().head(self.store, key))

    def read(self, key: str, begin: int, end: int, e_tag: str | None) -> memoryview:
        """Return the bytes from `begin` to before `end` of an object that still has the ETag; raises `FileError`."""
        options: dict[str, object] = {"range": (begin, end)}
        if e_tag is not None and not e_tag.startswith("W/"):  # a weak one never matches
            options["if_match"] = e_tag
        with self.errors(key):
            answer = obstore().get(self.store, key, options=options)
            if e_tag is not None and answer.meta["e_tag"] not in (None, e_tag):
                raise changed(self.root + key)
            data = memoryview(answer.bytes())
        if len(data) != end - begin:
            raise cut_off(self.root + key)
        return data

    def below(self, folder: str) -> Iterator[Found]:
        """Yield all objects below a folder, which is without a slash at its end."""
        with self.errors(folder):
            for some in obstore().list(self.store, folder or None):
                yield from map(_found, some)

    def put(self, key: str, file: Path) -> None:
        """Store a file, in parts where it is large; the object appears whole, or not at all."""
        with self.errors(key, "written"):
            obstore().put(self.store, key, file, chunk_size=PART_BYTES)

    def delete(self, keys: list[str]) -> None:
        with self.errors(keys[0] if keys else "", "removed"):
            obstore().delete(self.store, keys)

    @contextmanager
    def errors(self, key: str, what: str = "read") -> Iterator[None]:
        """Raise `FileError` for what obstore raises."""
        try:
            yield
        except FileError:
            raise
        except Exception as error:  # its classes share none with our reasons
            raise failure(error, self.root + key, what, self.patience) from None


def _found(meta: ObjectMeta) -> Found:
    modified = round(meta["last_modified"].timestamp() * 1e6) * 1000
    return Found(meta["path"], meta["size"], meta["e_tag"], max(0, modified))


def missing(path: str) -> FileError:
    return FileError(f'There is no file "{shortened(path)}": check the path.')


def cut_off(path: str) -> FileError:
    return FileError(f'The answer for "{shortened(path)}" ended too early: run the query again.')


def forbidden(path: str, what: str, status: str) -> FileError:
    return FileError(
        f'"{shortened(path)}" may not be {what}, the server answers {status}: give credentials with CREATE SECRET, or in the environment.'
    )


def failure(error: Exception, path: str, what: str, patience: Patience) -> FileError:
    """Return in our words why a request failed, without what the server said, which may hold keys."""
    kind, text = type(error).__name__, str(error)
    status = re.search(r"status code: (\d{3})|\b(4\d\d|5\d\d) [A-Z][a-z]+", text)
    code = re.search(r"<Code>(\w{1,60})</Code>", text)
    said = (status[1] or status[2]) if status else ""
    named = f"{said} ({code[1]})" if code else said
    place, tries = shortened(path), patience.retries + 1
    if kind == "FileNotFoundError":
        return missing(path)
    if kind in ("PermissionDeniedError", "UnauthenticatedError"):
        return forbidden(path, what, named or ("401" if kind.startswith("Un") else "403"))
    if kind == "PreconditionError":
        return changed(path)
    if kind == "NotSupportedError" and "ange" in text:
        return FileError(
            f'The server of "{place}" gives no parts of files: copy the file to a local disk.'
        )
    if re.search(r"TimedOut|timed out|Timeout", text):
        return FileError(
            f'"{place}" cannot be {what}: no answer within {patience.seconds:g} s, tried {tries} times. '
            "Raise http_timeout, or try again."
        )
    if re.search(r"IncompleteBody|UnexpectedEof|IncompleteMessage", text):
        return cut_off(path)
    if re.search(r"Connect|dns error|ConnectionRefused", text):
        return FileError(
            f'"{place}" cannot be {what}: its server cannot be reached. Check the address and the network.'
        )
    reason = f"the server answers {named}" if named else "the request failed"
    return FileError(f'"{place}" cannot be {what}: {reason}, tried {tries} times.')

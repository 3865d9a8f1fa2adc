"""Which remote files a connection may read, with which credentials, and finding them: one by one, by globs and below folders.

A web server under a list of allowed paths: redirects are judged before they are followed, which obstore's client does by itself.
"""

from __future__ import annotations

import glob
import http.client
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urljoin
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from ...errors import FileError, Unsupported
from ...plan.files.remote_secret import TYPE_OF, RemoteSecret
from ...records import dataclass
from ..file_identity import changed, denied, shortened
from .credentials import open_store
from .object_stores import Found, Patience, cut_off, forbidden, missing, together
from .remote_files import RemoteFile, Store
from .urls import Url, is_remote, url_of

SUFFIX = ".parquet"


@dataclass(frozen=True)
class RemoteAccess:
    """`allowed` are beginnings of URLs, None for all; two of equal rules and secrets are equal."""

    allowed: tuple[Url, ...] | None = None
    patience: Patience = field(default_factory=Patience)
    secrets: tuple[RemoteSecret, ...] = field(default=(), repr=False)
    refusal: str = ""  # why there are no remote files at all
    stores: dict[Hashable, Store] = field(default_factory=dict, compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    @classmethod
    def of(cls, allowed: Iterable[str] | None, patience: Patience) -> RemoteAccess:
        """`allowed` are beginnings of paths, of which those that are remote count; None for everything."""
        if allowed is None:
            return cls(None, patience)
        return cls(tuple(url_of(path) for path in allowed if is_remote(path)), patience)

    def __reduce__(self) -> tuple[type[RemoteAccess], tuple[object, ...]]:
        """Secrets stay here."""
        return RemoteAccess, (self.allowed, self.patience)

    def judged(self, path: str) -> Url:
        """Return what a path means; raises `AccessDenied` for one that may not be opened."""
        url = url_of(path)
        if self.allowed is not None and not any(map(url.within, self.allowed)):
            raise denied(url.text)
        if self.refusal:
            raise Unsupported(self.refusal)
        return url

    def secret_for(self, path: str) -> RemoteSecret | None:
        """Return the secret of the longest scope that a path begins with."""
        kind = TYPE_OF[url_of(path).scheme]
        fitting = [(s.reach(path), s) for s in self.secrets if s.type == kind]
        reach, found = max(fitting, key=lambda pair: pair[0], default=(-1, None))
        return found if reach >= 0 else None

    def store_of(self, path: str) -> Store:
        """Return what answers for a path, the same one for all paths of a bucket or server and a secret."""
        url, secret = self.judged(path), self.secret_for(path)
        key = url.scheme, url.host, url.query, None if secret is None else secret.name
        with self._lock:
            if key not in self.stores:
                if url.is_web and self.allowed is not None:
                    self.stores[key] = PlainHttp.of(url, secret, self.patience, self.judged)
                else:
                    self.stores[key] = open_store(url, secret, self.patience)
            return self.stores[key]

    def find(self, patterns: Sequence[str]) -> list[list[RemoteFile]]:
        """Return the files of each path, glob or folder; raises `FileError` where there is none, `AccessDenied`."""
        return together(self._found, patterns)

    def paths_matching(self, pattern: str) -> list[str]:
        """Return the paths that a glob stands for, none where there is none."""
        try:
            (found,) = self.find([pattern])
        except FileError as error:
            if "no file" in error.message:
                return []
            raise
        return [file.path for file in found]

    def are_unchanged(self, files: Sequence[RemoteFile]) -> bool:
        """Whether all files are as they were; asks for each."""
        try:
            return together(lambda file: file.now(), files) == list(files)
        except FileError:
            return False

    def _found(self, pattern: str) -> list[RemoteFile]:
        url, store = self.judged(pattern), self.store_of(pattern)
        if glob.has_magic(url.key):
            if url.is_web:
                raise FileError(
                    f'A web server lists no files: name those of "{url.text}" one by one.'
                )
            return self._matching(url, store)
        if url.is_web or (url.key and not url.key.endswith("/")):
            try:
                return [RemoteFile.at(store, store.look(url.key))]
            except FileError as error:
                if url.is_web or "no file" not in error.message or url.key.endswith(SUFFIX):
                    raise
        folder = url.key.rstrip("/")
        below = [f for f in store.below(folder) if f.key.endswith(SUFFIX)]
        if not below:
            raise FileError(
                f'There is no file "{url.text}", and no *{SUFFIX} file below it: check the path.'
            )
        return self._permitted([RemoteFile.at(store, f) for f in below])

    def _matching(self, url: Url, store: Store) -> list[RemoteFile]:
        fixed = re.match(r"(?:[^*?[/]*/)*", url.key)
        assert fixed is not None
        folder = fixed[0].rstrip("/")
        if folder or self.allowed is not None:
            self.judged(f"{url.scheme}://{url.host}/{folder}")
        pattern = re.compile(pattern_of(url.key), re.DOTALL)
        found = [RemoteFile.at(store, f) for f in store.below(folder) if pattern.fullmatch(f.key)]
        if not found:
            raise FileError(f'There is no file that matches "{url.text}": check the path.')
        return self._permitted(found)

    def _permitted(self, files: list[RemoteFile]) -> list[RemoteFile]:
        """Return files in the order of their names, those of a folder before those of the folders in it."""
        for file in files:
            self.judged(file.path)
        return sorted(files, key=lambda file: files_before_folders(file.path))


def files_before_folders(path: str) -> list[tuple[bool, str]]:
    *folders, name = path.split("/")
    return [*((True, folder) for folder in folders), (False, name)]


def pattern_of(text: str) -> str:
    """Return a regular expression of a glob: `*` stays in a folder, `**` is any number of folders."""
    parts = []
    for part in text.split("/"):
        if part == "**":
            parts.append("(?:[^/]+/)*")
            continue
        signs = re.split(r"(\*+|\?|\[[!^]?\]?[^\]]*\])", part)
        parts.append("".join(map(_sign, signs)) + "/")
    whole = "".join(parts)
    return whole[: -len("/")] if whole.endswith("/") else f"{whole}[^/]+"


def _sign(text: str) -> str:
    if text.startswith("*"):
        return "[^/]*"
    if text == "?":
        return "[^/]"
    if len(text) > 2 and text.startswith("[") and text.endswith("]"):
        inside = text[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
    return re.escape(text)


MOST_REDIRECTS = 10
_MOVED = (301, 302, 303, 307, 308)
_AGAIN = (429, 500, 502, 503, 504)


class _Answer(NamedTuple):
    status: int
    headers: Message
    body: bytes


class _Staying(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follow nothing: the answer itself tells where to."""


@dataclass(frozen=True, eq=False)
class PlainHttp:
    """`judged` raises `AccessDenied` for a URL that may not be opened."""

    place: str = field(repr=False)
    root: str
    query: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    patience: Patience
    judged: Callable[[str], Url] = field(repr=False)

    @classmethod
    def of(
        cls, url: Url, secret: RemoteSecret | None, patience: Patience, judged: Callable[[str], Url]
    ) -> PlainHttp:
        headers: dict[str, str] = {}
        if secret is not None:
            headers |= dict(secret.options.get("extra_http_headers") or {})  # type: ignore[call-overload]
            if secret.get("bearer_token"):
                headers["Authorization"] = f"Bearer {secret.get('bearer_token')}"
            if secret.get("http_proxy"):
                raise Unsupported(
                    "HTTP_PROXY goes with no allowed_paths: leave it out of the secret."
                )
        root = f"{url.scheme}://{url.host}/"
        query = f"?{url.query}" if url.query else ""
        return cls(root + query, root, query, headers, patience, judged)

    def look(self, key: str) -> Found:
        answer = self._asked("HEAD", key, {})
        if answer.status in (403, 405):  # a signature may be for reading alone
            answer = self._asked("GET", key, {"Range": "bytes=0-0"})
        self._check(answer, key)
        said = answer.headers.get("Content-Range", "").rpartition("/")[2]
        size = said or answer.headers.get("Content-Length", "")
        if not size.isdecimal():
            raise FileError(
                f'The server of "{self.root}{key}" does not say how large the file is: copy it to a local disk.'
            )
        moment = answer.headers.get("Last-Modified")
        modified = int(parsedate_to_datetime(moment).timestamp()) if moment else 0
        return Found(key, int(size), answer.headers.get("ETag"), modified * 1_000_000_000)

    def read(self, key: str, begin: int, end: int, e_tag: str | None) -> memoryview:
        headers = {"Range": f"bytes={begin}-{end - 1}"}
        if e_tag is not None and not e_tag.startswith("W/"):
            headers["If-Match"] = e_tag
        answer = self._asked("GET", key, headers)
        self._check(answer, key)
        if answer.status != 206:
            raise FileError(
                f'The server of "{self.root}{key}" gives no parts of files: copy the file to a local disk.'
            )
        if e_tag is not None and answer.headers.get("ETag") not in (None, e_tag):
            raise changed(self.root + key)
        if len(answer.body) != end - begin:
            raise cut_off(self.root + key)
        return memoryview(answer.body)

    def below(self, folder: str) -> Iterator[Found]:
        raise FileError(f'A web server lists no files: name those of "{self.root}{folder}".')

    def _check(self, answer: _Answer, key: str) -> None:
        path = self.root + key
        if answer.status in (404, 410):
            raise missing(path)
        if answer.status in (401, 403):
            raise forbidden(path, "read", str(answer.status))
        if answer.status == 412:
            raise changed(path)
        if answer.status not in (200, 206):
            raise FileError(
                f'"{shortened(path)}" cannot be read: the server answers {answer.status}.'
            )

    def _asked(self, method: str, key: str, headers: dict[str, str]) -> _Answer:
        """Return the answer of a request, after redirects to places that may be opened."""
        target = f"{self.root}{quote(key)}{self.query}"
        own = {**self.headers, **headers}
        for _ in range(MOST_REDIRECTS):
            answer = self._tried(method, target, own, key)
            if answer.status not in _MOVED:
                return answer
            target = urljoin(target, answer.headers.get("Location", ""))
            if not self.judged(target).is_web:
                raise FileError(f'"{self.root}{key}" leads to another kind of place.')
            if not target.startswith(self.root):
                own = headers  # what is for this server alone
        raise FileError(f'"{self.root}{key}" leads from one place to the next without end.')

    def _tried(self, method: str, target: str, headers: dict[str, str], key: str) -> _Answer:
        path, tries = self.root + key, self.patience.retries + 1
        for number in range(tries):
            last = number == tries - 1
            try:
                answer = self._once(method, target, headers)
            except http.client.IncompleteRead:
                if last:
                    raise cut_off(path) from None
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise _unreachable(error, path, self.patience) from None
            else:
                if last or answer.status not in _AGAIN:
                    return answer
            time.sleep(0.1 * 2**number)
        raise AssertionError("the last try returns or raises")

    def _once(self, method: str, target: str, headers: dict[str, str]) -> _Answer:
        opener = build_opener(_Staying, ProxyHandler())
        request = Request(target, headers=headers, method=method)
        try:
            with opener.open(request, timeout=self.patience.seconds) as answer:
                body = answer.read() if answer.status == 206 else b""  # not a whole file
                return _Answer(answer.status, answer.headers, body)
        except HTTPError as error:
            with error:
                return _Answer(error.code, error.headers, b"")


def _unreachable(error: Exception, path: str, patience: Patience) -> FileError:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return FileError(
            f'"{shortened(path)}" cannot be read: no answer within {patience.seconds:g} s, '
            f"tried {patience.retries + 1} times. Raise http_timeout, or try again."
        )
    return FileError(
        f'"{shortened(path)}" cannot be read: its server cannot be reached. Check the address and the network.'
    )

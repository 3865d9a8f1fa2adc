"""Files of a web server under a list of allowed paths: redirects are judged before they are followed, which obstore's client does by itself."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator
from dataclasses import field
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urljoin
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from ...errors import FileError, Unsupported
from ...plan.files.remote_secret import RemoteSecret
from ...records import dataclass
from ..file_identity import changed, shortened
from .object_stores import Found, Patience, cut_off, forbidden, missing
from .urls import Url

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

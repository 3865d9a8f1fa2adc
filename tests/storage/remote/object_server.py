"""A web server in the test's process that answers as S3 does, as far as it is asked, counts what it sends, and fails where it is told to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 3  # objects of one answer to a listing


class ObjectServer(ThreadingHTTPServer):
    """`objects` are the files by `bucket/key`; `fault` may answer a request itself, and says so by True."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.sent = 0  # bytes of files
        self.asked: list[str] = []
        self.tags = True
        self.key: str | None = None  # that requests have to be signed with
        self.fault: Callable[[_Handler], bool] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def restart(self) -> None:
        self.sent, self.asked = 0, []

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is none."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectServer
    quiet: ClassVar[tuple[str, ...]] = ()

    def log_message(self, *_: object) -> None:
        pass

    def _do(self) -> None:
        parts = urlsplit(self.path)
        self.name = unquote(parts.path).lstrip("/")
        self.query = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        self.server.asked.append(f"{self.command} {self.path}")
        if self.server.fault is not None and self.server.fault(self):
            return
        signed = self.headers.get("Authorization", "")
        if self.server.key is not None and f"Credential={self.server.key}/" not in signed:
            message = (
                f"<Error><Code>AccessDenied</Code><AWSAccessKeyId>{signed}</AWSAccessKeyId></Error>"
            )
            self.answer(403, message.encode())
            return
        getattr(self, f"_{self.command.lower()}")()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _do  # noqa: N815

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.get("length", str(len(body))))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self) -> None:
        self._get()

    def _get(self) -> None:
        if "list-type" in self.query:
            self._list()
            return
        data = self.server.objects.get(self.name)
        if data is None:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        tag = f'"{tag_of(data)}"'
        if self.headers.get("If-Match", tag) != tag:
            self.answer(412)
            return
        said = {"ETag": tag} if self.server.tags else {}
        wanted = self.headers.get("Range")
        if self.command == "HEAD":
            self.send_response(200)
            for name, value in {**said, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            return
        if wanted is None:
            self.server.sent += len(data)
            self.answer(200, data, **said)
            return
        begin, end = (int(x) for x in wanted.removeprefix("bytes=").split("-"))
        part = data[begin : end + 1]
        self.server.sent += len(part)
        place = f"bytes {begin}-{begin + len(part) - 1}/{len(data)}"
        self.answer(206, part, Content_Range=place, **said)

    def _list(self) -> None:
        bucket, prefix = self.name.rstrip("/"), self.query.get("prefix", "")
        begin = f"{bucket}/{prefix}"
        names = sorted(n for n in self.server.objects if n.startswith(begin))
        start = int(self.query.get("continuation-token", 0))
        more = start + PAGE < len(names)
        contents = "".join(map(self._entry, names[start : start + PAGE]))
        token = f"<NextContinuationToken>{start + PAGE}</NextContinuationToken>" if more else ""
        text = f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{contents}{token}</ListBucketResult>"
        self.answer(200, text.encode())

    def _entry(self, name: str) -> str:
        data = self.server.objects[name]
        tag = tag_of(data)
        key = escape(name.partition("/")[2])
        return (
            f"<Contents><Key>{key}</Key><LastModified>1970-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>&quot;{tag}&quot;</ETag><Size>{len(data)}</Size></Contents>"
        )

    def _put(self) -> None:
        if "uploadId" in self.query:
            self.server.uploads[self.query["uploadId"]][int(self.query["partNumber"])] = self.body
        else:
            self.server.objects[self.name] = self.body
        self.answer(200, ETag=f'"{tag_of(self.body)}"')

    def _post(self) -> None:
        if "uploads" in self.query:
            number = str(len(self.server.uploads) + 1)
            self.server.uploads[number] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
        elif "uploadId" in self.query:
            parts = self.server.uploads.pop(self.query["uploadId"])
            self.server.objects[self.name] = b"".join(parts[n] for n in sorted(parts))
            text = "<CompleteMultipartUploadResult><ETag>&quot;x&quot;</ETag></CompleteMultipartUploadResult>"
        else:
            bucket = self.name.rstrip("/")
            keys = [part.partition("</Key>")[0] for part in self.body.decode().split("<Key>")[1:]]
            for key in keys:
                self.server.objects.pop(f"{bucket}/{key}", None)
            done = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            text = f"<DeleteResult>{done}</DeleteResult>"
        self.answer(200, text.encode())

    def _delete(self) -> None:
        if "uploadId" in self.query:
            self.server.uploads.pop(self.query["uploadId"], None)
        self.server.objects.pop(self.name, None)
        self.answer(204)


def tag_of(data: bytes) -> str:
    return f"{hash(data):x}-{len(data)}"


@contextmanager
def serving() -> Iterator[ObjectServer]:
    server = ObjectServer()
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()

"""Remote paths: `s3://bucket/key`, `gs://`, `az://container/key`, `https://host/path`."""

from __future__ import annotations

import re
from dataclasses import field
from functools import lru_cache
from urllib.parse import unquote

from ...errors import FileError, Unsupported, printable, shown
from ...records import dataclass

SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "r2": "r2",
    "az": "az",
    "azure": "az",
    "http": "http",
    "https": "https",
}
WEB = ("http", "https")  # which list no files, and take none
_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+)://(.*)", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Url:
    """A remote path: `key` without the slash before it, decoded; the query, which may hold a signature, is never shown."""

    scheme: str
    host: str  # or bucket
    key: str
    query: str = field(default="", repr=False)

    @property
    def text(self) -> str:
        return f"{self.scheme}://{self.host}/{self.key}"

    @property
    def is_web(self) -> bool:
        return self.scheme in WEB

    def within(self, prefix: Url) -> bool:
        """Whether it is the prefix or lies below it."""
        if (self.scheme, self.host) != (prefix.scheme, prefix.host):
            return False
        folder = prefix.key.rstrip("/")
        return not folder or self.key == folder or self.key.startswith(folder + "/")


def is_remote(path: str) -> bool:
    """Whether a path names a scheme other than file."""
    found = _URL.match(path)
    return found is not None and found[1].lower() != "file"


@lru_cache(maxsize=4096)
def url_of(path: str) -> Url:
    """Return what a remote path means; raises `Unsupported` for other schemes, `FileError` for what no store can have."""
    found = _URL.fullmatch(path)
    assert found is not None, "asked before"
    scheme = SCHEMES.get(found[1].lower())
    if scheme is None:
        raise Unsupported(
            f'Paths of "{found[1]}://" are not read: there are {", ".join(f"{s}://" for s in sorted(set(SCHEMES.values())))}.'
        )
    authority, _, rest = found[2].partition("/")
    query = ""
    if scheme in WEB:
        rest = rest.partition("#")[0]
        rest, _, query = rest.partition("?")
        rest = unquote(rest, errors="surrogateescape")
    pattern = _HOST if scheme in WEB else _BUCKET
    if not pattern.fullmatch(authority):
        raise FileError(_no_host(scheme, authority))
    if scheme in WEB:
        authority = authority.lower().removesuffix(_PORTS[scheme])
    _check_key(scheme, rest)
    return Url(scheme, authority, rest, query)


def _no_host(scheme: str, authority: str) -> str:
    if "@" in authority:
        return (
            f"A path of {scheme}:// has no user and password in it: give them with CREATE SECRET."
        )
    what = "host" if scheme in WEB else "bucket"
    return (
        f"A path of {scheme}:// begins with the name of a {what}, and {shown(authority)} is none."
    )


def _check_key(scheme: str, key: str) -> None:
    """Refuse what servers and libraries read in different ways, so that a prefix that is allowed means the same to all."""
    parts = key.split("/")
    if any(part in (".", "..") for part in parts):
        raise FileError(
            f'A path of {scheme}:// has no "." or ".." in it, which stores do not follow: write the path out.'
        )
    if "" in parts[:-1]:
        raise FileError(
            f"A path of {scheme}:// has no two slashes after one another: check the path."
        )
    if printable(key) != key or any(ord(c) < 32 or c == "\x7f" for c in key):
        raise FileError(
            f"A path of {scheme}:// is text without control characters: check the path."
        )

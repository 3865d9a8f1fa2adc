"""Which remote files a connection may read, with which credentials, and finding them: one by one, by globs and below folders."""

from __future__ import annotations

import glob
import re
import threading
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field

from ...errors import FileError, Unsupported
from ...plan.files.remote_secret import TYPE_OF, RemoteSecret
from ...records import dataclass
from ..file_identity import denied
from .credentials import open_store
from .object_stores import Patience, together
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
                    from .plain_http import PlainHttp  # Python's own HTTP, for no one else

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

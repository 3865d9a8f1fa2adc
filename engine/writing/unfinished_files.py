"""Names of files until all of them is written, which tell the process that writes: what a killed one left is removed by the next that writes there."""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from ..storage.spill_folders import Owner

MOST_BYTES = 255  # of a name, in nearly all file systems
_MARK = ".writing-"
_NAME = re.compile(
    rf".+{re.escape(_MARK)}(?P<host>[0-9a-f]{{8}})(?P<boot>[0-9a-f]{{8}})(?P<namespace>[0-9a-f]{{8}})"
    r"-(?P<pid>\d{1,9})-(?P<started>\d{1,18})-[0-9a-f]{8}",
    re.DOTALL,
)


def unfinished_name(name: str) -> str:
    """Return what a file is called that gets this name when it is whole."""
    here = _here(os.getpid())
    origin = f"{_short(here.host)}{_short(here.boot)}{_short(here.namespace)}"
    ending = f"{_MARK}{origin}-{here.pid}-{here.started}-{secrets.token_hex(4)}"
    begin = os.fsencode(name)[: MOST_BYTES - len(ending)].decode(errors="ignore")
    return begin + ending


def remove_unfinished(folder: int) -> int:
    """Remove from an open folder what processes left that have ended for certain; returns how many files.

    They are files of this user, alone under their names, of this boot and its processes or of an earlier boot of this machine.
    """
    removed = 0
    with suppress(OSError):
        for name in os.listdir(folder):
            found = _NAME.fullmatch(name) if _MARK in name else None
            if found is None or not _has_ended(found):
                continue
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                mine = status.st_uid == os.geteuid() and status.st_nlink == 1
                if mine and stat.S_ISREG(status.st_mode):
                    os.unlink(name, dir_fd=folder)
                    removed += 1
    return removed


def remove_unfinished_below(root: Path) -> None:
    """Remove what such processes left in a folder and those below, and the folders that are empty then."""
    for place, _, files, folder in os.fwalk(root, topdown=False):
        emptied = any(_MARK in name for name in files) and remove_unfinished(folder) == len(files)
        below = Path(place)
        while emptied and below != root:
            try:
                below.rmdir()
            except OSError:  # it has other files
                break
            below = below.parent


def _has_ended(found: re.Match[str]) -> bool:
    here = _here(os.getpid())
    if found["host"] != _short(here.host):
        return False
    if found["boot"] != _short(here.boot):
        return True
    owner = Owner(here.host, here.boot, here.namespace, int(found["pid"]), found["started"])
    return found["namespace"] == _short(here.namespace) and not owner.runs


@lru_cache(1)
def _here(_pid: int) -> Owner:
    """Return this process, which is another one after a fork."""
    return Owner.current()


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]

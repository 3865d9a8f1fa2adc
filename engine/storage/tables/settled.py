"""Whether a file may still be in the middle of a write, so that nothing read from it is kept.

A write gives a file its new times once, as it begins, and goes on changing bytes under them: one `pwrite` of 150 MB does so for a
tenth of a second or for many, by what else the machine does.  What a query reads meanwhile is a mix of old and new, and was kept under
the identity of the finished file, for good.  So a file is settled when its last change is longer ago than one write of its size may
take, and footers, columns and encodings of others serve a single query - as git looks again into files that changed in the second of
its own look.  The time is that of the change, not of the write, which programs set back; where the clock says that it lies ahead
- one was set back, or is a server's - the time counts since this process first saw the file so.

A file of 10 MB is kept from its 3rd second on, one of 2 GB and more, which is written in several calls, from its 23rd.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from .access import FileIdentity

SECONDS = 2.0  # for small files; time stamps are as coarse as 10 ms, on some file systems 2 s
WRITE_RATE = 100e6  # bytes a second, of a disk that holds back who writes faster
LARGEST_WRITE = 0x7FFFF000  # bytes that Linux takes in one call
KEPT = 4096  # files that were seen

_seen: OrderedDict[FileIdentity, float] = OrderedDict()
_lock = threading.Lock()


def is_settled(file: FileIdentity) -> bool:
    """Whether no write that gave the file its times can still go on; asked before it is read."""
    needed = SECONDS + min(file.size, LARGEST_WRITE) / WRITE_RATE
    age = time.time() - max(file.mtime_ns, file.ctime_ns) / 1e9
    return age >= needed or time.monotonic() - _first_seen(file) >= needed


def _first_seen(file: FileIdentity) -> float:
    with _lock:
        found = _seen.setdefault(file, time.monotonic())
        _seen.move_to_end(file)
        while len(_seen) > KEPT:
            _seen.popitem(last=False)
        return found

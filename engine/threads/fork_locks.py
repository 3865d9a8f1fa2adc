"""Locks that are free in a process made by `fork`, whoever held them in its parent: that thread is not there to let go of them."""

from __future__ import annotations

import gc
import os
import sys
import threading
from functools import cached_property
from typing import TypeVar
from weakref import WeakSet

_made: WeakSet[object] = WeakSet()

L = TypeVar("L")


def new_lock() -> threading.Lock:
    """Return a `threading.Lock` that a fork frees; for what lives longer than a query, since each is kept track of."""
    return _kept(threading.Lock())


def new_reentrant_lock() -> threading.RLock:
    """Return a `threading.RLock` that a fork frees."""
    return _kept(threading.RLock())


def _kept(lock: L) -> L:
    _made.add(lock)
    return lock


def _free_all() -> None:
    """Renew the locks, and before Python 3.12 those of cached properties, each of which has one for all objects of its class."""
    locks = list(_made)
    if sys.version_info < (3, 12):
        locks += [vars(each)["lock"] for each in gc.get_objects() if type(each) is cached_property]
    for lock in locks:
        getattr(lock, "_at_fork_reinit")()  # noqa: B009 - no type names it: what threading's own conditions and pools do


os.register_at_fork(after_in_child=_free_all)

"""Deeply nested queries: they are parsed, planned and run in a thread with a stack that is large enough.

Trees are walked by recursion, and Python's limit of 1,000 calls, or the stack of a caller's thread, ends that at some 40 parentheses.
A text that nests further is known before it is parsed (`nesting`), and its work done `deeply`; so is that of a plan which turns out to be
as deep, a long chain of dataframe calls for instance.  Beyond `MOST_NESTING` parentheses a text is refused, as DuckDB does.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from .errors import TOO_DEEP, InvalidQuery
from .stopping import carried
from .threads.fork_locks import new_lock

T = TypeVar("T")

SHALLOW_NESTING = 12  # which a thread of 512 KiB and Python's usual limit hold in every phase
MOST_NESTING = 1000
MOST_IN_A_ROW = 20_000  # operators, of which AND and OR take as many
STACK_BYTES = 512 << 20  # of address space; what is not touched takes no memory
CALLS = 150_000

_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$"
    r"|(?P<entry>\bas\s+(?:(?:not\s+)?materialized\s*)?\()"
    r"|(?P<open>[(\[{]|\bcase\b)|(?P<close>[)\]}]|\bend\b)|(?P<cut>[,;])"
    r"|(?P<operator>\b(?:not|and|or)\b|[-+*/%|&^~<>=!:]+)",
    re.IGNORECASE | re.DOTALL,
)
_in_deep_thread = threading.local()
_raised = new_lock()
_users = 0


def nesting(text: str) -> int:
    """Return how deep a text may nest: parentheses and CASE that are open with the operators in a row inside of them, or WITH entries,
    each of which may name the one before.
    """
    rows, deepest, below, entries = [0], 0, 0, 0
    for found in _TOKEN.finditer(text):
        match found.lastgroup:
            case "open" | "entry" as kind:
                entries += kind == "entry"
                below += rows[-1] + 1
                rows.append(0)
            case "close" if len(rows) > 1:
                rows.pop()
                below -= rows[-1] + 1
            case "cut":
                rows[-1] = 0
            case "operator":
                rows[-1] += 1
            case _:
                continue
        deepest = max(deepest, below + rows[-1], entries)
        if deepest > MOST_IN_A_ROW:
            break
    return deepest


def deeply_for(text: str, work: Callable[[], T]) -> T:
    """Do the work of a text, where its nesting asks for it with a large stack; raises `InvalidQuery` beyond `MOST_NESTING`."""
    depth = nesting(text)
    if depth <= SHALLOW_NESTING:
        return work()
    if depth > MOST_IN_A_ROW or _open_at_once(text) > MOST_NESTING:
        raise InvalidQuery(TOO_DEEP)
    return deeply(work)


def _open_at_once(text: str) -> int:
    """Return how many parentheses and CASE are open at once, `MOST_NESTING` and one more where it is beyond that."""
    depth = deepest = 0
    for found in _TOKEN.finditer(text):
        if found.lastgroup in ("open", "entry"):
            depth += 1
            deepest = max(deepest, depth)
            if deepest > MOST_NESTING:
                break
        elif found.lastgroup == "close":
            depth -= 1
    return deepest


def retried_deeply(work: Callable[[], T]) -> T:
    """Do work that changes nothing before it ends, and again with a large stack where it nests too deeply for this one."""
    try:
        return work()
    except RecursionError:
        if is_deep():
            raise
    return deeply(work)


def is_deep() -> bool:
    """Whether this thread has a large stack."""
    return getattr(_in_deep_thread, "here", False)


def deeply(work: Callable[[], T]) -> T:
    """Do work in a thread with a large stack, which ends with what this thread works for; raises `InvalidQuery` beyond that."""
    if is_deep():
        return work()
    result: Future[T] = Future()
    stoppable = carried(work)

    def run() -> None:
        _in_deep_thread.here = True
        try:
            result.set_result(stoppable())
        except BaseException as error:  # handed on, whatever it is
            result.set_exception(error)

    with _many_calls():
        thread = _started(run)
        thread.join()
    try:
        return result.result()
    except RecursionError:
        raise InvalidQuery(TOO_DEEP) from None


def _started(run: Callable[[], None]) -> threading.Thread:
    with _raised:  # the size is the process's, and others may set it
        before = threading.stack_size(STACK_BYTES)
        try:
            thread = threading.Thread(target=run, name="fuseline-deep", daemon=True)
            thread.start()
        finally:
            threading.stack_size(before)
    return thread


@contextmanager
def _many_calls() -> Iterator[None]:
    """Raise the process's limit of nested calls as long as someone needs it."""
    global _users, _usual  # noqa: PLW0603 - as the limit itself
    with _raised:
        if not _users:
            _usual = sys.getrecursionlimit()
            sys.setrecursionlimit(max(CALLS, _usual))
        _users += 1
    try:
        yield
    finally:
        with _raised:
            _users -= 1
            if not _users:
                sys.setrecursionlimit(_usual)


_usual = sys.getrecursionlimit()

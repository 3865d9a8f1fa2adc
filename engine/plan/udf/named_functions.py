"""The Python functions that names stand for while a frame's expressions are bound: those of its connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from .python_function import PythonFunction

_NONE: Mapping[str, PythonFunction] = {}
_named: ContextVar[Mapping[str, PythonFunction]] = ContextVar("functions", default=_NONE)


@contextmanager
def with_functions(functions: Mapping[str, PythonFunction]) -> Iterator[None]:
    """Have names stand for these functions inside, by names in lower case."""
    token = _named.set(functions)
    try:
        yield
    finally:
        _named.reset(token)


def named_function(name: str) -> PythonFunction | None:
    """Return the function of a name, in any case."""
    return _named.get().get(name.lower())

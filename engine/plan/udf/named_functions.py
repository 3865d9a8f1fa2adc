"""The Python functions that names stand for while a frame's expressions are bound: those of its connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from .python_aggregate import PythonAggregate
from .python_function import PythonFunction

Named = PythonFunction | PythonAggregate

_NONE: Mapping[str, Named] = {}
_named: ContextVar[Mapping[str, Named]] = ContextVar("functions", default=_NONE)


@contextmanager
def with_functions(functions: Mapping[str, Named]) -> Iterator[None]:
    """Have names stand for these functions inside, by names in lower case."""
    token = _named.set(functions)
    try:
        yield
    finally:
        _named.reset(token)


def named_function(name: str) -> Named | None:
    """Return the function of a name, in any case."""
    return _named.get().get(name.lower())

"""What a connection says of how far its queries are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import WrongArguments, shown
from ..fence import fenced
from .run_progress import QueryProgress


@fenced
class TellsProgress:
    """The methods of a connection that tell how far the query is which it runs."""

    _runner: Any

    def query_progress(self) -> float:
        """Return how far the query is that another thread runs on this connection, 0 to 100 percent; -1 when none runs."""
        progress = self._runner.progress()
        return -1.0 if progress is None else progress.percentage

    def on_progress(self, listener: Callable[[QueryProgress], object] | None) -> None:
        """Have a function told at each step of a query how far it is, until it gets None instead.

        It is called by the threads that work, one call at a time, so it should be quick; what it raises ends the query.
        """
        if listener is not None and not callable(listener):
            raise WrongArguments(f"on_progress() takes a function or None, not {shown(listener)}.")
        self._runner.listener = listener

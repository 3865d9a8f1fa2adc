"""An `InternalError` fails the test in which it comes up, also one that takes any `FuselineError` for an answer."""

from __future__ import annotations

from typing import Any

from fuseline import fence
from fuseline.errors import InternalError

_made = fence.internal_error
_meant = False


class Unforeseen(AssertionError):
    """What an InternalError would have been; its cause is the fault."""


def install() -> None:
    """Raise `Unforeseen` wherever the fence makes an InternalError, but for tests that mean to see one."""
    fence.internal_error = _raised


def mean(item: Any) -> None:
    """Look whether a test is marked `faults`."""
    global _meant  # noqa: PLW0603 - one test runs at a time
    _meant = item.get_closest_marker("faults") is not None


def _raised(error: BaseException) -> InternalError:
    if _meant:
        return _made(error)
    if isinstance(error, Unforeseen):
        raise error
    raise Unforeseen(f"an internal error: {type(error).__name__}: {error}") from error

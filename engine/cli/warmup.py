"""Compiles the kernels of queries ahead, so that their first users do not wait."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..connection import Connection
from ..errors import FuselineError
from ..observe.profile import Profile
from ..records import dataclass

if TYPE_CHECKING:
    from ..sql import Piece

LABEL_WIDTH = 48


@dataclass(frozen=True)
class Warmed:
    """One query: its first words, how many of its kernels were there and how many were compiled, and the seconds of its run.

    `reasons` say why pipelines have no kernel; `error` is set when the query failed.
    """

    label: str
    found: int = 0
    compiled: int = 0
    seconds: float = 0.0
    reasons: tuple[str, ...] = ()
    error: FuselineError | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.label}  {type(self.error).__name__}: {self.error}"
        kernels = f"{self.found} found, {self.compiled} compiled, {self.seconds:.2f} s"
        return "\n".join([f"{self.label}  {kernels}", *(f"  not fused: {r}" for r in self.reasons)])


def warm_up(connection: Connection, text: str) -> Iterator[Warmed]:
    """Run the statements of a script, and yield what was compiled for each query.

    A kernel is made for the encodings and ranges of the columns, so the queries run, on the tables that they will run on.
    What fails is yielded too, and the script goes on; raises `FuselineError` for a text that is not SQL at all.
    """
    from ..sql import split

    for piece in split(text):
        label = _label(piece.sql)
        try:
            yield from _statement(connection, piece, label)
        except FuselineError as error:
            yield Warmed(label, error=error)


def _statement(connection: Connection, piece: Piece, label: str) -> Iterator[Warmed]:
    from ..sql import starts_query

    start = time.perf_counter()
    # As its users ask for it: a plan of its shape has other kernels than one of its constants alone
    frame = connection.sql(piece.sql)
    frame.to_arrow()
    if starts_query(piece) or frame.profile.pipelines:
        yield _warmed(label, frame.profile, time.perf_counter() - start)


def _warmed(label: str, profile: Profile, seconds: float) -> Warmed:
    receipts = [n.receipt for n in profile.nodes if n.receipt is not None]
    kernels = [r for r in receipts if r.kernel is not None]
    compiled = sum(r.origin == "compiler" for r in kernels)
    # Of the run, and of the plan
    found = [*(r.reason for r in receipts), *(n.node.not_fused for n in profile.nodes)]
    reasons = tuple(dict.fromkeys(r for r in found if r is not None))
    return Warmed(label, len(kernels) - compiled, compiled, seconds, reasons)


def _label(text: str) -> str:
    """The first words of a statement, padded so that what follows stands in columns."""
    words = " ".join(re.sub(r"--[^\n]*", " ", text).split())
    shown = words if len(words) <= LABEL_WIDTH else f"{words[: LABEL_WIDTH - 3]}..."
    return shown.ljust(LABEL_WIDTH)

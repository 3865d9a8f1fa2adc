"""What an operator gets besides its node and inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..storage.cache import ColumnCache


@dataclass
class Context:
    """One query's surroundings.

    `check` raises `KeyboardInterrupt` when the user asked to stop; operators call it between chunks.
    `bytes_read` counts what scans read from memory or files, for the profile.  `notes` holds, by the identity of a node, what
    the operator has to say about its run.
    """

    cache: ColumnCache
    check: Callable[[], None]
    threads: int
    kernel_directory: Path = Path()
    bytes_read: int = 0
    notes: dict[int, str] = field(default_factory=dict)

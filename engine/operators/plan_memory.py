"""What runs of a plan remember for later ones, outside of the plan, which is data that several connections may share.

A `PlanMemory` belongs to a connection.  It knows nodes by their identity, and forgets one when that is gone: with its plan, or a
pipeline that was made for one run with that run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from weakref import ref

from ..plan import physical as p
from .row_interpreter import RowSteps

T = TypeVar("T")


@dataclass(frozen=True)
class Feedback:
    """What runs of a pipeline's kernels have found out: build sides whose keys repeat, how large its result is.

    `built` are the rows of hashed indexes of which other numbers were expected.
    """

    repeating: frozenset[int] = frozenset()
    slots: int | None = None  # of the hash table of groups
    listed: int | None = None  # rows that come out
    long_groups: bool = False  # some have too many rows to be made in their order
    built: Mapping[int, int] = field(default_factory=dict)
    count_bits: int = 0  # that counts need at least


@dataclass(frozen=True)
class Refused:
    """Why no kernel holds a pipeline over so many rows of its inputs."""

    rows: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Apart:
    """A pipeline in two: `rest` reads the rows of `side` as its last input."""

    side: p.Pipeline
    rest: p.Pipeline


@dataclass
class PipelineMemory(Generic[T]):
    """What one pipeline's runs leave: its kernels, which are the backend's own, or why it has none, and what it consists of instead.

    `compiled` are the kernels whose machine code is known to be there.  `short_of_memory`: the last run had no room for its kernels'
    buffers.  `probe_bytes` are those of the columns that may come in chunks; `parts` the pipelines below the last operator of a body
    that no kernel holds, by their place among its children.
    """

    probe_bytes: int | None = None
    kernels: T | None = None
    compiled: T | None = None
    feedback: Feedback = Feedback()
    short_of_memory: bool = False
    refused: Refused | None = None
    apart: Apart | None = None
    parts: dict[int, p.Pipeline] = field(default_factory=dict)


class _ByNode(Generic[T]):
    """A value for each node that is asked for, as long as that node lives; safe with several threads."""

    def __init__(self, make: Callable[[p.Physical], T]) -> None:
        self._make = make
        self._kept: dict[int, tuple[T, ref[p.Physical]]] = {}

    def __call__(self, node: p.Physical) -> T:
        known = self._kept.get(id(node))
        return self._begun(node) if known is None else known[0]

    def __len__(self) -> int:
        return len(self._kept)

    def _begun(self, node: p.Physical) -> T:
        kept, key = self._kept, id(node)
        # The callback of a reference that another thread was faster than goes with it
        return kept.setdefault(key, (self._make(node), ref(node, lambda _: kept.pop(key, None))))[0]


class PlanMemory:
    """The memories of a connection's plans, and what steps compute a few rows."""

    def __init__(self) -> None:
        self.pipeline: _ByNode[PipelineMemory[Any]] = _ByNode(lambda node: PipelineMemory())
        self.row_steps = _ByNode(_row_steps)


def _row_steps(node: p.Physical) -> RowSteps:
    assert isinstance(node, p.ComputeColumns)
    return RowSteps.of(node.items)


def is_lasting(node: p.Physical) -> bool:
    """Whether a plan's tables say the same in each run: one without an identity is read anew each time."""
    scans = (n for n in _with_bodies(node) if isinstance(n, p.ParquetScan | p.MemoryScan))
    return all(scan.table.identity is not None for scan in scans)


def _with_bodies(node: p.Physical) -> Iterator[p.Physical]:
    yield node
    below = (node.body, *node.inputs) if isinstance(node, p.Pipeline) else node.children
    for child in below:
        yield from _with_bodies(child)

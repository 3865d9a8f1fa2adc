"""What a backend gives so that pipelines run on it, and what a run of its kernels may come to (`run_pipeline`, `streaming`)."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, final

import numpy as np

from ..errors import Interrupted
from ..records import dataclass
from .context import BuildReceipt, Context, Origin, PipelineReceipt
from .run_unfused import BackendTable, Operator, Operators, T

if TYPE_CHECKING:
    from pathlib import Path

    from ..codegen.compile_pipeline import Stages
    from ..codegen.indexes.layers import Index
    from ..plan import physical as p
    from .column_tiers import Lift
    from .context import Feedback

T_co = TypeVar("T_co", bound=BackendTable, covariant=True)
K = TypeVar("K", bound="PipelineKernels")  # its kernels for some columns
C = TypeVar("C")  # their machine code

SHORT = "there is too little memory for its indexes and groups"

Facts = Callable[[], PipelineReceipt]  # what kernels did, but for the time that it took


class PipelineKernels(Protocol):
    """The kernels of a pipeline, made for what they read; `codes` is done when all are compiled, with where they came from."""

    @property
    def codes(self) -> Future[tuple[Any, Origin]]: ...


@dataclass(eq=False)
class Done(Generic[T_co]):
    """The answer, and what later runs should know."""

    table: T_co
    facts: Facts
    feedback: Feedback | None = None


@final
@dataclass(frozen=True)
class Retry:
    """No answer: a run found out something for which its kernels have to be made, or with `other_kernels` False the same laid out."""

    feedback: Feedback
    other_kernels: bool = True


@final
@dataclass(frozen=True)
class Void:
    """No answer in this run, for a reason that another one need not have."""

    reason: str
    facts: Facts | None = None


class PipelineAttempt(Protocol[T_co, K]):
    """One run of a pipeline by kernels: it finds columns, then the kernels that fit them or others, and launches these."""

    @property
    def loading(self) -> float:
        """The seconds in which columns were brought into the cache."""
        ...

    def fits(self, kernels: K) -> bool:
        """Whether kernels of an earlier run serve for the columns as they are now."""
        ...

    def compile(self, slotted: p.Pipeline | None) -> K:
        """Generate kernels and begin to compile them; raises `NotFusable`.

        With slots in the pipeline's place they have these as arguments; what is made of them by `plan.shapes.plan_model` can be launched.
        """
        ...

    def load(self, kernels: K) -> None:
        """Make compiled kernels ready to be launched."""
        ...

    def launch(self, kernels: K) -> Done[T_co] | Retry | Void:
        """Run kernels and look at what they report."""
        ...


@dataclass(frozen=True)
class PipelineBackend(Generic[T, K]):
    """What a backend does with a pipeline, and with a chunk of one.

    `pipeline` is its operator for a pipeline whose columns fit, and `attempt` begins a run by kernels.  `settled` returns a table
    that holds nothing of the chunk that it was made of.  `lift` brings columns of scans into the cache where they need not be read from files,
    `store_columns` writes them to the column store.
    """

    operators: Operators[T]
    pipeline: Operator[T]
    attempt: Callable[[p.Pipeline, tuple[T, ...], Context, Feedback], PipelineAttempt[T, K]]
    is_out_of_memory: Callable[[Exception], bool]
    settled: Callable[[T], T]
    lift: Lift = lambda scans, context: None
    store_columns: Callable[[p.ParquetScan, Context], None] = lambda scan, context: None


def compiling(
    fetch: Callable[[], tuple[C, Origin]], in_background: bool
) -> Future[tuple[C, Origin]]:
    """Fetch machine code, in a thread of its own or now, when what stops the query stops it; other errors come with the code."""
    found: Future[tuple[C, Origin]] = Future()

    def run() -> None:
        try:
            found.set_result(fetch())
        except Interrupted:
            raise
        except Exception as error:
            found.set_exception(error)

    if in_background:
        threading.Thread(target=run, daemon=True).start()
    else:
        run()
    return found


def of_every_run(
    made: Stages, paths: Sequence[Path], indexes: Sequence[Index], columns: int, operations: int
) -> PipelineReceipt:
    """Return what is known before a run: kernels, indexes with their bytes, and the rows and bytes that are read of columns."""
    sizes = [sum(np.dtype(b.type).itemsize * b.length for b in i.buffers) for i in indexes]
    builds = zip(made.programs[:-1], paths, indexes, sizes, strict=False)
    return PipelineReceipt(
        kernel=paths[len(made.programs) - 1],
        rows=made.main.relations[0].rows,
        bytes=columns,
        operations=operations,
        program=made.main,
        builds=tuple(BuildReceipt(path, i.shown, i.rows, size, p) for p, path, i, size in builds),
    )


def of_one_run(known: PipelineReceipt, built: Sequence[int]) -> PipelineReceipt:
    """Return the receipt of a run that put so many rows into each index."""
    builds = zip(known.builds, built, strict=True)
    return dataclasses.replace(
        known, builds=tuple(dataclasses.replace(build, rows=rows) for build, rows in builds)
    )

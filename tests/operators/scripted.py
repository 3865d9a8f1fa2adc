"""A backend for pipelines whose launches give what a test says, and whose tables say what made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from fuseline.operators.context import Context, Feedback, Origin, PipelineMemory, PipelineReceipt
from fuseline.operators.pipeline_backend import Done, PipelineBackend, compiling
from fuseline.operators.run_pipeline import run_fused
from fuseline.operators.run_unfused import Operators
from fuseline.plan import physical as p
from fuseline.storage.columns.cache import ColumnCache

FACTS = PipelineReceipt(rows=10, bytes=80)


@dataclass(frozen=True)
class Rows:
    """A table that says what made it."""

    made: str
    num_rows: int = 3


DONE = Done(Rows("kernels"), lambda: FACTS)


@dataclass(eq=False)
class Made:
    codes: Future[tuple[Any, Origin]]
    feedback: Feedback


@dataclass
class Fake:
    """A backend: what its launches give in turn, the last one for ever; `counts` says what was done how often."""

    script: list[Any] = field(default_factory=lambda: [DONE])
    compile: Callable[[], Any] = lambda: (None, "compiler")
    fits: bool = True
    background: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    context: Context = field(default_factory=lambda: Context(ColumnCache(0), lambda: None, 1))

    def __post_init__(self) -> None:
        nodes = (p.FilterRows, p.HashJoin, p.HashAggregate, p.MemoryScan)
        by_node: Any = dict.fromkeys(nodes, self._operator)
        self.backend: PipelineBackend[Rows, Made] = PipelineBackend(
            Operators(by_node, lambda table: 8),
            lambda node, inputs, context: run_fused(node, inputs, context, self.backend),
            lambda *given: Attempt(self, *given),
            lambda error: isinstance(error, MemoryError),
            lambda table: table,
        )

    def _operator(self, node: Any, inputs: tuple[Rows, ...], context: Context) -> Rows:
        self.counts[type(node).__name__] += 1
        return Rows(f"{type(node).__name__}({', '.join(table.made for table in inputs)})")

    def next(self, attempt: Attempt) -> Any:
        step = self.script[min(self.counts["launches"], len(self.script) - 1)]
        self.counts["launches"] += 1
        found = step(attempt) if callable(step) else step
        if isinstance(found, Exception):
            raise found
        return found

    def run(self, node: p.Pipeline, rows: int = 3) -> Rows:
        return run_fused(node, (Rows("input", rows),), self.context, self.backend)

    def memory(self, node: p.Pipeline) -> PipelineMemory[Made]:
        return self.context.memory.pipeline(node)

    def receipt(self, node: p.Pipeline) -> PipelineReceipt:
        return self.context.receipts[id(node)]()


@dataclass
class Attempt:
    fake: Fake
    node: p.Pipeline
    inputs: tuple[Rows, ...]
    context: Context
    feedback: Feedback
    loading: float = 0.0

    def fits(self, kernels: Made) -> bool:
        return self.fake.fits

    def compile(self, slotted: p.Pipeline | None) -> Made:
        self.fake.counts["compiled"] += 1
        return Made(compiling(self.fake.compile, self.fake.background), self.feedback)

    def load(self, kernels: Made) -> None:
        self.fake.counts["loaded"] += 1

    def launch(self, kernels: Made) -> Any:
        return self.fake.next(self)


def raised(*errors: BaseException | Any) -> Callable[[], Any]:
    """What compiles to each of these in turn, or fails with it."""
    given: Iterator[Any] = iter(errors)

    def compile() -> Any:
        found = next(given)
        if isinstance(found, BaseException):
            raise found
        return found

    return compile

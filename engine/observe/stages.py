"""How it is told what each worker of a cluster did for a query: a line a stage, which ends where the workers meet."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median as middle

from ..operators.exchange.exchange_rounds import FEW_ROWS, HEADERS
from .profile import WorkerReceipt


def stage_lines(workers: Sequence[WorkerReceipt], run_seconds: float) -> list[str]:
    """Return a line for each stage, and one for what the workers did not take; a worker that meets more often has its last stages untold."""
    if not workers:
        return []
    lines = []
    works = [worker.stages() for worker in workers]
    count = min(len(work) for work in works)
    for stage in range(count):
        line = f"Stage {stage + 1}: {_spread(workers, [work[stage] for work in works])}"
        if stage < count - 1:
            met = [worker.meetings[stage] for worker in workers]
            out, into = (sum(found) for found in ((m.sent for m in met), (m.received for m in met)))
            # Who comes last waits for nobody
            seconds = min(m.seconds for m in met)
            most = max(max(m.sent, m.received) for m in met)
            line += (
                f"; met for {seconds * 1e3:.2f} to {max(m.seconds for m in met) * 1e3:.2f} ms in exchange {_named(met[0].number)}, "
                f"{out / 1e6:,.2f} MB out, {into / 1e6:,.2f} MB in, {most / max(seconds, 1e-9) / 1e9:.2f} GB/s a worker"
            )
        lines.append(line)
    slowest = max(worker.seconds for worker in workers)
    lines.append(
        f"Workers: {_spread(workers, [worker.seconds for worker in workers])}, of them in meetings "
        f"{max(worker.met_seconds for worker in workers) * 1e3:.2f} ms; control and answers {(run_seconds - slowest) * 1e3:.2f} ms"
    )
    return lines


def _named(number: int) -> str:
    """An exchange by its number; that of its samples has the complement, those of its headers a multiple besides."""
    if number >= HEADERS:
        return f"{number % HEADERS}'s header"
    if number <= FEW_ROWS:
        return f"{FEW_ROWS - number}'s few rows"
    return str(number) if number >= 0 else f"{~number}'s samples"


def _spread(workers: Sequence[WorkerReceipt], seconds: Sequence[float]) -> str:
    """The slowest, the median and the fastest."""
    worst = max(range(len(seconds)), key=seconds.__getitem__)
    if len(seconds) == 1:
        return f"worker {workers[worst].worker} {seconds[0] * 1e3:.2f} ms"
    return (
        f"slowest worker {workers[worst].worker} {seconds[worst] * 1e3:.2f} ms, median {middle(seconds) * 1e3:.2f}, "
        f"fastest {min(seconds) * 1e3:.2f}"
    )

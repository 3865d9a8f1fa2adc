"""Queries that nobody wrote: analysts' questions over TPC-H's tables, each drawn from a seed that is its name.

`queries` gives the same 80 on each run and 20 that no run has met; any other is asked for by its name: `--queries s4711`.
"""

from __future__ import annotations

import random

from benchmarks.random.questions import Question

__all__ = ["FIXED", "NEW", "Drawn", "queries", "text"]

FIXED, NEW = 80, 20
LARGEST = 10**9


class Drawn(dict[str, str]):
    """Name to text; a name that is not there is drawn when it is asked for."""

    def __missing__(self, name: str) -> str:
        if not (name.startswith("s") and name[1:].isdecimal()):
            raise KeyError(name)
        self[name] = text(int(name[1:]))
        return self[name]


def queries(scale: float) -> Drawn:
    """The fixed queries, then the new ones; none depends on the scale."""
    new = random.SystemRandom().sample(range(FIXED, LARGEST), NEW)
    return Drawn({f"s{seed}": text(seed) for seed in [*range(FIXED), *new]})


def text(seed: int) -> str:
    """The query of a seed, the same one always."""
    return Question(random.Random(seed)).text()

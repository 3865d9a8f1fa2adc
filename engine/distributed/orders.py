"""What the client and the workers of a cluster say to each other for a query."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import pyarrow as pa

from ..errors import FuselineError
from ..observe.profile import Meeting, NodeProfile
from ..settings import Settings
from ..storage.shards import Placement
from ..storage.tables.memory_table import MemoryTable
from ..storage.tables.sharded_table import ShardedTable


@dataclass(frozen=True)
class SentPlan:
    """A plan for a worker that does not have it, and what it runs by each time: settings, and the placement of tables.

    `tables` are those of the plan that the worker does not have.
    """

    plan: bytes
    tables: dict[Hashable, MemoryTable]
    settings: Settings
    placement: Placement


@dataclass(frozen=True)
class QueryOrder:
    """A query as workers get it: its number, those of the team and the plan, and the plan where it was not sent before.

    All else that stays the same from query to query is sent with the plan: settings alone take longer to pack than the rest.
    `meets`: other workers run it at the same time; `answers`: its rows are wanted of this worker; `logs`: it tells Dask of the query.
    `keep`: they stay there, as its share of this table, under the identity that it has at the client.
    `linked`: their GPUs are, so that rows may go from one to another.
    """

    query: int
    team: int
    plan: int
    timed: bool
    meets: bool
    linked: bool = False
    sent: SentPlan | None = None
    answers: bool = False
    logs: bool = False
    keep: tuple[Hashable, ShardedTable] | None = None


@dataclass(frozen=True)
class Part:
    """What one worker says after a query: rows as an Arrow stream, or the error that ended it; `lost`: another worker's.

    `kept` are the rows and bytes that stay there.  `missing`: it does not know the plan, a table of it or the team.  `nodes` are those of
    its plan in the order of its profile, without the plan, where the run was timed.  `unclustered`: equal values of this column, with the
    identity of its table, are not on one worker.
    `unlinked`: its GPU's link to the others is gone.
    """

    rank: int = 0
    rows: pa.Buffer | None = None
    kept: tuple[int, int] = (0, 0)
    error: FuselineError | None = None
    lost: bool = False
    missing: bool = False
    unclustered: tuple[Hashable, str] | None = None
    bytes_read: int = 0
    seconds: float = 0.0
    meetings: tuple[Meeting, ...] = ()
    nodes: tuple[NodeProfile, ...] = ()
    unlinked: bool = False

    def table(self) -> pa.Table:
        return pa.ipc.open_stream(self.rows).read_all()

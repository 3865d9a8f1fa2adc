"""What workers tell each other over their link, which is a board that threads share: rows, and that one has failed."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from fuseline import errors
from fuseline.operators.context import MovedBytes
from fuseline.operators.exchange.exchange_rounds import FEW_ROWS
from fuseline.operators.exchange.exchange_rows import few_together, parts_of_few
from fuseline.plan.exchange import Exchange
from fuseline.plan.expr import new_column
from fuseline.plan.physical import Stored
from fuseline.plan.types import BIGINT, BOOLEAN, VARCHAR, decimal

pytest.importorskip("distributed", reason="the extra dask is not installed")
from fuseline.distributed import query_peers
from fuseline.distributed.meetings import Exchanged
from fuseline.distributed.query_peers import QueryPeers

WORKERS = 3
WAIT_SECONDS = 20.0


class _Board:
    """What has been told, by how often each worker has told something; and what went by the host."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.told: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
        self.by_host: defaultdict[int, dict[int, Any]] = defaultdict(dict)
        self.failed: list[str] = []

    def put(self, where: dict[int, Any], rank: int, what: object) -> list[Any]:
        with self.changed:
            assert rank not in where
            where[rank] = what
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: len(where) == WORKERS, WAIT_SECONDS)
            return [where[rank] for rank in range(WORKERS)]


class _Link:
    alive = True

    def __init__(self, board: _Board, rank: int) -> None:
        self.board, self.rank, self.times = board, rank, 0

    def tell(self, message: bytes, why_left: Callable[[], str | None]) -> list[bytes]:
        self.times += 1
        return self.board.put(self.board.told[self.times], self.rank, message)

    def move(
        self,
        outgoing: Sequence[MovedBytes],
        incoming: Sequence[MovedBytes],
        why_left: Callable[[], str | None],
    ) -> None: ...


class _Meetings:
    """Dask's connections."""

    workers = WORKERS

    def __init__(self, board: _Board, rank: int) -> None:
        self.board, self.rank = board, rank

    def exchange(self, query: int, check: object, number: int, parts: Any) -> Exchanged:
        found = self.board.put(self.board.by_host[number], self.rank, parts)
        return Exchanged([b for part in found for b in part[self.rank] or []], 0, 0)

    def why_left(self, query: int) -> None: ...

    def why_alone(self, query: int) -> None: ...

    def fail(self, query: int, why: str) -> None:
        self.board.failed.append(why)


def run(work: Callable[[QueryPeers], Any]) -> tuple[_Board, list[_Link], list[Any]]:
    """Run the work of all workers; its result, or its error."""
    board = _Board()
    links = [_Link(board, rank) for rank in range(WORKERS)]

    def of(rank: int) -> Any:
        meetings: Any = _Meetings(board, rank)
        try:
            return work(QueryPeers(meetings, 0, lambda: None, True, links[rank]))
        except errors.ClusterError as error:
            return error.message

    with ThreadPoolExecutor(WORKERS) as pool:
        found = list(pool.map(of, range(WORKERS)))
    return board, links, found


def _rows(*values: int) -> list[pa.RecordBatch]:
    return [pa.record_batch({"n": [value]}) for value in values]


def _values(batches: Sequence[pa.RecordBatch]) -> list[int]:
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def _all_kinds(peers: QueryPeers) -> list[list[int]]:
    own, to = 10 * peers.rank, range(WORKERS)
    shared = _rows(own, own + 1)
    kinds: list[list[Any]] = [
        [_rows(own + rank) for rank in to],  # by a hash
        [shared] * WORKERS,  # broadcast
        [shared, None, None],  # gather
        [[] for _ in to],
        [[] if peers.rank else _rows(5) for _ in to],  # of the first one
    ]
    found = [_values(peers.exchange(number, parts)) for number, parts in enumerate(kinds)]
    # An operator that runs again meets nobody twice
    assert [_values(peers.exchange(n, parts)) for n, parts in enumerate(kinds)] == found
    return found


def test_few_rows_are_told_once() -> None:
    board, links, found = run(_all_kinds)
    everything = [0, 1, 10, 11, 20, 21]
    for rank, kinds in enumerate(found):
        gathered = everything if rank == 0 else []
        assert kinds == [[rank, 10 + rank, 20 + rank], everything, gathered, [], [5]]
    assert [link.times for link in links] == [5] * WORKERS
    assert not board.by_host


def test_workers_that_meet_elsewhere_all_fail() -> None:
    def work(peers: QueryPeers) -> list[pa.RecordBatch]:
        return peers.exchange(5 if peers.rank == 1 else 4, [_rows(peers.rank)] * WORKERS)

    _, links, found = run(work)
    assert found == ["Workers do not come to the same meetings."] * WORKERS
    assert [link.times for link in links] == [1] * WORKERS


def test_many_rows_of_one_worker_go_by_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_peers, "MOST_TOLD", 2_000)

    def work(peers: QueryPeers) -> tuple[list[int], bool]:
        many = [pa.record_batch({"n": [peers.rank] * (1_000 if peers.rank == 1 else 1)})]
        found = sorted(set(_values(peers.exchange(4, [many] * WORKERS))))
        return found, peers.owes

    board, links, found = run(work)
    assert found == [([0, 1, 2], False)] * WORKERS
    assert [link.times for link in links] == [1] * WORKERS
    assert list(board.by_host) == [4]


@pytest.mark.parametrize("failing", [{1}, {0, 2}, {0, 1, 2}])
@pytest.mark.parametrize("met_before", [0, 1])
def test_who_fails_tells_it_where_the_others_meet_next(failing: set[int], met_before: int) -> None:
    def work(peers: QueryPeers) -> str:
        peers.expected = [frozenset({0}), frozenset({1})]
        try:
            for number in (0, 1):
                if number == met_before and peers.rank in failing:
                    raise errors.ConversionError(f"worker {peers.rank}")
                peers.exchange(number, [_rows(1)] * WORKERS)
                peers.over.add(number)
        except errors.FuselineError as error:
            peers.fail(error.message)
            raise errors.ClusterError(error.message) from None
        return "ended"

    board, links, found = run(work)
    first = f"worker {min(failing)}"
    assert found == [f"worker {r}" if r in failing else first for r in range(WORKERS)]
    assert [link.times for link in links] == [met_before + 1] * WORKERS
    assert not board.failed


def test_who_fails_when_nobody_waits_tells_nobody() -> None:
    def work(peers: QueryPeers) -> str:
        # The second one takes place only where the first finds heavy keys
        peers.expected = [frozenset({3}), frozenset({4, ~3})]
        peers.exchange(3, [_rows(1)] * WORKERS)
        peers.over.update({3, ~3})
        if peers.rank == 1:
            peers.fail("too late")
        return "ended"

    board, links, found = run(work)
    assert found == ["ended"] * WORKERS
    assert [link.times for link in links] == [1] * WORKERS
    assert not board.failed


def test_who_fails_before_it_gives_what_is_waited_for_says_so_by_the_host() -> None:
    def work(peers: QueryPeers) -> str:
        peers.meet(1, b"I have much to give")
        if peers.rank == 2:
            peers.owes = True
            peers.fail("no room")
        return "ended"

    board, links, found = run(work)
    assert found == ["ended"] * WORKERS
    assert [link.times for link in links] == [1] * WORKERS
    assert board.failed == ["no room"]


KINDS = pa.schema(
    [("a", pa.int64()), ("a", pa.string()), ("d", pa.decimal128(38, 2)), ("t", pa.bool_())]
)


@pytest.mark.parametrize("kind", ["gather", "broadcast"])
@pytest.mark.parametrize("of_first", [False, True])
def test_few_rows_of_all_are_put_together(kind: Any, of_first: bool) -> None:
    columns = tuple(new_column("a", t) for t in (BIGINT, VARCHAR, decimal(38, 2), BOOLEAN))
    node = Exchange(Stored(0, columns), kind, 3, of_first=of_first)

    def rows_of(rank: int) -> pa.Table:
        values = [[rank, None], [f"é{rank}", None], [Decimal(rank) / 4, None], [None, rank > 1]]
        rows = pa.Table.from_arrays(
            [pa.array(v, f.type) for v, f in zip(values, KINDS, strict=True)], schema=KINDS
        )
        return rows.slice(0, rank)

    def work(peers: QueryPeers) -> tuple[pa.Table, int]:
        parts = parts_of_few(node, rows_of(peers.rank), peers)
        for _ in range(2):
            found = peers.exchange_few(FEW_ROWS - 3, parts)
        assert found is not None
        arrays, count = few_together(found, columns)
        assert list(arrays) == list(columns)
        return pa.Table.from_arrays(list(arrays.values()), schema=KINDS), count

    _, links, found = run(work)
    assert [link.times for link in links] == [1] * WORKERS
    all_rows = pa.concat_tables([rows_of(rank) for rank in range(WORKERS)])
    for rank, (rows, count) in enumerate(found):
        gets = not of_first and (kind == "broadcast" or rank == 0)
        assert rows.equals(all_rows if gets else all_rows.slice(0, 0))
        assert count == rows.num_rows


def test_few_rows_go_another_way_where_one_has_many() -> None:
    def work(peers: QueryPeers) -> tuple[object, bool]:
        parts = None if peers.rank == 2 else [_rows(peers.rank)] * WORKERS
        return peers.exchange_few(FEW_ROWS, parts), peers.owes

    assert run(work)[2] == [(None, False)] * WORKERS

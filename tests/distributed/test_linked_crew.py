"""A crew whose workers are linked, by a board in this process in the place of NCCL: right answers, errors, and queries that are stopped."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import pyarrow as pa
import pytest

from fuseline import errors
from tests.compare import assert_same_as_duckdb
from tests.distributed.conftest import WORKERS, Opened
from tests.distributed.test_crew import QUERIES, TABLES

KEY, LOOK_SECONDS, PATIENCE_SECONDS = b"board", 0.005, 2.0


class Board:
    """Gives each worker what all have told, when all have; counts how often."""

    def __init__(self) -> None:
        self.listener = Listener(("127.0.0.1", 0), authkey=KEY)
        self.places: defaultdict[tuple[int, int], dict[int, tuple[Connection, bytes]]] = (
            defaultdict(dict)
        )
        self.lock, self.times, self.teams = threading.Lock(), 0, 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._hear, args=(connection,), daemon=True).start()

    def _hear(self, connection: Connection) -> None:
        while True:
            try:
                team, turn, rank, message = connection.recv()
            except (EOFError, OSError):
                return
            with self.lock:
                place = self.places[team, turn]
                place[rank] = connection, message
                if len(place) == WORKERS:
                    self.times += 1
                    told = [place[r][1] for r in range(WORKERS)]
                    for other, _ in place.values():
                        other.send(told)


class BoardLink:
    """A worker's end: `query_peers.DeviceLink` without devices."""

    def __init__(self, address: Any, team: int, rank: int) -> None:
        self.alive, self.context_lost = True, False
        self.team, self.rank, self.turn = team, rank, 0
        self.connection = Client(address, authkey=KEY)

    def tell(self, message: bytes, why_left: Callable[[], str | None]) -> list[bytes]:
        self.turn += 1
        self.connection.send((self.team, self.turn, self.rank, message))
        left_at = None
        while not self.connection.poll(LOOK_SECONDS):
            if left_at is None and why_left():
                left_at = time.monotonic()
            if left_at is not None and time.monotonic() > left_at + PATIENCE_SECONDS:
                self.alive = False
                raise errors.ClusterError(why_left() or "")
        return list(self.connection.recv())

    def close(self) -> None:
        self.alive = False
        self.connection.close()


def _have_linked(address: Any) -> None:
    from fuseline.distributed.worker_link import WorkerLink

    def make(self: Any, workers: int, rank: int, identity: int) -> str:
        self.drop()
        self.made = BoardLink(address, identity, rank)
        return ""

    WorkerLink.before = {n: WorkerLink.__dict__[n] for n in ("places", "identity", "make")}
    WorkerLink.places = staticmethod(lambda device: (str(id(object())) + str(time.time()), ""))
    WorkerLink.identity = staticmethod(time.time_ns)
    WorkerLink.make = make


def _have_as_before() -> None:
    from fuseline.distributed.worker_link import WorkerLink

    for name, known in WorkerLink.before.items():
        setattr(WorkerLink, name, known)


@pytest.fixture(scope="module")
def board(client: Any) -> Iterator[Board]:
    made = Board()
    client.run(_have_linked, made.listener.address)
    yield made
    client.run(_have_as_before)
    made.listener.close()


@pytest.fixture
def linked(board: Board, opened: Opened) -> Any:
    connection = opened(TABLES, exchange="nccl")
    assert connection._runner.crew.not_linked == ""
    return connection


def test_answers_are_those_of_duckdb(board: Board, linked: Any) -> None:
    before = board.times
    for query in QUERIES[::2]:
        assert_same_as_duckdb(query, TABLES, connection=linked)
    assert board.times > before + len(QUERIES) // 4


def test_one_meeting_over_the_link_for_a_scalar_subquery(board: Board, linked: Any) -> None:
    query = "select count(*) from t where n > (select avg(n) from t)"
    linked.sql(query).to_arrow()
    before = board.times
    linked.sql(query).to_arrow()
    assert board.times == before + 1


FAILING = [
    "select sum(w) from (select cast(case when id = 650 then 'x' else '1' end as integer) as w from t)",
    "select k, sum(cast(g as integer)) from t where id > 600 group by k",
    "select cast(c || 'x' as integer) from (select k, count(*) as c from t group by k order by c, k limit 3)",
    "select id, error('no') from t where id = 3",
]


@pytest.mark.parametrize("query", FAILING)
def test_an_error_of_one_worker_leaves_the_link(query: str, board: Board, linked: Any) -> None:
    number = linked._runner.crew._members.team.number
    for _ in range(2):
        with pytest.raises(errors.FuselineError) as raised:
            linked.sql(query).to_arrow()
        assert not isinstance(raised.value, errors.ClusterError)
        assert_same_as_duckdb("select g, sum(n) from t group by g", TABLES, connection=linked)
    assert linked._runner.crew._members.team.number == number


def test_a_query_that_is_stopped_leaves_the_link(board: Board, linked: Any) -> None:
    number = linked._runner.crew._members.team.number
    query = (
        "select a.g, sum(a.n + b.n * c.n) from t a, t b, t c where a.id <> b.id + c.id group by a.g"
    )
    linked.sql("set statement_timeout = '300ms'")
    with pytest.raises(errors.Interrupted):
        linked.sql(query).to_arrow()
    linked.reset_option("statement_timeout")
    assert_same_as_duckdb("select g, sum(n) from t group by g", TABLES, connection=linked)
    assert linked._runner.crew._members.team.number == number


def test_many_rows_go_by_dask(board: Board, opened: Opened) -> None:
    rows = 200_000
    wide = pa.table({"id": range(rows), "k": [n * 7 % 50_000 for n in range(rows)]})
    connection = opened({"wide": wide}, group_rows=20_000, exchange="nccl")
    query = "select a.k, count(*) from wide a join wide b on a.k = b.id group by a.k"
    assert_same_as_duckdb(query, {"wide": wide}, connection=connection)


def _stopped(*given: object) -> None:
    raise errors.Interrupted("stopped")


def test_who_had_many_rows_is_asked_no_more(
    board: Board, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a run has ended on all workers; after one that has not, all are asked again."""
    rows = 400_000
    wide = pa.table({"k": [n * 7 % 300_001 for n in range(rows)]})
    connection = opened({"wide": wide}, group_rows=40_000, exchange="nccl", fuse="never")
    query = "select k, count(*) from wide group by k"

    def meetings() -> int:
        before = board.times
        assert_same_as_duckdb(query, {"wide": wide}, connection=connection)
        return board.times - before

    first, second = meetings(), meetings()
    assert second < first
    with monkeypatch.context() as patched:
        patched.setattr(connection._runner.crew, "_awaited", _stopped)
        with pytest.raises(errors.Interrupted):
            connection.sql(query).to_arrow()
    assert [meetings(), meetings()] == [first, second]

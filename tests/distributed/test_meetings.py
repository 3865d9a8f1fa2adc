"""How often the workers meet for a query, and how many messages they send each other: each meeting is a round that all wait for."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline import errors
from tests.distributed.conftest import WORKERS, Opened
from tests.distributed.test_crew import TABLES

OTHERS = WORKERS - 1
TO_FIRST, TO_ALL = OTHERS, WORKERS * OTHERS  # messages of a meeting
# Queries, how often workers meet for them, and the messages of all together
MET = {
    "select id, n + 1 from t where n > 3": (0, 0),
    "select count(*), sum(n), avg(price) from t": (0, 0),
    "select g, sum(n) from t group by g": (1, TO_ALL),
    "select g, sum(n) as s from t group by g order by s limit 3": (1, TO_ALL),
    "select id from t order by d limit 10": (0, 0),
    "select count(distinct k) from t": (1, TO_FIRST),
    "select count(*) from t, u where t.k = u.k": (1, TO_ALL),
    "select id from t where n > (select avg(n) from t)": (1, TO_ALL),
    "select k, id from t order by k, id": (2, 2 * TO_ALL),
}


@pytest.fixture(scope="module", autouse=True)
def _counted(client: Any) -> Any:
    client.run(_count_calls)
    yield
    client.run(_count_no_calls)


def _count_calls() -> None:
    from fuseline.distributed.meetings import Meetings

    call = Meetings._call

    async def counted(self: Any, *given: Any) -> None:
        Meetings.calls += 1  # type: ignore[attr-defined]
        await call(self, *given)

    Meetings.calls, Meetings.uncounted = 0, call  # type: ignore[attr-defined]
    Meetings._call = counted  # type: ignore[method-assign]


def _count_no_calls() -> None:
    from fuseline.distributed.meetings import Meetings

    Meetings._call = Meetings.uncounted  # type: ignore[attr-defined, method-assign]


def _calls() -> int:
    from fuseline.distributed.meetings import Meetings

    return Meetings.calls  # type: ignore[attr-defined, no-any-return]


def test_no_more_meetings_and_messages_than_needed(client: Any, opened: Opened) -> None:
    connection, found = opened(TABLES), {}
    for query in MET:
        frame = connection.sql(query)
        frame.to_arrow()  # at first they agree on columns, too
        before = sum(client.run(_calls).values())
        frame.to_arrow()
        (met,) = {len(worker.meetings) for worker in frame.profile.workers}
        found[query] = met, sum(client.run(_calls).values()) - before
    assert found == MET


def _skip_meetings(skips: bool) -> None:
    """Have this worker answer without the others' rows."""
    from fuseline.distributed.meetings import Exchanged, Meetings

    if not skips:
        Meetings.exchange = Meetings.whole  # type: ignore[attr-defined, method-assign]
        return

    def alone(self: Any, query: int, check: Any, number: int, parts: Any) -> Exchanged:
        return Exchanged(list(parts[self.rank] or []), 0, 0)

    Meetings.whole, Meetings.exchange = Meetings.exchange, alone  # type: ignore[attr-defined, method-assign]


def test_a_worker_that_does_not_come_to_a_meeting_is_an_error(client: Any, opened: Opened) -> None:
    connection, query = opened(TABLES, fuse="never"), "select count(*) from t, u where t.k = u.k"
    found = connection.sql(query).to_arrow()
    worker = connection._runner.crew.addresses[1]
    client.run(_skip_meetings, True, workers=[worker])
    try:
        with pytest.raises(errors.ClusterError, match="without a meeting"):
            connection.sql(query).to_arrow()
    finally:
        client.run(_skip_meetings, False, workers=[worker])
    assert connection.sql(query).to_arrow().equals(found)

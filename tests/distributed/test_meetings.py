"""How often the workers meet for a query, and how many messages they send each other: each meeting is a round that all wait for."""

from __future__ import annotations

from typing import Any

import pytest

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

"""Queries with one token changed are taken here only where DuckDB takes them: a fixed sample in CI, new seeds by night."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.compare import assert_same_as_duckdb
from tests.sql.mutations import Judges, corpus, failures, mutants

SETUP = ["create table t as select * from (values (1, 'x'), (2, 'y'), (null, null)) v(i, s)"]
SECONDS_BY_NIGHT = 240


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    found = Judges()
    yield found
    found.close()


def test_a_fixed_sample(judges: Judges) -> None:
    counts: Counter[str] = Counter()
    assert failures(judges, (*corpus(), *mutants(seed=1, count=100)), counts) == []
    assert counts["DuckDB taken, Fuseline taken"] > 450
    print(dict(counts))


@pytest.mark.nightly
def test_new_seeds(judges: Judges) -> None:
    seed, counts, end = time.time_ns(), Counter[str](), time.monotonic() + SECONDS_BY_NIGHT
    for slice_ in itertools.count(seed):
        assert failures(judges, mutants(slice_, count=1000), counts) == [], f"seed {slice_}"
        if time.monotonic() > end:
            break
    print(dict(counts))


@pytest.mark.parametrize("query", [
    "select i from t order by (1) desc", "select -i as i from t order by (i)",
    "select i, count(*) as n from t group by (1), ((i)) order by ((1))",
    "select distinct on ((1)) i, s from t order by ((1)) desc",
    "select i from t order by +1, 1",
    "select +i as x, - +i as y, + + 1.5 as z, +null as n from t where +i between +1 and (+2)",
    "select ((i) in ((1), 2)) as a, ((i, s)) in ((1, 'x'), ((2, 'z'))) as b from t",
])  # fmt: skip
def test_parentheses_and_plus_are_read_as_by_duckdb(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, setup=SETUP, backend=backend)

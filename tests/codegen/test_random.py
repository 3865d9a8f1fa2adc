"""Random pipelines and joins: the kernel, the operators and DuckDB give the same answer; `FUSELINE_RANDOM=5000` tries more by night."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from fuseline.codegen.cpu import host_indexes
from fuseline.codegen.indexes import choose
from fuseline.codegen.indexes.layers import Index
from fuseline.plan import device_costs
from tests.codegen import simulator
from tests.limits import SetLimits
from tests.random_queries.cases import Engines, assert_sound, run_shape
from tests.random_queries.deep import keyed, single

BY_DAY = 12  # most of the time goes into compiling: each case is a kernel or two
BY_NIGHT = int(os.environ.get("FUSELINE_RANDOM", "600"))
FUSED_SHARE = 0.7  # of pipelines, at least: what random joins test is kernels


@pytest.fixture(params=[BY_DAY, pytest.param(BY_NIGHT, marks=pytest.mark.nightly)])
def cases(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def check(engines: Engines, maker: Any, cases: int, first: int = 0) -> None:
    with engines.stack:
        seeds = range(first, first + cases)
        assert_sound([run_shape(engines, seed, 1, maker=maker) for seed in seeds])


@pytest.mark.timeout(1200)  # on a GPU each kernel is compiled for a second or two
def test_a_table(backend: str, cases: int) -> None:
    check(Engines(backend), single, cases * 3 // 2)


def test_a_table_whose_columns_have_many_values(cases: int, limits: SetLimits) -> None:
    """Functions are computed in kernels, or beforehand, and not looked up."""
    limits(LOOKUP_LIMIT=0)
    check(Engines("cpu"), single, cases // 3, 3000)


@pytest.mark.timeout(1200)
def test_joins(backend: str, cases: int) -> None:
    engines = Engines(backend)
    check(engines, keyed, cases * 9 // 10)
    assert engines.fused_share > FUSED_SHARE, engines.notes.most_common(9)


def test_joins_on_threads(cases: int, limits: SetLimits) -> None:
    """Few rows are many: in ranges on threads, in blocks, in groups far apart."""
    limits(ROWS_A_RANGE=8, SPARSE_GROUPS=16, WIDE_GROUPS=4, emit_cpu__BLOCK=8)
    check(Engines("cpu", threads=4), keyed, cases // 4, 1000)


def test_joins_behind_bits(backend: str, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bits go before all row numbers of distinct keys, a sieve before those of few rows and before buckets; what is not filled holds garbage."""
    made: set[str] = set()

    def noted(*args: Any) -> Index:
        index = Index(*args)
        made.add(index.shown)
        return index

    bounds = {"CACHED_SLOTS": 0, "BITS_A_SIEVE_BIT": 1e-6, "FEW_FOUND": 2.0}
    bounds |= {"MOST_SIEVE_BITS": choose.SIEVE_BITS, "SIEVE_BITS_A_ROW": choose.SIEVE_BITS / 6}
    bounds |= {"MOST_BUCKET_SIEVE_BITS": 4 * choose.SIEVE_BITS, "SIEVED_ROWS": 0}
    for name, bound in bounds.items():
        monkeypatch.setattr(choose, name, bound)
    monkeypatch.setattr(choose, "Index", noted)
    monkeypatch.setattr(device_costs, "CPU", replace(device_costs.CPU, sieved_bits=0))
    monkeypatch.setattr(host_indexes, "_allocated", lambda b: simulator.memory([b])[b.name])
    check(Engines(backend), keyed, max(cases // 8, 12), 2000)
    assert made >= {"direct behind bits and a sieve", "bits behind a sieve"}

"""Kernels of fused joins, simulated as CUDA: their indexes, accumulators and rows are those of the CPU's kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from fuseline.plan import device_costs
from tests.codegen.simulated import Simulate
from tests.codegen.test_joins import KINDS, SHAPES, STAR, keyed
from tests.limits import SetLimits

REFUSED = ("scalar", "left residual", "build keys")  # by some shapes of keys


SEVERAL = [
    "select region, sum(v), count(*) from t join u on i = u.k join x on u.x = x.k "
    "join y on x.y = y.k group by region",
    "select u.k, place, sum(v) from t join u on i = u.k join x on u.x = x.k group by u.k, place",
    "select q, count(*), sum(v) from t join u on i = u.k left join z on j = z.k group by q",
    "select i, j, v, count(*) from t join u on i = u.k group by i, j, v",
    "select v, name, w from t join u on i = u.k where v > 500",
    "select v, i, q from t left join z on j = z.k where v % 50 = 1",
]


@pytest.mark.by_day
@pytest.mark.parametrize("kind", [k for k in KINDS if k not in REFUSED])
@pytest.mark.parametrize("shape", ["unique", "duplicate", "far apart", "range of 2**63, duplicate"])
def test_a_kind_of_join(kind: str, shape: str, simulate: Simulate) -> None:
    probe, build = SHAPES[shape]
    simulate(KINDS[kind], {"t": keyed("v", probe), "u": keyed("w", build)})


@pytest.mark.parametrize(
    "kind", ["inner", "left", "exists", "not in", "mark", "filtered", "groups"]
)
def test_a_kind_of_join_behind_bits(
    kind: str, simulate: Simulate, limits: SetLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_costs, "CPU", replace(device_costs.CPU, sieved_bits=0))
    limits(CACHED_SLOTS=0, BITS_A_SIEVE_BIT=1e-12, FEW_FOUND=2.0)
    probe, build = SHAPES["unique"]
    made = simulate(KINDS[kind], {"t": keyed("v", probe), "u": keyed("w", build[::-1])})
    (index,) = (p.index for p in made if p.index is not None)
    assert index.sieved != index.linked


@pytest.mark.by_day(2)
@pytest.mark.parametrize("kind", ["inner", "left", "exists", "not in", "mark", "filtered"])
def test_a_kind_of_join_by_buckets_behind_a_sieve(
    kind: str, simulate: Simulate, limits: SetLimits
) -> None:
    limits(SIEVED_ROWS=0, FEW_FOUND=2.0)
    probe, build = SHAPES["far apart"]
    made = simulate(KINDS[kind], {"t": keyed("v", probe), "u": keyed("w", build)})
    assert [p.index.shown for p in made if p.index is not None] == ["hashed behind a sieve"]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", SEVERAL)
def test_several_joins(query: str, simulate: Simulate) -> None:
    simulate(query, {**STAR, "t": STAR["t"].slice(0, 301)})


def test_groups_in_a_hash_table(simulate: Simulate) -> None:
    """The domain of both keys is too large for anything else."""
    tables = {
        "t": pa.table({"a": np.arange(200) % 40 * 10**9, "v": np.arange(200)}),
        "u": pa.table({"a": np.arange(40) * 10**9, "b": np.arange(40) % 7 * 10**8}),
    }
    query = "select t.v // 7 * 1000000 as f, u.b, count(*), sum(v) from t join u on t.a = u.a group by f, u.b"
    *_, main = simulate(query, tables)
    assert main.grouping is not None
    assert main.grouping.hashed

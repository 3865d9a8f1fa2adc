"""Random joins: the kernels, the operators and DuckDB give the same answer; `FUSELINE_RANDOM=5000` tries more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

import fuseline
from fuseline.codegen import indexes
from fuseline.codegen.cpu import emit_cpu, host_indexes, host_kernels
from fuseline.codegen.indexes import Index
from fuseline.codegen.joins import builds
from tests.codegen import simulator
from tests.codegen.random_checks import EXAMPLES, Connections, check, random_settings
from tests.codegen.random_joins import joins, table_sets
from tests.compare import Ordering

FUSED_SHARE = 0.7  # of pipelines, at least: what random joins test is kernels


@pytest.mark.timeout(1200)  # on a GPU each kernel is compiled for a second or two
def test_random_joins(connections: Connections) -> None:
    @random_settings(EXAMPLES)
    @given(tables=table_sets(), query=joins())
    def attempt(tables: dict[str, pa.Table], query: str) -> None:
        check(connections, tables, query, Ordering(False))

    attempt()
    assert connections.fused_share > FUSED_SHARE, connections.notes.most_common(9)


@pytest.fixture(scope="module")
def on_threads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connections]:
    """Kernels of the CPU for which few rows are many: in ranges on threads, in blocks, in groups far apart."""
    kernels: Path = tmp_path_factory.mktemp("kernels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_kernels, "ROWS_A_RANGE", 8)
        patch.setattr(host_kernels, "SPARSE_GROUPS", 16)
        patch.setattr(emit_cpu, "WIDE_GROUPS", 4)
        patch.setattr(emit_cpu, "BLOCK", 8)
        with (
            fuseline.connect(device="cpu", fuse="always", threads=4, cache_dir=kernels) as fused,
            fuseline.connect(device="cpu", fuse="never") as unfused,
        ):
            yield Connections(fused, unfused)


@random_settings(EXAMPLES // 4)
@given(tables=table_sets(), query=joins())
def test_a_random_join_on_threads(
    on_threads: Connections, tables: dict[str, pa.Table], query: str
) -> None:
    check(on_threads, tables, query, Ordering(False))


def test_random_joins_behind_bits(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bits go before all row numbers of distinct keys, a sieve before those of few rows and before buckets; what is not filled holds garbage."""
    made: set[str] = set()

    def noted(*args: Any) -> Index:
        index = Index(*args)
        made.add(index.shown)
        return index

    bounds = {"CACHED_SLOTS": 0, "BITS_A_SIEVE_BIT": 1e-6, "FEW_FOUND": 2.0}
    bounds |= {"MOST_SIEVE_BITS": indexes.SIEVE_BITS, "SIEVE_BITS_A_ROW": indexes.SIEVE_BITS / 6}
    bounds |= {"MOST_BUCKET_SIEVE_BITS": 4 * indexes.SIEVE_BITS, "SIEVED_ROWS": 0}
    for name, bound in bounds.items():
        monkeypatch.setattr(indexes, name, bound)
    monkeypatch.setattr(builds, "Index", noted)
    monkeypatch.setattr(host_indexes, "_allocated", lambda b: simulator.memory([b])[b.name])

    @random_settings(EXAMPLES // 8)
    @given(tables=table_sets(), query=joins())
    def attempt(tables: dict[str, pa.Table], query: str) -> None:
        check(connections, tables, query, Ordering(False))

    attempt()
    assert made >= {"direct behind bits and a sieve", "bits behind a sieve"}

"""Plans of TPC-H as eight workers with 141 GB each would run them at SF1000: tests/golden/cluster_tpch.txt, by `--rewrite-goldens`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tpch
from benchmarks.data import tpch_tables
from fuseline.distributed.own_plans import whole_plan
from fuseline.plan.exchange import Exchange, expected_bytes
from fuseline.plan.node import walk_once
from fuseline.plan.physical import Physical
from fuseline.plan.text.plan_text import tree
from fuseline.storage.shards import Placement
from tests.compare import connected
from tests.planner.scaled_tables import scaled_table

GOLDEN = Path(__file__).parent.parent / "golden" / "cluster_tpch.txt"
SCALE, WORKERS, DEVICE_BYTES = 1000, 8, 141e9
LOCAL = [1, 3, 4, 5, 6, 7, 8, 12, 14, 18, 19, 21]  # queries that move no large part of a table
SMALL = 0.1e9  # bytes of a side that goes to all


@pytest.fixture(scope="module")
def plans() -> Iterator[dict[str, Physical]]:
    below = DEVICE_BYTES / 256
    with connected(fuse="never") as connection:
        for name, path in tpch_tables(0.01).items():
            connection.catalog.put(scaled_table(Path(path), name, SCALE * 100))
        made: dict[str, Any] = {}
        for name, text in tpch.queries(SCALE).items():
            placed = connection.physical(connection.sql(text)._plan)
            own = whole_plan(
                placed, connection.settings, Placement(below, below, few_below=below), 0, WORKERS
            )
            made[name] = own.plan
        yield made


def test_plans_are_those_that_are_stored(
    plans: dict[str, Physical], request: pytest.FixtureRequest
) -> None:
    text = "\n\n".join(f"=== {name}\n{tree(plan)}" for name, plan in plans.items()) + "\n"
    if request.config.getoption("--rewrite-goldens"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


@pytest.mark.parametrize("number", LOCAL)
def test_joins_on_keys_of_the_tables_order_move_nothing(
    number: int, plans: dict[str, Physical]
) -> None:
    """Groups that one worker has made of its share are gathered, and small sides may go to all."""
    for node in walk_once(plans[f"q{number:02}"]):
        if isinstance(node, Exchange) and node.kind != "gather":
            assert node.kind == "broadcast"
            assert expected_bytes(node) <= SMALL

"""Join orders: what is filtered comes first, and nothing is multiplied that need not be."""

from __future__ import annotations

from fuseline.plan.logical import Join, Logical, Scan
from fuseline.plan.node import walk
from fuseline.plan.types import BIGINT, INTEGER
from fuseline.planner.estimates.estimate import Estimates
from tests.planner.build import Tables, optimized, table


def joins(plan: Logical) -> list[Join]:
    return [n for n in walk(plan) if isinstance(n, Join)]


def scanned(plan: Logical) -> set[str]:
    return {n.table.name for n in walk(plan) if isinstance(n, Scan)}


def first_join(plan: Logical) -> set[str]:
    """The tables of the deepest join."""
    return min((scanned(j) for j in joins(plan)), key=len)


def chain(length: int) -> Tables:
    """t0 - t1 - ... , each with a key and a reference to the next."""
    return Tables(
        {
            f"t{i}": table(f"t{i}", 10_000, k=(BIGINT, 1, 10_000), n=(BIGINT, 1, 10_000), v=(INTEGER, 1, 100))
            for i in range(length)
        }
    )  # fmt: skip


def chain_query(length: int) -> str:
    names = ", ".join(f"t{i}" for i in range(length))
    keys = " and ".join(f"t{i}.n = t{i + 1}.k" for i in range(length - 1))
    return f"select count(*) from {names} where {keys} and t{length - 1}.v = 5"


def test_the_filtered_relation_is_joined_first() -> None:
    plan = optimized(chain_query(6), chain(6))
    assert first_join(plan) == {"t5", "t4"}
    assert all(j.condition is not None for j in joins(plan))


def test_more_relations_than_dynamic_programming_takes() -> None:
    plan = optimized(chain_query(25), chain(25))
    assert len(joins(plan)) == 24
    assert all(j.condition is not None for j in joins(plan))
    assert "t24" in first_join(plan)


def test_relations_that_nothing_connects_are_multiplied_last() -> None:
    query = "select count(*) from t0, t1, t2 where t0.k = t2.k and t0.v = 1"
    plan = optimized(query, chain(3))
    products = [j for j in joins(plan) if j.condition is None]
    assert len(products) == 1
    assert scanned(products[0]) == {"t0", "t1", "t2"}


def test_a_scalar_subquery_filters_before_the_joins() -> None:
    query = """
        select count(*) from t0, t1, t2
        where t0.k = t1.k and t1.k = t2.k and t0.n = (select max(n) from t3)
    """
    plan = optimized(query, chain(4))
    assert first_join(plan) == {"t0", "t3"}


def test_equal_columns_may_join_through_each_other() -> None:
    query = "select count(*) from t0, t1, t2 where t0.k = t1.k and t1.k = t2.k and t2.v = 1 and t0.v = 1"
    plan = optimized(query, chain(3))
    assert first_join(plan) == {"t0", "t2"}


def test_a_composite_key_keeps_all_its_equalities() -> None:
    query = "select count(*) from t0, t1 where t0.k = t1.k and t0.n = t1.n and t0.v < t1.v"
    (join,) = joins(optimized(query, chain(2)))
    assert join.condition is not None
    assert len(join.condition.children) == 3


def test_a_relation_joined_twice_to_the_same_column_is_filtered_by_the_equality() -> None:
    query = "select count(*) from t0, t1 where t0.k = t1.k and t0.n = t1.k"
    plan = optimized(query, chain(2))
    from fuseline.plan.logical import Filter

    (own,) = [n for n in walk(plan) if isinstance(n, Filter)]
    assert scanned(own) == {"t0"}


def test_a_foreign_key_keeps_its_rows() -> None:
    plan = optimized("select * from lineitem, orders where l_orderkey = o_orderkey")
    rows = Estimates().rows(plan)
    assert 5_000_000 < rows < 7_000_000


def test_two_halves_of_a_range_are_one_interval() -> None:
    plan = optimized(
        "select * from orders where o_orderdate >= date '1994-01-01' and o_orderdate < date '1995-01-01'"
    )
    assert 200_000 < Estimates().rows(plan) < 260_000


def test_a_table_of_unknown_size_can_be_joined() -> None:
    tables = Tables({"x": table("x", None, k=BIGINT), "y": table("y", 0, k=BIGINT)})
    assert len(joins(optimized("select count(*) from x, y where x.k = y.k", tables))) == 1

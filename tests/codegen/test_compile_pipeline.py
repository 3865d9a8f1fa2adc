"""Bodies with joins become programs: which indexes, in which order, and what each kernel reads."""

from __future__ import annotations

import pytest

from fuseline.codegen.compile_pipeline import Limits
from fuseline.codegen.emit import listing
from fuseline.codegen.indexes.layers import Bitmap, Buckets, Direct
from fuseline.codegen.loop import Each, Guard, Let, Search
from fuseline.plan.expr import Call, Case, ColumnRef, Literal
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.physical import FilterRows, HashAggregate, NestedLoopJoin
from fuseline.plan.types import BIGINT, BOOLEAN
from tests.codegen.bodies import (
    Tables,
    call,
    column,
    compute,
    expr,
    grouped,
    join,
    kinds,
    made,
    names,
    refusal,
    statement,
    where,
)


class Shop(Tables):
    """Tables in the manner of TPC-H."""

    def __init__(self) -> None:
        super().__init__()
        self.nation = self.scan(
            "nation", 25, n_key=(0, 24), n_name=["FRANCE", "PERU"], n_rank=(0, 9)
        )
        self.customer = self.scan(
            "customer", 1000, c_key=(1, 1000), c_nation=(0, 24), c_kind=(0, 4), c_name=str
        )
        self.orders = self.scan(
            "orders",
            10_000,
            o_key=(1, 40_000),
            o_customer=(1, 1000),
            o_date=(0, 2405),
            o_comment=str,
        )
        self.line = self.scan(
            "line",
            40_000,
            l_order=(1, 40_000),
            l_date=(0, 2526),
            l_price=(90, 10**7),
            l_who=(1, 99),
        )


@pytest.fixture
def shop() -> Shop:
    return Shop()


def shipping(shop: Shop) -> HashAggregate:
    """TPC-H Q3: revenue of orders of some customers."""
    customers = where(shop.customer, "eq", "c_kind", 2)
    orders = join(where(shop.orders, "lt", "o_date", 1000), customers, "o_customer = c_key")
    lines = where(shop.line, "gt", "l_date", 1000)
    return grouped(join(lines, orders, "l_order = o_key"), "l_order o_date", "l_price")


def test_builds_run_before_the_kernels_that_probe_them(shop: Shop) -> None:
    stages = made(shipping(shop), shop)
    assert [p.name for p in stages.programs] == [
        *("build_customer", "build_orders", "scan_filter_probe_group")
    ]
    assert [p.index for p in stages.programs] == [*stages.indexes, None]
    assert [b.name for b in stages.main.buffers] == ["orders_heads"]


def test_a_side_of_which_nothing_is_read_is_bits_without_repeated_keys(shop: Shop) -> None:
    customer, orders = made(shipping(shop), shop).indexes
    assert (customer.form, customer.unique, customer.slots) == (Bitmap, True, 1000)
    assert (orders.form, orders.unique, orders.slots) == (Direct, True, 40_000)


def test_groups_by_the_row_that_decides_the_keys(shop: Shop) -> None:
    main = made(shipping(shop), shop).main
    assert main.grouping is not None
    assert main.grouping.row == 1
    assert main.grouping.groups == 10_000
    assert main.elements == ()  # the keys are read once a group
    keys = [column(shop.orders, "o_key"), column(shop.orders, "o_date")]
    assert [main.relations[1].stored[late.expr.column] for late in main.late] == keys  # type: ignore[attr-defined]


def test_a_kernel_guards_filters_before_the_first_probe(shop: Shop) -> None:
    text = listing(made(shipping(shop), shop).main)
    assert text.splitlines()[-8:] == [
        "  keep: bool_ = (l_date_code > c0)  # filter l_date > constant",
        "  where keep:",
        "    orders_number: int32 = np.int32(np.int32(l_order_code + c1) - c2)  # number of o_key",
        "    orders_row: int32 = find_direct(orders_heads, orders_number)  # inner join orders",
        "    where (orders_row >= np.int32(0)):",
        "  slot = orders_row  # row of 10000, which decides l_order, o_date",
        "  a0 int64 add np.int64(1)",
        "  a1 int64 add np.int64(np.int32(l_price_code + c3))",
    ]


def test_without_keys_of_the_join_rows_decide_no_group(shop: Shop) -> None:
    customers = join(shop.orders, shop.customer, "o_customer = c_key")
    body = grouped(join(shop.line, customers, "l_order = o_key"), "c_name", "l_price")
    assert refusal(body, shop) == "c_name has no encoding"


def test_keys_of_further_relations_are_read_at_a_row_that_is_put_away(shop: Shop) -> None:
    orders = join(shop.line, shop.orders, "l_order = o_key")
    customers = join(orders, shop.customer, "o_customer = c_key")
    main = made(grouped(customers, "c_name c_key o_key o_date", "l_price"), shop).main
    assert main.grouping is not None
    ((relation, accumulator),) = main.grouping.rows_of
    assert main.relations[relation].leaf is shop.customer
    assert main.accumulators[accumulator].fold == "put"
    assert len(main.late) == 4


def test_a_nested_build_side_is_probed_again_for_what_is_read_of_it(shop: Shop) -> None:
    nations = join(shop.customer, shop.nation, "c_nation = n_key")
    orders = join(shop.orders, nations, "o_customer = c_key")
    stages = made(grouped(join(shop.line, orders, "l_order = o_key"), "n_name"), shop)
    assert [i.form for i in stages.indexes] == [Direct] * 3
    assert [r.row for r in stages.main.relations] == [
        *("row", "orders_row", "customer_row", "nation_row")
    ]
    assert names(stages.main) == ["orders.o_customer", "customer.c_nation", "nation.n_name"]
    assert kinds(stages.main).count("Guard") == 1  # what the index holds has passed its own joins


def test_a_left_join_with_repeated_keys_goes_through_all_rows(shop: Shop) -> None:
    body = grouped(join(shop.customer, shop.orders, "c_key = o_customer", "left"), "c_key", "o_key")
    stages = made(body, shop)
    loop = statement(stages.main, Each)
    assert (loop.once, stages.indexes[0].linked, stages.main.repeats) == (True, True, True)
    assert stages.main.counted == 0
    assert stages.main.relations[1].optional


def test_repeated_rows_add_up_in_as_many_parts_as_their_number_may_take() -> None:
    tables = Tables()
    fact = tables.scan("fact", 100, k=(0, 9), v=(0, 2**32))
    other = tables.scan("other", 100, j=(0, 9), w=(0, 9))
    once = made(grouped(fact, "k", "v"), tables).main
    often = made(grouped(join(fact, other, "k = j"), "k", "v"), tables).main
    assert (len(once.accumulators), len(often.accumulators)) == (2, 3)


def test_conditions_of_semi_joins_are_searched(shop: Shop) -> None:
    other = shop.scan("line", 40_000, m_order=(1, 40_000), m_who=(1, 99))
    differs = call("ne", column(other, "m_who"), column(shop.line, "l_who"))
    body = join(shop.line, other, "l_order = m_order", "semi", residual=differs)
    stages = made(grouped(body, "l_who"), shop)
    search = statement(stages.main, Search)
    assert [s.name.text for s in search.body] == ["m_who_code"]
    assert (stages.indexes[0].linked, stages.indexes[0].unique) == (True, False)
    assert not stages.main.repeats


def test_what_a_search_loads_is_loaded_again_after_it(shop: Shop) -> None:
    rows = join(shop.line, shop.orders, "l_order = o_key")
    other = shop.scan("other", 50, x_who=(1, 99), x_date=(0, 2405))
    later = call("gt", column(other, "x_date"), column(shop.orders, "o_date"))
    body = join(rows, other, "l_who = x_who", "anti", residual=later)
    main = made(grouped(body, "o_date"), shop).main
    loads = [s.name.text for s in main.body if isinstance(s, Let)]
    assert loads.count("o_date_code") == 1  # before the loop, which reads it too
    assert "x_date_code" not in loads


def test_unique_keys_are_taken_for_unique_until_they_repeat(shop: Shop) -> None:
    body = grouped(join(shop.line, shop.orders, "l_order = o_key"), "o_date")
    assert made(body, shop).indexes[0].unique
    shop.repeating = [0]
    stages = made(body, shop)
    assert (stages.indexes[0].unique, stages.indexes[0].linked) == (False, True)
    assert "Each" in kinds(stages.main)


def test_rows_of_a_build_side_cannot_be_multiplied(shop: Shop) -> None:
    shop.repeating = [0]
    orders = join(shop.orders, shop.customer, "o_customer = c_key")
    assert "several times" in refusal(
        grouped(join(shop.line, orders, "l_order = o_key"), "l_who"), shop
    )


def test_where_only_being_there_counts_they_can(shop: Shop) -> None:
    shop.repeating = [0]
    orders = join(shop.orders, shop.customer, "o_customer = c_key")
    stages = made(grouped(join(shop.line, orders, "l_order = o_key", "semi"), "l_who"), shop)
    assert [(i.form, i.unique) for i in stages.indexes] == [(Bitmap, False)] * 2


def test_not_in_asks_how_many_rows_and_nulls_there_were() -> None:
    tables = Tables()
    left = tables.scan("left_side", 100, "k", k=(0, 9))
    right = tables.scan("right_side", 100, "j", j=(0, 9))
    stages = made(grouped(join(left, right, "k = j", "anti", null_aware=True), "k"), tables)
    assert [b.name for b in stages.main.buffers] == ["right_side_members", "right_side_state"]
    inserted, nulls, _ = stages.programs[0].accumulators
    assert inserted.condition is not None
    assert nulls.condition is not None


def test_a_mark_is_a_value() -> None:
    tables = Tables()
    left = tables.scan("left_side", 100, k=(0, 9), v=(0, 9))
    right = tables.scan("right_side", 100, j=(0, 9))
    marked = join(left, right, "k = j", "mark")
    assert marked.mark is not None
    chosen = call("or", marked.mark, call("gt", column(left, "v"), 5))
    main = made(grouped(compute(FilterRows(marked, chosen)), "k"), tables).main
    assert "right_side_found" in [s.name.text for s in main.body if isinstance(s, Let)]


def test_strings_of_two_dictionaries_are_mapped() -> None:
    tables = Tables()
    left = tables.scan("left_side", 100, s=["a", "b", "c"])
    right = tables.scan("right_side", 100, t=["b", "d"])
    main = made(grouped(join(left, right, "s = t", "semi"), "s"), tables).main
    assert main.tables[0].array.tolist() == [-1, 0, -1, -1]


def test_floats_are_hashed_whole() -> None:
    tables = Tables()
    left = tables.scan("left_side", 100, "x", x=float, v=(0, 9))
    right = tables.scan("right_side", 100, "y", y=float)
    stages = made(grouped(join(left, right, "x = y", "semi"), "v"), tables)
    assert (stages.indexes[0].form, stages.indexes[0].raw) == (Buckets, True)
    assert "find_hashed_raw(" in listing(stages.main)


def test_null_equals_null_where_asked_for() -> None:
    tables = Tables()
    left = tables.scan("left_side", 100, "k", k=(0, 9))
    right = tables.scan("right_side", 100, "j", j=(0, 9))
    body = grouped(join(left, right, "k = j", "semi", null_equal=(True,)), "k")
    assert made(body, tables).indexes[0].slots == 11


def test_keys_of_more_than_64_bits_are_compared_apart() -> None:
    tables = Tables()
    wide = (0, 2**40)
    left = tables.scan("left_side", 100, a=wide, b=wide)
    right = tables.scan("right_side", 100, c=wide, d=wide)
    stages = made(join(left, right, "a = c, b = d", "semi"), tables)
    steps = [s.step for s in stages.main.body if isinstance(s, Let)]
    assert [s for s in steps if s.startswith("number of")] == ["number of d"]
    assert statement(stages.main, Search).step.endswith("where a = c")


def test_large_domains_are_hashed() -> None:
    tables = Tables()
    left = tables.scan("left_side", 100, a=(0, 2**40))
    right = tables.scan("right_side", 100, c=(0, 2**40))
    (index,) = made(join(left, right, "a = c"), tables).indexes
    assert (index.form, index.slots, index.unique) == (Buckets, 128, True)


@pytest.mark.parametrize("kind", ["right", "full"])
def test_joins_that_keep_rows_of_the_build_side_are_refused(shop: Shop, kind: str) -> None:
    body = grouped(join(shop.line, shop.orders, "l_order = o_key", kind), "l_who")
    assert "a HashJoin inside of a pipeline" in refusal(body, shop)


def test_rows_come_out_as_row_numbers(shop: Shop) -> None:
    customers = join(shop.orders, shop.customer, "o_customer = c_key", "left")
    body = compute(customers, next=call("add", column(shop.orders, "o_key"), 1, type=BIGINT))
    main = made(body, shop).main
    assert main.rows_out == (0, 1)
    assert [late.column for late in main.late] == list(body.columns)
    assert main.elements == ()


def test_only_relations_that_columns_come_from_come_out(shop: Shop) -> None:
    body = join(shop.orders, shop.customer, "o_customer = c_key", "semi")
    assert made(body, shop).main.rows_out == (0,)


def test_a_table_read_twice_has_two_sets_of_columns(shop: Shop) -> None:
    again = join(shop.line, shop.orders, "l_order = o_key")
    right = compute(shop.orders, copied=expr(column(shop.orders, "o_date")))
    twice = join(again, right, "l_who = o_customer", "semi")
    both = made(grouped(twice, "o_date"), shop)
    aliases = [alias for r in both.main.relations for alias in r.aliases.values()]
    assert len(set(aliases)) == len(aliases)


def test_one_stored_row_is_read_at_0(shop: Shop) -> None:
    total = shop.stored(0, 1, most=(0, 9))
    above = call("gt", column(shop.line, "l_price"), column(total, "most"))
    body = grouped(NestedLoopJoin(shop.line, total, JoinKind.INNER, above), "l_who")
    main = made(body, shop).main
    assert names(main) == ["stored0.most"]
    assert "Guard" not in kinds(main)
    shop.rows_of["stored0"] = 2
    assert refusal(body, shop) == "a join without equal keys"


def test_values_of_a_missing_row_are_null(shop: Shop) -> None:
    one: Literal = Literal(1, BIGINT)
    right = compute(shop.customer, found=one)
    body = join(shop.orders, right, "o_customer = c_key", "left")
    main = made(grouped(body, "o_date", "found"), shop).main
    (total,) = (a for a in main.accumulators if a.condition is not None and a.magnitude)
    assert "customer_row" in str(total.condition)


def test_text_is_matched_beforehand(shop: Shop) -> None:
    comment = expr(column(shop.orders, "o_comment"))
    like = Call("like", (comment, expr("%x%")), BOOLEAN)
    main = made(grouped(FilterRows(shop.orders, like), "o_date"), shop).main
    assert shop.derivations == [like]
    assert [main.names[i.column] for i in main.inputs] == ["o_comment_like", "o_date"]


def test_a_residual_of_a_left_join_gives_up_the_row(shop: Shop) -> None:
    later = call("gt", column(shop.orders, "o_date"), column(shop.line, "l_date"))
    body = join(shop.line, shop.orders, "l_order = o_key", "left", residual=later)
    main = made(grouped(body, "l_who", "o_date"), shop).main
    rows = [s for s in main.body if isinstance(s, Let) and s.name.text == "orders_row"]
    assert len(rows) == 2
    assert not any(isinstance(s, Guard) for s in main.body)


def test_doubts_count_for_rows_that_are_in(shop: Shop) -> None:
    huge = (2**61, 2**62)
    wide = shop.scan("wide", 99, w_key=(1, 99), factor=(1, 100))
    big = shop.scan("big", 99, b_key=(1, 99), size=huge)
    rows = join(wide, big, "w_key = b_key")
    product = call("mul", column(wide, "factor"), column(big, "size"), type=BIGINT)
    main = made(grouped(compute(rows, product=product), "w_key", "product"), shop).main
    assert main.doubts
    assert kinds(main).index("Doubt") > kinds(main).index("Guard")


def test_groups_beyond_the_direct_limit_stay_on_the_device(shop: Shop) -> None:
    body = grouped(shop.line, "l_order", "l_price")
    dense = made(body, shop, Limits(100, dense_limit=1 << 20)).main.grouping
    assert dense is not None
    assert not dense.hashed
    hashed = made(body, shop, Limits(100, hash_limit=1 << 62)).main.grouping
    assert hashed is not None
    assert hashed.hashed


def test_a_case_over_a_missing_row_is_evaluated_in_registers(shop: Shop) -> None:
    date = ColumnRef(column(shop.orders, "o_date"))
    late = Case((call("is_null", date),), (Literal(0, BIGINT),), date, BIGINT)
    body = compute(join(shop.line, shop.orders, "l_order = o_key", "left"), late=late)
    assert made(grouped(body, "late"), shop).main.grouping is not None


def test_a_left_join_with_a_condition_and_repeated_keys_asks_before_it_goes_through_rows() -> None:
    tables = Tables()
    left = tables.scan("left_side", 100, k=(0, 9), v=(0, 9))
    right = tables.scan("right_side", 100, j=(0, 9), w=(0, 9))
    less = call("lt", column(left, "v"), column(right, "w"))
    main = made(grouped(join(left, right, "k = j", "left", residual=less), "w"), tables).main
    assert [k for k in kinds(main) if k != "Let"] == ["Search", "Each", "Guard"]
    assert "Select" in str(statement(main, Each).first)


def test_strings_of_two_tables_are_compared_in_one_dictionary() -> None:
    tables = Tables()
    left = tables.scan("left_side", 100, k=(0, 9), s=["a", "c"])
    right = tables.scan("right_side", 100, j=(0, 9), t=["b", "c"])
    less = call("lt", column(left, "s"), column(right, "t"))
    main = made(grouped(join(left, right, "k = j", residual=less), "k"), tables).main
    assert [t.array.tolist() for t in main.tables] == [[0, 2, 0], [1, 2, 0]]


def test_a_relation_without_rows_has_no_arrays(shop: Shop) -> None:
    none = shop.scan("none", 0, n_key=(0, 0), n_value=(0, 0))
    main = made(
        grouped(join(shop.line, none, "l_who = n_key", "left"), "l_who", "n_value"), shop
    ).main
    assert main.elements == ()
    assert "n_value_valid: bool_ = (none_row >= np.int32(0))" in listing(main)


def test_a_searched_build_side_may_have_joins_of_its_own(shop: Shop) -> None:
    nations = join(shop.customer, shop.nation, "c_nation = n_key")
    same = call("eq", column(shop.nation, "n_rank"), column(shop.orders, "o_date"))
    body = join(shop.orders, nations, "o_customer = c_key", "semi", residual=same)
    stages = made(grouped(body, "o_date"), shop)
    nation, customer = stages.indexes
    assert (nation.unique, customer.unique, customer.linked) == (True, False, True)

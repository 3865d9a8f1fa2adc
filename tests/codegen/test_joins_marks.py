"""EXISTS and IN as values: DuckDB's answers where they leave a kernel as a column, or are part of one, here and as simulated CUDA."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fuseline.codegen.loop import Let
from fuseline.codegen.program import Program
from fuseline.codegen.row_sources import TRUTHS
from tests.codegen.bodies import Tables, join, made
from tests.codegen.fused import assert_fused_joins
from tests.codegen.machine_code import assembly_of
from tests.codegen.simulated import Simulate
from tests.codegen.test_cubins import programs
from tests.codegen.test_joins import SHAPES, keyed

MARKS = {
    "is_in": "k in (select k from u)",
    "is_not_in": "k not in (select k from u)",
    "is_there": "exists (select * from u where u.k = t.k)",
    "is_less": "exists (select * from u where u.k = t.k and u.w < t.v)",
    "is_in_some": "k in (select k from u where u.w = t.v)",
    "is_not_in_few": "not (k in (select k from u where w > 4)) or v = 3",
    "chosen": "case when k in (select k from u) then v when k is null then -1 else -2 end",
}
ALL = ", ".join(f"({mark}) as {name}" for name, mark in MARKS.items())
ROWS = f"select k, v, {ALL} from t"
CHOSEN = (
    "unique", "duplicate", "nulls", "empty build", "empty probe", "all keys null", "one row", "all equal",
)  # fmt: skip
CHOSEN = (*CHOSEN, "build keys null", "range of 2**63, duplicate", "many, duplicate")


@pytest.mark.by_day(2)
@pytest.mark.parametrize("shape", CHOSEN)
def test_marks_as_columns_over_every_shape_of_keys(shape: str) -> None:
    probe, build = SHAPES[shape]
    assert_fused_joins(ROWS, {"t": keyed("v", probe), "u": keyed("w", build)})


TABLES: dict[str, Any] = {
    "t": pa.table(
        {"k": [1, 2, None, 4, 9, 2, 4], "v": [1, 2, 3, 4, 5, 6, None], "s": [*"abcabca"]}
    ),
    "u": pa.table({"k": [1, 2, 3, None, 9], "w": [7, None, 9, 10, 1], "far": [0, 10**12, 1, 2, 3]}),
    "x": pa.table({"w": [7, 9, 1], "y": [70, 90, None]}),
    "none": pa.table({"k": pa.array([], pa.int64())}),
}
MARKED = "(select *, k in (select k from u) as m from t)"
# All columns of which only kernels know the values: of what an outer join finds, too
COMPUTED = """(select u.k, coalesce(u.w, 0) + 1 as q, u.w is null as r, y, u.w in (select w from x) as m,
    coalesce(y, -1) as z, 'there' as label from u left join x on u.w = x.w)"""
OTHERS = [
    "select k, k in (select k from none) as a, k not in (select k from none) as b from t",
    "select v + 1 as n, s, case when k not in (select k from u where k > 1) then s else 'z' end as c from t",
    f"select m, s from {MARKED} where m or v > 2",
    f"select m, s, y from {MARKED} a join x on a.v + 6 = x.w where m is null or y > 1",
    f"select m, x.w from x left join {MARKED} a on a.v = x.w",
    f"select t.v, a.q, a.r, a.y, a.m, a.z, a.label from t left join {COMPUTED} a on t.k = a.k",
    f"select t.v, a.q, a.m, a.label from t left join {COMPUTED} a on t.k = a.k and v > 1",
    f"select t.v, a.q, a.r, a.m from t full join {COMPUTED} a on t.k = a.k",
    f"select coalesce(a.q, t.v) + 1 as n, a.m and v > 1 as o from t left join {COMPUTED} a on t.k = a.k",
    f"select s, m from {MARKED} order by v desc nulls last limit 3",
    f"select s, v from {MARKED} order by m nulls first, v nulls first limit 4",
    f"select m, s from {MARKED} union all select y > 80, 'x' from x",
]
GROUPS = [
    f"select m, count(*), sum(v) from {MARKED} group by m",
    f"select m, s, count(v) from {MARKED} group by m, s",
    "select count(*) filter (where k in (select k from u)) as a, "
    "sum(case when k not in (select k from u) then v end) as b, "
    "bool_or(k in (select k from u)) as c, min(k not in (select k from u)) as d, "
    "count(k in (select k from u)) as e, count(distinct k in (select k from u)) as f from t",
    f"select count(*), bool_and(m) from {MARKED} where (m is null) = (v = 3)",
    # Decided by the row of a build side, whose number is the group's
    "select u.k, u.w, u.far, u.w in (select w from x) as m, exists (select * from x where x.w = u.w and y > u.k) as n, "
    "sum(v) from t join u on t.k = u.k group by all",
]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", [*OTHERS, *GROUPS])
def test_marks_anywhere(query: str) -> None:
    assert_fused_joins(query, TABLES)


def truths(main: Program) -> int:
    """How many marks come out."""
    return sum(main.relations[i].leaf is TRUTHS for i in main.rows_out)


def test_a_mark_comes_out_as_a_row_number() -> None:
    tables = Tables()
    left, right = tables.scan("left_side", 100, k=(0, 9)), tables.scan("right_side", 100, j=(0, 9))
    main = made(join(left, right, "k = j", "mark"), tables).main
    assert [main.relations[i].leaf for i in main.rows_out] == [left, TRUTHS]
    number = main.body[-1]
    assert isinstance(number, Let)
    assert number.name.text == main.relations[1].row


@pytest.mark.by_day(2)
@pytest.mark.parametrize("shape", ["duplicate", "range of 2**63"])
def test_simulated_marks(shape: str, simulate: Simulate) -> None:
    probe, build = SHAPES[shape]
    *_, main = simulate(ROWS, {"t": keyed("v", probe), "u": keyed("w", build)})
    assert truths(main) > len(MARKS) - 2


def test_simulated_marks_of_build_sides(simulate: Simulate) -> None:
    simulate(OTHERS[5], TABLES)


def test_simulated_marks_of_groups_that_are_rows(simulate: Simulate) -> None:
    *_, main = simulate(GROUPS[-1], TABLES)
    assert main.grouping is not None
    assert sum(main.relations[i].leaf is TRUTHS for i, _ in main.grouping.rows_of) == 2


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", [ROWS, OTHERS[5], GROUPS[-1]])
def test_kernels_compile_for_a_gpu(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba_cuda")
    *_, main = programs(query, TABLES, monkeypatch)
    assembly_of(main)

"""Joins of every kind: NULL and NaN keys, residuals, lopsided and empty sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.errors import ExecutionError
from fuseline.plan import physical as p
from fuseline.plan.expr import Call, ColumnRef, Expr, new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.types import BOOLEAN

from .plans import assert_agree, both_raise, column, scan, scan_of

pytestmark = pytest.mark.gpu

KINDS = tuple(kind for kind in JoinKind if kind is not JoinKind.SINGLE)
SIZES = ((40, 30), (0, 5), (5, 0), (0, 0), (1, 200), (200, 1))


def sides(seed: int, sizes: tuple[int, int], *kinds: str, **options: Any) -> tuple[Any, Any]:
    """Two scans with key columns of these kinds and a number each."""
    rng = np.random.default_rng(seed)
    made = []
    for side, rows in zip("lr", sizes, strict=True):
        keys = [column(f"{side}{i}", kind) for i, kind in enumerate(kinds)]
        made.append(scan(rng, rows, [*keys, column(f"{side}_value", "integer")], **options))
    return made[0], made[1]


def joined(kind: JoinKind, left: Any, right: Any, width: int, **options: Any) -> p.HashJoin:
    options.setdefault("null_equal", (False,) * width)
    return p.HashJoin(
        left=left,
        right=right,
        kind=kind,  # type: ignore[arg-type]
        left_keys=left.columns[:width],
        right_keys=right.columns[:width],
        mark=new_column("mark", BOOLEAN) if kind is JoinKind.MARK else None,
        **options,
    )


def below(left: Any, right: Any) -> Expr:
    return Call("lt", (ColumnRef(left.columns[-1]), ColumnRef(right.columns[-1])), BOOLEAN)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind: JoinKind, sizes: tuple[int, int]) -> None:
    left, right = sides(1, sizes, "bigint")
    assert_agree(joined(kind, left, right, 1))


KEYS = ("boolean", "tinyint", "integer", "ubigint", "double", "float", "decimal", "wide", "date")


@pytest.mark.parametrize("key", [*KEYS, "timestamp", "time", "nanos", "zoned", "varchar"])
@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.ANTI])
def test_key_types(kind: JoinKind, key: str) -> None:
    rng = np.random.default_rng(2)
    common = [column("l0", key), column("r0", key)]
    pool = scan(rng, 60, [common[0]])
    left, right = (
        scan_of(
            {c.name: pool.table.data.column(0).take(rng.integers(0, 60, 30))},  # type: ignore[attr-defined]
            [c],
        )
        for c in common
    )
    assert_agree(joined(kind, left, right, 1))


@pytest.mark.parametrize("null_equal", [(True, True), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("keys", [("integer", "varchar"), ("double", "date")], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_null_equal_keys(
    kind: JoinKind, keys: tuple[str, str], null_equal: tuple[bool, bool]
) -> None:
    left, right = sides(3, (50, 40), *keys, values=3, nulls=0.4)
    assert_agree(joined(kind, left, right, 2, null_equal=null_equal))


@pytest.mark.parametrize("sizes", [(60, 50), (3, 300), (0, 9), (9, 0)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_residual(kind: JoinKind, sizes: tuple[int, int]) -> None:
    left, right = sides(4, sizes, "integer")
    assert_agree(joined(kind, left, right, 1, residual=below(left, right)))


@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize("sizes", [(40, 12), (9, 0), (0, 9), (4, 400)], ids=str)
@pytest.mark.parametrize("kind", [JoinKind.ANTI, JoinKind.MARK])
def test_null_aware(kind: JoinKind, sizes: tuple[int, int], nulls: float) -> None:
    left, right = sides(5, sizes, "integer", nulls=nulls, values=20)
    assert_agree(joined(kind, left, right, 1, null_aware=True))


def test_null_aware_with_null_on_one_side() -> None:
    left, _ = sides(6, (40, 0), "integer", nulls=0.3)
    _, right = sides(6, (0, 12), "integer", nulls=0.0, values=3)
    for kind in (JoinKind.ANTI, JoinKind.MARK):
        assert_agree(joined(kind, left, right, 1, null_aware=True))
        swapped = joined(kind, right, left, 1, null_aware=True)
        assert_agree(swapped)


@pytest.mark.parametrize("sizes", [(50, 5), (2, 5), (9, 0)], ids=str)
def test_single_without_second_match(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    left, _ = sides(7, (sizes[0], 0), "integer")
    keys = [column("r0", "integer"), column("r_value", "integer")]
    unique = scan_of(
        {
            "r0": np.arange(sizes[1], dtype=np.int32),
            "r_value": rng.integers(0, 9, sizes[1]).astype(np.int32),
        },
        keys,
    )
    assert_agree(joined(JoinKind.SINGLE, left, unique, 1))


@pytest.mark.parametrize("sizes", [(50, 50), (3, 300)], ids=str)
def test_single_with_second_match_raises(sizes: tuple[int, int]) -> None:
    left, right = sides(8, sizes, "tinyint", nulls=0.0, values=1)
    first = left.table.data.column(0).combine_chunks().slice(0, 1)
    ones = right.table.data.column(1).combine_chunks().slice(0, 1)
    repeated = {"r0": pa.concat_arrays([first] * 9), "r_value": pa.concat_arrays([ones] * 9)}
    same = scan_of(repeated, list(right.columns))
    both_raise(joined(JoinKind.SINGLE, left, same, 1), ExecutionError)


def test_keep_leaves_out_columns() -> None:
    left, right = sides(9, (40, 30), "varchar")
    kept = (right.columns[-1], left.columns[-1])
    assert_agree(joined(JoinKind.FULL, left, right, 1, keep=kept))
    assert_agree(joined(JoinKind.SEMI, left, right, 1, keep=left.columns[-1:]))
    assert_agree(joined(JoinKind.INNER, left, right, 1, keep=()))


NESTED = (*KINDS, JoinKind.SINGLE)


@pytest.mark.parametrize("sizes", [*SIZES, (300, 40)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_nested_loop(kind: JoinKind, sizes: tuple[int, int]) -> None:
    left, right = sides(10, sizes, "varchar", values=30)
    mark = new_column("mark", BOOLEAN) if kind is JoinKind.MARK else None
    assert_agree(p.NestedLoopJoin(left, right, kind, below(left, right), mark))  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [(7, 5), (0, 5), (5, 0), (6, 1), (1, 6), (1, 1)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_cross_product(kind: JoinKind, sizes: tuple[int, int]) -> None:
    left, right = sides(11, sizes, "varchar", "date", "wide")
    mark = new_column("mark", BOOLEAN) if kind is JoinKind.MARK else None
    assert_agree(p.NestedLoopJoin(left, right, kind, None, mark))  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [0, 1])
def test_single_cross_product(rows: int) -> None:
    left, right = sides(12, (9, rows), "varchar")
    assert_agree(p.NestedLoopJoin(left, right, JoinKind.SINGLE))


def test_single_cross_product_with_two_rows_raises() -> None:
    left, right = sides(13, (9, 2), "varchar")
    both_raise(p.NestedLoopJoin(left, right, JoinKind.SINGLE), ExecutionError)

"""Expressions over one column, encoded for kernels: what codes and bitmap stand for is what DuckDB computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.typed_values import NotFusable
from fuseline.operators.context import Context
from fuseline.operators.cpu.pipeline.pipeline_inputs import derived
from fuseline.operators.cpu.table import to_physical
from fuseline.plan import infer
from fuseline.plan.expr import ColumnRef, Expr, Literal, new_column
from fuseline.plan.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, to_arrow
from fuseline.storage.columns.cache import ColumnCache
from fuseline.storage.columns.encodings import EncodedColumn, Narrow, codes_of

S = new_column("s", VARCHAR)
TEXTS: list[str | None] = ["special requests", None, "", "abc", "abd", "xspecialrequests"]


def text(value: str) -> Expr:
    return Literal(value, VARCHAR)


def call(name: str, *args: Expr) -> Expr:
    return infer.call(name, (ColumnRef(S), *args))


def of(expr: Expr, strings: list[str | None] | pa.Array) -> EncodedColumn:
    array = strings if isinstance(strings, pa.Array) else pa.array(strings, pa.string())
    held = to_physical(array, VARCHAR)
    context = Context(ColumnCache(1 << 20), lambda: None, 2)
    return derived(expr, S, held, context)


LIKE = call("like", text("%special%requests%"))


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (LIKE, [True, None, False, False, False, True]),
        (call("length"), [16, None, 0, 3, 3, 16]),
        (call("substring", Literal(1, BIGINT), Literal(2, BIGINT)), ["sp", None, "", "ab", "ab", "xs"]),
        (infer.cast(call("length"), INTEGER), [16, None, 0, 3, 3, 16]),
    ],
    ids=["like", "length", "substring", "cast"],
)  # fmt: skip
def test_values(expr: Expr, wanted: list[Any]) -> None:
    for times in (1, 100):
        found = of(expr, TEXTS * times)
        values = found.encoding.decode(codes_of(found), to_arrow(expr.type))
        assert values.to_pylist() == wanted * times


@pytest.mark.parametrize("strings", [TEXTS, ["abc"], ["special requests"], [None], []])
def test_truth_values_have_one_encoding(strings: list[str | None]) -> None:
    """Whichever of them occur: a kernel made for one run fits the next."""
    found = of(LIKE, strings)
    assert (found.type, found.encoding, found.rows) == (BOOLEAN, Narrow(0, 1, 1), len(strings))
    assert (found.low, found.high, found.nulls) == (0, 1, strings.count(None))
    assert (found.validity is None) == (found.nulls == 0)
    codes = np.asarray(found.codes)
    assert [bool(c) for c in codes] == ["special" in (s or "") for s in strings]


def test_many_different_strings_are_refused() -> None:
    assert of(call("lower"), [f"{i % 4000}" for i in range(100_000)]).encoding.width == 2
    with pytest.raises(NotFusable, match="too many different values"):
        of(call("lower"), [f"{i}" for i in range(70_000)])
    with pytest.raises(NotFusable, match="different values"):
        of(call("lower"), pa.array([f"{i}" for i in range(70_000)] * 11).dictionary_encode())


def test_an_error_in_a_row_is_left_to_operators() -> None:
    """A filter before it may drop that row."""
    with pytest.raises(NotFusable, match="fails in some row"):
        of(infer.cast(ColumnRef(S), INTEGER), ["1", "x"])

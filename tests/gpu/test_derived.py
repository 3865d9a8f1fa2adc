"""Expressions over one column, encoded on the device: what codes and bitmap stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuseline.codegen.values import NotFusable
from fuseline.operators.context import Context
from fuseline.plan import infer
from fuseline.plan.expr import ColumnRef, Expr
from fuseline.plan.types import BOOLEAN, INTEGER
from fuseline.storage.cache import ColumnCache
from fuseline.storage.encodings import Dictionary, EncodedColumn, Narrow
from tests.operators.test_derived import LIKE, TEXTS, S, call

pytestmark = pytest.mark.gpu


@pytest.fixture(params=["codes", "strings"], autouse=True)
def representation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuseline.operators.gpu import dictionaries

    if request.param == "strings":
        monkeypatch.setattr(dictionaries, "MOST_KEYS", 0)


def of(
    expr: Expr, strings: list[str | None], directory: Path, fuse: str = "always"
) -> EncodedColumn:
    import pylibcudf as plc

    from fuseline.operators.gpu.derived import derived
    from fuseline.operators.gpu.dictionaries import encoded

    held = encoded(plc.Column.from_arrow(pa.array(strings, pa.string())))
    cache = ColumnCache(1 << 20)
    context = Context(cache, lambda: None, 1, kernel_directory=directory, fuse=fuse)
    return derived(expr, S, held, context)


def values(found: EncodedColumn) -> list[Any]:
    """Decode on the host."""
    import pylibcudf as plc

    codes: list[int] = found.codes.to_arrow().fill_null(0).to_pylist()[: found.rows]
    valid = [True] * found.rows
    if found.validity is not None:
        bits = plc.transform.mask_to_bools(found.validity.ptr, 0, found.rows)
        valid = bits.to_arrow().to_pylist()
    match found.encoding:
        case Dictionary(strings):
            decoded = [strings[c].as_py() if v else None for c, v in zip(codes, valid, strict=True)]
        case Narrow(base, step, _):
            decoded = [base + step * c if v else None for c, v in zip(codes, valid, strict=True)]
        case _:
            raise AssertionError(found.encoding)
    assert all(c == 0 for c, v in zip(codes, valid, strict=True) if not v)
    return decoded


@pytest.mark.parametrize("times", [1, 100, 20_000])
@pytest.mark.parametrize("fuse", ["always", "never"])
def test_values(times: int, fuse: str, tmp_path: Path) -> None:
    wanted = [True, None, False, False, False, True]
    assert values(of(LIKE, TEXTS * times, tmp_path, fuse)) == wanted * times
    lengths = [16, None, 0, 3, 3, 16]
    assert values(of(call("length"), TEXTS * times, tmp_path, fuse)) == lengths * times
    upper = [None if t is None else t.upper() for t in TEXTS]
    assert values(of(call("upper"), TEXTS * times, tmp_path, fuse)) == upper * times


@pytest.mark.parametrize("strings", [TEXTS, ["abc"], ["special requests"], [None], []])
def test_truth_values_have_one_encoding(strings: list[str | None], tmp_path: Path) -> None:
    found = of(LIKE, strings, tmp_path)
    assert (found.type, found.encoding, found.rows) == (BOOLEAN, Narrow(0, 1, 1), len(strings))
    assert (found.low, found.high, found.nulls) == (0, 1, strings.count(None))
    assert (found.validity is None) == (found.nulls == 0)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFusable, match="encoding"):
        of(call("lower"), [f"{i}" for i in range(70_000)], tmp_path)
    with pytest.raises(NotFusable, match="fails in some row"):
        of(infer.cast(ColumnRef(S), INTEGER), ["1", "x"], tmp_path)

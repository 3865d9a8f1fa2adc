"""Expressions over one column, encoded on the device: what codes and bitmap stand for."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuseline.codegen.typed_values import NotFusable
from fuseline.operators.context import Context
from fuseline.plan import infer
from fuseline.plan.expr import ColumnRef, Expr, Literal
from fuseline.plan.types import BIGINT, BOOLEAN, INTEGER
from fuseline.storage.columns.cache import ColumnCache
from fuseline.storage.columns.encodings import Dictionary, EncodedColumn, Narrow
from tests.codegen.test_lookup import ALL, ASCII
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits
from tests.operators.test_derived_columns import LIKE, TEXTS, S, call

pytestmark = pytest.mark.gpu


@pytest.fixture(params=["codes", "strings"], autouse=True)
def representation(request: pytest.FixtureRequest, limits: SetLimits) -> None:

    if request.param == "strings":
        limits(dictionaries__MOST_KEYS=0)


def of(
    expr: Expr, strings: list[str | None], directory: Path, fuse: str = "always"
) -> EncodedColumn:
    import pylibcudf as plc

    from fuseline.operators.gpu.dictionaries import encoded
    from fuseline.operators.gpu.pipeline.derived_columns import derived

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


# Pieces of texts by what an earlier run has found


@pytest.fixture
def remembered(representation: None, monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> Any:
    """What is kept in mind of pieces, nothing at first; kernels take few rows too, and strings never lie as codes."""
    from fuseline.operators.gpu.scan import run_column_kernels, substring_codes

    limits(dictionaries__MOST_KEYS=0)
    monkeypatch.setattr(run_column_kernels, "ready", lambda context, rows: True)
    monkeypatch.setattr(substring_codes, "_known", OrderedDict())
    return substring_codes._known


def piece(function: str, *places: int) -> Expr:
    return call(function, *(Literal(p, BIGINT) for p in places))


PHONES: list[str | None] = [*("13-345", "", "1", "13", "2\x003", "\x00\x00", "abc-def"), None]
SLICES = [
    (piece("substring", 1, 2), slice(0, 2)),
    (piece("substring", 3, 1), slice(2, 3)),
    (piece("substring", 2, 8), slice(1, 9)),
    (piece("left", 3), slice(0, 3)),
]


@pytest.mark.parametrize("times", [1, 5_000])
@pytest.mark.parametrize(("expr", "part"), SLICES)
def test_pieces(expr: Expr, part: slice, times: int, remembered: Any, tmp_path: Path) -> None:
    def check(strings: list[str | None]) -> EncodedColumn:
        found = of(expr, strings, tmp_path)
        assert values(found) == [None if s is None else s[part] for s in strings]
        assert found.nulls == strings.count(None)
        return found

    first, second = check(PHONES * times), check(PHONES * times)
    assert isinstance(first.encoding, Dictionary)
    assert isinstance(second.encoding, Dictionary)
    assert second.encoding.values is first.encoding.values
    fewer: list[str | None] = ["13-345", "abc-def"] * 4 * times
    third = check(fewer)
    assert isinstance(third.encoding, Dictionary)
    assert third.encoding.values is first.encoding.values
    for strange in ("xyzxyz", "é1", "1é3", "13é", "日本語"):
        check([*PHONES[:-1], strange] * times)
        check(PHONES * times)
    for none in ("", None):
        check([none] * len(PHONES) * times)
    check([])


def test_pieces_that_kernels_do_not_take(remembered: Any, tmp_path: Path) -> None:
    from fuseline.operators.gpu.scan.dictionary_lookup import Substring

    for expr in (
        piece("substring", 0, 2),
        piece("substring", -2, 2),
        piece("substring", 2),
        piece("left", 0),
        piece("left", -1),
        piece("substring", 60, 9),
    ):
        of(expr, PHONES, tmp_path)
        of(expr, PHONES, tmp_path)
        assert not any(isinstance(piece, Substring) for _, _, piece in remembered)


@pytest.mark.parametrize("times", [1, 5_000])
def test_texts_that_were_made_before(times: int, remembered: Any, tmp_path: Path) -> None:
    """Also those beyond ASCII; a text that is new has all of them looked for again."""

    def check(strings: list[str | None]) -> EncodedColumn:
        found = of(call("reverse"), strings, tmp_path)
        assert values(found) == [None if s is None else s[::-1] for s in strings]
        return found

    strings: list[str | None] = [*PHONES, "é日", ""] * times
    first, second = check(strings), check(strings)
    assert isinstance(first.encoding, Dictionary)
    assert isinstance(second.encoding, Dictionary)
    assert second.encoding.values is first.encoding.values
    for strange in ("xyz", "日é", None):
        check([*strings[:-1], strange])
        check(strings)


@pytest.mark.parametrize("tables", [ALL, ASCII], ids=["all", "ascii"])
def test_pieces_in_queries(tables: dict[str, pa.Table], remembered: Any) -> None:
    query = """select substring(s, 1, 2) as x, count(*), sum(k) from t
        where substring(s, 1, 2) in ('13', 'zz', 'é', '', 'ab') or left(s, 1) like '3%'
        group by 1"""
    with connected({"t": tables["t"]}, "gpu", fuse="always") as connection:
        for _ in range(3):
            assert_same_as_duckdb(query, tables, connection=connection)
    assert remembered


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFusable, match="too many different values"):
        of(call("lower"), [f"{i}" for i in range(70_000)], tmp_path)
    with pytest.raises(NotFusable, match="fails in some row"):
        of(infer.cast(ColumnRef(S), INTEGER), ["1", "x"], tmp_path)

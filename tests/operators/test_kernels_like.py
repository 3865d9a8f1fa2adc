"""LIKE on the CPU by a kernel of our own, against DuckDB; without it Arrow gives the same answers."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fuseline.operators.cpu import handwritten_kernels
from fuseline.operators.cpu.functions import kernels_like, kernels_patterns
from fuseline.plan.patterns import ANY, literals, pattern_parts
from tests.codegen.test_like import CASES, PATTERN, STRINGS, TEXT, expected, parts_of
from tests.compare import run_duckdb
from tests.limits import SetLimits
from tests.operators.evaluated import assert_expressions

FURTHER = [
    "%", "abc%", "%日", "日本%", "a%b%a", "%special requests%", "%" + "x" * 200 + "%", "%s%r%",
]  # fmt: skip
TYPES = [pa.string(), pa.large_string()]


@pytest.fixture
def compiled(limits: SetLimits) -> None:
    """Few strings too go through the kernel."""
    limits(cpu__kernels_like__FEW_ROWS=0)
    for wide in (False, True):
        kernels_like.KERNELS[wide].started().result()


def matched(strings: pa.Array, pattern: str) -> list[bool]:
    found = kernels_like.matches(strings, parts_of(pattern))
    assert found is not None, "Arrow was to say it"
    return [bool(x) for x in found & np.asarray(strings.is_valid())]


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("data_type", TYPES, ids=str)
@pytest.mark.parametrize("pattern", [*CASES, *FURTHER])
def test_patterns(pattern: str, data_type: pa.DataType) -> None:
    strings = pa.array(STRINGS * 3, data_type)
    for part in (strings, strings[5:90], strings[17:18]):
        assert matched(part, pattern) == expected(part, pattern)


@pytest.mark.usefixtures("compiled")
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | TEXT, min_size=1, max_size=80), PATTERN, st.data())
def test_random(values: list[str | None], pattern: str, data: Any) -> None:
    strings = pa.array([None if v is None else v.replace("\0", "") for v in values], pa.string())
    strings = strings[data.draw(st.integers(0, len(values) - 1)) :]
    assert matched(strings, pattern) == expected(strings, pattern)


WILD = st.text("aB_%", min_size=1, max_size=8).filter(lambda pattern: "_" in pattern)


@pytest.mark.usefixtures("compiled")
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.none() | st.text("abAB", max_size=8), min_size=1, max_size=60),
    WILD,
    st.sampled_from(["", "é"]),
)
def test_single_wild_cards(values: list[str | None], pattern: str, other: str) -> None:
    """A byte each where all characters are; beside others Arrow is asked."""
    strings = pa.array([*values, other], pa.string())
    for operator, function in (("like", kernels_patterns.like), ("ilike", kernels_patterns.ilike)):
        found = pa.array(function(strings, pattern))
        query = f"select s {operator} $1 as found from t"
        wanted = run_duckdb(query, {"t": pa.table({"s": strings})}, params=[pattern])["found"]
        assert pc.if_else(strings.is_valid(), found, None).to_pylist() == wanted.to_pylist()
    if not other:
        parts = literals([*pattern_parts(pattern), ("run", "")], ANY)
        assert kernels_like.matches(strings, parts) is not None


PREDICATES = [
    "s like '%special%requests%'", "s not like '%special%requests%'", "s like 'a%b'", "s like '%s_ecial%'", "s like '%_b%'",
    r"s like '%a\%b%' escape '\'", "contains(s, 'special')", "contains(s, '')", "s like '%%'", "s like '_%special%'",
    "s like '_'", "s like '___'", "s like '_%_'", "s like '%_'", "s like 'a_'", "s ilike '_B%'", "s ilike '__C'", r"s like '\__' escape '\'",
]  # fmt: skip


@pytest.mark.usefixtures("compiled")
def test_expressions() -> None:
    assert_expressions(PREDICATES, pa.table({"s": [*STRINGS, "a%b", "xa%bx"] * 9}))
    assert_expressions(PREDICATES, pa.table({"s": pa.array([None, None], pa.string())}))


CAPITALS = [
    "Special Requests",
    "SPECIAL",
    "aBc",
    "[kK]",
    "@`{",
    "k",
    "\u212a",
    "\u017f",
    "É",
    "é",
    "",
    None,
]
FOLDED = [
    "s ilike '%SPECIAL%'", "s ilike 'a%C'", "s ilike '%k%'", "s ilike '%K]'", "s ilike '[%'", "s ilike '@%'", "s ilike '%`{'", "s ilike '%S%'",
    "s ilike '%É%'", "s not ilike '%pec%REQ%'", "s ilike '%a!%' escape '!'", "s ilike '%cial req%'", "s ilike '%'", "s ilike '%special_req%'",
]  # fmt: skip


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("only_ascii", [False, True])
def test_capitals(only_ascii: bool) -> None:
    """Of letters beyond ASCII some are capitals of its letters, of which RE2 knows."""
    strings = [s for s in [*STRINGS, *CAPITALS] if not only_ascii or s is None or s.isascii()]
    table = pa.table({"s": strings * 2})
    assert_expressions(FOLDED, table)
    if only_ascii:
        found = kernels_like.matches(table["s"].chunk(0), parts_of("%SPECIAL%"), folded=True)
        assert found is not None
        assert found.any()


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("left", range(1, 4))
def test_pieces_that_are_left_to_arrow(left: int, limits: SetLimits) -> None:
    """The last piece of many has few rows, and each may or may not have enough for a search ahead."""
    table = pa.table({"s": [*STRINGS, "a%b", None, "xa%bx"] * 9}).slice(left)
    limits(
        cpu__kernels_like__FEW_ROWS=8,
        kernels_texts__PIECE_BYTES=table.nbytes * 9 // table.num_rows,
    )
    more = ["regexp_matches(s, 'sp.*q')", "s like '%sp_cial%q_e%'", "s ilike '%SPECIAL%'"]
    assert_expressions([*PREDICATES, *more], table)


def test_until_the_kernel_is_there(monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> None:
    """While a thread compiles, and where that fails, Arrow answers."""
    failed: Future[Any] = Future()
    failed.set_exception(OSError("no compiler"))
    table = pa.table({"s": [*STRINGS, "a%b", "xa%bx"] * 9})
    limits(cpu__kernels_like__FEW_ROWS=0)
    for kernel in (Future[Any](), failed):
        monkeypatch.setattr(kernels_like.KERNELS[False], "_found", kernel)
        assert kernels_like.matches(table["s"].chunk(0), parts_of("%a%")) is None
        assert_expressions(PREDICATES, table)


def test_a_kernel_that_cannot_be_compiled_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(handwritten_kernels, "kernel_file", broken)
    monkeypatch.setattr(handwritten_kernels, "_directory", tmp_path)
    found: Future[Any] = Future()
    with pytest.warns(RuntimeWarning, match="kernel search could not .* no compiler"):
        kernels_like.KERNELS[False]._compile(found)
    assert isinstance(found.exception(), RuntimeError)

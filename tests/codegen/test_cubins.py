"""Every kernel becomes machine code for Hopper, without a GPU: those of TPC-H Q1 and Q6, those of the query shapes, and joins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fuseline.codegen import index_checks
from fuseline.codegen.compile import kernel_files
from fuseline.codegen.cpu import host_functions
from fuseline.codegen.cuda import device_kernels, emit_cuda
from fuseline.codegen.cuda.accumulator_layout import layout
from fuseline.codegen.indexes.layers import Bitmap, Buckets, Direct, Index, Layer
from fuseline.codegen.program import Program
from fuseline.codegen.typed_values import Input
from fuseline.plan.expr import new_column
from fuseline.plan.types import DOUBLE
from fuseline.storage.columns.encodings import Plain
from tests.codegen.index_programs import (
    FACT_KEY,
    build_program,
    filter_program,
    index,
    main_program,
)
from tests.codegen.machine_code import HOPPER, assembly, assembly_of
from tests.codegen.test_calendar_terms import counted, moments
from tests.codegen.test_indexes import FORMS, JOINS, JOINS_BEHIND, by_amount, by_build_row
from tests.codegen.test_joins import STAR
from tests.codegen.test_joins_cuda import SEVERAL
from tests.codegen.test_pipelines import FUSED, TABLES
from tests.compare import connected
from tests.limits import SetLimits

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed: pip install 'fuseline[dev]'")

QUERIES = Path(__file__).parent.parent.parent / "benchmarks" / "tpch"
DYNAMIC_SHIFT = re.compile(r"shr\.[us]\d+\s+%\w+, %\w+, %")


def programs(
    query: str, tables: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> list[Program]:
    """The programs that a query runs."""
    found: list[Program] = []
    compiled = host_functions.compiled

    def keep(program: Program, *rest: Any) -> Any:
        found.append(program)
        return compiled(program, *rest)

    monkeypatch.setattr(host_functions, "compiled", keep)
    with connected(tables, fuse="always") as connection:
        connection.sql(query).to_arrow()
    return found


@pytest.mark.by_day(12)
@pytest.mark.parametrize("query", FUSED)
def test_a_query_shape(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = programs(query, TABLES, monkeypatch)
    assert made
    for program in made:
        assembly_of(program)


@pytest.mark.parametrize("number", ["01", "06"])
def test_tpch(
    number: str, tpch_tables: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop over a word is unrolled: only the rows after the last word look for their code at run time."""
    query = (QUERIES / f"q{number}.sql").read_text()
    (program,) = programs(query, {"lineitem": tpch_tables["lineitem"]}, monkeypatch)
    text = assembly_of(program)
    assert len(DYNAMIC_SHIFT.findall(text)) <= len(program.inputs)
    assert text.count("ld.global") >= 2 * len(program.inputs)


@pytest.mark.parametrize(("form", "linked"), [(Bitmap, False), *FORMS])
def test_a_build(form: type[Layer], linked: bool) -> None:
    """Each row takes one atomic operation on the index; those after the loop add up the counts."""
    text = assembly_of(build_program(index(form, linked)))
    changes = re.findall(r"(?:atom|red)\.global\.(?:or\.b32|exch\.b32)", text)
    assert changes


@pytest.mark.by_day(8)
@pytest.mark.parametrize(("kind", "form", "linked"), JOINS)
def test_a_join(kind: str, form: type[Layer], linked: bool) -> None:
    assembly_of(main_program(kind, index(form, linked)))


@pytest.mark.by_day(8)
@pytest.mark.parametrize(("kind", "made"), JOINS_BEHIND)
def test_a_join_behind_bits(kind: str, made: Index) -> None:
    for program in (build_program(made), main_program(kind, made)):
        assembly_of(program)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("query", SEVERAL)
def test_a_query_of_several_joins(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    *builds, main = programs(query, STAR, monkeypatch)
    assert all(program.index is not None for program in builds)
    for program in (*builds, main):
        assembly_of(program)


def test_groups_in_device_memory() -> None:
    """Of a hash table, and of the rows of a build side; the number of groups is an argument."""
    made = index(Direct, linked=False)
    text = assembly_of(main_program("inner", made, by_amount(hashed=True)))
    assert "atom.global.cas.b64" in text or "atom.cas.b64" in text
    grouping, accumulators = by_build_row()
    assembly_of(main_program("inner", made, grouping, accumulators=accumulators))


def test_rows_out() -> None:
    """A warp takes places by one atomic operation."""
    for program in (
        main_program("left", index(Buckets, linked=True), rows_out=(0, 1)),
        filter_program(FACT_KEY),
    ):
        text = assembly_of(program)
        assert "activemask" in text


@pytest.mark.by_day(2)
@pytest.mark.parametrize("rows", [1 << 20, 1 << 33])
def test_a_queue_of_survivors(rows: int) -> None:
    """Row numbers take 64 bits where a table has too many for 32; a column that few rows need is loaded alone, a double too."""
    program = main_program("inner", index(Direct, linked=False))
    first, *others = program.relations
    amount = Input(new_column("amount", DOUBLE), Plain(8), True)
    names = program.names | {amount.column: "amount"}
    where = replace(first, rows=rows)
    program = replace(program, relations=(where, *others), inputs=(FACT_KEY, amount), names=names)
    assert ("amount", "*float64") in emit_cuda.signature(program)
    assert "vote.sync.ballot" in assembly_of(program)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("bits", [1 << 18, 1 << 19, 1 << 20])
def test_a_sieve_in_shared_memory(bits: int) -> None:
    """Its words are read there, in blocks as large as the file says."""
    made = index(Direct, False, guarded=True, sieve_bits=bits)
    program = main_program("inner", made)
    first, *others = program.relations
    program = replace(program, relations=(replace(first, rows=1 << 24), *others))
    held = layout(program).near
    assert held is not None
    text = assembly_of(program)
    assert f".maxntid {held.threads}" in text
    assert text.count("ld.shared") >= 4


def test_the_check_of_hashed_keys() -> None:
    assembly(index_checks.CUDA, index_checks.NAME, index_checks.SIGNATURE)


def test_a_cubin_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it is read; a damaged file is dropped and made anew."""
    (program,) = programs("select count(*), sum(i) from t where i > 1", TABLES, monkeypatch)
    file = device_kernels.kernel_file(program, lambda: "a plan", tmp_path, HOPPER)
    assert not file.is_compiled
    code, origin = file.machine_code()
    assert origin == "compiler"
    again = device_kernels.kernel_file(
        program, lambda: "the same with other constants", tmp_path, HOPPER
    )
    assert again.path == file.path
    kernel_files.forget()
    assert again.machine_code() == (code, "disk")
    file.path.with_suffix(".kernel").write_bytes(b"not a cubin")
    kernel_files.forget()
    mended, origin = file.machine_code()
    assert (len(mended), origin) == (len(code), "compiler")


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", [
    "select date_trunc('quarter', s) as q, dayofweek(d) as w, sum(hour(s)), max(year(s) + week(m)), sum(dayofyear(d)) from t group by 1, 2",
    "select max(date_diff('month', m, s)), sum(n % 3 + n // nullif(n - 1, 0)) from t where s::date > date '1990-01-01'",
])  # fmt: skip
def test_the_calendar_and_remainders(
    query: str, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    limits(LOOKUP_LIMIT=0)
    for program in programs(query, moments("1990-01-01"), monkeypatch):
        assembly_of(program)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", [
    "select max(ns::timestamp), min(us::timestamp_s), sum(n) from t where ms::date > date '1990-01-01' and ns::time > '01:00'",
    "select hour(us::time) as x, count(*), max(d::timestamp_ns) from t where ns > us group by 1",
])  # fmt: skip
def test_casts_between_units(
    query: str, monkeypatch: pytest.MonkeyPatch, limits: SetLimits
) -> None:
    limits(LOOKUP_LIMIT=0)
    made = programs(query, counted(-(4 * 10**9)), monkeypatch)
    assert made
    for program in made:
        assembly_of(program)

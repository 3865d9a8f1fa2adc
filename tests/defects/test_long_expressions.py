"""Expressions of hundreds of terms run, in a kernel or not: Python reads no parentheses nested 200 deep, and LLVM leaves calls in a
long function, which looked as if they raised."""

from __future__ import annotations

from contextlib import nullcontext

import pyarrow as pa
import pytest

from fuseline.codegen.compile import kernel_files
from fuseline.codegen.compile.compiler import NotCompiled
from tests.compare import (
    assert_same_as_duckdb,
    connected,
    difference,
    fuseline_answer,
    ordering,
    run_duckdb,
)

ROWS = 1000
TABLES = {
    "t": pa.table(
        {
            "a": pa.array([i * 7 if i % 11 else None for i in range(ROWS)], pa.int64()),
            "b": [float(i) for i in range(ROWS)],
            "w": pa.array([i * 10**12 for i in range(ROWS)], pa.int64()),
            "s": [f"x{i}" for i in range(ROWS)],
        }
    )
}


def shapes(n: int) -> list[str]:
    terms = range(n)
    return [
        "select count(*) from t where " + " or ".join(f"(a = {i} and b < {i + 1})" for i in terms),
        "select count(*) from t where " + " and ".join(f"(a <> {i} or b < {i + 1})" for i in terms),
        f"select count(*) from t where a in ({', '.join(map(str, terms))})",
        f"select count(*) from t where a not in ({', '.join(str(i) for i in terms)}, 3)",
        f"select count(*) from t where w in ({', '.join(str(i * 10**12) for i in terms)})",
        f"select sum(b) from t where b in ({', '.join(f'{i}.0' for i in terms)})",
        f"select count(*) from t where s in ({', '.join(repr(f'x{i}') for i in terms)})",
        "select sum(case "
        + " ".join(f"when a = {i} and b > {i} then {i}" for i in terms)
        + " end) from t",
        "select sum(" + " + ".join(f"a * {i}" for i in terms) + ") from t",
        "select count(*) from t where coalesce("
        + ", ".join(f"nullif(a, {i})" for i in terms)
        + ") > 3",
        "select sum(greatest(" + ", ".join(f"a - {i}" for i in terms) + ")) from t",
    ]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("shape", range(len(shapes(1))))
@pytest.mark.parametrize(
    "terms", [20, *(pytest.param(n, marks=pytest.mark.nightly) for n in (50, 200)), 300]
)
def test_an_expression_of_many_terms(shape: int, terms: int, backend: str) -> None:
    assert_same_as_duckdb(shapes(terms)[shape], TABLES, backend=backend, fuse=("always", "never"))


@pytest.mark.nightly
@pytest.mark.parametrize("shape", range(len(shapes(1))))
def test_an_expression_of_thousands_of_terms(shape: int, backend: str) -> None:
    query = shapes(3000)[shape]
    expected = run_duckdb(query, TABLES, setup=["set max_expression_depth = 100000"])
    for fuse in ("always", "never"):
        with connected(TABLES, backend, fuse=fuse) as connection:
            actual = fuseline_answer(connection, query)
            assert difference(expected, actual, ordering(query, actual.column_names)) is None


def reason(query: str) -> str | None:
    with connected({"t": TABLES["t"]}, fuse="always") as connection:
        frame = connection.sql(query)
        frame.to_arrow()
        (found,) = {node.receipt.reason for node in frame.profile.pipelines}
        return found


def test_some_fifty_terms_are_a_kernel_and_too_many_are_none() -> None:
    assert reason(shapes(50)[0]) is None
    assert reason(shapes(300)[2]) is None  # one table of all values
    assert "compiling would take long" in str(reason(shapes(500)[0]))
    assert "nested too deeply" in str(reason(shapes(200)[8]))


def test_what_a_compiler_refuses_operators_run_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def refuse(*job: object) -> bytes:
        asked.append(job)
        raise NotCompiled("no")

    monkeypatch.setattr(kernel_files, "compiled", refuse)
    with connected({"t": TABLES["t"]}, fuse="always") as connection:
        for query in (
            "select sum(b * 17 - 3) from t where a > 12345678",
            "select max(b * 19) from t",
        ):
            warned = pytest.warns(RuntimeWarning, match="please report")
            for expected in (
                warned,
                nullcontext(),
            ):  # once for each kernel, as an error would show here
                frame = connection.sql(query)
                with expected:
                    frame.fetchall()
                (pipeline,) = frame.profile.pipelines
                assert pipeline.receipt.reason == "a kernel could not be compiled: no"
                assert "could not be compiled" in connection.sql(query).explain("analyze")
    assert len(asked) == 2

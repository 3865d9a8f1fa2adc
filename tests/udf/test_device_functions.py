"""Python functions in CUDA kernels: as machine code without a GPU, and on one with Python's values, errors and NULLs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline import errors
from fuseline.codegen.compile.compiler import ptx
from fuseline.codegen.cuda import emit_cuda
from fuseline.codegen.program import Program
from fuseline.codegen.udf.refusals import shortened
from fuseline.codegen.udf.row_kernel import DEVICE_ROWS, device_row_kernel
from fuseline.connection import Connection
from fuseline.plan.expr import ColumnRef, new_column
from fuseline.plan.types import BIGINT, DOUBLE
from fuseline.plan.udf.code_image import image_of
from fuseline.plan.udf.python_function import PythonCall, PythonFunction
from tests.codegen.machine_code import HOPPER, assembly, assembly_of
from tests.udf.test_aggregates import RMS

ROWS = 60_000
NUMBERS = pa.table(
    {
        "n": pa.array([None if i % 97 == 5 else i % 5000 + 1 for i in range(ROWS)], pa.int64()),
        "x": pa.array([None if i % 89 == 3 else i / 8 - 100 for i in range(ROWS)]),
        "t": pa.array([i % 3 == 1 for i in range(ROWS)]),
        "k": pa.array((np.arange(ROWS) % 50).astype(np.int32)),
    }
)
KEYS = pa.table({"k": np.arange(0, 50, 2, dtype=np.int32), "w": np.arange(25) * 3})


def steps(n: int) -> int:
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def root(x: float, n: int) -> float:
    found = 1.0
    for _ in range(n % 7):
        found = (found + abs(x) / found) / 2
    return found


def bent(x: float, n: int) -> float:
    if x < 0 or n % 3 == 0:
        return x * n - 1
    return math.sqrt(x) + n


def flipped(t: bool, n: int) -> bool:
    for _ in range(n % 4):
        t = not t
    return t


def endless(n: int) -> int:
    while n != 1:
        n = n + 1 if n > 4000 else n % 7 + 2
    return n


def picky(n: int) -> int:
    made = n
    for divisor in range(2, 9):
        if n == 4999:
            raise ValueError("no such number")
        made += made // divisor
    return made


FUNCTIONS: list[tuple[Callable[..., Any], list[str], str]] = [
    (steps, ["BIGINT"], "INTEGER"),
    (root, ["DOUBLE", "BIGINT"], "DOUBLE"),
    (bent, ["DOUBLE", "BIGINT"], "DOUBLE"),
    (flipped, ["BOOLEAN", "BIGINT"], "BOOLEAN"),
    (endless, ["BIGINT"], "BIGINT"),
    (picky, ["BIGINT"], "BIGINT"),
]


def opened(**settings: Any) -> Connection:
    connection = fuseline.connect(**settings)
    connection.register("numbers", NUMBERS)
    connection.register("keys", KEYS)
    for function, types, result in FUNCTIONS:
        connection.create_function(function.__name__, function, types, result)
    connection.create_function("rms", RMS)
    return connection


# Without a GPU


def call_of(function: Callable[..., Any]) -> PythonCall:
    made = PythonFunction(function.__name__, function, (BIGINT,), BIGINT, "compiled")
    args = (ColumnRef(new_column("n", BIGINT)),)
    return PythonCall(made, args, BIGINT, image=image_of(function))


def loop_over_rows(function: Callable[..., Any], directory: Any) -> str:
    """Return the PTX of the loop that runs a function over a column."""
    kernel = device_row_kernel(call_of(function), directory, HOPPER)
    return assembly(kernel.source, DEVICE_ROWS, kernel.signature)


def test_kernels_with_python_functions_are_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a filter, as group key, in an aggregate: with loops compiled as one, without them as terms."""
    from fuseline.codegen.cpu import host_functions

    made: list[Program] = []
    compiled = host_functions.compiled

    def keep(program: Program, *rest: Any) -> Any:
        made.append(program)
        return compiled(program, *rest)

    monkeypatch.setattr(host_functions, "compiled", keep)
    with opened(device="cpu", fuse="always") as connection:
        connection.sql(
            "select steps(n), sum(bent(x, n)), rms(x) from numbers where flipped(t, n) group by all"
        ).to_arrow()
    (program,) = made
    assert [f.name for f in program.functions] == ["python_flipped", "python_steps"]
    source = emit_cuda.source(program, "a plan")
    assert "from fuseline.codegen.cuda.functions_udf_cuda import" in source
    text = assembly_of(program)
    assert "call" not in text.split(".visible .entry")[1]  # of another function


def test_parts_of_aggregates_are_machine_code(tmp_path: Any) -> None:
    """The step of a row and the finish of a group, as they are called where no kernel has them as terms."""
    from fuseline.plan.udf.python_function import PythonFold
    from fuseline.plan.udf.settled_calls import _finish, _step

    aggregate = RMS.python_aggregate
    x, total, count = (ColumnRef(new_column("x", t)) for t in (DOUBLE, DOUBLE, BIGINT))
    finish = _finish(PythonFold(aggregate, (x,), DOUBLE), [total, count])
    for call in (PythonCall(_step(aggregate, 1, BIGINT), (x,), BIGINT), finish):
        made = replace(call, image=image_of(call.function.python))
        kernel = device_row_kernel(made, tmp_path, HOPPER)
        assert (
            "call" not in assembly(kernel.source, DEVICE_ROWS, kernel.signature).split(".entry")[1]
        )


def test_a_loop_on_a_device_ends(tmp_path: Any) -> None:
    """However long it would go on: the host has the rows for which it does, where a query can be stopped."""
    assert "65535" in loop_over_rows(steps, tmp_path)
    assert "65535" not in loop_over_rows(lambda n: n * n + 1, tmp_path)


def test_what_raises_ends_the_function_and_not_the_kernel(tmp_path: Any) -> None:
    text = loop_over_rows(picky, tmp_path)
    assert text.count("st.global.u8") == 1  # whether the row has failed, of every row
    assert text.count("ret;") == 1


def test_what_no_device_runs_says_why(tmp_path: Any) -> None:
    def listed(n):
        return len([n, n + 1])

    kernel = device_row_kernel(call_of(listed), tmp_path, HOPPER)
    with pytest.raises(Exception, match="list") as caught:
        ptx(kernel.source, DEVICE_ROWS, kernel.signature, HOPPER)
    assert shortened(str(caught.value), 1).startswith(("is refused by Numba: ", "makes lists"))


# On a GPU


@pytest.fixture(scope="module", params=["always", "never"])
def device(request: Any) -> Iterator[Connection]:
    with opened(device="gpu", fuse=request.param, require_gpu=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def host() -> Iterator[Connection]:
    with opened(device="cpu", fuse="never") as connection:
        yield connection


QUERIES = [
    "select count(*), sum(n) from numbers where steps(n) > 100",
    "select count(*), sum(n) from numbers where x > 5 and flipped(t, n) and steps(n) < 90",
    "select steps(n), root(x, n), bent(x, n), flipped(t, n) from numbers order by n, x, t, k limit 500",
    "select steps(n) as s, count(*), count(root(x, n)) from numbers group by s order by s",
    "select flipped(t, n) as f, sum(steps(n)), max(root(x, n)) from numbers group by f order by f",
    "select k, sum(w + steps(n)) from numbers join keys using (k) where flipped(t, n) group by k order by k",
    "select count(*), sum(bent(x, n)) from numbers join keys on numbers.k = keys.k and steps(n) > w",
    "select count(*), max(steps(w + 1)) from numbers left join keys using (k)",
    "select sum(case when n > 100 then steps(n) else bent(x, n) end) from numbers",
    "select max(endless(n)), count(*) from numbers where n = 1 and endless(n) = 1",
    "select sum(picky(n)) from numbers where n <> 4999",
    "select rms(x), rms(n) filter (n > 2000) from numbers",
    "select k, rms(x), rms(x + w) from numbers join keys using (k) group by k having rms(x) > 10 order by k",
]


@pytest.mark.gpu
@pytest.mark.parametrize("query", QUERIES)
def test_a_device_gives_what_the_host_gives(
    query: str, device: Connection, host: Connection
) -> None:
    found, expected = device.sql(query).fetchall(), host.sql(query).fetchall()
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            assert a == b or math.isclose(a, b, rel_tol=1e-9), (one, other)


@pytest.mark.gpu
def test_a_filter_is_inside_the_kernel(device: Connection) -> None:
    frame = device.sql("select count(*) from numbers where steps(n) > 100 and bent(x, n) > 3")
    frame.fetchall()
    fused = device.settings.fuse == "always"
    assert ("compiled, inside the kernel" in frame.explain()) is fused
    assert ("a loop over arrays on the GPU" in frame.explain()) is not fused
    assert all(node.device == "gpu" for node in frame.profile.nodes)
    if fused:
        assert all(pipeline.receipt.fused for pipeline in frame.profile.pipelines)


@pytest.mark.gpu
def test_what_raises_on_a_device_is_pythons_error(device: Connection) -> None:
    with pytest.raises(errors.ExecutionError, match="no such number") as caught:
        device.sql("select sum(picky(n)) from numbers").fetchall()
    assert isinstance(caught.value.__cause__, ValueError)
    device.create_function("beyond", lambda n: n**6, ["BIGINT"], "BIGINT")
    with pytest.raises(errors.OutOfRange, match='"beyond" gave'):
        device.sql("select max(beyond(n)) from numbers").fetchall()
    device.remove_function("beyond")


@pytest.mark.gpu
def test_what_python_runs_is_no_query_of_a_gpu_alone(device: Connection) -> None:
    device.create_function("tagged", lambda n: f"{n}!", ["BIGINT"], "VARCHAR")
    with pytest.raises(errors.DeviceError, match="the Python function tagged, which has a VARCHAR"):
        device.sql("select max(tagged(n)) from numbers").fetchall()
    device.remove_function("tagged")


@pytest.mark.gpu
def test_dates_and_narrow_results(device: Connection) -> None:
    @fuseline.udf("DATE", "TINYINT", returns="DATE")
    def later(day, k):
        while k > 0:
            day += 1
            k -= 1
        return day

    device.create_function("later", later)
    query = "select min(later(date '2020-02-27' + k, (k % 5)::tinyint)), max(later(date '2020-02-27' + k, 1::tinyint)) from numbers"
    assert str(device.sql(query).fetchall()) == (
        "[(datetime.date(2020, 2, 27), datetime.date(2020, 4, 17))]"
    )
    device.remove_function("later")

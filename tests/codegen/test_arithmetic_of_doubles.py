"""Functions of the mathematical library in kernels, of two columns: of one they are evaluated beforehand, by vectors."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from fuseline.plan.functions import SCALAR
from tests.codegen.fused import assert_fused
from tests.codegen.machine_code import assembly_of
from tests.codegen.test_cubins import programs
from tests.limits import SetLimits

VALUES = [None, *map(float, ("nan", "inf", "-inf")), 0.0, -0.0, 0.5, -1.0, 1.0, 3.0, 1e308]
LEFT, RIGHT = zip(*itertools.product(VALUES, VALUES), strict=True)
TABLES = {"t": pa.table({"x": LEFT, "y": RIGHT})}
CALLS = {
    row.name: row.signature.replace("DOUBLE, DOUBLE", "x, y").replace("DOUBLE", "x * y")
    for row in SCALAR.values()
    if row.math
}


@pytest.fixture(autouse=True)
def without_tables(limits: SetLimits) -> None:
    """Columns of few values are as those of many."""
    limits(LOOKUP_LIMIT=0)


def test_functions_are_in_the_kernel_that_reads_them() -> None:
    for first in range(3):
        read = [f"count({v}), min({v}), max({v})" for v in list(CALLS.values())[first::3]]
        assert_fused(f"select {', '.join(read)} from t", TABLES)


def test_functions_in_functions_and_in_filters() -> None:
    assert_fused(
        "select count(*), max(exp(-abs(x - y))) from t where sqrt(x * x + y * y) < 2", TABLES
    )
    assert_fused("select count(*) from t where not isnan(x / nullif(y, 0)) or isinf(x + y)", TABLES)
    assert_fused("select max(power(cbrt(x), 2)), min(ln(y * (x % 7)::float)) from t", TABLES)


def test_device_code(monkeypatch: pytest.MonkeyPatch) -> None:
    values = ", ".join(f"count({value})" for value in CALLS.values())
    for program in programs(f"select {values} from t", TABLES, monkeypatch):
        assembly_of(program)

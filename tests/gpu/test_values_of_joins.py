"""On the GPU: EXISTS and IN as columns, and build sides whose joins multiply their rows; kernels ran, with the operators' answers."""

from __future__ import annotations

import pytest

from tests.codegen import test_builds_multiplied as multiplied, test_joins_marks as marks
from tests.codegen.test_joins import SHAPES, keyed
from tests.gpu.test_fused_joins import assert_joined

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("shape", ["unique", "nulls", "empty build", "many, duplicate"])
def test_marks_as_columns(shape: str) -> None:
    probe, build = SHAPES[shape]
    assert_joined(marks.ROWS, {"t": keyed("v", probe), "u": keyed("w", build)})


@pytest.mark.parametrize("query", [*marks.OTHERS, *marks.GROUPS])
def test_marks_anywhere(query: str) -> None:
    assert_joined(query, marks.TABLES)


@pytest.mark.parametrize("query", multiplied.QUERIES)
def test_rows_that_several_rows_are_found_for(query: str) -> None:
    assert_joined(query, multiplied.some_tables(60))

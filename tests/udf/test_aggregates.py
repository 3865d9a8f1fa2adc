"""Python aggregates: state, step, merge and finish, compiled, with Python's values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline import errors
from fuseline.connection import Connection
from tests.test_layout import ROOT

ROWS = 200_000  # of which one group has more than are one state
VALUES = np.arange(ROWS) / 16.0 - 77.0
NUMBERS = pa.table(
    {
        "x": pa.array(VALUES),
        "n": pa.array([None if i % 3 == 1 else i for i in range(ROWS)], pa.int64()),
        "g": pa.array(np.where(np.arange(ROWS) < 190_000, 0, np.arange(ROWS) % 5).astype(np.int32)),
    }
)
State = tuple[float, int]


def squares(state: State, x: float) -> State:
    return state[0] + x * x, state[1] + 1


def joined(a: State, b: State) -> State:
    return a[0] + b[0], a[1] + b[1]


def root(state: State) -> float:
    return math.sqrt(state[0] / state[1]) if state[1] else 0.0


RMS = fuseline.udaf(
    "DOUBLE",
    returns="DOUBLE",
    initial=(0.0, 0),
    step=squares,
    merge=joined,
    finish=root,
    name="rms",
)
PRODUCT = fuseline.udaf(
    "BIGINT",
    returns="BIGINT",
    initial=1,
    step=lambda s, n: s * (n + 1) % 1_000_003,
    merge=lambda a, b: a * b % 1_000_003,
    name="product_of",
)


@pytest.fixture(scope="module")
def numbers(backend: str) -> Iterator[Connection]:
    with fuseline.connect(device=backend, fuse="always") as connection:
        connection.register("numbers", NUMBERS)
        connection.create_function("rms", RMS)
        connection.create_function("product_of", PRODUCT)
        yield connection


def test_groups_give_what_numpy_gives(numbers: Connection) -> None:
    found = numbers.sql("select g, rms(x) from numbers group by g order by g")
    groups = NUMBERS["g"].to_numpy()
    expected = [(g, math.sqrt((VALUES[groups == g] ** 2).mean())) for g in range(5)]
    assert [g for g, _ in found.fetchall()] == [g for g, _ in expected]
    assert np.allclose([r for _, r in found.fetchall()], [r for _, r in expected], rtol=1e-12)
    frame = numbers.table("numbers").group_by("g").agg(r=RMS("x"), s=fuseline.fn.rms("x")).sort("g")
    assert frame.select("r").fetchall() == frame.select("s").fetchall()
    assert frame.select("g", "r").fetchall() == found.fetchall()
    assert "Step of the Python aggregate rms: compiled, inside the kernel" in found.explain()
    found = numbers.sql("select g, product_of(n) from numbers group by g")
    looped = "Python aggregate product_of: compiled, a loop over the values of each group"
    assert looped in found.explain()


def test_all_rows_and_none(numbers: Connection) -> None:
    (found,) = numbers.sql("select rms(x), product_of(n) from numbers").fetchall()
    expected = 1
    for n in NUMBERS["n"].to_pylist():
        expected = expected if n is None else expected * (n + 1) % 1_000_003
    assert math.isclose(found[0], math.sqrt((VALUES**2).mean()), rel_tol=1e-12)
    assert found[1] == expected
    assert numbers.sql("select rms(x), product_of(n) from numbers where x > 1e9").fetchall() == [
        (0.0, 1)
    ]
    assert numbers.sql("select rms(null), rms(3)").fetchall() == [(0.0, 3.0)]
    assert numbers.sql("select g, rms(x) from numbers where false group by g").fetchall() == []


def test_clauses_of_aggregates(numbers: Connection) -> None:
    query = "select rms(x) filter (x = 3), rms(distinct x) filter (x = 3 or x = 3), rms(x order by x desc) filter (x = 4) from numbers"
    assert numbers.sql(query).fetchall() == [(3.0, 3.0, 4.0)]
    having = "select g from numbers group by g having rms(x) < 9000 and count(*) > 1 order by rms(x) desc limit 1"
    assert numbers.sql(having).fetchall() == [(0,)]
    for text in (
        "rms(x) over ()",
        "rms(rms(x))",
        "rms()",
        "rms(x, x)",
        "rms(date '2020-01-01')",
        "rms(*)",
    ):
        with pytest.raises(errors.FuselineError):
            numbers.sql(f"select {text} from numbers").fetchall()
    with pytest.raises(errors.InvalidQuery, match="WHERE"):
        numbers.sql("select 1 from numbers where rms(x) > 1")


def test_whole_states_have_any_size_in_python(numbers: Connection) -> None:
    added = fuseline.udaf(
        "BIGINT",
        returns="DOUBLE",
        initial=0,
        step=lambda s, n: s + n * n * n,
        merge=lambda a, b: a + b,
        finish=lambda s: s / 1e10,
        name="added",
    )
    numbers.create_function("added", added)
    expected = sum(n**3 for n in NUMBERS["n"].to_pylist() if n is not None) / 1e10
    assert expected * 1e10 > 2**63
    if numbers.device == "cpu":
        assert numbers.sql("select added(n) from numbers").fetchall() == [(expected,)]
    else:
        with pytest.raises(errors.FuselineError, match="BIGINT"):
            numbers.sql("select added(n) from numbers").fetchall()
    numbers.create_function(
        "as_tiny",
        fuseline.udaf(
            "BIGINT",
            returns="TINYINT",
            initial=0,
            step=max_of,
            merge=max_of,
            name="as_tiny",
        ),
    )
    assert numbers.sql("select as_tiny(n) from numbers where n < 128").fetchall() == [(126,)]
    with pytest.raises(errors.OutOfRange, match='"as_tiny"'):
        numbers.sql("select as_tiny(n) from numbers").fetchall()


def as_text(state: float) -> str:
    return f"{state}"


def max_of(a: int, b: int) -> int:
    return max(a, b)


def test_what_it_raises_and_what_does_not_compile(numbers: Connection) -> None:
    def made(name: str, **parts: Any) -> None:
        given = {"initial": 0.0, "step": lambda s, x: s + x, "merge": lambda a, b: a + b, **parts}
        numbers.create_function(name, fuseline.udaf("DOUBLE", returns="DOUBLE", name=name, **given))

    made("inverse_of", finish=lambda s: 1 / s)
    assert numbers.sql("select inverse_of(x) from numbers where x = 2").fetchall() == [(0.5,)]
    with pytest.raises(errors.ExecutionError, match='"inverse_of" raised ZeroDivisionError'):
        numbers.sql("select inverse_of(x) from numbers where x = 1e9").fetchall()
    made("textual", finish=as_text)
    with pytest.raises(errors.Unsupported, match="textual"):
        numbers.sql("select textual(x) from numbers").fetchall()
    with pytest.raises(errors.Unsupported, match="state of listed"):
        made("listed", initial=[1])
    with pytest.raises(errors.Unsupported, match="vectorized"):
        fuseline.udaf(
            "VARCHAR", returns="BIGINT", initial=0, step=max_of, merge=max_of, name="texts"
        )


def test_the_page_has_what_an_aggregate_takes() -> None:
    text = (ROOT / "docs/udf.md").read_text()
    assert all(f"{word}=" in text for word in ("initial", "step", "merge", "finish", "returns"))


# States that kernels fold


def spanned(state: tuple[int, int, int], n: int) -> tuple[int, int, int]:
    low, high, even = state
    high = max(high, n)
    return min(low, n), high, even + (1 if n % 2 == 0 else 0)


def both_spans(a: tuple[int, int, int], b: tuple[int, int, int]) -> tuple[int, int, int]:
    return min(a[0], b[0]), max(a[1], b[1]), a[2] + b[2]


SPAN = fuseline.udaf(
    "BIGINT",
    returns="BIGINT",
    initial=(50, -5, 0),
    step=spanned,
    merge=both_spans,
    finish=lambda s: (s[1] - s[0]) * 1_000_000 + s[2],
    name="span",
)
WEIGHTED = fuseline.udaf(
    "DOUBLE",
    "BIGINT",
    returns="DOUBLE",
    initial=(0.0, 0.0),
    step=lambda s, x, n: (s[0] + x * n, s[1] - n if n < 0 else s[1] + n),
    merge=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    finish=lambda s: s[0] / s[1] if s[1] else -1.0,
    name="weighted",
)


def folded(aggregate: Any, *columns: list[Any]) -> Any:
    """Return what Python gives for all rows without a NULL."""
    made = aggregate.python_aggregate
    state = made.start
    for row in zip(*columns, strict=True):
        if None not in row:
            state = made.step.python(state, *row)
    return made.finish.python(state)


@pytest.mark.parametrize("fuse", ["always", "never"])
def test_states_of_sums_and_extremes_are_pythons(backend: str, fuse: str) -> None:
    x, n, g = (NUMBERS[name].to_pylist() for name in ("x", "n", "g"))
    with fuseline.connect(device=backend, fuse=fuse) as connection:
        connection.register("numbers", NUMBERS)
        connection.create_function("span", SPAN)
        connection.create_function("weighted", WEIGHTED)
        frame = connection.sql(
            "select g, span(n), weighted(x, n) from numbers group by g order by g"
        )
        for group, span, weighted in frame.fetchall():
            rows = [i for i in range(ROWS) if g[i] == group]
            own_x, own_n = [x[i] for i in rows], [n[i] for i in rows]
            assert span == folded(SPAN, own_n)
            assert math.isclose(weighted, folded(WEIGHTED, own_x, own_n), rel_tol=1e-9)
        how = "inside the kernel" if fuse == "always" else "a loop over arrays"
        for name in ("span", "weighted"):
            assert f"Step of the Python aggregate {name}: compiled, {how}" in frame.explain()
        none = "select span(n), weighted(x, n), span(n) filter (n = 51) from numbers where n in (51, 60)"
        assert connection.sql(none).fetchall() == [
            (folded(SPAN, [51, 60]), folded(WEIGHTED, [x[51], x[60]], [51, 60]), folded(SPAN, [51]))
        ]
        empty = connection.sql("select span(n), weighted(x, n) from numbers where n < 0").fetchall()
        assert empty == [(-55_000_000, -1.0)]
        join = "select count(*), span(a.n) from numbers a join numbers b on a.n = b.n where a.g = 4"
        some = [v for v, k in zip(n, g, strict=True) if k == 4 and v is not None]
        assert connection.sql(join).fetchall() == [(len(some), folded(SPAN, some))]


def with_two_ends(state: tuple[float, float], x: float) -> tuple[float, float]:
    """Python 3.12 compiles a conditional expression at the end so."""
    total = state[0] + x
    if x < 0.0:
        return total, state[1] - x
    return total, state[1] + x


def kinds_of(initial: Any, step: Any, merge: Any) -> tuple[str, ...] | None:
    """Return what kernels fold the parts of a state by."""
    from fuseline.codegen.udf.fold_kinds import fold_kinds
    from fuseline.plan.expr import ColumnRef, new_column
    from fuseline.plan.types import DOUBLE, list_of
    from fuseline.plan.udf.code_image import image_of
    from fuseline.plan.udf.python_function import PythonFold

    made = fuseline.udaf(
        "DOUBLE", returns="DOUBLE", initial=initial, step=step, merge=merge, name="f"
    ).python_aggregate
    images = tuple(image_of(f.python) for f in made.functions)
    lists = (ColumnRef(new_column("x", list_of(DOUBLE))),)
    return fold_kinds(PythonFold(made, lists, DOUBLE, images))


def added(a: Any, b: Any) -> Any:
    return a + b


def test_which_states_kernels_fold() -> None:
    assert kinds_of(0.0, lambda s, x: s + x * 2, added) == ("sum",)
    assert kinds_of(0, lambda s, x: s + 1, added) == ("count",)
    assert kinds_of(0, lambda s, x: s + 1 if x > 3 else s, added) == ("sum",)
    assert kinds_of(0.0, lambda s, x: s - x + 1.0, added) == ("sum",)
    assert kinds_of(9, lambda s, x: max_of(s, 3), max_of) is None
    assert kinds_of(1.0, lambda s, x: s + x, added) is None  # which each part would add
    assert kinds_of(0.0, lambda s, x: s * 0.9 + x, added) is None
    assert kinds_of(0.0, lambda s, x: s + s + x, added) is None
    assert kinds_of(0.0, lambda s, x: s + x if s < 5.0 else s, added) is None
    assert kinds_of(0.0, lambda s, x: x, added) is None
    assert kinds_of(0.0, lambda s, x: s + x, lambda a, b: a - b) is None
    assert kinds_of(0.0, lambda s, x: s + x, lambda a, b: a + b + 1.0) is None
    assert kinds_of(0.0, max_of, max_of) is None  # NaN
    pair = (0.0, 0.0)
    both = lambda a, b: (a[0] + b[0], a[1] + b[1])  # noqa: E731
    assert kinds_of(pair, with_two_ends, both) == ("sum", "sum")
    assert kinds_of(pair, lambda s, x: (s[0] + s[1], s[1] + x), lambda a, b: (a[0] + b[0], a[1] + b[1])) is None  # fmt: skip
    assert kinds_of(pair, lambda s, x: (s[1] + x, s[0] + x), lambda a, b: (a[0] + b[0], a[1] + b[1])) is None  # fmt: skip
    assert kinds_of(pair, lambda s, x: (s[0] + x, s[1] + x), lambda a, b: (a[0] + b[1], a[1] + b[0])) is None  # fmt: skip

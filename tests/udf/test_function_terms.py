"""Python functions without loops are terms of the kernel, as SQL's expressions are: equal to Python's values on every path, in as narrow registers."""

from __future__ import annotations

import math
import operator
import os
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import fuseline
from fuseline import errors
from fuseline.codegen.loop import Machine
from fuseline.codegen.typed_values import Value
from fuseline.codegen.udf import udf_terms

ROWS = 3000
SOURCE = random.Random(16)
EDGES = [-(2**63), 2**63 - 1, -(2**62), 3_037_000_500, -1, 0, 1]
NUMBERS = pa.table(
    {
        "a": [None if i % 97 == 5 else SOURCE.randrange(-40, 40) for i in range(ROWS)],
        "b": [SOURCE.randrange(1000) for _ in range(ROWS)],
        "big": [SOURCE.choice(EDGES) for _ in range(ROWS)],
        "c": [SOURCE.randrange(-3000, 3000) for _ in range(ROWS)],
        "i": pa.array([SOURCE.randrange(-(2**31), 2**31) for _ in range(ROWS)], pa.int32()),
        "x": [None if i % 89 == 1 else SOURCE.randrange(-800, 800) / 16 for i in range(ROWS)],
        "t": [SOURCE.random() < 0.5 for _ in range(ROWS)],
    }
)
TYPES = {"a": "BIGINT", "b": "BIGINT", "c": "BIGINT", "big": "BIGINT", "i": "INTEGER", "x": "DOUBLE", "t": "BOOLEAN"}  # fmt: skip
FACTOR, LIMITED = 7, True


def inner(value, least=3):
    if value > least:
        return value - least
    return value


def paths(a, b):
    x = 1
    if (a > 2 and b < 30) or not a:
        x = a * b
    elif a in (1, 2, 3):
        return -a
    y = a if 1 < b < 500 else x
    return max(y, x) // 7


def steps(a, b):
    found = 0
    if a > 0:
        found += 1
    if b > 5 and LIMITED:
        found += 2
    if a + b > 30:
        found |= 4
    return found * 100 if found == 7 and a != 3 else found


def whole(a, b):
    left = (a % 7) + (b // (a * a + 1)) - (a // -3) + a % -5
    return left + (abs(a) + (~a) + (a & b) ^ (b | 3)) + (a >> 2) + a**3


def called(a, b):
    return a * b + a - b * FACTOR + inner(a) + inner(b, a) + (a or b) + (b and a)


def quotient(a, b):
    return a / (b + 1) if a else 2


def large(big, a):
    if big > 2**62 or big < -(2**62):
        return a
    return big + a


def divided(big, a):
    return (big // 2) // a if a != 0 else big % -3


def wide(i, a):
    return i * a - i + min(i, a, 5)


def roots(x, a):
    if x < 0:
        return math.sqrt(-x) + a
    if x > 20 or a is None:
        return math.exp(x / 10.0) / 3
    return min(x, 1.0) * a + abs(x) - max(x, 0.5, x * 2)


def truths(t, a):
    return (not t) + a


@pytest.fixture
def terms_alone(monkeypatch: pytest.MonkeyPatch) -> list[Value]:
    """The values of functions as terms; a function that is compiled as a whole fails."""
    made: list[Value] = []
    as_terms = udf_terms._as_terms

    def noted(*args: Any) -> Value:
        value = as_terms(*args)
        assert value is not None, "it has no terms"
        made.append(value)
        return value

    monkeypatch.setattr(udf_terms, "_as_terms", noted)
    return made


def compared(functions: list[tuple[Callable[..., Any], str, str]], backend: str = "cpu") -> None:
    """Compare functions, given with their columns and type of results, with what Python gives, in one kernel."""
    with fuseline.connect(device=backend, fuse="always") as connection:
        connection.register("numbers", NUMBERS)
        items, expected = [], []
        for place, (function, columns, result) in enumerate(functions):
            names = columns.split()
            connection.create_function(f"f{place}", function, [TYPES[n] for n in names], result)
            rows = zip(*(NUMBERS[n].to_pylist() for n in names), strict=True)
            values = [function(*row) for row in rows if None not in row]
            call = f"f{place}({', '.join(names)})"
            items += [f"count({call})", f"sum({call})", f"min({call})", f"max({call})"]
            total = math.fsum(values) if result == "DOUBLE" else sum(values)
            expected += [len(values), total, min(values), max(values)]
        (found,) = connection.sql(f"select {', '.join(items)} from numbers").fetchall()
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            what = functions[place // 4][0].__name__, items[place]
            assert one == other or math.isclose(one, other, rel_tol=1e-11), (what, one, other)


def test_functions_of_whole_numbers_are_terms(terms_alone: list[Value], backend: str) -> None:
    functions = [(f, "a b", "BIGINT") for f in (paths, steps, whole, called)]
    of_large = [(large, "big a", "BIGINT"), (divided, "big a", "BIGINT"), (wide, "i a", "BIGINT")]
    compared([*functions, *of_large], backend)


def test_functions_of_other_numbers_are_terms(terms_alone: list[Value], backend: str) -> None:
    def compared_with(x, a):
        return (x < a) + (a in (1, 5))

    compared(
        [
            (quotient, "a b", "DOUBLE"),
            (roots, "x a", "DOUBLE"),
            (truths, "t a", "BIGINT"),
            (compared_with, "x a", "BIGINT"),
        ],
        backend,
    )


def test_registers_are_as_narrow_as_those_of_sql(terms_alone: list[Value]) -> None:
    with fuseline.connect(device="cpu", fuse="always") as connection:
        connection.register("numbers", NUMBERS)
        connection.create_function("f", lambda a, b: (a * 3 + b) * 2 - a, ["BIGINT"] * 2, "BIGINT")
        connection.sql("select sum(f(a, b)) from numbers").fetchall()
        (value,) = terms_alone
        assert value.term.type is Machine.I32
        assert value.interval is not None
        assert value.interval.fits_i32


@pytest.mark.by_day(2)
@pytest.mark.parametrize("sign", [operator.add, operator.sub, operator.mul])
def test_what_leaves_64_bits_is_pythons_number_or_an_error(
    sign: Callable[[int, int], int], terms_alone: list[Value]
) -> None:
    with fuseline.connect(device="cpu", fuse="always") as connection:
        connection.register("numbers", NUMBERS)
        known: dict[str, Any] = {}
        symbol = {"add": "+", "sub": "-", "mul": "*"}[sign.__name__]
        exec(f"def back(n, m):\n    return (n {symbol} m) % 1000", known)
        exec(f"def beyond(n, m):\n    return n {symbol} m", known)
        for name in ("back", "beyond"):
            connection.create_function(name, known[name], ["BIGINT", "BIGINT"], "BIGINT")
        rows = NUMBERS["big"].to_pylist()
        found = connection.sql("select sum(back(big, big + 0)) from numbers").fetchall()
        expected = sum(sign(v, v) % 1000 for v in rows)
        assert found == [(expected,)]
        if symbol != "-":
            with pytest.raises(errors.OutOfRange, match='"beyond" gave'):
                connection.sql("select max(beyond(big, big + 0)) from numbers").fetchall()


def test_an_error_counts_on_the_path_that_is_taken_alone(terms_alone: list[Value]) -> None:
    def inverse(a):
        if a == 0:
            return 0.0
        return 1 / a if a > -10 else 10 / (a + 5)

    with fuseline.connect(device="cpu", fuse="always") as connection:
        connection.register("numbers", NUMBERS)
        connection.create_function("inverse", inverse, ["BIGINT"], "DOUBLE")
        expected = math.fsum(inverse(a) for a in NUMBERS["a"].to_pylist() if a is not None)
        ((found,),) = connection.sql("select sum(inverse(a)) from numbers").fetchall()
        assert math.isclose(found, expected, rel_tol=1e-12)
        connection.create_function("bare", lambda a: 1 / (a - 3), ["BIGINT"], "DOUBLE")
        with pytest.raises(errors.ExecutionError, match='"bare" raised ZeroDivisionError'):
            connection.sql("select sum(bare(a)) from numbers").fetchall()


# Functions that are drawn


def drawn(source: random.Random) -> Callable[..., Any]:
    """Return a function of a, b and c with paths and variables, which is never without a value."""
    lines = ["def drawn(a, b, c):", "    x = a", "    y = 2"]

    def term(depth: int) -> str:
        if depth == 0 or source.random() < 0.2:
            return source.choice(["a", "b", "c", "x", "y", str(source.randrange(-9, 10))])
        left, right = term(depth - 1), term(depth - 1)
        kind = source.randrange(8)
        if kind < 3:
            return f"({left} {source.choice('+-*&|^')} {right})"
        if kind == 3:
            return f"({left} {source.choice(['//', '%'])} ({right} % 5 + {source.choice([1, 7])}))"
        if kind == 4:
            return f"({left} if {test(depth - 1)} else {right})"
        if kind == 5:
            return source.choice([f"abs({left})", f"(-{left})", f"min({left}, {right})", f"max({left}, {right})"])  # fmt: skip
        return f"({left} {source.choice(['and', 'or'])} {right})" if kind == 6 else left

    def test(depth: int) -> str:
        sign = source.choice(["<", "<=", "==", "!=", ">", ">="])
        plain = f"{term(max(depth, 0))} {sign} {term(0)}"
        word = source.choice(["and", "or", "and not", ""])
        return f"({plain} {word} {term(0)} > {term(0)})" if word else f"({plain})"

    for _ in range(source.randrange(1, 4)):
        lines.append(f"    if {test(1)}:")
        lines.append(f"        {source.choice('xy')} = {term(2)}")
        if source.random() < 0.5:
            lines.append(f"    elif {test(1)}:")
            lines.append(
                f"        return {term(1)}" if source.random() < 0.5 else f"        y += {term(1)}"
            )
    lines.append(f"    return ({term(3)} + x * 3 - y) % 1000003")
    known: dict[str, Any] = {}
    exec("\n".join(lines), known)
    known["drawn"].__name__ = "\n".join(lines)  # for the message of a failure
    return known["drawn"]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(2))
def test_drawn_functions_are_pythons(seed: int, terms_alone: list[Value], backend: str) -> None:
    source = random.Random(seed)
    compared([(drawn(source), "a b c", "BIGINT") for _ in range(6)], backend)


@pytest.mark.nightly
def test_many_drawn_functions_are_pythons(terms_alone: list[Value]) -> None:
    seed = int(os.environ.get("FUSELINE_SEED", "16"))
    for part in range(40):
        source = random.Random(seed * 1000 + part)
        compared([(drawn(source), "a b c", "BIGINT") for _ in range(6)])

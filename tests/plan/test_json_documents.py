"""What is JSON is found without its values, and is what can be read."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from fuseline.errors import ConversionError
from fuseline.plan.json import documents

PIECES = (
    *[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"a"',
        "1",
        "-0",
        "-0.0",
        "1e999",
        "1E+12",
        "0.1428571428571428",
        "NaN",
        "nan",
        "-Infinity",
        "true",
        "True",
        "null",
        "01",
        "1.",
        ".5",
    ],
    *('"\\ud800"', '"\\u00e9"', '"x\n"', '" "', " ", "\t", "\x0b", "9" * 400, "9" * 5000),
    *('"a":1', "[1,2,]", '{"a":1,}', '{"a":1,"a":2}', "\ufeff", "//c", "'a'"),
)


def found(read: Callable[[str], object], text: str) -> str | None:
    try:
        read(text)
    except ConversionError as error:
        return str(error)
    return None


@pytest.mark.parametrize("seed", range(4))
def test_a_check_finds_what_reading_finds(seed: int) -> None:
    draw, right = random.Random(seed), 0
    for _ in range(5000):
        text = "".join(draw.choices(PIECES, k=draw.randint(1, 6)))
        wrong = found(documents.read, text)
        assert found(documents.check, text) == wrong, text
        right += wrong is None
    assert right > 100
    deep = "[" * 10_000
    assert found(documents.check, deep) == found(documents.read, deep)
    assert documents.is_json(deep + "]" * 10_000)

"""Each public call with arguments of any Python type: an answer or an error of ours, and never a foreign one."""

from __future__ import annotations

import datetime
import inspect
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline import Frame, col, count
from fuseline.errors import FuselineError
from fuseline.fence import PASSED
from fuseline.frame import functions
from fuseline.frame.cursor import Cursor
from fuseline.frame.expressions import accessors
from fuseline.frame.group_by import GroupBy


class Unprintable:
    """Raises when it is shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


VALUES: list[Any] = [
    *(None, True, 0, 1, -1, 2**63, 10**400, 0.5, math.nan, math.inf, Decimal("1e50"), Decimal("NaN")),
    *("", "a", "A", "no", "\0", "\ud800", "é" * 50, b"a", bytearray(b"a"), [], ["a"], [[]], [None], ()),
    *({}, {"a": "b"}, {"a": None}, {1: 2}, {"a"}, range(2), iter("ab"), object(), type, len, ..., 1j),
    *(datetime.date.min, datetime.datetime.max, datetime.timedelta.max, datetime.UTC, Path("x")),
    *(np.int8(1), np.array([1]), np.array("a"), np.datetime64("NaT"), np.float16("inf"), np.void(b"x")),
    *(pa.scalar(1), pa.array([1]), pa.table({"a": [1]}), pa.int8(), col("a"), col("no"), count(), Exception("x")),
    *(datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), lambda: 1, fuseline, slice(1)),
]  # fmt: skip
# What writes to the outside or ends the connection, and what takes plans, which only this package makes
LEFT_OUT = {"show", "close", "interrupt", "to_cudf", "__exit__", "__init__"}
LEFT_OUT |= {
    "run",
    "stream",
    "load",
    "forget",
    "physical",
    "planned",
    "kept",
    "gathered",
    "persisted",
}
LEFT_OUT |= {"dask_frame", "resolve", "with_plan", "runs_on", "sql_over"}


def subjects() -> dict[str, Any]:
    connection = fuseline.connect(device="cpu")
    frame = connection.register("t", {"a": [1, 2, None], "s": ["x", "y", "z"]})
    made = {
        "Connection": connection, "Frame": frame, "GroupBy": frame.group_by("s"),
        "Cursor": connection.execute("select a, s from t"),
        "Expression": col("a"), "When": fuseline.when(col("a") > 1).then(1), "Then": fuseline.when(col("a") > 1),
    }  # fmt: skip
    made |= {
        "TextMethods": col("s").str,
        "MomentMethods": col("a").dt,
        "ListMethods": col("a").list,
        "StructMethods": col("a").struct,
    }
    made["module"] = fuseline
    return made


def methods(owner: type) -> dict[str, Any]:
    """Its own, and those of the classes that it is made of."""
    made_of = owner.__mro__[::-1] if owner in (Frame, functions.Expression) else (owner,)
    return {n: m for one in made_of if one is not object for n, m in vars(one).items()}


def calls() -> list[tuple[str, str]]:
    owners = (
        fuseline.Connection, Frame, GroupBy, Cursor, functions.Expression, functions.When, functions.Then,
        *(accessors.TextMethods, accessors.MomentMethods, accessors.ListMethods, accessors.StructMethods),
    )  # fmt: skip
    found = [
        (owner.__name__, name)
        for owner in owners
        for name, member in methods(owner).items()
        if inspect.isfunction(member) and (not name.startswith("_") or name.endswith("__"))
        if name not in LEFT_OUT | PASSED and len(inspect.signature(member).parameters) > 1
    ]
    return found + [
        ("module", n) for n in fuseline.__all__ if inspect.isfunction(getattr(fuseline, n))
    ]


def used(result: Any, frame: Frame) -> None:
    """What a call gives may fail when it runs; that has to be an error of ours as well."""
    if isinstance(result, GroupBy):
        result = result.count()
    if isinstance(result, functions.Then):
        result = result.then(1)
    if isinstance(result, functions.Expression):
        used_in(frame.select, result)
        used_in(frame.agg, result)
    elif isinstance(result, Frame | Cursor):
        result.fetchall()
        result.to_arrow()


def used_in(method: Any, expression: Any) -> None:
    try:
        method(expression).fetchall()
    except FuselineError as error:
        str(error).encode()


@pytest.mark.by_day(3)
@pytest.mark.parametrize(("owner", "name"), calls(), ids=str)
def test_any_argument(
    owner: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    made = subjects()
    frame = made["Frame"]
    tried = 0
    for value in [*VALUES, Unprintable()]:
        for arguments in ((value,), (value, value), ("a", value), ("s", "a", value)):
            for named in ({}, {"x": value}):
                tried += 1
                try:
                    used(getattr(made[owner], name)(*arguments, **named), frame)
                except FuselineError as error:
                    str(error).encode()
    assert tried == 8 * (len(VALUES) + 1)
    assert frame.fetchall() == [(1, "x"), (2, "y"), (None, "z")]

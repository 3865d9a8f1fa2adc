"""A fault in any function of any floor comes out as an InternalError, and the connection goes on."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline import col, count
from fuseline.errors import FuselineError, InternalError, InvalidQuery, MemoryLimitError
from fuseline.plan import literals
from fuseline.storage import spill_folders
from fuseline.storage.columns import value_checks
from fuseline.storage.tables import access
from tests.faults import called, floor_of, with_fault

pytestmark = pytest.mark.faults

ROWS = pa.table(
    {
        "k": [1, 2, 3, 2, None] * 200,
        "s": ["a", "b", None, "bb", "c"] * 200,
        "x": [float(i) for i in range(1000)],
    }
)
BIG = pa.table({"i": range(20_000), "v": [i % 7 for i in range(20_000)]})
IN_CI = 1  # function of a floor: some 25 runs, of a second
FLOORS = 20  # at least, that the work below reaches


class Planted(Exception):
    """What no code foresees."""


Step = Callable[[Any], Any]
GROUPED = "select k, count(*) as n, sum(x) as s from t where s like '%b%' group by k order by k"
JOINED = "select count(*), sum(a.x) from t a join m b on a.k = b.k"


def _dataframe(c: Any) -> Any:
    frame = c.table("m").filter(col("x") > 3).join(c.table("t"), on="k").group_by("s")
    return frame.agg(n=count()).sort("s").to_arrow().to_pylist()


def _cursor(c: Any) -> Any:
    cursor = c.execute("create or replace table made as from range(5); from made order by all")
    return [cursor.fetchone(), cursor.fetchmany(2), *cursor, cursor.description]


def _spilled(c: Any) -> Any:
    c.execute("set memory_limit = '350kB'; set fuse = 'never'")
    frame = c.sql(
        "select count(*), max(a.v + b.v) from big a join big b on a.i = b.i where b.v > 4"
    )
    rows = frame.fetchall()
    c.execute("reset memory_limit; reset fuse")
    return rows, sum(frame.profile.spilled.values()) > 0


def _shown(c: Any) -> Any:
    frame = c.sql("select k, s from t where x < 3")
    frame.show()
    return frame._repr_html_(), len(frame.explain()) > 0


# What fails in here leaves the folder to the next process, which is what these tests look for elsewhere
REMOVES = (spill_folders.SpillFolder.remove.__code__, spill_folders._removed.__code__)

STEPS: Sequence[Step] = (
    lambda c: c.sql(GROUPED).fetchall(),
    lambda c: c.sql(JOINED).to_pandas().values.tolist(),
    _dataframe, _cursor, _spilled, _shown,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("faults")
    pq.write_table(ROWS, made / "t.parquet")
    (made / "spills").mkdir()
    return made


class Work:
    """Opens a connection and carries the steps out; what fails is tried once more, on the same connection where there is one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors: list[BaseException] = []
        self.answers: list[Any] = []

    def __call__(self) -> None:
        folder, spills = self.folder, self.folder / "spills"
        settings: dict[str, Any] = {"cache_dir": folder / "kernels", "spill_dir": spills}
        c = self._tried(lambda: fuseline.connect(device="cpu", fuse="always", **settings))
        try:
            self._tried(lambda: c.read_parquet(folder / "t.parquet", "t"))
            self._tried(lambda: c.register("m", ROWS))
            self._tried(lambda: c.register("big", BIG))
            self.answers = [self._tried(lambda step=step: step(c)) for step in STEPS]
        finally:
            self._tried(c.close)

    def _tried(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except FuselineError as error:
            self.errors.append(error)
            return action()
        except KeyboardInterrupt as error:
            self.errors.append(error)
            return action()


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[Any]:
    work = Work(folder)
    work()
    assert not work.errors
    return work.answers


@pytest.fixture(scope="module")
def floors(folder: Path, expected: list[Any]) -> dict[str, list[CodeType]]:
    """The functions that the work calls, by floor."""
    found: dict[str, list[CodeType]] = defaultdict(list)
    for code, floor in called(Work(folder)).items():
        if code not in REMOVES:
            found[floor].append(code)
    return found


def threads() -> int:
    """How many there are, but for those of the pool of compilers, which all connections share."""
    return sum(t.name != "fuseline-compile" for t in threading.enumerate())


@pytest.fixture(autouse=True)
def nothing_is_left(folder: Path) -> Iterator[None]:
    before = threads()
    yield
    give_up = time.monotonic() + 10
    while threads() > before and time.monotonic() < give_up:
        time.sleep(0.01)
    assert threads() <= before, threading.enumerate()
    gc.collect()  # a fault in the removal of a folder leaves it as long as something holds the error
    assert list((folder / "spills").iterdir()) == []


def plant(
    codes: Sequence[CodeType], folder: Path, expected: list[Any], fault: Callable[[], BaseException]
) -> list[BaseException]:
    """The errors that faults in these functions became; what came after them was right each time."""
    found = []
    for code in codes:
        work, planted = Work(folder), fault()
        where = f"a fault in {floor_of(code)}, {code.co_qualname}"
        try:
            with_fault(code, planted, work)
        except BaseException as error:
            raise AssertionError(f"{where} came out as {type(error).__name__}: {error}") from error
        assert work.answers == expected, where
        assert len(work.errors) <= 1, where
        found += work.errors
        if work.errors and isinstance(work.errors[0], InternalError):
            assert planted in causes(work.errors[0]), where
    return found


def causes(error: BaseException) -> list[BaseException]:
    found = [error]
    while (below := found[-1].__cause__ or found[-1].__context__) is not None:
        found.append(below)
    return found


def sample(floors: dict[str, list[CodeType]], share: int) -> list[CodeType]:
    chosen = random.Random(12)
    return [
        code
        for floor in sorted(floors)
        for code in chosen.sample(floors[floor], min(share, len(floors[floor])))
    ]


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_fault_at_a_floor_is_an_internal_error(
    every: int, floors: dict[str, list[CodeType]], folder: Path, expected: list[Any]
) -> None:
    codes = sample({floor: floors[floor] for floor in sorted(floors)[::every]}, IN_CI)
    errors = plant(codes, folder, expected, lambda: Planted("planted"))
    assert len(floors) >= FLOORS
    assert all(type(e) is InternalError for e in errors)
    assert "please report it" in str(errors[0])
    assert len(errors) >= len(codes) * 0.7  # the others have a second way, and the answer was right


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (literals._convert, "select date '2024-02-29' as d"),
        (literals.number, "select 1234 as n"),
        (access._check_identity, "select count(x) as n from t"),
        (value_checks.check_decimals, "select max(x) as x from t"),
    ],
    ids=["text", "number", "file", "column"],
)
def test_a_value_error_of_ours_is_neither_bad_text_nor_a_damaged_file(
    function: FunctionType, text: str, folder: Path
) -> None:
    with fuseline.connect(device="cpu", fuse="never") as c:
        c.read_parquet(folder / "t.parquet", "t")
        with pytest.raises(InternalError):
            with_fault(function.__code__, ValueError("planted"), lambda: c.sql(text).fetchall())


@pytest.mark.nightly
@pytest.mark.parametrize(("fault", "kinds"), [
    (lambda: Planted("planted"), (InternalError,)),
    (lambda: ValueError("planted"), (InternalError,)),
    (lambda: KeyError("planted"), (InternalError,)),
    (lambda: MemoryError("planted"), (MemoryLimitError,)),
    (lambda: RecursionError("planted"), (InvalidQuery,)),
    (lambda: KeyboardInterrupt("planted"), (KeyboardInterrupt,)),
])  # fmt: skip
def test_each_fault_in_each_function(
    fault: Callable[[], BaseException],
    kinds: tuple[type[BaseException], ...],
    floors: dict[str, list[CodeType]],
    folder: Path,
    expected: list[Any],
) -> None:
    codes = [code for found in floors.values() for code in found]
    errors = plant(codes, folder, expected, fault)
    assert {type(e) for e in errors} <= {*kinds}
    assert len(errors) >= len(codes) * 0.9

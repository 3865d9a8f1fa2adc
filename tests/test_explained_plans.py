"""EXPLAIN [ANALYZE], frame.explain() and the text itself run by one plan and one set of kernels, whichever comes first."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline import errors
from fuseline.cli.warmup import warm_up
from fuseline.operators.cpu.pipeline import pipeline
from fuseline.plan.logical import Scan
from fuseline.running import QueryRunner
from tests.compare import connected

ROWS = 1000
TABLE = pa.table({"k": np.arange(ROWS) % 7, "v": np.arange(ROWS)})
QUERY = "select k, sum(v) as total from t where v > 3 group by k order by k"
ASKED = "select k, sum(v) as total from t where v > ? group by k order by k"
NAMED = "select k, sum(v) as total from t where v > $least group by k order by k"
LONG = QUERY.replace("v > 3", " and ".join(f"v > {i % 3}" for i in range(70)))  # no slots for all
Ask = Callable[[Any, str, Any], object]


@dataclass
class Work:
    """What was done since the last look: plans made, kernels generated."""

    plans: list[object] = field(default_factory=list)
    kernels: list[object] = field(default_factory=list)

    def take(self) -> tuple[int, int]:
        done = len(self.plans), len(self.kernels)
        self.plans.clear()
        self.kernels.clear()
        return done


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    noted = Work()
    plan, compile_kernels = QueryRunner._plan, pipeline.Attempt.compile

    def planning(self: Any, logical: Any, observer: Any) -> Any:
        if not isinstance(logical, Scan):  # of the row that EXPLAIN gives
            noted.plans.append(logical)
        return plan(self, logical, observer)

    def compiling(self: Any, slotted: Any) -> Any:
        noted.kernels.append(self)
        return compile_kernels(self, slotted)

    monkeypatch.setattr(QueryRunner, "_plan", planning)
    monkeypatch.setattr(pipeline.Attempt, "compile", compiling)
    return noted


@pytest.fixture
def connection() -> Iterator[Any]:
    with connected({"t": TABLE}, "cpu", fuse="always") as opened:
        yield opened


def explained(connection: Any, text: str, params: Any = None) -> str:
    ((_, shown),) = connection.execute(text, params).fetchall()
    return str(shown)


WAYS: dict[str, Ask] = {
    "the text": lambda c, text, params: c.sql(text, params).fetchall(),
    "a cursor": lambda c, text, params: c.execute(text, params).fetchall(),
    "batches": lambda c, text, params: [*c.sql(text, params).to_batches()],
    "EXPLAIN ANALYZE": lambda c, text, params: explained(c, f"explain analyze {text}", params),
    "in parentheses": lambda c, text, params: explained(c, f"explain (analyze)\n{text}", params),
    "EXPLAIN": lambda c, text, params: explained(c, f"EXPLAIN {text}", params),
    "as a frame": lambda c, text, params: c.sql(f"explain analyze {text}", params).fetchall(),
    "frame.explain()": lambda c, text, params: c.sql(text, params).explain(),
    "frame.explain(analyze)": lambda c, text, params: c.sql(text, params).explain("analyze"),
}  # fmt: skip


@pytest.mark.by_day
@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize(
    ("text", "params"),
    [(QUERY, None), (ASKED, [5]), (NAMED, {"least": 6}), (LONG, None), (f"\n {QUERY} -- so", None)],
    ids=["constants", "parameters", "names", "long", "blanks"],
)
def test_all_ways_have_one_plan(
    connection: Any, work: Work, first: str, text: str, params: Any
) -> None:
    for ask in (WAYS[first], *WAYS.values()):
        ask(connection, text, params)
    assert work.take() == (1, 1)


def test_a_semicolon_makes_no_difference(connection: Any, work: Work) -> None:
    connection.sql(f"{QUERY};").to_arrow()
    explained(connection, f"explain analyze {QUERY} ;")
    assert connection.sql(QUERY).fetchall() == connection.sql(f"{QUERY};").fetchall()
    assert work.take() == (1, 1)


def test_other_constants_are_explained_by_the_plan_of_their_shape(
    connection: Any, work: Work
) -> None:
    said = []
    for text in (QUERY, QUERY, QUERY.replace("3", "4"), QUERY.replace("3", "5000")):
        said += [explained(connection, f"explain {text}"), connection.sql(text).explain("analyze")]
    assert [re.findall(r"^plan: (.*?)(?:,|$)", text, re.MULTILINE) for text in said] == [
        ["made for this text"],
        *[["known of this text"]] * 3,
        ["that of a text with other constants"],
        ["known of this text"],
        ["made for this text"],
        ["known of this text"],
    ]
    assert work.take()[0] == 2


def test_stages_are_told_by_planning_once_more_which_no_run_does(
    connection: Any, work: Work
) -> None:
    frame = connection.sql(QUERY)
    frame.explain("logical")
    assert work.take()[0] == 0
    shown = frame.explain("all")
    assert work.take()[0] == 2
    assert shown.endswith("\n".join(frame.explain().splitlines()[:-1]))
    frame.fetchall()
    assert work.take() == (0, 1)


def test_an_explained_frame_leaves_its_receipt(connection: Any, work: Work) -> None:
    frame = connection.sql(QUERY).filter(fuseline.col("total") > 0)
    frame.to_arrow()
    assert "bound by" in frame.explain("analyze")
    assert frame.profile.timed
    assert frame.profile.pipelines[0].receipt.warm
    assert work.take() == (1, 1)


def test_a_kernel_that_is_still_compiled_is_that_of_the_text(work: Work) -> None:
    large = pa.concat_tables([TABLE] * 300)
    with connected({"t": large}, "cpu", fuse="auto") as opened:
        while "the kernel is being compiled" in explained(opened, f"explain analyze {QUERY}"):
            time.sleep(0.02)
        frame = opened.sql(QUERY)
        frame.to_arrow()
        assert frame.profile.pipelines[0].receipt.fused
        assert work.take() == (1, 1)


def test_warmup_compiles_the_kernels_that_the_texts_run_by(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    given = {"fuse": "always", "cache_dir": str(tmp_path / "kernels")}
    tables = {"t": tmp_path / "t.parquet"}
    script = f"-- first\n{QUERY};prepare p as {ASKED}; execute p(5)"
    with connected(tables, "cpu", **given) as opened:
        assert [(w.found, w.compiled) for w in warm_up(opened, script)] == [(0, 1), (1, 0)]
    with connected(tables, "cpu", **given) as opened:
        for text in (QUERY.replace("3", "12"), "execute p(5)"):
            opened.execute(f"prepare p as {ASKED}")
            frame = opened.sql(text)
            frame.to_arrow()
            assert frame.profile.pipelines[0].receipt.origin in ("memory", "disk")
            opened.execute("deallocate p")


@pytest.mark.parametrize(
    ("text", "params", "place"),
    [
        (
            "explain analyze\nselect k,\n  none from t",
            None,
            "LINE 3:   none from t\n          ^^^^",
        ),
        ("explain select 1 +", None, "LINE 1: explain select 1 +\n                         ^"),
        ("explain select none", None, "LINE 1: explain select none\n                       ^^^^"),
        (
            "explain analyze select cast(k || 'x' as int) from t",
            None,
            "LINE 1: explain analyze select cast(k || 'x' as int) from t\n"
            "                                    ^^^^^^^^",
        ),
        ("explain select ? + 1", [1, 2], None),
        ("explain explain select 1", None, None),
        ("explain", None, "EXPLAIN stands before a query, and there is none."),
        ("select 1; explain analyze -- none", None, "EXPLAIN stands before a query"),
    ],
)
def test_errors_show_the_place_in_the_whole_text(
    connection: Any, text: str, params: Any, place: str | None
) -> None:
    with pytest.raises(errors.FuselineError) as caught:
        connection.execute(text, params)
    if place is None:
        assert "LINE" not in str(caught.value) or "LINE 1: explain" in str(caught.value)
    else:
        assert place in str(caught.value)


def test_an_error_ends_the_transaction(connection: Any) -> None:
    connection.execute("begin")
    with pytest.raises(errors.ConversionError):
        connection.execute("explain analyze select cast(k || 'x' as int) from t")
    with pytest.raises(errors.TransactionError):
        connection.execute("select 1")
    connection.execute("rollback")


def test_variables_and_scripts_are_explained(connection: Any, work: Work) -> None:
    mine = TABLE.slice(0, 10)
    for text in ("explain select sum(v) from mine", "explain analyze select sum(v) from mine"):
        ((_, shown),) = connection.execute(text).fetchall()
        assert "MemoryScan  mine" in shown
    del mine
    work.take()
    shown = explained(connection, f"create table made as from t; explain analyze {QUERY}")
    assert "plan: made for this text" in shown
    assert work.take() == (1, 1)
    connection.execute("drop table made")

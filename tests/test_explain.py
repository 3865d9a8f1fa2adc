"""EXPLAIN ANALYZE and FUSELINE_DEBUG: what a run says of itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuseline
from fuseline.observe.explain import LINE_WIDTH
from fuseline.observe.roofline import bound, measured, remembered
from fuseline.operators.context import PipelineReceipt

ROWS = 10_000
QUERY = "select k, sum(v) as total from t where v < 500 group by k order by k"
NOT_FUSED = "select stddev(v + 0.5::double) from t"  # which takes two passes, as statistics say
TABLE = pa.table({"k": np.arange(ROWS) % 3, "v": np.arange(ROWS) % 1000})


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kernels are kept, and bandwidths, which take a second to measure."""
    return tmp_path_factory.mktemp("kernels")


def connect(directory: Path) -> fuseline.Connection:
    opened = fuseline.connect(device="cpu", fuse="always", cache_dir=str(directory))
    opened.register("t", TABLE)
    return opened


@pytest.fixture
def connection(directory: Path) -> Iterator[fuseline.Connection]:
    with connect(directory) as opened:
        yield opened


def test_a_pipeline_shows_what_its_kernel_reached(tmp_path: Path) -> None:
    with connect(tmp_path) as connection:
        text = connection.sql(QUERY).explain("analyze")
    assert re.search(
        r"Pipeline 1: 10,000 rows, 0\.0 MB encoded in [\d.]+ ms: [\d.]+ GB/s, \d+ % of the cpu's [\d.]+ GB/s, bound by compile$",
        text,
        re.MULTILINE,
    )
    assert re.search(r"cold: columns loaded in [\d.]+ ms, kernel compiled in [\d,.]+ ms", text)
    path = re.search(r"kernel (/.*\.py)$", text, re.MULTILINE)
    assert path is not None
    assert "def scan_filter_group" in Path(path[1]).read_text()


def test_the_steps_of_a_pipeline_stand_below_it_in_their_order(
    connection: fuseline.Connection,
) -> None:
    lines = connection.sql(QUERY).explain("analyze").splitlines()
    start = next(i for i, line in enumerate(lines) if line.endswith("Pipeline 1"))
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == [
        "MemoryScan",
        "FilterRows",
        "HashAggregate",
    ]


def test_a_second_run_is_warm(connection: fuseline.Connection) -> None:
    frame = connection.sql(QUERY)
    frame.explain("analyze")
    assert "  warm: columns and kernel were in memory" in frame.explain("analyze").splitlines()


def test_another_connection_finds_the_kernel(
    connection: fuseline.Connection, directory: Path
) -> None:
    connection.sql(QUERY).to_arrow()
    with connect(directory) as second:
        frame = second.sql(QUERY)
        frame.to_arrow()
        (node,) = frame.profile.pipelines
        assert node.receipt is not None
        assert node.receipt.origin in ("memory", "disk")
        assert node.receipt.load_seconds > 0


@pytest.mark.parametrize("call", ["mode(v)", "list(v)"])
def test_a_plan_says_which_aggregate_no_kernel_holds(
    connection: fuseline.Connection, call: str
) -> None:
    """It is known before the query runs."""
    name = call.partition("(")[0]
    text = connection.sql(f"select {call} from t").explain()
    assert re.search(rf"^not fused: {name}.* (needs|keeps) all", text, re.MULTILINE)
    assert "Pipeline" not in text


def test_a_pipeline_without_a_kernel_says_why(connection: fuseline.Connection) -> None:
    text = connection.sql(NOT_FUSED).explain("analyze")
    assert re.search(r"^Pipeline 1: one operator at a time: stddev", text, re.MULTILINE)


def test_the_profile_has_the_receipt(connection: fuseline.Connection) -> None:
    frame = connection.sql(QUERY)
    frame.to_arrow()
    (node,) = frame.profile.pipelines
    receipt = node.receipt
    assert receipt is not None
    assert (receipt.rows, receipt.fused, receipt.bytes) == (ROWS, True, 3 * ROWS)
    assert receipt.operations >= 3
    assert frame.profile.bandwidth == {}  # measured for timed runs alone


def test_lines_fit_a_terminal(connection: fuseline.Connection) -> None:
    many = ", ".join(f"sum(v + {i}) as a_column_with_a_long_name_{i}" for i in range(20))
    text = connection.sql(f"select {many} from t").explain("analyze")
    assert all(len(line) <= LINE_WIDTH for line in text.splitlines() if "kernel /" not in line)


def test_sql_has_it_too(connection: fuseline.Connection) -> None:
    ((key, text),) = connection.execute(f"explain analyze {QUERY}").fetchall()
    assert key == "analyzed_plan"
    assert "bound by" in text


GB = 10**9


@pytest.mark.parametrize(
    ("receipt", "expected"),
    [
        (PipelineReceipt(bytes=GB, seconds=1, load_seconds=2), "transfer"),
        (
            PipelineReceipt(
                origin="compiler", bytes=GB, seconds=1, compile_seconds=2, load_seconds=1.5
            ),
            "compile",
        ),
        (PipelineReceipt(bytes=GB, seconds=1, compile_seconds=2), "compute"),  # in memory: warm
        (PipelineReceipt(bytes=1000, seconds=1e-3), "latency"),
        (PipelineReceipt(bytes=GB, seconds=0.2), "memory"),
        (PipelineReceipt(bytes=GB, seconds=0.21), "compute"),
    ],
)
def test_what_bounds_a_pipeline(receipt: PipelineReceipt, expected: str) -> None:
    assert bound(receipt, 10 * GB, "gpu") == expected


def test_bandwidth_is_measured_once(tmp_path: Path) -> None:
    assert remembered(tmp_path, "a device", lambda: 5e9) == 5e9
    assert remembered(tmp_path, "a device", lambda: 6e9) == 5e9
    assert remembered(tmp_path, "another", lambda: 7e9) == 7e9
    assert remembered(tmp_path, "a device", lambda: 8e9) == 5e9


def test_a_faster_copy_is_remembered(tmp_path: Path) -> None:
    """What was measured while other work ran is too small."""
    assert measured(tmp_path, "a device", lambda: 5e9) == 5e9
    assert measured(tmp_path, "another", lambda: 1e9) == 1e9
    assert measured(tmp_path, "a device", lambda: 4e9) == 5e9
    assert measured(tmp_path, "a device", lambda: 6e9) == 6e9
    assert remembered(tmp_path, "a device", lambda: 7e9) == 6e9


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a device": "fast"}', '{"a device": -1}'])
def test_a_damaged_file_of_bandwidths_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / "bandwidth.json").write_text(content)
    assert remembered(tmp_path, "a device", lambda: 5e9) == 5e9
    assert remembered(tmp_path, "a device", lambda: 6e9) == 5e9


def test_a_directory_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert remembered(tmp_path / "file", "a device", lambda: 5e9) == 5e9


HEADINGS = {
    1: "       ms          rows", 2: "SortRows  k  [cpu", 3: "-- place", 4: "-- kernel of pipeline 1: ",
    5: "-- loop statements of pipeline 1",
}  # fmt: skip


@pytest.mark.parametrize("debug", [0, 1, 2, 3, 4, 5])
def test_each_debug_level_shows_one_thing_more(
    connection: fuseline.Connection, debug: int, capsys: pytest.CaptureFixture[str]
) -> None:
    connection.set_option("debug", debug)
    connection.sql(QUERY).to_arrow()
    printed = capsys.readouterr().err
    lines = printed.splitlines()
    shown = {n for n, heading in HEADINGS.items() if any(x.startswith(heading) for x in lines)}
    assert shown == set(range(1, debug + 1))


def test_debug_prints_sources_statements_and_places(
    connection: fuseline.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    connection.set_option("debug", 5)
    connection.sql(QUERY).to_arrow()
    connection.sql(NOT_FUSED).to_arrow()
    printed = capsys.readouterr().err
    assert "def scan_filter_group(" in printed
    assert re.search(r"load \w+: 2 bytes, 0 \+ code, so 0 to 999", printed)
    assert "  keep: bool_ = " in printed
    assert "a0 int64 add " in printed
    assert "  cpu  SortRows  k: the connection runs on the CPU" in printed
    assert "-- kernel of pipeline 1: none, one operator at a time: stddev" in printed


def test_files_written_just_now_are_read_anew_which_is_said(
    tmp_path: Path, directory: Path, limits: Callable[..., None]
) -> None:
    pq.write_table(TABLE, tmp_path / "young.parquet")
    note = "young.parquet: its files were written seconds ago"
    with fuseline.connect(device="cpu", cache_dir=str(directory)) as connection:
        query = f"select count(*) from '{tmp_path}/young.parquet' where k > 1"
        limits(footers__SECONDS=1e9)
        assert note in connection.sql(query).explain("analyze")
        limits(footers__SECONDS=-1.0)
        assert note not in connection.sql(query).explain("analyze")


def test_options_of_explain_stand_in_parentheses() -> None:
    with fuseline.connect(device="cpu") as connection:
        for options in ("(format text)", "(FORMAT 'text')", ""):
            ((key, text),) = connection.execute(f"explain {options} select 42 as a").fetchall()
            assert key == "physical_plan"
            assert "42 as a" in text
        for options in ("(analyze)", "( Analyze, format text )", "(format text, analyze)"):
            ((key, text),) = connection.execute(f"explain {options} select 42 as a").fetchall()
            assert key == "analyzed_plan"
        ((key, text),) = connection.execute("explain (select 42 as a)").fetchall()
        assert key == "physical_plan"
        for options in ("(format json)", "(verbose)", "()"):
            with pytest.raises(fuseline.FuselineError):
                connection.execute(f"explain {options} select 42 as a")

"""What every test can ask for: a backend, the TPC-H tables, and whether goldens are written anew."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.data import tpch_tables as tables_at
from tests import unforeseen
from tests.by_day import draw_fewer, leave_to_the_night
from tests.compare import connected, missing_for_gpu
from tests.kernel_count import MOST, KernelCount
from tests.limits import SetLimits, place

if TYPE_CHECKING:
    from collections.abc import Iterator

SCALE = 0.01


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-goldens", action="store_true", help="write golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    """Random tests print how to repeat a failure, and no deadline: the first run of a kernel compiles it.

    In CI they draw the same examples each time, so that a change is judged by what it changes.  Tests that import Numba before
    a connection is made need what that sets: no colours, which put an earlier `sys.stdout` back while a thread compiles.
    """
    gc.disable()  # until all tests are collected: a fifth of what that takes
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start background jobs
        signal.signal(signal.SIGINT, signal.default_int_handler)
    unforeseen.install()
    if not by_night(config) and "FUSELINE_RANDOM" not in os.environ:
        config.pluginmanager.register(KernelCount(MOST))
    if (
        importlib.util.find_spec("hypothesis") is None
    ):  # a GPU machine without a network may lack it
        return
    from hypothesis import settings
    from hypothesis.internal.conjecture import providers

    settings.register_profile(
        "fuseline", deadline=None, print_blob=True, derandomize="CI" in os.environ
    )
    settings.load_profile("fuseline")
    if not by_night(config):
        # Constants of all modules imported so far, to draw from: 13 s for each worker to find them, and a change of any moves the draws
        providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not run here: a third of all cases, which cost 1 ms each as tests that are skipped."""
    leave_to_the_night(items)
    draw_fewer(items, every=1 if by_night(config) else 3)
    left = ["gpu"] * bool(missing_for_gpu()) + ["nightly"] * (not by_night(config))
    if out := [item for item in items if any(map(item.get_closest_marker, left))]:
        config.hook.pytest_deselected(items=out)
        leaving = set(out)
        items[:] = [item for item in items if item not in leaving]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if missing := missing_for_gpu():
        terminalreporter.line(f"tests marked gpu were left out: {missing}")
    if not by_night(config):
        terminalreporter.line("tests marked nightly were left out: they run with make nightly")


def by_night(config: pytest.Config) -> bool:
    return "nightly" in config.option.markexpr


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the engine looks for cycles after each attempt that fails for memory, and need not look there."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)  # behind the fixtures' own
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """So does what a file of tests has left: each look for cycles went through that of all files before it."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    unforeseen.mean(item)


@pytest.fixture(scope="session", params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def backend(request: pytest.FixtureRequest) -> str:
    """Each backend in turn; the GPU's part is skipped, with the reason, where there is none."""
    return str(request.param)


@pytest.fixture(scope="session", autouse=True)
def settled_files() -> None:
    """Files of tests, which are all new, are kept at once."""
    from fuseline.storage.tables import footers

    footers.SECONDS, footers.WRITE_RATE = 0.0, float("inf")


@pytest.fixture(scope="session", autouse=True)
def prepared_gpu() -> None:
    """Tests that call GPU operators without a connection have what `load_backends` gives them."""
    if not missing_for_gpu():
        from fuseline.operators import cpu, gpu

        gpu.prepare(host=cpu.evaluate_columns, operate=cpu.operate)


@pytest.fixture(scope="session")
def tpch_tables() -> dict[str, Path]:
    """The eight tables at scale factor 0.01: name to Parquet file."""
    return {name: Path(path) for name, path in tables_at(SCALE).items()}


@pytest.fixture(scope="session")
def tpch_dir(tpch_tables: dict[str, Path]) -> Path:
    """The folder of those files."""
    return tpch_tables["lineitem"].parent


@pytest.fixture(scope="session", params=["never", "always"], ids=["unfused", "fused"])
def fuse(request: pytest.FixtureRequest) -> str:
    """Without fused pipelines, and with them."""
    return str(request.param)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> SetLimits:
    """Set limits of the engine for a test, wherever they stand: `limits(ROWS_A_RANGE=64, host_functions__MOST_ROWS=8)`."""

    def set_all(**values: Any) -> None:
        for limit, value in values.items():
            monkeypatch.setattr(*place(limit), value)

    return set_all


@pytest.fixture
def connection(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A connection to the `TABLES` of the test's module, with its `SETTINGS`, after the statements of its `SETUP`.

    It is to the CPU, or to each `backend` and with each value of `fuse` where the test or its module asks for those.
    """
    settings = dict(getattr(request.module, "SETTINGS", {}))
    for setting, fixture in (("device", "backend"), ("fuse", "fuse")):
        if fixture in request.fixturenames:
            settings[setting] = request.getfixturevalue(fixture)
    with connected(getattr(request.module, "TABLES", {}), **settings) as opened:
        for statement in getattr(request.module, "SETUP", ()):
            opened.execute(statement)
        yield opened


@pytest.fixture(scope="session")
def tpch(backend: str, fuse: str, tpch_tables: dict[str, Path]) -> Iterator[Any]:
    """A connection to the TPC-H tables on this backend, with and without fused pipelines; keep its catalog as it is."""
    with connected(tpch_tables, backend, fuse=fuse) as opened:
        yield opened


@pytest.fixture
def rewrite_goldens(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written instead of compared: `make goldens`."""
    return bool(request.config.getoption("--rewrite-goldens"))

"""The command `fuseline`: sql, shell, explain, warmup, cluster, serve, doctor."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FileError, FuselineError, InternalError, InvalidQuery
from ..fence import fence
from ..settings import debug_level

if TYPE_CHECKING:
    from ..connection import Connection
    from ..frame.batches import Batches

EXIT_FAILED, EXIT_INTERNAL, EXIT_STOPPED = 1, 70, 130  # 70 is sysexits.h's EX_SOFTWARE


app = typer.Typer(
    name="fuseline",
    help="SQL over Parquet on NVIDIA GPUs, with DuckDB's answers.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Format(StrEnum):
    """How a result is written; `arrow` is an IPC stream."""

    table = "table"
    csv = "csv"
    json = "json"
    arrow = "arrow"


class Device(StrEnum):
    """Where queries run; `auto` takes the GPU when it can be used."""

    auto = "auto"
    gpu = "gpu"
    cpu = "cpu"


class ExplainStage(StrEnum):
    """Which stage `explain` shows."""

    logical = "logical"
    rules = "rules"
    optimized = "optimized"
    physical = "physical"
    analyze = "analyze"
    all = "all"


DeviceOption = Annotated[Device, typer.Option(help="auto, gpu or cpu")]


def _version(asked: bool) -> None:
    if asked:
        from .. import __version__

        print(f"fuseline {__version__}")
        raise typer.Exit


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function; an error of it is one line on standard error and a status."""

    @wraps(function)
    def run(**options: object) -> None:
        try:
            with fence(typer.Exit, BrokenPipeError):
                function(**options)
        except FuselineError as error:
            raise typer.Exit(report(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(EXIT_STOPPED) from None

    return app.command()(run)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """SQL over Parquet on NVIDIA GPUs, with DuckDB's answers."""
    # Bytes that are no UTF-8 are an error of the query that has them, and characters that a terminal lacks are no error
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)


@command
def sql(
    query: Annotated[
        str,
        typer.Argument(help="SQL, '-' to read it from standard input; ';' separates statements"),
    ],
    format: Annotated[Format, typer.Option(help="table, csv, json or arrow")] = Format.table,
    device: DeviceOption = Device.auto,
) -> None:
    """Run SQL and print the last result: fuseline sql "select count(*) from 'lineitem.parquet'"."""
    with _connect(device) as connection:
        _run(connection, sys.stdin.read() if query == "-" else query, format)


@command
def explain(
    query: Annotated[str, typer.Argument(help="a SELECT; statements before it are run")],
    stage: Annotated[
        ExplainStage, typer.Option(help="which stage to show")
    ] = ExplainStage.physical,
    device: DeviceOption = Device.auto,
) -> None:
    """Show how a query would run, or with --stage analyze how it ran."""
    with _connect(device) as connection:
        _check_query(query)
        print(connection.sql(query).explain(stage.value))


@command
def shell(device: DeviceOption = Device.auto) -> None:
    """Read SQL from a prompt, or from a pipe; a statement ends with ';'."""
    from .shell import run_shell

    with _connect(device) as connection:
        healthy = run_shell(connection)
    if not healthy and not sys.stdin.isatty():
        raise typer.Exit(EXIT_FAILED)


@command
def warmup(
    file: Annotated[
        Path,
        typer.Argument(help="SQL, with ';' between statements; CREATE VIEW may name the files"),
    ],
    table: Annotated[
        list[str] | None, typer.Option(help="a table as name=path of Parquet; may be repeated")
    ] = None,
    device: DeviceOption = Device.auto,
) -> None:
    """Compile the kernels of queries ahead, a line a query; they are kept in FUSELINE_CACHE_DIR.

    Kernels depend on the ranges and encodings of the columns: each query runs once, so the tables have to be those of later runs.
    """
    from .warmup import warm_up

    with _connect(device, fuse="always") as connection:
        failed = False
        for definition in table or ():
            name, separator, path = definition.partition("=")
            if not (name and separator and path):
                raise InvalidQuery(f"--table takes name=path, not {definition!r}.")
            connection.read_parquet(path, name)
        for warmed in warm_up(connection, _read_text(file)):
            print(warmed, flush=True)
            failed |= warmed.error is not None
    if failed:
        raise typer.Exit(EXIT_FAILED)


@command
def cluster(
    workers: Annotated[
        int | None, typer.Option(min=1, help="how many processes; by default one for each GPU")
    ] = None,
    host: Annotated[str, typer.Option(help="the address that others reach it by")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="the scheduler's port; 0 takes a free one")] = 8786,
    device: DeviceOption = Device.auto,
) -> None:
    """Start a Dask scheduler and workers on this machine for connect(cluster=ADDRESS), until Ctrl-C."""
    from .cluster_commands import run_cluster

    run_cluster(device.value, workers, host, port)


@command
def serve(
    database: Annotated[
        str, typer.Argument(help="a folder that connect() keeps tables in")
    ] = ":memory:",
    table: Annotated[
        list[str] | None,
        typer.Option(help="a table as name=path of Parquet, CSV, JSON or Arrow; may be repeated"),
    ] = None,
    host: Annotated[str, typer.Option(help="the address to listen at")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="the port; 0 takes a free one")] = 31337,
    writable: Annotated[bool, typer.Option("--writable", help="clients may change tables")] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="a file, folder or beginning of a URL that queries may open"),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="tokens that clients log in with, a line each")
    ] = None,
    users_file: Annotated[
        Path | None, typer.Option(help="users as name:password, a line each")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="the certificate, in PEM")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="its key, in PEM")] = None,
    limit: Annotated[
        list[str] | None, typer.Option(help="a limit of clients as name=value, as queries=16")
    ] = None,
    set: Annotated[
        list[str] | None, typer.Option(help="a setting as name=value, as memory_limit=4GB")
    ] = None,
) -> None:
    """Serve tables over Arrow Flight SQL, to ADBC, JDBC and others, until Ctrl-C or SIGTERM."""
    from .serve_command import ServeOptions, run_server

    secrets = (token_file, users_file, tls_cert, tls_key)
    run_server(
        ServeOptions(
            database,
            host,
            port,
            writable,
            table or (),
            allow or (),
            secrets,
            limit or (),
            set or (),
        )
    )


@command
def doctor(
    cluster: Annotated[
        str | None, typer.Option(help="the address of a scheduler, whose workers are looked at too")
    ] = None,
    device: DeviceOption = Device.auto,
) -> None:
    """Check driver, GPU, versions and memory, run a query on each device, and say what to install."""
    from .doctor import examine

    if not examine(cluster, device.value):
        raise typer.Exit(EXIT_FAILED)


def _check_query(text: str) -> None:
    """Raise `InvalidQuery` when the last statement of a text is no query, before any of them runs."""
    from ..sql import first_word, split, starts_query

    for last in list(split(text))[-1:]:
        if not starts_query(last):
            word = first_word(last)
            raise InvalidQuery(f"Only queries can be explained: {word} does not start one.")


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{file} cannot be read: {error}.") from error


def _connect(
    device: Device, database: Path | None = None, read_only: bool = False, **settings: object
) -> Connection:
    from ..connection import connect

    return connect(database, read_only, device=device.value, cluster=None, **settings)


def _run(connection: Connection, query: str, format: Format) -> None:
    frame = connection.sql(query)
    if format is Format.table:
        from ..frame.display import print_table

        print_table(frame.to_arrow(), [c.type for c in frame.plan.columns], None)
        return
    with frame.to_batches() as batches:
        if format is Format.json:
            from ..frame.display import json_lines

            sys.stdout.writelines(json_lines(batches.schema.names, batches))
        else:
            _write_binary(batches, format)


def _write_binary(batches: Batches, format: Format) -> None:
    """Write rows a part at a time, after the names of their columns."""
    import pyarrow as pa
    import pyarrow.csv

    out = pa.PythonFile(sys.stdout.buffer, mode="w")
    if format is Format.csv:
        from ..frame.display import csv_columns

        pyarrow.csv.write_csv(batches.schema.empty_table(), out)
        headless = pyarrow.csv.WriteOptions(include_header=False)
        for batch in batches:
            pyarrow.csv.write_csv(csv_columns(pa.Table.from_batches([batch])), out, headless)
    else:
        with pa.ipc.new_stream(out, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    sys.stdout.buffer.flush()


def report(error: FuselineError) -> int:
    """Print an error, behind its traceback when FUSELINE_DEBUG asks for more, and return the status to end with."""
    if debug_level():
        traceback.print_exception(error)
    else:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return EXIT_INTERNAL if isinstance(error, InternalError) else EXIT_FAILED


def main() -> None:
    """Entry point of the console script."""
    app()

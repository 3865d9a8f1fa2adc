"""The command `fuseline`: sql, shell, explain, warmup, doctor."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from .errors import DataError, FuselineError, InvalidQuery

if TYPE_CHECKING:
    from .connection import Connection

app = typer.Typer(
    name="fuseline",
    help="SQL over Parquet on NVIDIA GPUs, with DuckDB's answers.",
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


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="SQL; several statements are separated by ';'")],
    format: Annotated[Format, typer.Option(help="table, csv, json or arrow")] = Format.table,
    device: DeviceOption = Device.auto,
) -> None:
    """Run SQL and print the result: fuseline sql "select count(*) from 'lineitem.parquet'"."""
    with _connect(device) as connection:
        _run(connection, query, format)


@app.command()
def explain(
    query: Annotated[str, typer.Argument(help="one SELECT")],
    stage: Annotated[
        ExplainStage, typer.Option(help="which stage to show")
    ] = ExplainStage.physical,
    device: DeviceOption = Device.auto,
) -> None:
    """Show how a query would run, or with --stage analyze how it ran."""
    with _connect(device) as connection:
        try:
            print(connection.sql(query).explain(stage.value))
        except FuselineError as error:
            _fail(error)


@app.command()
def shell(device: DeviceOption = Device.auto) -> None:
    """Read SQL from a prompt; a statement ends with ';'."""
    from .shell import run_shell

    with _connect(device) as connection:
        run_shell(connection)


@app.command()
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
        try:
            for definition in table or ():
                name, separator, path = definition.partition("=")
                if not (name and separator and path):
                    raise InvalidQuery(f"--table takes name=path, not {definition!r}.")
                connection.read_parquet(path, name)
            for warmed in warm_up(connection, _read_text(file)):
                print(warmed, flush=True)
                failed |= warmed.error is not None
        except FuselineError as error:
            _fail(error)
    if failed:
        raise typer.Exit(1)


@app.command()
def doctor() -> None:
    """Check driver, GPU, versions and memory, run a query on each device, and say what to install."""
    from .doctor import examine

    if not examine():
        raise typer.Exit(1)


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read: {error}.") from error


def _connect(device: Device, **settings: object) -> Connection:
    from .connection import connect

    try:
        return connect(device=device.value, **settings)
    except FuselineError as error:
        _fail(error)


def _run(connection: Connection, query: str, format: Format) -> None:
    try:
        frame = connection.sql(query)
        if format is Format.table:
            from .display import print_table

            print_table(frame.to_arrow(), [c.type for c in frame.plan.columns], None)
        elif format is Format.json:
            from .display import json_text

            print(json_text(frame.to_arrow()))
        else:
            _write_binary(frame.to_arrow(), format)
    except FuselineError as error:
        _fail(error)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _write_binary(table: object, format: Format) -> None:
    import pyarrow as pa
    import pyarrow.csv

    sink = pa.PythonFile(sys.stdout.buffer, mode="w")
    if format is Format.csv:
        pyarrow.csv.write_csv(table, sink)
    else:
        assert isinstance(table, pa.Table)
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    sys.stdout.buffer.flush()


def _fail(error: FuselineError) -> NoReturn:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    raise typer.Exit(1)


def main() -> None:
    """Entry point of the console script."""
    app()

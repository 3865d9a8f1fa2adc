"""The command `fuseline`: sql, shell, explain, warmup, cluster, serve, doctor, completions."""

from __future__ import annotations

import atexit
import gc
import sys
import traceback
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FileError, FuselineError, InternalError, InvalidQuery
from ..fence import fence
from ..settings import Settings, debug_level
from .default_command import ShellByDefault

if TYPE_CHECKING:
    from ..connection import Connection
    from .configuration import Configuration

EXIT_FAILED, EXIT_INTERNAL, EXIT_STOPPED = 1, 70, 130  # 70 is sysexits.h's EX_SOFTWARE
COMPLETE = "_FUSELINE_COMPLETE"  # the variable by which such a script asks


app = typer.Typer(
    name="fuseline",
    help="SQL over Parquet on NVIDIA GPUs, with DuckDB's answers.",
    context_settings={"help_option_names": ["-h", "--help"]},
    cls=ShellByDefault,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Format(StrEnum):
    """How a result is written; `arrow` is an IPC stream."""

    table = "table"
    csv = "csv"
    json = "json"
    arrow = "arrow"
    jsonlines = "jsonlines"
    markdown = "markdown"
    line = "line"
    tsv = "tsv"
    html = "html"


class Device(StrEnum):
    """Where queries run; `auto` takes the GPU when it can be used."""

    auto = "auto"
    gpu = "gpu"
    cpu = "cpu"


class CompletionShell(StrEnum):
    """The shells of systems that can complete this command."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"


class ExplainStage(StrEnum):
    """Which stage `explain` shows."""

    logical = "logical"
    rules = "rules"
    optimized = "optimized"
    physical = "physical"
    analyze = "analyze"
    all = "all"


DeviceOption = Annotated[
    Device | None,
    typer.Option(help="auto, gpu or cpu; by default what the settings say"),
]
_config: list[Path] = []  # the file that --config names
DatabaseOption = Annotated[Path | None, typer.Option(help="a folder whose tables there are")]
ReadOnlyOption = Annotated[bool, typer.Option("--readonly", help="change nothing in the database")]


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
    config: Annotated[
        Path | None,
        typer.Option(help="settings, in the place of fuseline.toml of the user and of this folder"),
    ] = None,
) -> None:
    """SQL over Parquet on NVIDIA GPUs, with DuckDB's answers; without a command the shell."""
    _config[:] = [] if config is None else [config]
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
    device: DeviceOption = None,
    database: DatabaseOption = None,
    readonly: ReadOnlyOption = False,
) -> None:
    """Run SQL and print the last result: fuseline sql "select count(*) from 'lineitem.parquet'"."""
    from .write_results import write_result

    with _connect(device, database, readonly) as connection:
        text = sys.stdin.read() if query == "-" else query
        write_result(connection.sql(text), format.value)


@command
def explain(
    query: Annotated[str, typer.Argument(help="a SELECT; statements before it are run")],
    stage: Annotated[
        ExplainStage, typer.Option(help="which stage to show")
    ] = ExplainStage.physical,
    analyze: Annotated[bool, typer.Option("--analyze", help="run it, as --stage analyze")] = False,
    html: Annotated[Path | None, typer.Option(help="write what it did as a page")] = None,
    json: Annotated[Path | None, typer.Option(help="write what it did as JSON")] = None,
    mermaid: Annotated[Path | None, typer.Option(help="write the plan as a diagram")] = None,
    device: DeviceOption = None,
    database: DatabaseOption = None,
    readonly: ReadOnlyOption = False,
) -> None:
    """Show how a query would run, or with --analyze how it ran: as text, or in files."""
    from .write_results import write_profile_files

    files = {"html": html, "json": json, "mermaid": mermaid}
    with _connect(device, database, readonly) as connection:
        _check_query(query)
        frame = connection.sql(query)
        if any(files.values()):
            frame.explain("analyze")
            write_profile_files(frame.profile, query, files)
        else:
            print(frame.explain("analyze" if analyze else stage.value))


@command
def shell(
    database: Annotated[
        Path | None, typer.Argument(help="a folder; without one tables end with the shell")
    ] = None,
    device: DeviceOption = None,
    command: Annotated[
        list[str] | None, typer.Option("--command", "-c", help="run a text and leave")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", "-f", help="run a file and leave")
    ] = None,
    init: Annotated[list[Path] | None, typer.Option(help="run a file at first")] = None,
    mode: Annotated[str | None, typer.Option(help="how answers are written, as by .mode")] = None,
    plain: Annotated[bool, typer.Option(help="a prompt without colours and completion")] = False,
    readonly: Annotated[bool, typer.Option(help="change nothing in the database")] = False,
) -> None:
    """Read SQL from a prompt, or from a pipe; a statement ends with ';', .help lists commands.

    Files and texts end with the first statement that fails, and the status is 1 then.
    """
    from .shell_commands import run_shell

    begin_with = {**_configuration().shell, **({} if mode is None else {"mode": mode})}
    if not run_shell(
        _connect(device, database, readonly),
        begin_with=begin_with,
        init=init or (),
        commands=command or (),
        files=file or (),
        plain=plain,
    ):
        raise typer.Exit(EXIT_FAILED)


@command
def completions(
    shell: Annotated[CompletionShell, typer.Argument(help="bash, zsh, fish or powershell")],
) -> None:
    """Print a script that completes this command: fuseline completions bash >> ~/.bashrc."""
    options = {"prog_name": "fuseline", "complete_var": COMPLETE, "shell": shell.value}
    print(_typer_completion().get_completion_script(**options))


@command
def warmup(
    file: Annotated[
        Path,
        typer.Argument(help="SQL, with ';' between statements; CREATE VIEW may name the files"),
    ],
    table: Annotated[
        list[str] | None, typer.Option(help="a table as name=path of Parquet; may be repeated")
    ] = None,
    device: DeviceOption = None,
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
    device: DeviceOption = None,
) -> None:
    """Start a Dask scheduler and workers on this machine for connect(cluster=ADDRESS), until Ctrl-C."""
    from .doctor import run_cluster

    run_cluster(_connection_settings(device).device, workers, host, port)


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
    device: DeviceOption = None,
) -> None:
    """Check driver, GPU, versions and memory, run a query on each device, and say what to install."""
    from .doctor import examine

    if not examine(cluster, _connection_settings(device).device):
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


def _configuration() -> Configuration:
    from .configuration import configured

    return configured(_config[0] if _config else None)


def _connection_settings(device: Device | None) -> Settings:
    """Return what files, the environment and options say."""
    settings = Settings.from_environment(defaults=_configuration().settings)
    return settings if device is None else settings.with_option("device", device.value)


def _connect(
    device: Device | None, database: Path | None = None, read_only: bool = False, **options: object
) -> Connection:
    from ..connection import connect

    settings = _connection_settings(device)
    chosen = {name: getattr(settings, name) for name in settings.names()}
    return connect(database, read_only, **{**chosen, **options})


def report(error: FuselineError) -> int:
    """Print an error, behind its traceback when FUSELINE_DEBUG asks for more, and return the status to end with."""
    if debug_level():
        traceback.print_exception(error)
    else:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return EXIT_INTERNAL if isinstance(error, InternalError) else EXIT_FAILED


def main() -> None:
    """Entry point of the console script."""
    # The interpreter's last look for cycles takes 0.25 s, an eighth of a small command; all files are closed by then
    atexit.register(gc.freeze)
    _typer_completion().completion_init()  # answers scripts of `fuseline completions`
    app()


def _typer_completion() -> ModuleType:
    """Typer's module of completion scripts, without its option that installs them."""
    from importlib import import_module

    return import_module("typer.completion")

"""The commands of the shell that begin with a dot, as DuckDB's and sqlite's shells have them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from ...errors import FileError, FuselineError, InvalidQuery, nearest
from ...plan.text.quoted_name import quoted_name
from ...records import dataclass
from ...settings import history_file
from ...storage.tables.access import AccessRules
from ...storage.tables.files import place_here
from .output_modes import MODES, OTHER_NAMES
from .run_answers import ShellState, write_profile

FILE_READERS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".arrow": "ipc"}
MOST_FILES_WITHIN = 16  # that `.read` reads, one from within the other
STAGES = ("physical", "logical", "rules", "optimized", "analyze", "all")

Run = Callable[[ShellState, list[str]], object]


@dataclass(frozen=True)
class Command:
    """What a command takes, what it does in words, and how; `most` arguments at most."""

    takes: str
    text: str
    run: Run
    most: int = 1


def is_command(line: str) -> bool:
    """Whether a line that begins a statement is a command."""
    return line.lstrip().startswith(".")


def run_command(state: ShellState, line: str) -> bool:
    """Carry out a line that begins with a dot; an error is printed.  Whether all went well."""
    try:
        name, *given = _words(line.strip().rstrip(";"))
        command = COMMANDS[_known(name)]
        if len(given) > command.most:
            raise InvalidQuery(f"{name} takes no more than {command.most}: {command.takes}.")
        return command.run(state, given) is not False
    except FuselineError as error:
        state.fail(error)
        return False


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise InvalidQuery(f"This command has a quote that does not end: {line}") from error


def _known(name: str) -> str:
    """Return the command of a name, or of the start of just one name."""
    word = name.lower()
    if word in COMMANDS:
        return word
    starting = [known for known in COMMANDS if known.startswith(word) and len(word) > 1]
    if len(starting) == 1:
        return starting[0]
    hint = f" It could be {', '.join(starting)}." if starting else nearest(word, COMMANDS)
    raise InvalidQuery(f'There is no command "{name}": .help lists them.{hint}')


def _flag(name: str, given: list[str], now: bool) -> bool:
    """Return what ON or OFF says; without one the other of what is now."""
    if not given:
        return not now
    if given[0].lower() in ("on", "off"):
        return given[0].lower() == "on"
    raise InvalidQuery(f"{name} takes on or off, not {given[0]!r}.")


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidQuery(f"{name} takes whole numbers, not {text!r}.")
    return int(text)


def _one(name: str, given: list[str]) -> str:
    if not given:
        raise InvalidQuery(f"{name} takes {COMMANDS[name].takes}.")
    return given[0]


# What there is


def _tables(state: ShellState, given: list[str]) -> None:
    like = f" where name like {_text(given[0])}" if given else ""
    names = [
        name
        for (name,) in state.connection.sql(
            f"select name from (show tables){like} order by all"
        ).fetchall()
    ]
    state.output.write(_columns(names, state.maxwidth or state.output.width or 80))


def _columns(names: list[str], width: int) -> list[str]:
    """Return names as lines of columns, as many as fit."""
    widest = max(map(len, names), default=0) + 2
    count = max(1, width // widest)
    rows = -(-len(names) // count)
    return [
        "".join(f"{name:<{widest}}" for name in names[i::rows]).rstrip() + "\n" for i in range(rows)
    ]


def _schema(state: ShellState, given: list[str]) -> None:
    like = f" where name like {_text(given[0])}" if given else ""
    query = (
        "select name, sql from (select table_name as name, sql from duckdb_tables() union all "
        f"select view_name, sql from duckdb_views() where not internal){like} order by name"
    )
    for name, text in state.connection.sql(query).fetchall():
        shown = text or _as_created(state, name)
        state.output.write([f"{shown.rstrip(';')};\n"])


def _as_created(state: ShellState, name: str) -> str:
    columns = state.connection.sql(f"from {quoted_name(name)}").plan.columns
    listed = ", ".join(f"{quoted_name(c.name)} {c.type}" for c in columns)
    return f"CREATE TABLE {quoted_name(name)}({listed})"


def _text(text: str) -> str:
    return "'{}'".format(text.replace("'", "''"))


# Files


def _rules(state: ShellState) -> AccessRules:
    return state.connection.catalog.access.rules


def _read(state: ShellState, given: list[str]) -> bool:
    asked = _one(".read", given)
    path = place_here(asked, _rules(state))
    if path in state.reading or len(state.reading) >= MOST_FILES_WITHIN:
        raise FileError(f'"{asked}" is read from within itself, or too many files are.')
    text = read_script(path, asked)
    state.reading.append(path)
    try:
        return state.run_lines(state, text.splitlines())
    finally:
        state.reading.pop()


def read_script(path: Path, asked: str) -> str:
    """Return the text of a file of SQL; raises `FileError`."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f'"{asked}" cannot be read: {error}.') from error


def _output(state: ShellState, given: list[str], once: bool = False) -> None:
    if not given or given[0] == "stdout":
        if once:
            raise InvalidQuery(".once takes the path of a file.")
        state.output.close()
    elif given[0].startswith("|"):
        raise InvalidQuery(
            "Answers go to a file, not to a program: write it and run the program on it."
        )
    else:
        state.output.redirect(given[0], _rules(state), once)


def _once(state: ShellState, given: list[str]) -> None:
    _output(state, given, once=True)


def _open(state: ShellState, given: list[str]) -> None:
    """Begin anew with the settings of now: with the folder of a database, or a file as the only table."""
    from ...connection import connect

    old, asked = state.connection, given[0] if given else None
    settings = {name: getattr(old.settings, name) for name in old.settings.names()}
    path = None if asked is None else place_here(asked, _rules(state))
    reader = None if path is None else FILE_READERS.get(path.suffix.lower())
    fresh = connect(path if reader is None else None, **settings)
    try:
        if path is not None and reader is not None:
            getattr(fresh, f"read_{reader}")(str(path), path.stem)
    except BaseException:
        fresh.close()
        raise
    state.connection, state.last = fresh, None
    old.close()


# How answers are written


def _mode(state: ShellState, given: list[str]) -> None:
    if not given:
        state.output.write([f"{state.mode}\n"])
        return
    mode = OTHER_NAMES.get(given[0].lower(), given[0].lower())
    if mode not in MODES:
        raise InvalidQuery(
            f"There is no mode {given[0]!r}: the modes are {', '.join((*MODES, *OTHER_NAMES))}."
        )
    state.mode = mode


def _maxrows(state: ShellState, given: list[str]) -> None:
    text = _one(".maxrows", given).lower()
    state.maxrows = None if text in ("all", "0") else _number(".maxrows", text)


def _maxwidth(state: ShellState, given: list[str]) -> None:
    state.maxwidth = _number(".maxwidth", _one(".maxwidth", given))


def _width(state: ShellState, given: list[str]) -> None:
    state.widths = tuple(_number(".width", text) for text in given)


def _null(state: ShellState, given: list[str]) -> None:
    state.null = given[0] if given else None


def _headers(state: ShellState, given: list[str]) -> None:
    state.headers = _flag(".headers", given, state.headers)


def _timer(state: ShellState, given: list[str]) -> None:
    state.timer = _flag(".timer", given, state.timer)


def _echo(state: ShellState, given: list[str]) -> None:
    state.echo = _flag(".echo", given, state.echo)


def _pager(state: ShellState, given: list[str]) -> None:
    state.output.pages = _flag(".pager", given, state.output.pages)


def _print(state: ShellState, given: list[str]) -> None:
    state.output.write([f"{' '.join(given)}\n"])


# The last query


def _explain(state: ShellState, given: list[str]) -> None:
    if state.last is None:
        raise InvalidQuery("There is no query yet whose plan could be shown.")
    stage = given[0] if given else "physical"
    if stage not in STAGES:
        raise InvalidQuery(f"There is no stage {stage!r}: expected one of {', '.join(STAGES)}.")
    state.output.write([f"{state.last.explain(stage)}\n"])  # type: ignore[arg-type]


def _profile(state: ShellState, given: list[str]) -> None:
    if given:
        state.profile = _flag(".profile", given, state.profile)
    elif state.last is None:
        raise InvalidQuery("There is no query yet whose profile could be shown.")
    else:
        write_profile(state)


def _quit(state: ShellState, given: list[str]) -> None:
    state.left = True


def _help(state: ShellState, given: list[str]) -> None:
    shown = {
        n: c
        for n, c in COMMANDS.items()
        if not given or given[0].lower() in f"{n} {c.text}".lower()
    }
    width = max((len(f"{n} {c.takes}") for n, c in shown.items()), default=0)
    lines = [f"{f'{n} {c.takes}':<{width}}  {c.text}\n" for n, c in shown.items()]
    state.output.write([*lines, *([] if given else [f"\n{AFTERWORD.format(history_file())}\n"])])


AFTERWORD = """A statement ends with ';'. Ctrl-C stops a query, or forgets a statement that is not finished; Ctrl-D leaves.
DESCRIBE name; shows the columns of a table, EXPLAIN ANALYZE query; what a query spent its time on, FROM duckdb_settings(); what SET changes.
With pip install 'fuseline[shell]' the prompt completes names (Tab), colours SQL and edits several lines; history is kept in {}."""
COMMANDS = {
    ".tables": Command("[PATTERN]", "the tables and views", _tables),
    ".schema": Command("[PATTERN]", "the statements that make them", _schema),
    ".mode": Command("[MODE]", f"write answers as {', '.join(MODES)}", _mode),
    ".headers": Command(
        "[on|off]", "write the names of columns in csv, tsv, list and html", _headers
    ),
    ".nullvalue": Command("[TEXT]", "write NULL as this text; without one as the mode does", _null),
    ".maxrows": Command("N|all", "show at most so many rows of a table, from both ends", _maxrows),
    ".maxwidth": Command("N", "make tables so wide, 0 as wide as the terminal", _maxwidth),
    ".width": Command(
        "[N ...]", "cut the first columns to so many characters, 0 for as they are", _width, 999
    ),
    ".timer": Command("[on|off]", "tell how long each statement took", _timer),
    ".profile": Command(
        "[on|off]", "what the last query spent its time on; on: after each query", _profile
    ),
    ".explain": Command("[STAGE]", f"the plan of the last query: {', '.join(STAGES)}", _explain),
    ".pager": Command(
        "[on|off]", "show what is longer than the terminal in less, or what PAGER names", _pager
    ),
    ".output": Command(
        "[FILE]", "write answers to a file; without one to the terminal again", _output
    ),
    ".once": Command("FILE", "write the next answer to a file", _once),
    ".read": Command("FILE", "run the statements and commands of a file", _read),
    ".open": Command(
        "[PATH]",
        "begin anew: in memory, in the folder of a database, or with a file as table",
        _open,
    ),
    ".echo": Command("[on|off]", "write each statement before its answer", _echo),
    ".print": Command("TEXT ...", "write a text", _print, 999),
    ".help": Command("[WORD]", "what commands there are", _help),
    ".quit": Command("", "leave, as .exit and Ctrl-D do", _quit, 0),
    ".exit": Command("", "leave", _quit, 0),
}

"""`fuseline.toml`: settings of the command line, and how the shell begins.

    memory_limit = "4GB"        # any setting, by the names of docs/settings.md
    [shell]
    mode = "markdown"           # mode, maxrows, maxwidth, nullvalue, headers, timer, pager, profile, echo

The user's file is read first, then that of the working folder.  The environment goes before both, and options before all.
What lies in a working folder may come from anybody: it makes connections stricter, never laxer, as SET does.
"""

from __future__ import annotations

import tomllib
from dataclasses import field
from pathlib import Path

import typer

from ..errors import FileError, FuselineError, InvalidQuery
from ..records import dataclass
from ..settings import Settings
from ..settings_lock import check_change

NAME = "fuseline.toml"
SHELL_KEYS: dict[str, type | tuple[type, ...]] = {
    "mode": str,
    "maxrows": (int, str),
    "maxwidth": int,
    "nullvalue": str,
    "headers": bool,
    "timer": bool,
    "pager": bool,
    "profile": bool,
    "echo": bool,
}


@dataclass(frozen=True)
class Configuration:
    """What files say: settings, and what the shell begins with."""

    settings: Settings = field(default_factory=Settings)
    shell: dict[str, object] = field(default_factory=dict)


def configured(given: Path | None) -> Configuration:
    """Return what the files say, or one that is given instead; raises `FileError`, `UnknownName` and `InvalidQuery`."""
    if given is not None:
        return _with_file(Configuration(), given, is_own=True)
    found = Configuration()
    own, here = Path(typer.get_app_dir("fuseline")) / NAME, Path(NAME)
    if own.is_file():
        found = _with_file(found, own, is_own=True)
    if here.is_file() and not (own.is_file() and own.samefile(here)):
        found = _with_file(found, here, is_own=False)
    return found


def _with_file(before: Configuration, path: Path, is_own: bool) -> Configuration:
    settings = before.settings
    content = _read(path)
    shell = content.pop("shell", {})
    if not isinstance(shell, dict):
        raise InvalidQuery(f"{path}: [shell] is a table of what the shell begins with.")
    for name, value in content.items():
        try:
            new = settings.with_option(name, value)
            if not is_own:
                check_change(settings, new, name)
        except FuselineError as error:
            raise type(error)(f"{path}: {error.message}") from error
        settings = new
    for name, value in shell.items():
        _check_shell(path, name, value)
    return Configuration(settings, {**before.shell, **shell})


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read: {error}.") from error
    except (ValueError, RecursionError) as error:  # also a number of 5,000 digits, or deep lists
        raise FileError(f"{path} is no TOML: {error}.") from error


def _check_shell(path: Path, name: str, value: object) -> None:
    if name not in SHELL_KEYS:
        raise InvalidQuery(f"{path}: [shell] has no {name}: it takes {', '.join(SHELL_KEYS)}.")
    takes = SHELL_KEYS[name]
    if not isinstance(value, takes) or (isinstance(value, bool) and takes is not bool):
        raise InvalidQuery(f"{path}: [shell] {name} is no {value!r}.")

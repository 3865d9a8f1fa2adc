"""Every setting: a field of `Settings`, an option of `SET`, an argument of `connect` and a variable `FUSELINE_*`.

The four spellings are one: the field `memory_limit` is `SET memory_limit = '4GB'`, `connect(memory_limit="4GB")` and
`FUSELINE_MEMORY_LIMIT=4GB`.  An argument goes before the environment, and `SET` before both.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, fields, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal as OneOf, TypeAlias, get_args
from zoneinfo import ZoneInfo, available_timezones

from .errors import UnknownName, nearest, shown
from .records import dataclass
from .setting_values.paths import (
    UrlPrefix,
    parse_optional_path,
    parse_path,
    parse_paths,
    refused,
)
from .setting_values.sort_orders import parse_direction, parse_place_of_nulls

PREFIX = "FUSELINE_"
DeviceChoice = OneOf["auto", "gpu", "cpu"]
FuseChoice = OneOf["auto", "always", "never"]
PlacementChoice = OneOf["auto", "sharded", "replicated"]
LambdaChoice = OneOf["default", "disable_single_arrow", "enable_single_arrow"]
ExchangeChoice = OneOf["auto", "nccl", "host"]

MOST_BYTES = 2**63 - 1
_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{unit}b": 1000**i for i, unit in enumerate("kmgt", 1)}
_UNITS |= {f"{unit}ib": 1024**i for i, unit in enumerate("kmgt", 1)}
_SECONDS = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
MOST_SECONDS = 10.0**9  # some thirty years; waits take no more


def _temporary() -> Path:
    """The system's folder for temporary files; where nothing can be written now, what it would be, which who writes there will hear."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        return Path("/tmp")


@cache
def _system_zone() -> str:
    """Return the name of the machine's zone, Etc/UTC where it does not say."""
    link = Path("/etc/localtime")
    target = os.path.realpath(link) if link.exists() else ""
    for name in (os.environ.get("TZ", "").lstrip(":"), target.rpartition("zoneinfo/")[2]):
        with suppress(
            ValueError, OSError, KeyError
        ):  # no zone of this name; a list of all takes 0.15 s
            return ZoneInfo(name).key
    return "Etc/UTC"


@dataclass(frozen=True)
class Settings:
    """What a user can choose; byte limits are in bytes, and None means that the machine decides.

    device             where queries run: auto (the GPU when there is one), gpu, cpu
    memory_limit       bytes that one query may hold on its device; None: what the device has
    column_cache_limit bytes of scanned columns kept for the next query, for each device; None: a share of its memory
    host_cache_limit   bytes of host memory for columns that a GPU's cache has no room for; None: a share of it
    threads            threads of the CPU backend and of Parquet readers
    require_gpu        raise, with all reasons, when a plan node would not run on the GPU; few rows of one may still be left to the host
    fuse               when pipelines become kernels: auto, always, never
    column_store       where encoded columns of Parquet files are kept for later processes; None: nowhere
    column_store_limit bytes of columns kept there, of which those used longest ago go; None: half of what the disk has free
    cache_dir          where generated kernels are kept, sources and machine code
    kernel_cache_limit bytes of kernels kept there, of which those used longest ago go; None: 1 GiB
    spill_dir          where joins that do not fit into memory keep their parts while they run
    placement          on a cluster: auto, sharded (each worker has some rows of each file but small ones), replicated (each has all rows)
    exchange           between GPUs of a cluster: auto (by NCCL where all workers have it), nccl (or an error), host
    one_worker_below   on a cluster: a query whose scans take fewer bytes together runs on one worker; None: as replicate_below, four times that where workers would meet
    replicate_below    on a cluster: columns of a scan that take fewer bytes each, encoded, are read whole by each worker; None: 1/256 of its memory
    worker_grace       on a cluster: seconds for which a worker that is lost is waited for, and one that is silent is not taken for lost
    spill_memory       bytes of host memory for such parts of a GPU, before they go to spill_dir; None: half of it
    debug              0 to 5: how deep a run describes itself on standard error
    check              validate the plan after each planner rule
    deterministic      float sums come out the same in each run
    recursion_limit    rounds after which a WITH RECURSIVE that did not end is an error
    statement_timeout  seconds after which a statement is stopped; None: never
    external_access    false: no file may be opened but those of allowed_paths
    allowed_paths      files, folders and beginnings of URLs that queries may open, none beside them; None: all
    http_timeout       seconds that a request for a remote file may take
    http_retries       how often a request that failed on the way is tried again
    python_enable_replacements  a name in FROM that is no table is looked for among the variables of the caller
    python_scan_all_frames  among those of all callers of the caller too
    enable_progress_bar  show in a terminal or notebook how far a query is that takes longer than progress_bar_time
    progress_bar_time  milliseconds that a query takes before its progress is shown
    timezone           the zone in which TIMESTAMP WITH TIME ZONE is read and shown; by default the machine's
    default_order      how ORDER BY sorts without a direction: asc, desc
    default_null_order where ORDER BY puts NULLs that it does not say: nulls_last, nulls_first, or by the direction
    error_on_division_by_zero  false: `//`, `%` and INTERVAL / 0 give NULL
    integer_division   true: `/` is `//`
    lambda_syntax      enable_single_arrow: `x -> x + 1` is a lambda, as `lambda x: x + 1`
    scalar_subquery_error_on_multiple_rows  false: a subquery as a value gives its first row
    lock_settings      true: no setting changes any more, this one included
    """

    device: DeviceChoice = "auto"
    memory_limit: int | None = None
    column_cache_limit: int | None = None
    host_cache_limit: int | None = None
    threads: int = 0
    require_gpu: bool = False
    fuse: FuseChoice = "auto"
    column_store: Path | None = None
    column_store_limit: int | None = None
    cache_dir: Path = field(default_factory=lambda: _cache_home() / "fuseline")
    kernel_cache_limit: int | None = None
    spill_dir: Path = field(default_factory=_temporary)
    spill_memory: int | None = None
    placement: PlacementChoice = "auto"
    exchange: ExchangeChoice = "auto"
    one_worker_below: int | None = None
    replicate_below: int | None = None
    worker_grace: float = 20.0
    debug: int = 0
    check: bool = False
    deterministic: bool = False
    recursion_limit: int = 100_000
    statement_timeout: float | None = None
    external_access: bool = True
    allowed_paths: tuple[Path | UrlPrefix, ...] | None = None
    http_timeout: float = 30.0
    http_retries: int = 3
    python_enable_replacements: bool = True
    python_scan_all_frames: bool = False
    enable_progress_bar: bool = False
    progress_bar_time: int = 1000
    timezone: str = field(default_factory=_system_zone)
    default_order: str = "ASC"
    default_null_order: str = "NULLS_LAST"
    error_on_division_by_zero: bool = True
    integer_division: bool = False
    lambda_syntax: LambdaChoice = "default"
    scalar_subquery_error_on_multiple_rows: bool = True
    lock_settings: bool = False

    def __post_init__(self) -> None:
        if self.threads <= 0:
            object.__setattr__(self, "threads", usable_cores())

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, defaults: Settings | None = None
    ) -> Settings:
        """Return the defaults with what `FUSELINE_*` variables say; raises as `with_option` does."""
        variables = os.environ if environment is None else environment
        settings = defaults or cls()
        for name in cls.names():
            value = variables.get(PREFIX + name.upper())
            if value:
                settings = settings.with_option(name, value)
        return settings

    @classmethod
    def names(cls) -> list[str]:
        return [f.name for f in fields(cls)]

    def with_option(self, name: str, value: object) -> Settings:
        """Return these settings with one changed.

        Raises `UnknownName` for a setting that does not exist and `InvalidQuery` for a value that it does not take.
        """
        key = self._known(name)
        other = name.lower()
        parse = _OTHER_UNITS.get(other, _PARSERS[key])
        return replace(self, **{key: parse(other, value)})

    def with_value_of(self, name: str, other: Settings) -> Settings:
        """Return these settings with one as `other` has it; raises `UnknownName`."""
        key = self._known(name)
        return replace(self, **{key: getattr(other, key)})

    def _known(self, name: str) -> str:
        key = name.lower() if isinstance(name, str) else ""
        key = DUCKDB_NAMES.get(key, key)
        if key not in _PARSERS:
            known = self.names()
            hint = nearest(name, known) or f" The settings are {', '.join(known)}."
            if "profil" in key:
                hint = " A query's profile is frame.profile, or EXPLAIN ANALYZE."
            quoted = f'"{name}"' if isinstance(name, str) else shown(name)
            raise UnknownName(f"There is no setting {quoted}.{hint}")
        return key


# What DuckDB calls settings that mean the same
DUCKDB_NAMES = {
    "enable_external_access": "external_access",
    "lock_configuration": "lock_settings",
    "max_execution_time": "statement_timeout",
    "max_memory": "memory_limit",
    "null_order": "default_null_order",
    "temp_directory": "spill_dir",
    "worker_threads": "threads",
}


def described_settings() -> dict[str, str]:
    """Return what each setting does, in the words of the class that has them, which CPython indents before 3.13 and leaves out with -OO."""
    names = Settings.names()
    words = (line.split(maxsplit=1) for line in (Settings.__doc__ or "").splitlines())
    return dict.fromkeys(names, "") | {f[0]: f[1] for f in words if f and f[0] in names}


def _cache_home() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return Path(given) if given else _home() / ".cache"


def _home() -> Path:
    """The user's folder; in a container without one, and without an entry for the user, a folder of the user's below the temporary one."""
    try:
        return Path.home()
    except RuntimeError:
        return _temporary() / f"fuseline-{os.getuid()}"


def debug_level() -> int:
    """Return what FUSELINE_DEBUG says, 0 where that is no number: for what has to be told before there is a connection."""
    given = os.environ.get(PREFIX + "DEBUG", "")
    return int(given) if given in ("1", "2", "3", "4", "5") else 0


def has_variable(*names: str) -> bool:
    """Whether the environment has one of these variables of other libraries."""
    return any(os.environ.get(name) for name in names)


def set_default(variable: str, value: str) -> None:
    """Set an environment variable of another library, which reads it when it is first used, unless the user has."""
    os.environ.setdefault(variable, value)


def server_secrets() -> tuple[str, str]:
    """Return the tokens and the users with passwords of `fuseline serve`, as their variables have them."""
    return os.environ.get(PREFIX + "SERVE_TOKENS", ""), os.environ.get(PREFIX + "SERVE_USERS", "")


def history_file() -> Path:
    """Return where the shell keeps its history: `FUSELINE_HISTORY`, or a file in the user's state directory."""
    given = os.environ.get(PREFIX + "HISTORY")
    return Path(given) if given else state_folder() / "history"


def state_folder() -> Path:
    """Return the user's folder for what should outlive caches."""
    given = os.environ.get("XDG_STATE_HOME")
    return (Path(given) if given else _home() / ".local" / "state") / "fuseline"


def parse_bytes(name: str, value: object) -> int | None:
    """Return a byte count from a number or a text such as '4GB', '512 MiB', '1.5gb'; 'auto' and 'none' give None."""
    text = _text(value)
    if value is None or text in ("auto", "none", ""):
        return None
    match = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-z]*)", text)
    wanted = "a number of bytes such as 2000000000, '4GB' or '512MiB', or 'auto'"
    if match is None or match[2] not in _UNITS:
        raise refused(name, value, wanted)
    found = int(Decimal(match[1]) * _UNITS[match[2]])
    if found > MOST_BYTES:
        raise refused(name, value, f"{wanted}, and at most {MOST_BYTES}")
    return found


def parse_seconds(name: str, value: object) -> float | None:
    """Return seconds from a number or a text such as '500ms', '2s', '1.5 min'; 0 and 'none' give None."""
    text = "none" if value is None else _text(value)
    if text in ("none", ""):
        return None
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,12})?|\.\d{1,12})\s*([a-z]*)", text, re.ASCII)
    if match is not None and match[2] in _SECONDS:
        seconds = float(match[1]) * _SECONDS[match[2]]
        if seconds <= MOST_SECONDS:
            return seconds or None
    raise refused(name, value, "seconds, '500ms', '2s', '5min', or 'none' for no limit")


def _parse_limit(name: str, value: object) -> float:
    """Return seconds, of which there have to be some."""
    seconds = parse_seconds(name, value)
    if seconds is None:
        raise refused(name, value, "seconds, '500ms', '2s' or '5min', and more than none")
    return seconds


def _parse_flag(name: str, value: object) -> bool:
    text = _text(value)
    if text in ("true", "1", "on", "yes"):
        return True
    if text in ("false", "0", "off", "no"):
        return False
    raise refused(name, value, "true or false")


def _parse_count(name: str, value: object, low: int, high: int, expected: str) -> int:
    text = _text(value)
    if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise refused(name, value, expected)
    return int(text)


def _parse_threads(name: str, value: object) -> int:
    """'auto' means all cores that this process may use."""
    if _text(value) == "auto":
        return 0
    return _parse_count(name, value, 1, 4096, "a number of threads from 1 to 4096, or 'auto'")


def _count(low: int, high: int, expected: str) -> Callable[[str, object], int]:
    return lambda name, value: _parse_count(name, value, low, high, expected)


_parse_milliseconds = _count(0, 10**9, "a number of milliseconds, 0 to 999999999")


def _parse_timeout(name: str, value: object) -> float | None:
    """Return seconds of milliseconds, as DuckDB counts them; 0 is no limit."""
    return _parse_milliseconds(name, value) / 1e3 or None


def _parse_zone(name: str, value: object) -> str:
    """Return the name of a time zone, which may be given in any case, as it is written."""
    text = _text(value)
    found = next((zone for zone in available_timezones() if zone.lower() == text), None)
    if found is None:
        raise refused(name, value, "the name of a time zone, such as 'Europe/Berlin' or 'UTC'")
    return found


def _one_of(choices: tuple[str, ...]) -> Callable[[str, object], str]:
    def parse(name: str, value: object) -> str:
        text = _text(value)
        if text not in choices:
            raise refused(name, value, f"one of {', '.join(choices)}")
        return text

    return parse


def _text(value: object) -> str:
    """Return a value as an environment variable would hold it; one of another type, which no setting takes, in brackets."""
    if isinstance(value, bool):
        return "true" if value else "false"
    numeric = isinstance(value, int | float | Decimal) or hasattr(value, "dtype")
    if isinstance(value, int) and value.bit_length() > 128:
        return "<a larger number>"
    return str(value).strip().lower() if numeric or isinstance(value, str) else "<no text>"


def usable_cores() -> int:
    """Cores that this process may run on, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


Parse: TypeAlias = Callable[[str, object], Any]  # a setting's name and what is given -> its value
_OF_TYPES: dict[object, Parse] = {"bool": _parse_flag, "int | None": parse_bytes}
_PARSERS: dict[str, Parse] = {
    **{f.name: _OF_TYPES[f.type] for f in fields(Settings) if f.type in _OF_TYPES},
    "device": _one_of(get_args(DeviceChoice)),
    "threads": _parse_threads,
    "fuse": _one_of(get_args(FuseChoice)),
    "placement": _one_of(get_args(PlacementChoice)),
    "exchange": _one_of(get_args(ExchangeChoice)),
    "column_store": parse_optional_path,
    "cache_dir": parse_path,
    "spill_dir": parse_path,
    "worker_grace": _parse_limit,
    "debug": _count(0, 5, "a number from 0 to 5"),
    "statement_timeout": parse_seconds,
    "allowed_paths": parse_paths,
    "http_timeout": _parse_limit,
    "http_retries": _count(0, 100, "a number of tries, 0 to 100"),
    "timezone": _parse_zone,
    "default_order": parse_direction,
    "lambda_syntax": _one_of(get_args(LambdaChoice)),
    "default_null_order": parse_place_of_nulls,
    "recursion_limit": _count(1, 10**9, "a number of rounds, 1 to 999999999"),
    "progress_bar_time": _parse_milliseconds,
}
_OTHER_UNITS: dict[str, Parse] = {"max_execution_time": _parse_timeout}

"""Columns from folder names such as `year=2024/country=AT`."""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ...errors import FileError, InvalidQuery, Unsupported
from ...plan.coercion import parse_type
from ...plan.types import BIGINT, DATE, INTEGER_BITS, TIMESTAMP, VARCHAR, DataType, Kind
from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...plan.expr import Value

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class FileConstant:
    """A column with one value for each file."""

    name: str
    type: DataType
    values: tuple[Value, ...]


def partition_columns(
    paths: Sequence[str],
    asked: bool | None = None,
    autocast: bool = True,
    given: Mapping[str, str] | None = None,
) -> tuple[FileConstant, ...]:
    """Return the columns that the folders of these files name, by name.

    Without being asked (None) there are some only when all files have the same keys, as in DuckDB.  A key's type is the
    first of BIGINT, DATE and TIMESTAMP that holds every value, else VARCHAR.  Raises `FileError` when asked for and
    the keys differ.  `given` are the names of types that some keys have; raises `InvalidQuery` for one that is no key.
    """
    if asked is False or not paths:
        return ()
    parsed = [_keys(path) for path in paths]
    names = [tuple(sorted(k.lower() for k in keys)) for keys in parsed]
    for path, found in zip(paths, names, strict=True):
        if found != names[0]:
            if not asked:
                return ()
            raise FileError(
                f'The folders of "{path}" name the hive partitions {list(found)}, those of "{paths[0]}" '
                f"{list(names[0])}: all files need the same ones, or hive_partitioning = false."
            )
    columns = []
    wanted = {name.lower(): kind for name, kind in (given or {}).items()}
    for name in sorted(parsed[0]):
        texts = [next(v for k, v in keys.items() if k.lower() == name.lower()) for keys in parsed]
        kind = wanted.pop(name.lower(), None)
        typed = _typed(texts, autocast) if kind is None else _as_given(name, texts, kind)
        columns.append(FileConstant(name, *typed))
    if wanted:
        raise InvalidQuery(f'hive_types names "{next(iter(wanted))}", which no folder does.')
    return tuple(columns)


def _as_given(name: str, texts: Sequence[str], kind: str) -> tuple[DataType, tuple[Value, ...]]:
    """Return the values of a key in a type that was asked for; raises `FileError` for a text that is none."""
    data_type = parse_type(kind)
    parse = _OF_TYPE.get(data_type.kind)
    if parse is None:
        raise Unsupported(f"hive_types makes no columns of {data_type}: leave it out, and cast.")
    values: list[Value] = []
    for text in texts:
        try:
            empty = text == NULL_FOLDER
            values.append(None if empty else parse(text))
            low = INTEGER_BITS.get(data_type.kind)
            if low and not empty and not -(1 << low - 1) <= int(text) < 1 << low - 1:
                raise ValueError(text)
        except ValueError:
            raise FileError(f'The folder "{name}={text}" is no {data_type}.') from None
    return data_type, tuple(values)


def _keys(path: str) -> dict[str, str]:
    """Return key -> text; of two keys that differ in case alone the outer one counts."""
    found: dict[str, str] = {}
    for part in PurePath(path).parts[:-1]:
        key, *rest = part.split("=")
        if key and len(rest) == 1 and key.lower() not in {k.lower() for k in found}:
            found[unquote(key)] = unquote(rest[0])
    return found


def _typed(texts: list[str], autocast: bool) -> tuple[DataType, tuple[Value, ...]]:
    present = [t for t in texts if t != NULL_FOLDER]
    if autocast and present:
        for data_type, parse in _PARSERS:
            try:
                values = tuple(
                    None if t == NULL_FOLDER or t.lower() == "null" else parse(t) for t in texts
                )
            except ValueError:
                continue
            if any(v is not None for v in values):
                return data_type, values
    return VARCHAR, tuple(None if t == NULL_FOLDER else t for t in texts)


def _bigint(text: str) -> int:
    """A leading zero or plus makes it a text, so that no digit of a postal code is lost."""
    if not re.fullmatch(r"\s*-?(0|[1-9][0-9]*)\s*", text) or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError(text)
    return int(text)


def _date(text: str) -> date:
    match = re.fullmatch(r"(\d{1,4})-(\d{1,2})-(\d{1,2})", text)
    if match is None:
        raise ValueError(text)
    return date(*map(int, match.groups()))


def _timestamp(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S")


_OF_TYPE: dict[Kind, Callable[[str], Value]] = {
    Kind.VARCHAR: str,
    Kind.TINYINT: int,
    Kind.SMALLINT: int,
    Kind.INTEGER: int,
    Kind.BIGINT: int,
    Kind.DOUBLE: float,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
}
_PARSERS: tuple[tuple[DataType, Callable[[str], Value]], ...] = (
    (BIGINT, _bigint),
    (DATE, _date),
    (TIMESTAMP, _timestamp),
)

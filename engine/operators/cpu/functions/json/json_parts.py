"""What a value of JSON has at a path, what it is, and what it has inside: the rows of json_each and json_tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ..... import stopping
from .....errors import ExecutionError, InvalidQuery
from .....plan.functions.json_functions import SEVERAL
from .....plan.json.documents import (
    is_container,
    is_json,
    kind_of,
    pretty_text,
    read,
    text_of,
)
from .....plan.json.json_paths import (
    MISSING,
    JsonPath,
    compiled,
    find,
    find_all,
    quoted_key,
    values_of,
)
from ..values.each_value import PythonValue, ValueFunction

OfValue = Callable[[object], PythonValue]


def _string(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return text_of(value)


def _scalar(value: object) -> str | None:
    return None if value is None or is_container(value) else text_of(value)


def _keys(value: object) -> list[str]:
    return [key for key, _ in value.items()] if isinstance(value, dict) else []


def _length(value: object) -> int:
    return len(value) if isinstance(value, list) else 0


_OF_VALUES: dict[str, tuple[OfValue, PythonValue]] = {  # and what there is where nothing is
    "json_extract": (text_of, None),
    "json_extract_string": (_string, None),
    "json_value": (_scalar, None),
}
# Of these it does not matter what strings and numbers are
_OF_KINDS: dict[str, tuple[OfValue, PythonValue]] = {
    "json_exists": (lambda value: True, False),
    "json_type": (kind_of, None),
    "json_keys": (_keys, None),
    "json_array_length": (_length, None),
}


def _at_path(of_value: OfValue, nothing: PythonValue) -> ValueFunction:
    def at_path(text: str, path: str | int = "") -> PythonValue:
        known = compiled(path)
        if known.has_wildcard:
            raise ExecutionError("A JSON path with wildcards has to be a constant.")
        found = find(read(text), known)
        return nothing if found is MISSING else of_value(found)

    return at_path


def _at_paths(of_value: OfValue, nothing: PythonValue) -> ValueFunction:
    def at_paths(text: str, paths: str | Sequence[str]) -> PythonValue:
        value = read(text)
        if isinstance(paths, str):
            return [of_value(found) for found in find_all(value, compiled(paths))]
        places = (find(value, compiled(path)) for path in paths)
        return [nothing if found is MISSING else of_value(found) for found in places]

    return at_paths


def contains(whole: object, part: object) -> bool:
    """Whether a value, or one inside of it, has all that another has."""
    if _has(whole, part):
        return True
    return any(contains(inside, part) for inside in values_of(whole))


def _has(whole: object, part: object) -> bool:
    if isinstance(whole, list) and isinstance(part, list):
        return all(any(_has(mine, theirs) for mine in whole) for theirs in part)
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(key in whole and _has(whole[key], inside) for key, inside in part.items())
    return not is_container(whole) and not is_container(part) and same(whole, part)


def same(left: object, right: object) -> bool:
    """Whether two values are of one type and alike."""
    return kind_of(left) == kind_of(right) and left == right


class JsonShape:
    """What values in one place are: their type, or what elements or keys they have."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.elements: JsonShape | None = None
        self.fields: dict[str, JsonShape] = {}

    def add(self, value: object) -> None:
        kind = kind_of(value)
        self.kinds.add(kind)
        if isinstance(value, list):
            self.elements = self.elements or JsonShape()
            for inside in value:
                self.elements.add(inside)
        elif isinstance(value, dict):
            for key, inside in value.items():
                self.fields.setdefault(key, JsonShape()).add(inside)

    def structure(self) -> object:
        kinds = self.kinds - {"NULL"}
        if not kinds:
            return "NULL"
        if kinds <= _NUMBERS:
            return "DOUBLE" if "DOUBLE" in kinds else "HUGEINT" if len(kinds) > 1 else min(kinds)
        if len(kinds) > 1:
            return "JSON"
        if self.elements is not None:
            return [self.elements.structure()]
        if kinds == {"OBJECT"}:
            return {key: field.structure() for key, field in self.fields.items()} or "JSON"
        return min(kinds)


_NUMBERS = frozenset(("UBIGINT", "BIGINT", "DOUBLE"))


def _structure(text: str) -> str:
    shape = JsonShape()
    shape.add(read(text))
    return text_of(shape.structure())


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
Entry = dict[str, object]


def _entries(*, within: bool) -> ValueFunction:
    """Return the function that lists what a value has directly, or `within` all levels."""

    def entries(text: str, path: str = "$") -> list[Entry]:
        known = compiled(path)
        if path.startswith("/") or known.has_wildcard:
            raise InvalidQuery(
                "The path of json_each and json_tree begins with $ and has no wildcards."
            )
        value = read(text)
        found = find(value, known)
        if found is MISSING:
            return []
        return list(_rows(found, _place_of(value, known), known.text, within))

    return entries


def _rows(found: object, place: int, path: str, within: bool) -> Iterator[Entry]:
    """Yield the entries of a value in their order; `place` is its own number, and each key and each value has the next one."""
    waiting: list[tuple[str | None, bool, object, int | None, str, str, int]]
    waiting = [(None, False, found, None, path, path, 0)]
    while waiting:
        stopping.check()  # each value is written with all inside
        key, is_named, value, parent, full, around, depth = waiting.pop()
        place += is_named
        if within or depth == 1 or not is_container(value):
            known = parent if within else None
            yield _entry(key, value, place, known, full, around)
        if depth == 1 and not within:
            place += _size(value)
            continue
        children = [
            (name, isinstance(value, dict), inside, place, f"{full}{step}", full, depth + 1)
            for name, step, inside in _children(value)
        ]
        waiting.extend(reversed(children))
        place += 1


def _entry(
    key: str | None, value: object, place: int, parent: int | None, full: str, around: str
) -> Entry:
    text = text_of(value)
    return {
        "key": key,
        "value": text,
        "type": kind_of(value),
        "atom": None if value is None or is_container(value) else text,
        "id": place,
        "parent": parent,
        "fullkey": full,
        "path": around,
    }


def _children(value: object) -> Iterator[tuple[str, str, object]]:
    """Yield the keys or numbers of the values inside, as text and as a step of a path."""
    if isinstance(value, list):
        for number, inside in enumerate(value):
            yield str(number), f"[{number}]", inside
    elif isinstance(value, dict):
        for key, inside in value.items():
            yield key, f".{key if _PLAIN.fullmatch(key) else quoted_key(key)}", inside


def _size(value: object) -> int:
    """Return how many numbers a value, its keys and all inside have."""
    waiting, count = [value], 0
    while waiting:
        each = waiting.pop()
        inside = values_of(each)
        count += 1 + (len(inside) if isinstance(each, dict) else 0)
        waiting.extend(inside)
    return count


def _place_of(value: object, path: JsonPath) -> int:
    """Return the number of what lies at a path."""
    place = 0
    for step in path.steps:
        place += 1
        if isinstance(value, list) and isinstance(step, int):
            number = step % len(value)
            place += sum(map(_size, value[:number]))
            value = value[number]
        elif isinstance(value, dict):
            for key, inside in value.items():
                place += 1
                if key == step:
                    value = inside
                    break
                place += _size(inside)
    return place


def _functions(of_values: dict[str, tuple[OfValue, PythonValue]]) -> dict[str, ValueFunction]:
    return {
        **{name: _at_path(*known) for name, known in of_values.items()},
        **{f"{name}{SEVERAL}": _at_paths(*known) for name, known in of_values.items()},
    }


FUNCTIONS: dict[str, ValueFunction] = {
    **_functions(_OF_VALUES),
    "json_contains": lambda text, part: contains(read(text), read(part)),
    "json_pretty": lambda text: pretty_text(read(text)),
    "json_entries": _entries(within=False),
    "json_entries_within": _entries(within=True),
}
OF_KINDS: dict[str, ValueFunction] = {
    **_functions(_OF_KINDS),
    "json_valid": is_json,
    "json_structure": _structure,
}
SEVERAL_PATHS = {name: f"{name}{SEVERAL}" for name in _OF_VALUES}

"""The rows of json_each and json_tree: the values inside of one, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .....errors import InvalidQuery
from .....plan.json.documents import is_container, kind_of, read, text_of
from .....plan.json.json_paths import MISSING, JsonPath, compiled, find, quoted_key, values_of
from ..values.each_value import ValueFunction

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


FUNCTIONS: dict[str, ValueFunction] = {
    "json_entries": _entries(within=False),
    "json_entries_within": _entries(within=True),
}

"""Paths into JSON, compiled once: `$.a[0]`, `$..b`, `/a/0`, and the names and numbers that stand for `$.name` and `$[n]`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

from ...errors import InvalidQuery
from ...records import dataclass

_STEP = re.compile(
    r"""(?P<deep>\.\.(?!\.)|\.\*\*(?:\.|(?=\[|$)))
    |\.(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<key>[^.\["][^.\[]*))
    |\[(?:(?P<star>\*)|(?P<behind>\#)?(?P<place>-?[0-9]{1,18})?)\]""",
    re.VERBOSE | re.DOTALL,
)
_PLACE = re.compile(r"0|[1-9][0-9]{0,17}")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class PathStep(Enum):
    """A step to several values: those of an object, those of an array, or all within a value."""

    KEYS = "*"
    PLACES = "[*]"
    DEEP = ".."
    BEHIND = "[#]"  # where an array ends, and another value can be put


@dataclass(frozen=True, slots=True)
class PointerToken:
    """A part of a JSON pointer: the key of an object, or the place in an array where it is a number."""

    text: str


_WILD = frozenset((PathStep.KEYS, PathStep.PLACES, PathStep.DEEP))
Steps: TypeAlias = Sequence["str | int | PathStep | PointerToken"]
MISSING = object()  # what is not there, where None is JSON's null


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path: keys are text and places numbers, which count from the end where they are negative."""

    text: str
    steps: tuple[str | int | PathStep | PointerToken, ...]

    @property
    def has_wildcard(self) -> bool:
        """Whether a path leads to any number of values."""
        return any(step in _WILD for step in self.steps)


@lru_cache(maxsize=4096)
def compiled(path: str | int) -> JsonPath:
    """Return the path that a text or number is; raises `InvalidQuery` for a text that begins with $ and is none."""
    if isinstance(path, int):
        return JsonPath(f"$[{path}]", (path,))
    if path.startswith("$"):
        return JsonPath(path, _checked(path, tuple(_steps(path))))
    if path.startswith("/"):
        tokens = path[1:].split("/")
        steps = (PointerToken(t.replace("~1", "/").replace("~0", "~")) for t in tokens)
        return JsonPath(path, tuple(steps))
    if not path:
        return JsonPath("$", ())
    return JsonPath(f"$.{quoted_key(path)}", (path,))


def _checked(
    path: str, steps: tuple[str | int | PathStep | PointerToken, ...]
) -> tuple[str | int | PathStep | PointerToken, ...]:
    """Refuse a wildcard behind `..*`, where DuckDB counts values twice."""
    for place, step in enumerate(steps[:-1]):
        if step is PathStep.DEEP and steps[place + 1] in _WILD and _WILD & {*steps[place + 2 :]}:
            raise InvalidQuery(
                f"The JSON path '{path}' has a wildcard behind ..*: leave one of them out."
            )
    return steps


def quoted_key(name: str) -> str:
    """Return a key as it always can stand in a path."""
    return '"{}"'.format(name.replace("\\", "\\\\").replace('"', '\\"'))


def _steps(path: str) -> Iterator[str | int | PathStep]:
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise InvalidQuery(
                f"The JSON path '{path}' is none from '{path[at:]}' on: write $.key, $.\"key\", $[0], $[#-1], $.*, $[*] or $..key."
            )
        at = found.end()
        if found["deep"]:
            yield PathStep.DEEP
            if at == len(path):
                if found["deep"] == "..":
                    raise InvalidQuery(f"The JSON path '{path}' ends in dots.")
                yield PathStep.KEYS
            elif path[at] != "[":
                at -= 1  # the dot that a key begins with
        elif found["quoted"] is not None:
            yield _ESCAPED.sub(r"\1", found["quoted"])
        elif found["key"] is not None:
            yield PathStep.KEYS if found["key"] == "*" else found["key"]
        elif found["star"]:
            yield PathStep.PLACES
        elif found["place"] is not None:
            place = int(found["place"])
            if found["behind"] and place > 0:
                raise InvalidQuery(f"The JSON path '{path}' counts from the end as [#-1].")
            yield place
        elif found["behind"]:
            yield PathStep.BEHIND
        else:
            raise InvalidQuery(f"The JSON path '{path}' has no place in its brackets.")


def find(value: object, path: JsonPath) -> object:
    """Return the value at a path without wildcards, or `MISSING`."""
    for step in path.steps:
        value = _at(value, step)
        if value is MISSING:
            return MISSING
    return value


def _at(value: object, step: str | int | PathStep | PointerToken) -> object:
    if isinstance(value, dict):
        if isinstance(step, PointerToken):
            step = step.text
        return value.get(step, MISSING) if isinstance(step, str) else MISSING
    if isinstance(value, list):
        if isinstance(step, PointerToken) and is_place(step.text):
            step = int(step.text)
        if isinstance(step, int) and -len(value) <= step < len(value):
            return value[step]
    return MISSING


def is_place(token: str) -> bool:
    """Whether a part of a JSON pointer is the number of an element."""
    return _PLACE.fullmatch(token) is not None


def find_all(value: object, path: JsonPath) -> list[object]:
    """Return the values at a path, those that lie higher first."""
    values, is_deep = [value], False
    for step in path.steps:
        if step is PathStep.DEEP:
            values = _with_all_within(values)
        elif step in (PathStep.KEYS, PathStep.PLACES):
            values = [
                inside
                for each in values
                if isinstance(each, dict if step is PathStep.KEYS else list)
                or (is_deep and step is PathStep.KEYS)  # which are elements, too
                for inside in values_of(each)
            ]
        else:
            found = (_at(each, step) for each in values)
            values = [each for each in found if each is not MISSING]
        is_deep = step is PathStep.DEEP
    return values


def _with_all_within(values: list[object]) -> list[object]:
    found = list(values)
    for each in found:  # which grows meanwhile
        if isinstance(each, list | dict):
            found.extend(values_of(each))
    return found


def values_of(value: object) -> list[object]:
    """Return the elements of an array or the values of an object."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return [inside for _, inside in value.items()]
    return []

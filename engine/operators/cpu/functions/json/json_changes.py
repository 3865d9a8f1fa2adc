"""Values of JSON that are changed: merged, put at a path, without what a path leads to, or with sorted keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .....errors import ExecutionError
from .....plan.json.documents import object_of, read, text_of
from .....plan.json.json_paths import JsonPath, PathStep, PointerToken, compiled, is_place
from ..values.each_value import PythonValue, ValueFunction
from .json_parts import same

Pairs = list[tuple[str, object]]


def _merged(whole: object, patch: object) -> object:
    """Return RFC 7396's merge patch of a value: what is null in the patch goes."""
    if not isinstance(patch, dict):
        return patch
    known: dict[str, object] = whole if isinstance(whole, dict) else {}
    pairs = [(key, value) for key, value in known.items() if key not in patch]
    pairs += [
        (key, _merged(known.get(key), value)) for key, value in patch.items() if value is not None
    ]
    return object_of(pairs)


def _patched(whole: object, patch: object) -> object:
    """Where one of both is no object the patch is the result, with its nulls."""
    both = isinstance(whole, dict) and isinstance(patch, dict)
    return _merged(whole, patch) if both else patch


def _deeply_merged(whole: object, other: object) -> object:
    """Return both objects in one: what is null in the other changes nothing, and objects are merged in turn."""
    if not isinstance(whole, dict) or not isinstance(other, dict):
        return whole if other is None else other
    pairs = [(k, v) for k, v in whole.items() if k not in other or other[k] is None]
    pairs += [
        (key, _deeply_merged(whole[key], value) if key in whole else value)
        for key, value in other.items()
        if value is not None
    ]
    return object_of(pairs)


def _of_all(merge: Callable[[object, object], object]) -> ValueFunction:
    def merged(*texts: str | None) -> PythonValue:
        result = texts[0]
        for text in texts[1:]:
            if result is None or text is None:
                result = text if text is None else text_of(read(text))
            else:
                result = text_of(merge(read(result), read(text)))
        return result

    return merged


def _difference(left: object, right: object) -> object:
    """Return the merge patch that makes the right value of the left one."""
    if not isinstance(left, dict) or not isinstance(right, dict):
        return right
    pairs: Pairs = [(key, None) for key, _ in left.items() if key not in right]
    for key, value in right.items():
        if key not in left:
            pairs.append((key, value))
        elif not alike(left[key], value):
            pairs.append((key, _difference(left[key], value)))
    return object_of(pairs)


def alike(left: object, right: object) -> bool:
    """Whether two values are the same in all that they have inside; the order of keys does not matter."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(alike(v, right[k]) for k, v in left.items())
    return same(left, right)


def _without_nulls(value: object) -> object:
    if isinstance(value, list):
        return [_without_nulls(inside) for inside in value]
    if isinstance(value, dict):
        return object_of([(k, _without_nulls(v)) for k, v in value.items() if v is not None])
    return value


def _sorted(value: object) -> object:
    if isinstance(value, list):
        return [_sorted(inside) for inside in value]
    if isinstance(value, dict):
        return object_of(
            sorted(
                ((key, _sorted(inside)) for key, inside in value.items()),
                key=lambda pair: pair[0].encode(),
            )
        )
    return value


_Steps = Sequence[str | int | PathStep | PointerToken]


def _put(value: object, steps: _Steps, new: object, *, over: bool, beside: bool) -> object:
    """Return a value with another at a path: `over` what is there, `beside` where nothing is; objects on the way are made."""
    if not steps:
        return new if over else value
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        key = step.text if isinstance(step, PointerToken) else step
        if not isinstance(key, str):
            return value
        if key in value:
            changed = _put(value[key], rest, new, over=over, beside=beside)
            return _with(value, key, changed, alone=not rest)
        return object_of([*value.items(), (key, _made(rest, new))]) if beside else value
    if isinstance(value, list):
        place = _place(step, len(value))
        if place is None:
            return value
        if place < len(value):
            changed = _put(value[place], rest, new, over=over, beside=beside)
            return [*value[:place], changed, *value[place + 1 :]]
        return [*value, _made(rest, new)] if beside else value
    return value


def _with(value: dict[str, object], key: str, new: object, *, alone: bool) -> dict[str, object]:
    """Return an object with another value of a key, of which the first counts; `alone`: it has that once then."""
    pairs = list(value.items())
    place = next(i for i, (name, _) in enumerate(pairs) if name == key)
    pairs[place] = (key, new)
    return object_of([p for i, p in enumerate(pairs) if i == place or not alone or p[0] != key])


def _place(step: str | int | PathStep | PointerToken, count: int) -> int | None:
    """Return the place in an array that a step leads to, which may be that behind its last element."""
    if step is PathStep.BEHIND:
        return count
    if isinstance(step, PointerToken):
        if step.text == "-":
            return count
        place = int(step.text) if is_place(step.text) else count + 1
        return place if place <= count else None
    if isinstance(step, int) and -count <= step <= count:
        return step + count if step < 0 else step
    return None


def _made(steps: _Steps, new: object) -> object:
    """Return a value inside of what its path needs around it."""
    for step in reversed(steps):
        if isinstance(step, str | PointerToken):
            new = {step if isinstance(step, str) else step.text: new}
        else:
            new = [new]
    return new


def _without(value: object, steps: _Steps) -> object:
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        key = step.text if isinstance(step, PointerToken) else step
        if key not in value:
            return value
        if not rest:
            return object_of([(k, v) for k, v in value.items() if k != key])
        assert isinstance(key, str)
        return _with(value, key, _without(value[key], rest), alone=False)
    if isinstance(value, list):
        place = _place(step, len(value))
        if place is None or place >= len(value):
            return value
        kept = [_without(value[place], rest)] if rest else []
        return [*value[:place], *kept, *value[place + 1 :]]
    return value


def _known(path: str) -> JsonPath:
    known = compiled(path)
    if known.has_wildcard:
        raise ExecutionError("The path of a change to JSON has no wildcards.")
    return known


def _change(*, over: bool, beside: bool) -> ValueFunction:
    def change(text: str, path: str, new: str) -> str:
        steps = _known(path).steps
        return text_of(_put(read(text), steps, read(new), over=over, beside=beside))

    return change


def _remove(text: str, path: str) -> str | None:
    steps = _known(path).steps
    return text_of(_without(read(text), steps)) if steps else None


FUNCTIONS: dict[str, ValueFunction] = {
    "json_set": _change(over=True, beside=True),
    "json_insert": _change(over=False, beside=True),
    "json_replace": _change(over=True, beside=False),
    "json_remove": _remove,
    "json_merge_patch_diff": lambda left, right: text_of(_difference(read(left), read(right))),
    "json_strip_nulls": lambda text: text_of(_without_nulls(read(text))),
    "json_normalize": lambda text: text_of(_sorted(read(text))),
}
MERGES: dict[str, ValueFunction] = {
    "json_merge_patch": _of_all(_patched),
    "json_deep_merge": _of_all(_deeply_merged),
}

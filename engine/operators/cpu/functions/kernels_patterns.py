"""LIKE and regular expressions, by a kernel of our own for many strings, else by Arrow and RE2 (which DuckDB uses too)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....errors import ExecutionError
from ....plan.arrow.arrow_arrays import array_from, from_numpy, null_as, scalar_from, truth_values
from ....plan.expr import Call
from ....plan.patterns import (
    ANY,
    Part,
    anywhere,
    literals,
    pattern_parts,
    quoted,
    with_options,
)
from ... import text_limits
from ...text_limits import MAX_BYTES, check_bytes
from ..table import Mask, to_numpy
from .kernels_like import matches
from .kernels_strings import KERNELS as STRINGS
from .kernels_texts import over_text
from .values.text_kernels import searches
from .vectors import Kernel, Vector

PLAIN = r"\\[^AzbB]"  # escaped
AROUND = r"(?<!\[)\^|\$|\\[AzbB]"  # of an expression that asks what is around a match
META = re.compile(r"[\\.+*?()\[\]{}|^$]")  # of an expression that is more than a text
SIGNS = "\x01\x02\x03\x04\x05\x06\ufdd0\ufdd1\ufdd2\ufdd3"
MOST_REFERENCES = 9  # groups that a replacement can name


def like(text: pa.Array, pattern: str, escape: str = "") -> pa.Array:
    parts = pattern_parts(pattern, escape)
    # Arrow looks at the beginning or the end of strings as fast as a kernel does
    if len(parts) > 2 or ("one", "") in parts:
        found = _by_kernel(text, parts)
        if found is not None:
            return found
    return _by_arrow(text, parts)


def _by_kernel(text: pa.Array, parts: list[Part], folded: bool = False) -> Mask | None:
    """As `matches`, with patterns that only strings of one length match."""
    run = ("run", "")
    known = literals(parts if run in parts else [*parts, run], ANY)
    found = None if known is None else matches(text, known, folded)
    if known is None or found is None or run in parts:
        return found
    return found & (to_numpy(pc.binary_length(text)) == known.size)


def _by_arrow(text: pa.Array, parts: list[Part]) -> pa.Array:
    literal = [value for kind, value in parts if kind == "text"]
    match [kind for kind, _ in parts]:
        case []:
            return pc.equal(text, scalar_from("", text.type))
        case ["text"]:
            return pc.equal(text, scalar_from(literal[0], text.type))
        case ["text", "run"]:
            return pc.starts_with(text, literal[0])
        case ["run", "text"]:
            return pc.ends_with(text, literal[0])
        case ["run", "text", "run"]:
            return _matched(text, quoted(literal[0]))
        case ["run"]:
            return pc.is_valid(text) if text.null_count == 0 else pc.equal(text, text)
    return _searched(text, _regex(parts), max(literal, key=len, default=""))


def _searched(text: pa.Array, expression: str, needle: str) -> pa.Array:
    """Where the strings that contain `needle` are few, only those are matched."""
    possible = matches(text, anywhere(needle)) if needle else None
    if possible is None or np.count_nonzero(possible) * text_limits.NEEDLE_SHARE > len(text):
        return _matched(text, expression)
    rows = np.flatnonzero(possible)
    some = pc.take(text, from_numpy(rows), boundscheck=False)
    possible[rows] = truth_values(null_as(_matched(some, expression), False))
    return possible


def contains(text: pa.Array, needle: str) -> pa.Array:
    """RE2 finds a literal in two thirds of the time that Arrow's substring search takes."""
    found = matches(text, anywhere(needle)) if needle else None
    return _matched(text, quoted(needle)) if found is None else found


def ilike(text: pa.Array, pattern: str, escape: str = "") -> pa.Array:
    """LIKE of small letters, which is what DuckDB does: a regular expression without case has other letters for the same."""
    parts = pattern_parts(pattern, escape)
    found = _by_kernel(text, parts, folded=True)
    if found is not None:
        return found
    small = pc.utf8_lower(array_from([value for _, value in parts], pa.string())).to_pylist()
    return _by_arrow(
        pc.utf8_lower(text), [(kind, value) for (kind, _), value in zip(parts, small, strict=True)]
    )


def _regex(parts: list[Part]) -> str:
    """The expression of a whole pattern; a leading or trailing run needs no `.*`, which would cost a scan."""
    body = "".join({"text": quoted(value), "one": ".", "run": ".*"}[kind] for kind, value in parts)
    start = "" if parts and parts[0][0] == "run" else r"\A"
    stop = "" if parts and parts[-1][0] == "run" else r"\z"
    return f"(?s){start}{body.removeprefix('.*') if not start else body}{stop}"


def guarded(function: Callable[[], pa.Array], pattern: str) -> pa.Array:
    try:
        return function()
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise ExecutionError(f"Invalid regular expression '{pattern}': {reason}.") from None


def _matched(text: pa.Array, expression: str) -> pa.Array:
    return guarded(lambda: pc.match_substring_regex(text, expression), expression)


def regexp_matches(text: pa.Array, pattern: str, options: str = "") -> pa.Array:
    return _matched(text, with_options(pattern, options))


def regexp_full_match(text: pa.Array, pattern: str, options: str = "") -> pa.Array:
    return _matched(text, rf"\A(?:{with_options(pattern, options)})\z")


def regexp_replace(text: pa.Array, pattern: str, replacement: str, options: str = "") -> pa.Array:
    if text.null_count == len(text):
        return text  # no match may show that the replacement names a group too many
    expression, every = with_options(pattern, options), "g" in options
    _check_size(text, expression, replacement, None if every else 1)
    if not every and re.search(AROUND, re.sub(PLAIN, "", expression)):
        expression, replacement, every = _in_whole_texts(expression, replacement)
    count = None if every else 1
    return guarded(
        lambda: pc.replace_substring_regex(text, expression, replacement, max_replacements=count),
        pattern,
    )


def _in_whole_texts(expression: str, replacement: str) -> tuple[str, str, bool]:
    """Return an expression that matches whole texts, what to replace them by, and that every match counts.

    To replace one match Arrow looks for its groups in what it found alone, where other places are the beginning and the end.
    """
    groups = len(_named_groups(expression)[0]) - 1
    named = [int(digit) for digit in re.findall(r"(?:\\\\)*\\(\d)", replacement)]
    if groups + 3 > MOST_REFERENCES or max(named, default=0) > groups:
        return expression, replacement, False
    moved = re.sub(
        r"\\([\\\d])", lambda m: m[0] if m[1] == "\\" else f"\\{int(m[1]) + 2}", replacement
    )
    whole = rf"\A((?s:.*?))({expression})((?s:.*))\z"
    return whole, rf"\1{moved}\{groups + 3}", True


def _check_size(text: pa.Array, expression: str, replacement: str, count: int | None) -> None:
    """Refuse to make more bytes than a column holds; where that is near, the matches are counted.

    A replacement is at most as long as its text with each reference standing for all that was matched.
    """
    size = int(pc.sum(pc.cast(pc.binary_length(text), pa.int64())).as_py() or 0)
    longest = len(replacement.encode()) + 1
    references = replacement.count("\\") + 1
    if (size + len(text)) * max(longest, references) > MAX_BYTES:
        matched = guarded(lambda: pc.count_substring_regex(text, expression), expression)
        found = int((pc.sum(matched) if count is None else pc.count(matched)).as_py() or 0)
        check_bytes("regexp_replace", size * references + found * longest)


def regexp_extract(text: pa.Array, pattern: str, group: int = 0, options: str = "") -> pa.Array:
    """The group of the first match, '' without one; group 0 is the whole match."""
    names, expression = _named_groups(with_options(pattern, options))
    found = guarded(lambda: pc.extract_regex(text, expression), pattern)
    if group < 0 or group >= len(names):
        return pc.if_else(
            pc.is_valid(text), scalar_from("", text.type), scalar_from(None, text.type)
        )
    part = null_as(pc.struct_field(found, names[group]), "")
    return pc.if_else(pc.is_valid(text), part, scalar_from(None, part.type))


def _named_groups(pattern: str) -> tuple[list[str], str]:
    """Name every capturing group, as Arrow's extraction wants, and the whole match as the first."""
    names = ["all_"]
    out = []
    place, in_class = 0, False
    while place < len(pattern):
        letter = pattern[place]
        if letter == "\\":
            out.append(pattern[place : place + 2])
            place += 2
            continue
        if in_class:
            in_class = letter != "]" or out[-1] in ("[", "[^")
        elif letter == "[":
            in_class = True
            letter = "[^" if pattern[place + 1 : place + 2] == "^" else "["
        elif letter == "(":
            named = re.match(r"\(\?P?<(\w+)>", pattern[place:])
            if named or pattern[place + 1 : place + 2] != "?":
                names.append(named[1] if named else f"group_{len(names)}")
                letter = named[0] if named else f"(?P<{names[-1]}>"
        consumed = len(letter) if not letter.startswith("(?P<group_") else 1
        out.append(letter)
        place += consumed
    return names, f"(?P<{names[0]}>{''.join(out)})"


def free_signs(texts: pa.Array) -> Iterator[str]:
    """Yield signs that no text has."""
    return (s for s in SIGNS if not pc.any(pc.match_substring(texts, s)).as_py())


# Expressions that differ in each row cost RE2 some 20 us each: those that are texts are looked for as such


def _is_text(pattern: str, options: str) -> bool:
    return bool(pattern) and not options and META.search(pattern) is None


def _has_text(text: str, pattern: str, options: str = "") -> bool | None:
    return pattern in text if _is_text(pattern, options) else None


def _is_all_text(text: str, pattern: str, options: str = "") -> bool | None:
    return pattern == text if _is_text(pattern, options) else None


def _extracted_text(text: str, pattern: str, group: int = 0, options: str = "") -> str | None:
    if group or not _is_text(pattern, options):
        return None
    return pattern if pattern in text else ""


def _replaced_text(text: str, pattern: str, replacement: str, options: str = "") -> str | None:
    if "\\" in replacement or not _is_text(pattern, options.replace("g", "")):
        return None
    return text.replace(pattern, replacement, -1 if options else 1)


def _by_replacements(others: Kernel) -> Kernel:
    """Make a kernel that puts what each row has into the places of a sign by which the matches of an expression are replaced."""

    def kernel(call: Call, args: tuple[Vector, ...]) -> Vector:
        text, pattern, replacement, *options = args
        alike = all(v.is_constant for v in (pattern, *options))
        if not alike or text.is_constant or not isinstance(replacement.data, pa.Array):
            return others(call, args)
        sign = next(free_signs(text.data), None)
        if sign is None or pc.any(pc.match_substring(replacement.data, "\\")).as_py():
            return others(call, args)
        put = Vector(replacement.type, sign)
        return STRINGS["replace"](call, (others(call, (text, pattern, put, *options)), put, replacement))  # fmt: skip

    return kernel


KERNELS: dict[str, Kernel] = {
    "contains": searches("find", over_text(contains)),
    "like": searches("like", over_text(like)),
    "ilike": searches("like", over_text(ilike), folded=True),
    "regexp_matches": over_text(regexp_matches, _has_text),
    "regexp_full_match": over_text(regexp_full_match, _is_all_text),
    "regexp_replace": _by_replacements(over_text(regexp_replace, _replaced_text)),
    "regexp_extract": over_text(regexp_extract, _extracted_text),
}

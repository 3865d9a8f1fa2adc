"""Texts cut into lists."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .....errors import ExecutionError
from .....plan.arrow.arrow_arrays import array_from, from_numpy, truth_values
from .....plan.expr import Call
from .....plan.patterns import with_options
from ... import table as tables
from ...nested_arrays import Lists, list_array
from ..kernels_patterns import free_signs, guarded
from ..vectors import ArrayFunction, over_arrays


def _split(call: Call, args: list[pa.Array]) -> pa.Array:
    """The parts between separators; an empty separator cuts into characters, and NULL does not cut."""
    texts, separators = (tables.decode(a) for a in args)
    valid = truth_values(texts.is_valid())
    distinct = pc.unique(separators)
    if len(distinct) == 1 and distinct[0].is_valid and distinct[0].as_py():
        found = pc.split_pattern(texts, distinct[0].as_py())
        return found.cast(tables.physical_type(call.type))
    parts = [
        text.split(by) if by else [text] if by is None else list(text)
        for text, by, known in zip(texts.to_pylist(), separators.to_pylist(), valid, strict=True)
        if known
    ]
    lengths = np.zeros(len(texts), np.int64)
    lengths[valid] = list(map(len, parts))
    elements = array_from(list(itertools.chain.from_iterable(parts)), pa.string())
    return list_array(lengths, elements, valid, tables.physical_type(call.type))


def _split_by_regex(texts: pa.Array, pattern: str, options: str = "") -> pa.Array:
    if not pattern:
        return _characters(texts)
    expression = with_options(pattern, options)
    _refuse_empty_matches(expression, pattern)
    # Arrow's own split begins anew behind each match, where ^ fits again
    sign = _free_signs(texts)[0]
    marked = guarded(lambda: pc.replace_substring_regex(texts, expression, sign), pattern)
    return pc.split_pattern(marked, sign)


def _all_matches(texts: pa.Array, pattern: str, group: int = 0, options: str = "") -> pa.Array:
    """Put each match between two signs that no text has, and split the texts at these."""
    if group and _MAYBE_ABSENT.search(pattern):
        raise ExecutionError(
            "regexp_extract_all takes no group of a pattern with | or an optional group: take group 0."
        )
    begin, end = _free_signs(texts)
    expression = with_options(pattern, options)
    _refuse_empty_matches(expression, pattern)
    marked = guarded(
        lambda: pc.replace_substring_regex(texts, expression, f"{begin}\\{group}{end}"), pattern
    )
    parts = Lists.of(pc.split_pattern(marked, begin))
    behind = parts.elements.filter(from_numpy(parts.places > 0))
    found = pc.list_element(pc.split_pattern(behind, end, max_splits=1), 0)
    lengths = np.maximum(parts.lengths - 1, 0)
    return list_array(lengths, found.cast(pa.string()), parts.valid, pa.list_(pa.string()))


def _refuse_empty_matches(expression: str, pattern: str) -> None:
    """Raise for an expression that an empty text matches: where those stand in a text is another matter in each library."""
    if guarded(lambda: pc.match_substring_regex(array_from([""]), expression), pattern)[0].as_py():
        raise ExecutionError(
            f"The regular expression '{pattern}' matches the empty text, and lists of matches are of others: use + for *."
        )


_MAYBE_ABSENT = re.compile(r"\||\)[?*{]")


def _free_signs(texts: pa.Array) -> tuple[str, str]:
    found = list(itertools.islice(free_signs(texts), 2))
    if len(found) < 2:
        raise ExecutionError("The texts have control characters that are needed to mark matches.")
    return found[0], found[1]


def _characters(texts: pa.Array) -> pa.Array:
    return array_from(
        [None if t is None else list(t) for t in texts.to_pylist()], pa.list_(pa.string())
    )


def _by_pattern(function: Callable[..., pa.Array], unsplit: bool) -> ArrayFunction:
    """Apply a function for each pattern that there is; a pattern that is NULL gives the text as it is, or NULL."""

    def split(call: Call, args: list[pa.Array]) -> pa.Array:
        texts, patterns = (tables.decode(a).cast(pa.string()) for a in args[:2])
        rest = [a[0].as_py() for a in args[2:] if len(a)]
        arrow = tables.physical_type(call.type)
        codes, made = pc.dictionary_encode(patterns, null_encoding="encode"), []
        numbers = tables.to_numpy(codes.indices)
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=len(codes.dictionary)))
        texts = texts.take(from_numpy(order))
        for pattern, start, end in zip(codes.dictionary.to_pylist(), [0, *ends], ends, strict=False):  # fmt: skip
            some = texts.slice(start, end - start)
            if pattern is not None:
                found = function(some, pattern, *rest)
            elif unsplit:
                valid = truth_values(some.is_valid())
                found = list_array(valid.astype(np.int64), some.drop_null(), valid, arrow)
            else:
                found = pa.nulls(len(some), arrow)
            made.append(found.cast(arrow))
        if not made:
            return pa.nulls(0, arrow)
        places = np.empty(len(texts), np.int64)
        places[order] = np.arange(len(texts))
        return tables.take_array(tables.concat_arrays(made), places)

    return split


KERNELS = {
    "string_split": over_arrays(_split),
    "string_split_regex": over_arrays(_by_pattern(_split_by_regex, unsplit=True)),
    "regexp_extract_all": over_arrays(_by_pattern(_all_matches, unsplit=False)),
}

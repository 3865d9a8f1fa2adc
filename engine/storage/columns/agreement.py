"""One form for a column of which each worker of a cluster has some rows: width, step, NULLs and dictionary are the same on all.

Kernels that read such columns have the same text on all workers, and what lies as codes into a dictionary that all have can be sent
as codes.  A worker says what its own rows are (`ColumnFacts`), from what all say each works out the same form, and brings its codes
into it: `common_form`, `in_form`; `device_agreement` does that on the device.  Numbers of which each worker has a range of its own, as keys by which tables are
cut, keep their own base: an index over them is as large as the range.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import gcd
from typing import Literal as OneOf
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan.arrow.arrow_arrays import bits_of
from ...records import dataclass
from . import encodings as enc

MOST_TEXTS = (
    1 << 15
)  # in a dictionary that all workers have, and in what one of them tells the others
MOST_TEXT_BYTES = 4 << 20
I64_MAX = 2**63 - 1

# No rows with values; integers as codes; floats; texts told to all; texts that are too many for that; what kernels do not read; not known
Kind = OneOf["empty", "integers", "floats", "texts", "many texts", "refused", "unknown"]

_interned: WeakValueDictionary[str, pa.Array] = WeakValueDictionary()


@dataclass(frozen=True)
class ColumnFacts:
    """What one worker's rows of a column are; `low`, `high` and `step` are those of integers, `texts` the values of a dictionary in their order."""

    kind: Kind
    nullable: bool = False
    low: int = 0
    high: int = 0
    step: int = 0  # 0: of one value
    wide: bool = False  # integers that take 8 bytes each
    texts: pa.Array | None = None
    count: int = 0  # of texts
    ascending: bool = True
    clustered: bool = True


UNKNOWN, REFUSED = ColumnFacts("unknown"), ColumnFacts("refused")


@dataclass(frozen=True)
class ColumnForm:
    """The form that workers have agreed on for a column; without an encoding each keeps its own, or if it is `refused`, none.

    Of texts that are too many for a common dictionary `width` is the bytes of a code.
    """

    encoding: enc.Narrow | enc.Dictionary | None = None
    nullable: bool = False
    low: int | None = None
    high: int | None = None
    width: int = 0
    ascending: bool = False
    clustered: bool = False
    refused: bool = False


def facts_of(column: enc.EncodedColumn) -> ColumnFacts:
    """Return what is to be told of a column that is encoded."""
    encoding, nullable = column.encoding, column.validity is not None
    order = column.ascending, column.clustered
    if encoding.is_float:
        return ColumnFacts("floats", nullable)
    if column.nulls == column.rows:
        return ColumnFacts("empty", nullable)
    values = encoding.values
    if values is not None:
        few = len(values) <= MOST_TEXTS and values.nbytes <= MOST_TEXT_BYTES
        kind: Kind = "texts" if few else "many texts"
        return ColumnFacts(kind, nullable, texts=values if few else None, count=len(values))
    if column.low is None or column.high is None:
        return UNKNOWN
    step = 0 if column.low == column.high else _step_of(column)
    wide = encoding.width == 8
    return ColumnFacts(
        "integers",
        nullable,
        column.low,
        column.high,
        step,
        wide,
        ascending=order[0],
        clustered=order[1],
    )


def _step_of(column: enc.EncodedColumn) -> int:
    """The step of codes; where these take a byte each, one that makes them no narrower was not looked for."""
    column = column.flat()
    encoding = column.encoding
    if encoding.width > 1 or encoding.step > 1 or not isinstance(column.codes, np.ndarray):
        return encoding.step
    there = np.flatnonzero(np.bincount(column.codes, minlength=2))
    return int(np.gcd.reduce(there)) or 1


def common_form(told: Sequence[ColumnFacts], rank: int) -> ColumnForm | None:
    """Return the form of one worker's rows of a column, from what all say of theirs; None where each keeps its own."""
    kinds = {facts.kind for facts in told}
    nullable = any(facts.nullable for facts in told)
    if "unknown" in kinds:
        return None
    if "refused" in kinds:
        return ColumnForm(refused=True)
    kinds.discard("empty")
    if kinds == {"integers"}:
        return _form_of_integers(told, rank, nullable)
    if kinds <= {"floats"}:
        return ColumnForm(nullable=nullable)
    if kinds <= {"texts", "many texts"}:
        return _form_of_texts(told, nullable)
    return None


def _form_of_integers(told: Sequence[ColumnFacts], rank: int, nullable: bool) -> ColumnForm:
    valued = [facts for facts in told if facts.kind == "integers"]
    low, high = min(f.low for f in valued), max(f.high for f in valued)
    span = max(f.high - f.low for f in valued)
    ascending = not nullable and all(f.ascending for f in valued)
    order = ascending, not nullable and all(f.clustered for f in valued)
    own = told[rank] if told[rank].kind == "integers" else valued[0]
    apart = len(valued) > 1 and all(a.high < b.low for a, b in pairwise(valued))
    if apart and valued[-1].low + span <= I64_MAX and not any(f.wide for f in valued):
        low, high = own.low, own.low + span
        step = gcd(*(f.step for f in valued))
    else:
        step = gcd(*(f.step for f in valued), *(f.low - low for f in valued))
    step = step or 1
    high = low + (high - low) // step * step
    encoding = enc.narrow_for(low, high, enc.useful_step(low, high, step))
    return ColumnForm(encoding, nullable, low, high, encoding.width, *order)


def _form_of_texts(told: Sequence[ColumnFacts], nullable: bool) -> ColumnForm:
    largest = max(facts.count for facts in told)
    known = [f.texts for f in told if f.texts is not None]
    if all(facts.kind != "many texts" for facts in told):
        texts = _sorted_texts(known)
        if len(texts) <= MOST_TEXTS and texts.nbytes <= MOST_TEXT_BYTES:
            width = enc.code_width(len(texts))
            return ColumnForm(enc.Dictionary(texts, width), nullable, width=width)
    return ColumnForm(nullable=nullable, width=enc.code_width(largest))


def _sorted_texts(known: Sequence[pa.Array]) -> pa.Array:
    """Return all texts, each once, in the order of their bytes: the one array of this process that has them."""
    if all(texts.equals(known[0]) for texts in known[1:]):
        texts = known[0].cast(pa.string())
    else:
        every = pa.concat_arrays([texts.cast(pa.string()) for texts in known]).unique()
        texts = every.take(pc.sort_indices(every))
    return _interned.setdefault(texts_digest(texts), texts)


def texts_digest(texts: pa.Array) -> str:
    """Return what tells the texts of a dictionary from all others."""
    _, offsets, text = texts.buffers()
    if not len(texts):
        return ""
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset)
    found = hashlib.sha256((ends - ends[0]).tobytes())
    if ends[-1] > ends[0]:
        found.update(memoryview(text)[ends[0] : ends[-1]])
    return found.hexdigest()


def place_of_texts(texts: pa.Array) -> tuple[int, int, int]:
    """Return where the texts of a dictionary lie, which tells it from all others that are there."""
    buffer = texts.buffers()[1]
    return (0 if buffer is None else buffer.address), texts.offset, len(texts)


def is_common(texts: pa.Array) -> bool:
    """Whether workers have agreed on a dictionary, so that its codes may be sent without it."""
    place = place_of_texts(texts)
    return any(place_of_texts(known) == place for known in list(_interned.values()))


def in_form(column: enc.EncodedColumn, form: ColumnForm, threads: int = 1) -> enc.EncodedColumn:
    """Return a column on the host in the form that workers have agreed on: itself where it has that already."""
    made = column = column.flat()
    if form.encoding is not None and not has_encoding(column, form):
        made = (
            _with_texts(made, form.encoding, threads)
            if isinstance(form.encoding, enc.Dictionary)
            else _with_numbers(made, form, form.encoding, threads)
        )
    elif form.encoding is None and isinstance(column.encoding, enc.Dictionary):
        made = _widened(made, column.encoding, form.width)
    if form.nullable and made.validity is None:
        bitmap = enc.zeros(-(-made.rows // 8), np.uint8)
        bitmap[:] = 255
        made = replace(made, validity=bitmap, ascending=False, clustered=False)
    return made


def has_encoding(column: enc.EncodedColumn, form: ColumnForm) -> bool:
    """Whether codes and what is said of them are those of the form."""
    encoding = column.encoding
    if isinstance(form.encoding, enc.Dictionary):
        own = encoding.values
        same = own is not None and place_of_texts(own) == place_of_texts(form.encoding.values)
        return same and encoding.width == form.width
    ends = column.low, column.high, column.ascending, column.clustered
    return encoding == form.encoding and ends == (
        form.low,
        form.high,
        form.ascending and column.rows > 0,
        form.clustered and column.rows > 0,
    )


def _with_numbers(
    column: enc.EncodedColumn, form: ColumnForm, encoding: enc.Narrow, threads: int
) -> enc.EncodedColumn:
    codes, own = column.codes, column.encoding
    if column.nulls == column.rows:
        codes = enc.zeros(column.rows, encoding.code_type)
    elif own != encoding:
        codes = enc.zeros(column.rows, encoding.code_type)
        valid = None if column.validity is None else bits_of(column.validity, 0, column.rows)
        base, step = encoding.base, encoding.step

        def of_block(rows: slice) -> None:
            found = own.registers(column.codes[rows]).astype(np.int64, copy=False) - base
            found = found // step if step != 1 else found
            codes[rows] = found if valid is None else np.where(valid[rows], found, 0)

        enc.each_block(column.rows, threads, of_block)
    return replace(
        column,
        encoding=encoding,
        codes=codes,
        low=form.low,
        high=form.high,
        ascending=form.ascending and column.rows > 0,
        clustered=form.clustered and column.rows > 0,
    )


def _with_texts(
    column: enc.EncodedColumn, encoding: enc.Dictionary, threads: int
) -> enc.EncodedColumn:
    places = places_in(column.encoding, encoding)
    codes = enc.zeros(column.rows, enc.UNSIGNED[encoding.width])
    if len(places):
        valid = None if column.validity is None else bits_of(column.validity, 0, column.rows)

        def of_block(rows: slice) -> None:
            np.take(places, column.codes[rows], out=codes[rows], mode="clip")
            if valid is not None:
                codes[rows] *= valid[rows]

        enc.each_block(column.rows, threads, of_block)
    return replace(column, encoding=encoding, codes=codes)


def places_in(own: object, encoding: enc.Dictionary) -> enc.Array:
    """Return where the values of a dictionary stand in one that has them all; nothing for none."""
    values = own.values if isinstance(own, enc.Dictionary) else None
    if values is None or not len(values):
        return np.zeros(0, enc.UNSIGNED[encoding.width])
    found = pc.index_in(values.cast(encoding.values.type), encoding.values)
    return enc.values_of(found, np.int32).astype(enc.UNSIGNED[encoding.width])


def _widened(column: enc.EncodedColumn, own: enc.Dictionary, width: int) -> enc.EncodedColumn:
    """The same codes in a width that all have."""
    if width <= own.width:
        return column
    codes = enc.zeros(column.rows, enc.UNSIGNED[width])
    codes[:] = column.codes
    return replace(column, encoding=enc.Dictionary(own.values, width), codes=codes)


def common_dictionaries(forms: Sequence[ColumnForm | None]) -> Mapping[str, pa.Array]:
    """Return the dictionaries of forms by what tells them from others."""
    found = [f.encoding.values for f in forms if f and isinstance(f.encoding, enc.Dictionary)]
    return {texts_digest(texts): texts for texts in found}

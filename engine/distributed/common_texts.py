"""Texts on their way between workers as codes into a dictionary that all of them have, which the message names by its digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from ..storage.columns.agreement import place_of_texts
from ..storage.columns.encodings import UNSIGNED, code_width

NAME = b"dictionary"

Parts = Sequence[Sequence[pa.RecordBatch] | None]


def as_codes(parts: Parts, dictionaries: Mapping[str, pa.Array]) -> Parts:
    """Return what is sent with codes in the place of such texts; what several workers get stays one object."""
    if not dictionaries:
        return parts
    digests = {place_of_texts(texts): digest for digest, texts in dictionaries.items()}
    made = {
        id(part): [_coded(batch, digests) for batch in part] for part in parts if part is not None
    }
    return [None if part is None else made[id(part)] for part in parts]


def _coded(batch: pa.RecordBatch, digests: Mapping[tuple[int, int, int], str]) -> pa.RecordBatch:
    columns, fields = list(batch.columns), list(batch.schema)
    for place, column in enumerate(columns):
        if not isinstance(column, pa.DictionaryArray):
            continue
        digest = digests.get(place_of_texts(column.dictionary))
        if digest is not None:
            width = code_width(len(column.dictionary))
            codes = column.indices.cast(pa.from_numpy_dtype(UNSIGNED[width]), safe=False)
            columns[place] = codes
            fields[place] = pa.field(fields[place].name, codes.type, metadata={NAME: digest})
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def with_texts(batch: pa.RecordBatch, dictionaries: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Return what was sent so with its texts."""
    columns, names = list(batch.columns), batch.schema.names
    for place, field in enumerate(batch.schema):
        digest = (field.metadata or {}).get(NAME)
        if digest is not None:
            codes = columns[place].cast(pa.int32())
            texts = dictionaries[digest.decode()]
            columns[place] = pa.DictionaryArray.from_arrays(codes, texts, safe=False)
    return pa.RecordBatch.from_arrays(columns, names)

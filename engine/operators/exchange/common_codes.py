"""Which columns of texts go between GPUs as codes: those of which each worker has codes into the same dictionary, which all of them have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from ...storage.columns.agreement import place_of_texts
from ..context import Peers
from .exchange_rounds import FEW_ROWS, HEADERS

CODES = FEW_ROWS - HEADERS  # less the number of the exchange: the number of the meeting
TEXTS, NOTHING = 0, 1  # what a worker has of a column that is no codes: texts, or no rows


def number_of(texts: pa.Array, dictionaries: Mapping[str, pa.Array]) -> int:
    """Return what workers call a dictionary of theirs, `TEXTS` for another one."""
    place = place_of_texts(texts)
    found = (digest for digest, known in dictionaries.items() if place_of_texts(known) == place)
    return next(map(_number, found), TEXTS)


def common_codes(peers: Peers, exchange: int, own: Sequence[int]) -> list[pa.Array | None]:
    """Return for each column the dictionary whose codes go, by what each worker says that it has; None where texts go."""
    known = {_number(digest): texts for digest, texts in peers.dictionaries.items()}
    told = peers.meet(CODES - exchange, np.array(own, np.int64).tobytes())
    found: list[pa.Array | None] = []
    for numbers in np.array([np.frombuffer(said, np.int64) for said in told]).T.tolist():
        said = {*numbers} - {NOTHING}
        found.append(known.get(said.pop()) if len(said) == 1 else None)
    return found


def _number(digest: str) -> int:
    return int(digest[:15] or "0", 16) + NOTHING + 1

"""Pairs of texts that differ in constants, comments and white space, run one after the other on one connection, against DuckDB."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.compare import frame_answer
from tests.random_queries import deep
from tests.random_queries.cases import Engines, judged
from tests.random_queries.data import COLUMNS, KEYED, tables
from tests.random_queries.shapes import HOLE, filled, shape

DATA_FOR = 25  # pairs
MAKERS = (shape, deep.deep, deep.keyed, deep.single)
_ALIAS = re.compile(r" as x\d+(?=[ ,])")
_GAP = re.compile(r"(?<=[a-z)]) (?=from |where |group |having )")


def check_pairs(engines: Engines, seeds: Iterable[int]) -> Counter[str]:
    """Run a pair a seed; return how often each kind of plan ran second.  Fails with texts that went wrong.

    Those that go wrong in the same way where nothing was planned before are counted as `alone`: they are for `tests.random_queries`.
    """
    origins: Counter[str] = Counter()
    wrong: list[str] = []
    for number, seed in enumerate(seeds):
        draw = random.Random(f"pair {seed}")
        maker = MAKERS[seed // DATA_FOR % len(MAKERS)]
        if number % DATA_FOR == 0:
            data = tables(draw, 0.2, COLUMNS if maker is shape else KEYED)
            engines.load(data)
        first, second = texts_of(maker(seed), draw)
        for text in (first, second):
            kind, words, origin = _judged(engines, text)
            if kind not in ("mismatch", "foreign"):
                continue
            with (alone := Engines("cpu", None, tuple(engines.ours))).stack:
                alone.load(data)
                origins["alone"] += (found := _judged(alone, text)[:2]) == (kind, words)
            if found != (kind, words):
                wrong.append(f"seed {seed}: {words}\n{first}\n{second}")
        origins[origin] += 1
    assert not wrong, "\n\n".join(wrong[:3])
    return origins


def texts_of(text: str, draw: random.Random) -> tuple[str, str]:
    """Fill the holes of a text twice, half of the time without aliases, so that names of columns are made of constants."""
    if draw.random() < 0.5 and "(select" not in text:
        text = _ALIAS.sub("", text)
    holes = HOLE.findall(text)
    few = {n for n in range(len(holes)) if draw.random() < 0.4}  # change
    first = [filled(f"<{hole}>", draw, 0.1) for hole in holes]
    second = [
        filled(f"<{hole}>", draw, 0.1) if n in few else first[n] for n, hole in enumerate(holes)
    ]
    return _with(text, first), _GAP.sub("  /* more */\n", _with(text, second)) + " -- the end"


def _with(text: str, constants: Sequence[str]) -> str:
    left = iter(constants)
    return HOLE.sub(lambda _: next(left), text)


def _judged(engines: Engines, text: str) -> tuple[str, str, str]:
    (connection,) = engines.ours.values()
    expected = engines.duckdb(text)
    try:
        frame = connection.sql(text)
        actual, origin = frame_answer(frame), frame.profile.plan_origin
    except Exception as error:
        actual, origin = error, "error"
    return *judged(engines, text, expected, actual), origin

"""Automata of regular expressions: random patterns beside DuckDB, walked by the kernels' functions as they are compiled for the CPU."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from fuseline.codegen.compile.compile_pool import compiled
from fuseline.codegen.compile.native import NativeKernel
from fuseline.codegen.handwritten import regex_kernels as kernels
from fuseline.codegen.regex.automata import Automaton, finder, matcher
from fuseline.codegen.regex.replacements import Replacement, extracting, replacing

Text: TypeAlias = str | None
ALPHABET = "abcxé日 .k\nK1\u212a"
ATOMS = (
    "[abc]",
    "[^a]",
    "[a-c]",
    r"\d",
    r"\w",
    r"\s",
    r"[^a-c\d]",
    "[é-日]",
    "[[:alpha:]]",
    r"\.",
    r"\W",
    r"\x61",
)
SIGNS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}")


@cache
def _kernel(kernel: str) -> NativeKernel:
    name, parameters = kernels.name_of(kernel, False), kernels.signature(kernel, False, False)
    return NativeKernel(
        compiled(kernels.source(kernel, False, False), name, parameters), parameters
    )


def _bytes(buffer: pa.Buffer | None) -> npt.NDArray[np.uint8]:
    return np.zeros(1, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def _columns(texts: Sequence[Text]) -> tuple[object, ...]:
    """Rows, characters, offsets, bitmap, its first bit, whether there are NULLs."""
    bits, ends, characters = pa.array(texts, pa.string()).buffers()
    offsets = np.frombuffer(ends, np.int32)[: len(texts) + 1]
    return len(texts), _bytes(characters), offsets, _bytes(bits), 0, int(bits is not None)


def matched(automaton: Automaton, texts: Sequence[Text]) -> list[bool]:
    out = np.full(len(texts), 7, np.uint8)
    a = automaton
    _kernel(kernels.MATCH)(*_columns(texts), a.classes, a.columns, a.moves, a.ends, a.start, out)
    return [bool(value) for value in out]


def replaced(made: Replacement, texts: Sequence[Text]) -> list[str]:
    a, run = made.automaton, _kernel(kernels.REPLACE)
    sizes, places = np.zeros(len(texts), np.int64), np.zeros(len(texts) + 1, np.int64)
    given = (
        np.zeros(kernels.REGISTERS, np.int32), *_columns(texts), a.classes, a.columns, a.moves, a.ends, a.copies,
        a.lists, a.starts, a.tags, made.pieces, made.text, len(made.pieces) // 3, int(made.every), int(made.rest),
    )  # fmt: skip
    run(*given, 0, places, sizes, np.zeros(1, np.uint8))
    np.cumsum(sizes, out=places[1:])
    out = np.zeros(max(int(places[-1]), 1), np.uint8)
    run(*given, 1, places, sizes, out)
    data = out.tobytes()
    return [data[a:b].decode() for a, b in pairwise(places.tolist())]


def drawn(draw: random.Random, depth: int = 0) -> str:
    parts = []
    for _ in range(draw.randint(1, 3)):
        kind = draw.random()
        part = draw.choice("abcxé日 .k") if kind < 0.5 else draw.choice(ATOMS)
        if kind > 0.7 and depth < 3:
            part = draw.choice(["(", "(?:"]) + drawn(draw, depth + 1) + ")"
        parts.append(part + (draw.choice(SIGNS) if draw.random() < 0.4 else ""))
    pattern = "".join(parts)
    if draw.random() < 0.25:
        pattern += "|" + "".join(draw.choice("abcx") for _ in range(draw.randint(0, 2)))
    if depth:
        return pattern
    begin, end = draw.random() < 0.2, draw.random() < 0.2
    flags = f"(?{draw.choice(['i', 's', 'is'])})" if draw.random() < 0.15 else ""
    return flags + "^" * begin + pattern + "$" * end


@pytest.mark.by_day(4)
@pytest.mark.parametrize("seed", range(4))
def test_random_patterns(seed: int) -> None:
    """Whether a text matches, the first match replaced and all of them, and a group extracted; most patterns have automata."""
    draw, found = random.Random(seed), 0
    with duckdb.connect() as connection:
        for _ in range(60):
            pattern = drawn(draw)
            texts = ["".join(draw.choices(ALPHABET, k=draw.randint(0, 8))) for _ in range(30)]
            connection.register("texts", pa.table({"t": [*texts, "", None]}))
            group = int("(" in pattern.replace("(?:", "").replace("(?i", "").replace("(?s", ""))
            template = rf"<\{group}-\0>"
            asked = (
                f"coalesce(regexp_matches(t, '{pattern}'), false), regexp_replace(t, '{pattern}', '{template}'), "
                f"regexp_replace(t, '{pattern}', '{template}', 'g'), regexp_extract(t, '{pattern}', {group})"
            )
            rows = connection.execute(f"select t, {asked} from texts").fetchall()
            given, *expected = zip(*rows, strict=True)
            automaton = matcher(pattern)
            if automaton is not None:
                assert matched(automaton, given) == list(expected[0]), pattern
            made = [replacing(pattern, template, every=e) for e in (False, True)]
            for one, wanted in zip([*made, extracting(pattern, group)], expected[1:], strict=True):
                if one is not None:
                    found += 1
                    assert replaced(one, given) == [text or "" for text in wanted], pattern
    assert found > 100


@pytest.mark.parametrize(
    "pattern",
    [r"\bx", r"(a)\1", "(?=a)", r"\pL", "(?m)^a", "a**", "[", "(", "a{2,1}", "a{1001}", "(a{50}){50}", "(?i)é", "x.{400}y", "$^", r"\C"],
)  # fmt: skip
def test_patterns_beyond_an_automaton(pattern: str) -> None:
    assert matcher(pattern) is None or pattern == "$^"
    assert finder(pattern, ()) is None


def test_templates() -> None:
    assert replacing("(a)", r"\2", every=False) is None
    assert replacing("(a)", r"\x", every=False) is None
    assert replacing("a", "\\", every=False) is None
    made = replacing("(a)(b)?", r"[\2\\1]", every=True)
    assert made is not None
    assert replaced(made, ["xaby", "aab"]) == [r"x[b\1]y", r"[\1][b\1]"]


@pytest.mark.parametrize(
    ("kernel", "wide"),
    [
        (kernels.MATCH, False),
        (kernels.REPLACE, True),
        pytest.param(kernels.MATCH, True, marks=pytest.mark.nightly),
        pytest.param(kernels.REPLACE, False, marks=pytest.mark.nightly),
    ],
)
def test_they_compile_for_a_gpu(kernel: str, wide: bool, tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    code, origin = kernels.regex_kernel(tmp_path, (9, 0), kernel, wide).machine_code()
    assert code
    assert origin == "compiler"

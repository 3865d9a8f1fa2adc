"""Random cases against DuckDB: shapes of queries, each with many draws of constants and data, without and with kernels.

    python -m tests.random_queries.cases --shapes 4000 --draws 25 --seed 7 --slice 0/4 --log cases.jsonl

A shape's line in the log says how it went; a run that finds it there goes on behind it.  `--report` adds up a log.  With
`--compile-ahead` queries run with kernels alone and nothing is compared, so that slices can fill one folder of kernels at a time.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import fuseline
from fuseline import errors
from tests import slices
from tests.compare import (
    backends_at_hand,
    difference,
    duckdb_answer,
    frame_answer,
    ordering,
    rows as rows_of,
)
from tests.random_queries import deep, wide
from tests.random_queries.data import COLUMNS, KEYED, tables
from tests.random_queries.shapes import HOLES, filled, shape

REFUSALS = (errors.Unsupported, errors.TypeMismatch, errors.InvalidQuery, errors.UnknownName, errors.ParseError)  # fmt: skip
LIMITS = (
    "Interval value out of range", "An interval of more than 292 years", "has 39 digits", "HUGEINT has 38 digits",
    "bytes of text", "Overflow in addition of DECIMAL(38",
)  # fmt: skip
MODES = ("never", "always")
DATA_A_SHAPE = (
    3  # draws of data a shape, the last as slices; the draws of constants are spread over them
)
GROUP = 4  # rows
REDUCING_TRIES = 150
Tables = Mapping[str, pa.Table]
Maker = Callable[[int], str]
MAY_RAISE = (shape, wide.wide)
MAKERS: dict[str, Maker] = {
    m.__name__: m for m in (shape, deep.deep, deep.keyed, deep.single, wide.wide)
}


class Engines:
    """DuckDB, ours with operators alone, and ours with kernels; `notes` counts the pipelines that were fused, and why others were not.

    While they are `sliced`, tables and what operators give one another are slices of longer ones.
    With `files` ours read tables from there, by `k` in row groups of `GROUP` rows; `chunks` counts those in which they came.
    """

    sliced = False

    def __init__(
        self,
        device: str,
        kernels: str | None = None,
        modes: tuple[str, ...] = MODES,
        files: Path | None = None,
        **settings: Any,
    ) -> None:
        self.notes: Counter[str] = Counter()
        self.files, self.chunks = files, 0
        self.stack = ExitStack()
        self.duck, self.unoptimized = (self.stack.enter_context(duckdb.connect()) for _ in range(2))
        for duck in (self.duck, self.unoptimized):
            duck.execute("set threads = 1")
        self.unoptimized.execute("pragma disable_optimizer")
        folder = {"cache_dir": kernels} if kernels else {}
        self.ours = {
            mode: self.stack.enter_context(
                fuseline.connect(device=device, fuse=mode, **folder, **settings)
            )
            for mode in modes
        }

    def load(self, data: Tables) -> None:
        if self.sliced:
            data = {name: slices.table(table) for name, table in data.items()}
        if self.files:
            data = {n: t.sort_by("k") if "k" in t.column_names else t for n, t in data.items()}
        for engine in (self.duck, self.unoptimized, *self.ours.values()):
            for name, table in data.items():
                written = wide.statements(name, table)
                for statement in written:
                    engine.execute(statement)
                if not written and self.files and not isinstance(engine, duckdb.DuckDBPyConnection):
                    path = self.files / f"{name}-{time.monotonic_ns()}.parquet"
                    pq.write_table(table, path, row_group_size=GROUP)
                    engine.read_parquet(path, name)
                elif not written:
                    engine.register(name, table)

    def duckdb(self, query: str, optimized: bool = True) -> pa.Table | Exception:
        try:
            return duckdb_answer(self.duck if optimized else self.unoptimized, query)
        except Exception as error:
            return error

    def answer(self, mode: str, query: str) -> pa.Table | Exception:
        try:
            frame = self.ours[mode].sql(query)
            with slices.from_operators(backends_at_hand()) if self.sliced else nullcontext():
                answer = frame_answer(frame)
        except Exception as error:
            return error
        found = (node.receipt for node in frame.profile.pipelines)
        receipts = [receipt for receipt in found if receipt is not None]
        self.chunks += sum(receipt.chunks for receipt in receipts)
        if mode == "always":
            self.notes.update("fused" if r.fused else str(r.reason) for r in receipts)
        return answer

    @property
    def fused_share(self) -> float:
        return self.notes["fused"] / max(1, self.notes.total())


def verdict(
    query: str, expected: pa.Table | Exception, actual: pa.Table | Exception
) -> tuple[str, str]:
    """How a case went, and its words: same, raises (both), raises early, duckdb raises, refused, foreign, mismatch."""
    if isinstance(actual, Exception):
        cause = actual.__cause__ if isinstance(actual, errors.InternalError) else actual
        words = f"{type(cause).__name__}: {getattr(cause, 'message', cause)}"
        if isinstance(actual, errors.InternalError) or not isinstance(actual, errors.FuselineError):
            return "foreign", words
        if isinstance(expected, Exception):
            return "raises", words
        if isinstance(actual, REFUSALS) or any(limit in actual.message for limit in LIMITS):
            return "refused", words
        if " join " in query:  # over a row that the join drops, where an error is anyone's
            return "raises early", words
        return "mismatch", f"raises {words}"
    if isinstance(expected, Exception):
        return "duckdb raises", f"{type(expected).__name__}: {str(expected).splitlines()[0][:150]}"
    problem = difference(expected, actual, ordering(query, expected.column_names))
    return ("mismatch", problem) if problem else ("same", "")


def judged(
    engines: Engines, query: str, expected: pa.Table | Exception, actual: pa.Table | Exception
) -> tuple[str, str]:
    """As `verdict`; what DuckDB answers otherwise than we with its optimizer alone is `duckdb's optimizer`, and no fault."""
    kind, words = verdict(query, expected, actual)
    if kind not in ("mismatch", "raises early"):
        return kind, words
    plain = verdict(query, engines.duckdb(query, optimized=False), actual)[0]
    return ("duckdb's optimizer", words) if plain in ("same", "raises") else (kind, words)


def tables_of(maker: Maker, text: str, draw: random.Random, extreme: float) -> Tables:
    """Draw the tables that a text of a maker is over."""
    if maker is wide.wide:
        return wide.tables(draw, extreme, text)
    return tables(draw, extreme, COLUMNS if maker is shape else KEYED)


def run_shape(
    engines: Engines, seed: int, draws: int, compare: bool = True, maker: Maker = shape
) -> dict[str, Any]:
    """All draws of a shape; the line of the log.  Without `compare` DuckDB is not asked.

    Kernels that give an error where operators give an answer, or another error, are a mismatch in what `deep` makes.
    """
    text = maker(seed)
    holes = wide.HOLES if maker is wide.wide else HOLES
    counts: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    found: list[dict[str, Any]] = []
    for number in range(draws):
        draw = random.Random(f"{seed} {number}")
        extreme = (0.0, 0.15, 0.5)[(number if draws > 1 else seed) % 3]
        if number * DATA_A_SHAPE // draws != (number - 1) * DATA_A_SHAPE // draws or number == 0:
            part = number * DATA_A_SHAPE // draws if draws > 1 else seed % DATA_A_SHAPE
            data = tables_of(maker, text, draw, (0.0, 0.3, 0.15)[part])
            engines.sliced = part == DATA_A_SHAPE - 1
            engines.load(data)
        query = filled(text, draw, extreme, holes)
        expected = engines.duckdb(query) if compare else None
        errors_met: set[str] = set()
        for mode in engines.ours:
            if expected is None:
                engines.answer(mode, query)
                continue
            actual = engines.answer(mode, query)
            kind, words = judged(engines, query, expected, actual)
            errors_met.add(type(actual).__name__)
            if maker not in MAY_RAISE and len(errors_met) > 1:
                kind, words = "mismatch", f"modes differ: {sorted(errors_met)}, {words}"
            counts[f"{mode} {kind}"] += 1
            if kind in ("refused", "duckdb raises", "raises early", "duckdb's optimizer"):
                causes[f"{kind}: {words[:160]}"] += 1
            elif kind in ("mismatch", "foreign") and len(found) < 2:
                found.append({"draw": number, "mode": mode, "kind": kind, "words": words[:1500] + _trace(actual), "repro": reduced(engines, mode, kind, query, data)})  # fmt: skip
    return {"seed": seed, "shape": text, "counts": counts, "causes": causes, "found": found}


def _trace(answer: pa.Table | Exception) -> str:
    """Where the cause of an error that nobody expected was raised, the innermost calls."""
    cause = answer.__cause__ if isinstance(answer, errors.InternalError) else None
    frames = traceback.extract_tb(cause.__traceback__)[-6:] if cause else []
    return "".join(f"\n  {Path(f.filename).name}:{f.lineno} {f.name}: {f.line}" for f in frames)


def reduced(engines: Engines, mode: str, kind: str, query: str, data: Tables) -> str:
    """Drop rows as long as the case goes wrong in the same way, and write it down as SQL."""

    def wrong(fewer: Tables) -> bool:
        engines.load(fewer)
        answers = engines.duckdb(query), engines.answer(mode, query)
        return judged(engines, query, *answers)[0] == kind

    best, tries = {n: t for n, t in data.items() if n in query}, 0
    for name in tuple(best):
        step = max(best[name].num_rows // 2, 1)
        while step and tries < REDUCING_TRIES:
            place = 0
            while place < best[name].num_rows and tries < REDUCING_TRIES:
                table = best[name]
                kept = pa.concat_tables([table.slice(0, place), table.slice(place + step)])
                tries += 1
                if wrong({**data, **best, name: kept}):
                    best[name] = kept
                else:
                    place += step
            step //= 2
    engines.load(data)
    shown = []
    for name, table in best.items():
        named = table.select([n for n in table.column_names if n in query])
        shown.append(
            f"-- {name} {named.column_names}: {[tuple(map(str, r)) for r in rows_of(named)]}"
        )
    return "\n".join([query, *shown])


def assert_sound(lines: list[dict[str, Any]], least: float = 0.9) -> None:
    """No finding, and nearly all cases the same, or as large a share as is said."""
    found = [
        f"seed {line['seed']}: {f['words']}\n{f['repro']}" for line in lines for f in line["found"]
    ]
    assert not found, "\n\n".join(found[:3])
    cases = sum(sum(line["counts"].values()) for line in lines)
    same = sum(n for line in lines for kind, n in line["counts"].items() if kind.endswith("same"))
    assert same > least * cases


def seeds_of(options: argparse.Namespace, done: set[int]) -> Iterator[int]:
    number, of = map(int, options.slice.split("/"))
    for seed in range(options.seed, options.seed + options.shapes):
        if seed % of == number % of and seed not in done:
            yield seed


def logged(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def report(lines: list[dict[str, Any]], shown: int = 12) -> str:
    """The sums of a log, its causes and its findings."""
    counts: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    for line in lines:
        counts.update(line["counts"])
        causes.update(line["causes"])
    found = [(line["seed"], f) for line in lines for f in line["found"]]
    shapes = len({line["shape"] for line in lines})
    text = [
        f"{shapes} different shapes, {sum(counts.values())} cases",
        json.dumps(dict(sorted(counts.items()))),
    ]
    text += [f"{count:7} {cause}" for cause, count in causes.most_common(25)]
    text += [f"seed {seed} draw {f['draw']} {f['mode']} {f['kind']}: {f['words'][:600]}\n{f['repro'][:1500]}\n" for seed, f in found[:shown]]  # fmt: skip
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--draws", type=int, default=25)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first shape")
    parser.add_argument("--slice", default="0/1", help="i/n: every n-th shape from the i-th on")
    parser.add_argument("--log", type=Path, default=Path("random-cases.jsonl"))
    parser.add_argument("--maker", default="shape", choices=MAKERS, help="of shapes")
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("--kernels", help="folder of kernels, which other runs may share")
    parser.add_argument("--modes", default="never,always", help="values of the setting fuse")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument(
        "--compile-ahead", action="store_true", help="run with kernels, compare nothing"
    )
    parser.add_argument("--report", action="store_true", help="add up the log and run nothing")
    options = parser.parse_args()
    warnings.simplefilter("error")  # as in tests
    lines = logged(options.log)
    if options.report:
        sys.stdout.write(report(lines) + "\n")
        return
    modes = ("always",) if options.compile_ahead else tuple(options.modes.split(","))
    engines = Engines(options.device, options.kernels, modes)
    end = time.monotonic() + options.seconds
    with engines.stack, options.log.open("a") as log:
        for seed in seeds_of(options, {line["seed"] for line in lines}):
            if time.monotonic() > end:
                break
            maker = MAKERS[options.maker]
            line = run_shape(engines, seed, options.draws, not options.compile_ahead, maker)
            lines.append(line)
            log.write(json.dumps(line) + "\n")
            log.flush()
    sys.stdout.write(report(lines) + "\n")


if __name__ == "__main__":
    main()

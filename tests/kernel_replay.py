"""The kernels of fixed suites, as text: what a change of the code generator changes, before any GPU runs it.

    make kernels                  says which kernels are not those that are stored, and shows how the first of them differ
    make kernels ARGS=--accept    stores what there is now

The queries of TPC-H, SSB and `benchmarks/adhoc` and the first random shapes are planned and run on a CPU over small tables, whose
statistics decide about encodings and indexes; no kernel is compiled, so that each pipeline goes on unfused once its kernels
are written.  Each is written for both targets.  Two hashes stand for a kernel: of its text, and of its normal form, which has no
comments and imports, and whose identifiers are numbered in the order of their first use, so that renaming and moving keep it.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import io
import json
import keyword
import lzma
import random
import re
import sys
import tempfile
import tokenize
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import fuseline
from benchmarks import adhoc, ssb, tpch
from benchmarks.data import ssb_tables, tpch_tables
from fuseline.codegen.compile import kernel_files
from fuseline.codegen.compile.compile_pool import CompilerEnded
from fuseline.codegen.cpu import emit_cpu, host_functions
from fuseline.codegen.cuda import emit_cuda
from fuseline.codegen.program import Program
from fuseline.operators.cpu.handwritten_kernels import HandwrittenKernels
from tests.random_queries import data, shapes

GOLDEN = Path(__file__).parent / "golden"
MANIFEST, SOURCES = GOLDEN / "kernels.json", GOLDEN / "kernels.xz"
TPCH_SCALE, SSB_SCALE, RANDOM_SHAPES = 0.01, 0.05, 200
HASH_DIGITS = 12
_PASSED = (tokenize.COMMENT, tokenize.NL)
_IMPORT = re.compile(r"^(?:from \S+ )?import .*\n", re.MULTILINE)

Kernels = dict[str, str]  # "suite query/number target name" -> source


def normal_form(source: str) -> str:
    """Return a source without comments, docstrings and imports, its identifiers numbered in the order of their first use."""
    numbers: dict[str, str] = {}
    words: list[str] = []
    before = tokenize.NEWLINE
    statements = _IMPORT.sub("", source)  # where a function is imported from says not what it does
    for token in tokenize.generate_tokens(io.StringIO(statements).readline):
        starts = before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
        if token.type in _PASSED or (token.type == tokenize.STRING and starts):
            continue
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            words.append(numbers.setdefault(token.string, f"v{len(numbers)}"))
        elif token.type in (tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE):
            words.append(tokenize.tok_name[token.type])
        else:
            words.append(token.string)
        before = token.type
    return " ".join(words)


@contextmanager
def recorded() -> Iterator[list[Program]]:
    """Note the programs of all pipelines that run meanwhile; none is compiled."""
    programs: list[Program] = []
    made = host_functions.compiled

    def keep(program: Program, *rest: Any) -> Any:
        programs.append(program)
        return made(program, *rest)

    def refuse(*_: object) -> bytes:
        raise CompilerEnded("kernels are only written here")

    with (
        mock.patch.object(host_functions, "compiled", keep),
        mock.patch.object(kernel_files, "compiled", refuse),
        mock.patch.object(HandwrittenKernels, "at_hand", return_value=None),
    ):
        yield programs


def kernels_of(connection: fuseline.Connection, name: str, query: str) -> Kernels:
    """Run a query, and return the sources of its kernels for both targets."""
    with recorded() as programs:
        connection.sql(query).to_arrow()
    found: Kernels = {}
    for number, program in enumerate(programs):
        for target, emit in (("cpu", emit_cpu.source), ("cuda", emit_cuda.source)):
            found[f"{name}/{number} {target} {program.name}"] = emit(program, name)
    return found


def _suite(name: str, tables: Mapping[str, Path | str], queries: Mapping[str, str]) -> Kernels:
    with tempfile.TemporaryDirectory() as folder, _connection(folder) as connection:
        for table, path in tables.items():
            connection.read_parquet(path, table)
        found = [kernels_of(connection, f"{name} {q}", text) for q, text in queries.items()]
    return {key: source for kernels in found for key, source in kernels.items()}


def _random() -> Kernels:
    found: Kernels = {}
    with tempfile.TemporaryDirectory() as folder, _connection(folder) as connection:
        for seed in range(RANDOM_SHAPES):
            draw = random.Random(f"replay {seed}")
            for name, table in data.tables(draw, 0.0).items():
                connection.register(name, table)
            query = shapes.filled(shapes.shape(seed), draw, 0.0)
            try:
                found |= kernels_of(connection, f"random {seed}", query)
            except fuseline.FuselineError as error:
                found[f"random {seed}"] = f'"""{type(error).__name__}"""\n'
    return found


def _connection(folder: str) -> fuseline.Connection:
    kernels = Path(folder) / "kernels"
    kernels.mkdir(mode=0o700)
    return fuseline.connect(device="cpu", fuse="always", cache_dir=kernels, threads=2)


def kernels() -> Kernels:
    """Return all kernels of the suites."""
    tables = tpch_tables(TPCH_SCALE)
    return {
        **_suite("tpch", tables, tpch.queries(TPCH_SCALE)),
        **_suite("ssb", ssb_tables(SSB_SCALE), ssb.queries(SSB_SCALE)),
        **_suite("adhoc", tables, adhoc.queries(TPCH_SCALE)),
        **_random(),
    }


def hashes(found: Kernels) -> dict[str, list[str]]:
    """Return for each kernel the hash of its text and of its normal form."""
    return {key: [_hash(source), _hash(normal_form(source))] for key, source in found.items()}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


def changes(before: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> dict[str, str]:
    """Return by kernel how it differs: `new`, `gone`, `text` (its normal form is the same) or `form`."""
    found = {}
    for key in sorted({*before, *now}):
        if key not in before or key not in now:
            found[key] = "new" if key in now else "gone"
        elif before[key] != now[key]:
            found[key] = "text" if before[key][1] == now[key][1] else "form"
    return found


def stored() -> dict[str, list[str]]:
    known: dict[str, list[str]] = json.loads(MANIFEST.read_text())
    return known


def stored_sources() -> Kernels:
    sources: Kernels = json.loads(lzma.decompress(SOURCES.read_bytes()))
    return sources


def accept(found: Kernels) -> None:
    """Store these kernels as the ones that are expected."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in hashes(found).items()]
    MANIFEST.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    SOURCES.write_bytes(lzma.compress(json.dumps(found).encode(), preset=9))


def differences(found: Kernels, changed: Mapping[str, str], most: int) -> Iterator[str]:
    before = stored_sources() if most else {}
    for key in list(changed)[:most]:
        texts = (kept.get(key, "").splitlines() for kept in (before, found))
        yield from difflib.unified_diff(*texts, f"{key} stored", f"{key} now", lineterm="")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accept", action="store_true", help="store what there is now")
    parser.add_argument("--diff", type=int, default=0, metavar="N", help="show N differences")
    given = parser.parse_args()
    found = kernels()
    changed = changes(stored() if MANIFEST.exists() else {}, hashes(found))
    for key, how in changed.items():
        print(f"{how:5} {key}")
    print("\n".join(differences(found, changed, given.diff)))
    print(f"{len(found)} kernels, {len(changed)} changed")
    if given.accept:
        accept(found)
    return 1 if changed and not given.accept else 0


if __name__ == "__main__":
    sys.exit(main())

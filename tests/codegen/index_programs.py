"""Programs that fill indexes and probe them, made by hand: a fact table of 1,000 rows and a build side of 100.

`fact_key` has NULLs and keys that the build side lacks; what comes out is compared with a join in plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fuseline.codegen.groups.accumulate import Accumulator
from fuseline.codegen.groups.grouping import Grouping
from fuseline.codegen.indexes.layers import Bitmap, Buckets, Index, Layer
from fuseline.codegen.joins.probe_keys import KeyNumber
from fuseline.codegen.joins.probes import next_row, number_machine
from fuseline.codegen.loop import (
    Apply,
    Convert,
    Each,
    Function,
    Guard,
    Insertion,
    Let,
    Lookup,
    Machine,
    Name,
    Number,
    Probe,
    Search,
    Select,
    Statement,
    Term,
)
from fuseline.codegen.program import Program
from fuseline.codegen.row_sources import RowSource
from fuseline.codegen.typed_values import Element, Input
from fuseline.plan.expr import new_column
from fuseline.plan.physical import Stored
from fuseline.plan.types import INTEGER
from fuseline.storage.columns.encodings import Narrow

I32, I64, BOOL = Machine.I32, Machine.I64, Machine.BOOL
KEYS = 150  # their domain is 0 to KEYS - 1
ROW = Name("row", I64)
ROW_1 = Name("row1", I32)

FACT_KEY = Input(new_column("fact_key", INTEGER), Narrow(0, 1, 1), True, KEYS)
AMOUNT = Input(new_column("amount", INTEGER), Narrow(-50, 1, 2), False, 1000)
BUILD_KEY = Input(new_column("build_key", INTEGER), Narrow(0, 1, 1), True, KEYS)
PRICE = Input(new_column("price", INTEGER), Narrow(0, 1, 4), True, 10**6)
NAMES = {i.column: i.column.name for i in (FACT_KEY, AMOUNT, BUILD_KEY, PRICE)}


@dataclass(frozen=True)
class Data:
    """Both sides as lists of Python values."""

    fact_key: list[int | None]
    amount: list[int]
    build_key: list[int | None]
    price: list[int | None]


def data(seed: int, rows: int = 1000, build_rows: int = 100, repeated: bool = False) -> Data:
    random = np.random.default_rng(seed)
    keys = random.permutation(KEYS)[:build_rows].tolist()
    if repeated:
        keys = random.integers(0, KEYS // 8, build_rows).tolist()

    def holes(values: list[Any]) -> list[Any]:
        return [None if random.random() < 0.2 else v for v in values]

    return Data(
        holes(random.integers(0, KEYS, rows).tolist()),
        random.integers(-50, 950, rows).tolist(),
        holes(keys),
        holes(random.integers(0, 10**6, build_rows).tolist()),
    )


def codes(values: list[Any], source: Input) -> list[Any]:
    """A column as kernels take it: codes and, where it has NULLs, a bitmap."""
    stored = np.array(
        [0 if v is None else v - source.base for v in values], f"uint{8 * source.width}"
    )
    bits = np.packbits(np.array([v is not None for v in values], np.bool_), bitorder="little")
    return [stored, bits] if source.nullable else [stored]


def code(source: Input) -> Name:
    return Name(f"{NAMES[source.column]}_code", I32)


def valid(source: Input) -> Name:
    return Name(f"{NAMES[source.column]}_valid", BOOL)


def number(source: Input, machine: Machine) -> Term:
    """The number of a key, -1 for NULL."""
    return Select(valid(source), Convert(code(source), machine), Number(-1, machine), machine)


def index(
    form: type[Layer], linked: bool, rows: int = 100, guarded: bool = False, sieve_bits: int = 0
) -> Index:
    slots = 32 if form is Buckets else KEYS
    return Index(
        *(1, "build1", form, slots, rows),
        linked=linked,
        unique=not linked and form is not Bitmap,
        guarded=guarded,
        sieve_bits=sieve_bits,
    )


def relation(at: int, row: str, rows: int) -> RowSource:
    return RowSource(at, Stored(at, ()), rows, row)


def build_program(made: Index) -> Program:
    key, repeated = Name("number1", number_machine(made)), Name("repeated1", I64)
    sieve, layers = made.layers[: made.sieved], made.layers[made.sieved :]
    marked = (Let(key, Insertion(sieve, (key,), key.type)),) if sieve else ()
    row = () if made.form is Bitmap else (ROW,)
    inserted = Let(repeated, Insertion(layers, (key, *row), I64))
    body = (Let(key, number(BUILD_KEY, key.type), "the key"), *marked, inserted)
    one = Number(1, I64)
    there = valid(BUILD_KEY)
    counts = (
        Accumulator("add", I64, one, there),
        Accumulator("add", I64, one, Apply("not", (there,), BOOL)),
        Accumulator("add", I64, repeated),
    )
    return Program(
        "scan_index",
        (BUILD_KEY,),
        NAMES,
        (),
        (),
        body,
        None,
        None,
        counts,
        (),
        relations=(relation(0, "row", made.rows),),
        buffers=made.buffers,
        index=made,
    )


def price_at(row: Name) -> tuple[Let, Let]:
    """Load the price at a row, and whether it is there; row -1 has none."""
    name = NAMES[PRICE.column]
    there = Apply(">=", (row, Number(0, I32)), BOOL)
    at = Select(there, row, Number(0, I32), I32)
    bit = Function("bit_at", (Name(f"{name}_bits", I32), at), BOOL)
    return (
        Let(code(PRICE), Convert(Lookup(name, at, I32), I32)),
        Let(valid(PRICE), Apply("&", (there, bit), BOOL)),
    )


def probe(kind: str, made: Index) -> tuple[Statement, ...]:
    """A join of some kind; inner and left joins name the price, semi and anti joins with residual accept prices below the amount."""
    name = Name("number1", number_machine(made))
    key = Let(name, number(FACT_KEY, name.type))
    if made.form is Bitmap:
        met: Term = Probe(made.layers, (name,), BOOL)
        return (key, Guard(met if kind == "semi" else Apply("not", (met,), BOOL)))
    first = Probe(made.layers, (name,), I32)
    following = next_row(made, KeyNumber(name, None, raw=False), ROW_1)
    if kind in ("semi", "anti"):
        fits = Apply(
            "<", (code(PRICE), Apply("+", (code(AMOUNT), Number(200_000, I32)), I32)), BOOL
        )
        met = Name("met1", BOOL)
        accepted = Apply("&", (valid(PRICE), fits), BOOL)
        search = Search(met, ROW_1, first, following, price_at(ROW_1), accepted)
        return (key, search, Guard(met if kind == "semi" else Apply("not", (met,), BOOL)))
    if made.linked:
        each = Each(ROW_1, first, following, once=kind == "left")
        return (key, each, *price_at(ROW_1))
    one = Let(ROW_1, first)
    there = Apply(">=", (ROW_1, Number(0, I32)), BOOL)
    guard = () if kind == "left" else (Guard(there),)
    return (key, one, *guard, *price_at(ROW_1))


def amount() -> Term:
    return Apply("+", (Convert(code(AMOUNT), I64), Number(-50, I64)), I64)


def sums(kind: str) -> tuple[Accumulator, ...]:
    """Count, count of prices, sum of amount * price, largest amount."""
    count = Accumulator("add", I64, Number(1, I64))
    largest = Accumulator("max", I64, amount(), magnitude=1000)
    if kind in ("semi", "anti"):
        return (count, Accumulator("add", I64, amount()), largest)
    product = Apply("*", (amount(), Convert(code(PRICE), I64)), I64)
    prices = Accumulator("add", I64, Number(1, I64), valid(PRICE))
    return (count, prices, Accumulator("add", I64, product, valid(PRICE)), largest)


def main_program(
    kind: str,
    made: Index,
    grouping: Grouping | None = None,
    rows_out: tuple[int, ...] = (),
    accumulators: tuple[Accumulator, ...] | None = None,
) -> Program:
    given = () if rows_out else sums(kind) if accumulators is None else accumulators
    reads = made.form is not Bitmap
    return Program(
        f"scan_{kind}",
        (FACT_KEY, AMOUNT),
        NAMES,
        (),
        (),
        probe(kind, made),
        None,
        grouping,
        given,
        (),
        relations=(relation(0, "row", 1000), relation(1, "row1", made.rows)),
        elements=(Element(PRICE, 1),) if reads else (),
        buffers=made.buffers,
        rows_out=rows_out,
        repeats=made.linked and kind in ("inner", "left"),
    )


def filter_program(source: Input) -> Program:
    """The rows whose codes are below 75."""
    keep = Name("keep", BOOL)
    term: Term = Apply("<", (code(source), Number(75, I32)), BOOL)
    if source.nullable:
        term = Apply("&", (valid(source), term), BOOL)
    return Program(
        "scan_rows",
        (source,),
        NAMES,
        (),
        (),
        (Let(keep, term),),
        keep,
        None,
        (),
        (),
        relations=(relation(0, "row", 1000),),
        rows_out=(0,),
    )


def expected(kind: str, given: Data, residual: bool) -> list[tuple[int, int | None]]:
    """Pairs of a fact row and a build row (None: none) that reach the sink."""
    matches: dict[int, list[int]] = {}
    for row, key in enumerate(given.build_key):
        if key is not None:
            matches.setdefault(key, []).append(row)
    pairs: list[tuple[int, int | None]] = []
    for row, key in enumerate(given.fact_key):
        found = matches.get(key, []) if key is not None else []
        if kind in ("semi", "anti"):
            if residual:
                found = [r for r in found if _fits(given, row, r)]
            if bool(found) == (kind == "semi"):
                pairs.append((row, None))
        elif found or kind == "inner":
            pairs += [(row, r) for r in found]
        else:
            pairs.append((row, None))
    return pairs


def _fits(given: Data, row: int, build_row: int) -> bool:
    price = given.price[build_row]
    return price is not None and price < given.amount[row] + 50 + 200_000


def expected_sums(kind: str, given: Data, pairs: list[tuple[int, int | None]]) -> list[int]:
    """What `sums` come to."""
    amounts = [given.amount[row] for row, _ in pairs]
    largest = max(amounts, default=-(2**63))
    if kind in ("semi", "anti"):
        return [len(pairs), sum(amounts), largest]
    prices = [(given.amount[f], given.price[b]) for f, b in pairs if b is not None]
    known = [(a, p) for a, p in prices if p is not None]
    return [len(pairs), len(known), sum(a * p for a, p in known), largest]

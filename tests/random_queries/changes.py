"""Random sequences of changes over the tables of `wide`: the tables are compared with DuckDB's after each statement.

UPDATE, DELETE, INSERT with ON CONFLICT, MERGE, CREATE TABLE AS, transactions rolled back, and COPY to a file that is read again.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from fuseline.errors import FuselineError, InternalError
from tests.compare import Ordering, difference, duckdb_answer, frame_answer
from tests.random_queries import wide
from tests.random_queries.cases import Engines
from tests.random_queries.shapes import filled

STATEMENTS = 6  # a sequence
FORMS = ("update", "update", "update from", "delete", "delete using", "insert", "conflict", "conflict", "merge", "merge", "create", "copy", "rollback")  # fmt: skip
# Whose types a reader of the file finds again, in DuckDB and here alike
COPIES = {"parquet": tuple(k for k in wide.KINDS if k not in ("huge", "span")), "csv": ("int", "big", "bool", "day", "moment", "dec"), "json": ("int", "big", "bool", "ints", "rec", "nest", "recs")}  # fmt: skip


class Changes(wide.Wide):
    """Draws one statement."""

    def statement(self) -> str:
        form = self.one(*FORMS)
        kinds = list(dict.fromkeys(self.one(*wide.KINDS) for _ in range(self.one(1, 2))))
        self.scope = ["w1"]
        match form:
            case "update":
                return f"update w1 set {self.sets(kinds)}{self.where()}"
            case "update from":
                self.scope = ["w1", "w2"]
                more = f" and {self.value('bool', 1)}" if self.chance(0.5) else ""
                return f"update w1 set {self.sets(kinds)} from w2 where w1.id = w2.id{more}"
            case "delete":
                return f"delete from w1 where {self.value('bool', 1)}"
            case "delete using":
                self.scope = ["w1", "w2"]
                return f"delete from w1 using w2 where w1.c_{kinds[0]} = w2.c_{kinds[0]} and {self.value('bool', 1)}"
            case "insert":
                return f"insert into w1 ({self.listed(kinds)}) select id + {self.one(40, 1000, 2000)}, {self.rest(kinds)} from w2{self.where()}"
            case "conflict":
                self.scope = ["w2"]
                sets = ", ".join(f"c_{kind} = excluded.c_{kind}" for kind in kinds)
                guard = " where excluded.k > w1.k" if self.chance(0.4) else ""
                act = self.one("do nothing", f"do update set {sets}{guard}")
                return f"insert into w1 ({self.listed(kinds)}) select id, {self.rest(kinds)} from w2 on conflict (id) {act}"
            case "merge":
                return self.merge(kinds)
            case "create":
                return f"create or replace table w3 as {self.grouped()}"
            case "rollback":
                return f"begin; {self.statement()}; rollback"
            case _:
                kind = self.one(*COPIES)
                columns = ", ".join(f"c_{k}" for k in COPIES[kind] if self.chance(0.4) or k == "int")  # fmt: skip
                return f"copy (select id, {columns} from w1 order by id) to '{{folder}}/{kind}.{kind}'; create or replace table w3 as from '{{folder}}/{kind}.{kind}'"

    def sets(self, kinds: list[str]) -> str:
        return ", ".join(f"c_{kind} = {self.value(kind, 1)}" for kind in kinds)

    def listed(self, kinds: list[str]) -> str:
        return ", ".join(["id", "k", *(f"c_{kind}" for kind in kinds)])

    def rest(self, kinds: list[str]) -> str:
        self.scope = ["w2"]
        return ", ".join(["k", *(self.value(kind, 1) for kind in kinds)])

    def merge(self, kinds: list[str]) -> str:
        self.scope = ["w1", "w2"]
        parts = []
        if self.chance(0.8):
            guard = self.one("", " and w1.k > w2.k")
            parts.append(f"when matched{guard} then update set {self.sets(kinds)}")
        if self.chance(0.3):
            parts.append("when matched then delete")
        if self.chance(0.7):
            parts.append(f"when not matched then insert ({self.listed(kinds)}) values (w2.id, {self.rest(kinds)})")  # fmt: skip
        if self.chance(0.3) or not parts:
            guard = self.one("", " and w1.k > 2")
            parts.append(f"when not matched by source{guard} then {self.one('delete', 'update set k = 99')}")  # fmt: skip
        return f"merge into w1 using w2 on w1.id = w2.id {' '.join(parts)}"


def sequence(seed: int) -> list[str]:
    """The statements of a seed, with holes for constants."""
    draw = Changes(random.Random(f"changes {seed}"))
    return [draw.statement() for _ in range(STATEMENTS)]


def run_sequence(engines: Engines, seed: int) -> dict[str, Any]:
    """Run one sequence; the line of a log, as `cases.run_shape` writes."""
    texts, draw = sequence(seed), random.Random(f"changes {seed} 0")
    data = wide.tables(draw, 0.2, " ".join(texts) + " c_int")
    engines.load(data)
    counts: Counter[str] = Counter()
    found: list[dict[str, Any]] = []
    done: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for text in texts:
            done.append(filled(text, draw, 0.2, wide.HOLES))
            kinds = [(m, *outcome) for m, outcome in _outcomes(engines, done[-1], Path(folder))]
            for mode, kind, words in kinds:
                counts[f"{mode} {kind}"] += 1
                if kind in ("mismatch", "foreign"):
                    made = [s for name, table in data.items() for s in wide.statements(name, table)]
                    found.append({"draw": 0, "mode": mode, "kind": kind, "words": words, "repro": ";\n".join([*made, *done])})  # fmt: skip
            if any(kind not in ("same", "raises") for _, kind, _ in kinds):
                break  # the tables are no longer the same
    causes = {} if not kinds or kinds[-1][1] in ("same", "raises") else {kinds[-1][2][:160]: 1}
    return {"seed": seed, "shape": "; ".join(texts), "counts": counts, "causes": causes, "found": found}  # fmt: skip


def _outcomes(engines: Engines, text: str, folder: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Run a statement in each engine, and compare what the tables hold behind it."""
    expected = _run(engines.unoptimized, text, folder / "duckdb")
    tables = ("w1", "w3") if "w3" in text else ("w1",)
    for mode, ours in engines.ours.items():
        actual = _run(ours, text, folder / mode)
        if isinstance(actual, InternalError) or (actual and not isinstance(actual, FuselineError)):
            yield mode, ("foreign", repr(actual.__cause__ or actual)[:500])
            continue
        if expected is not None or actual is not None:
            both = expected is not None and actual is not None
            early = "duckdb raises" if expected is not None else "refused"
            yield mode, ("raises", "") if both else (early, str(actual or expected))
            continue
        problems = []
        for name in tables:
            query = f"from {name}"
            want = duckdb_answer(engines.unoptimized, query)
            problems.append(difference(want, frame_answer(ours.sql(query)), Ordering(False)))
        if "{folder}/parquet" in text:  # DuckDB reads what was written here
            files = (f"from '{folder / which}/parquet.parquet'" for which in ("duckdb", mode))
            want, have = (_plain(duckdb_answer(engines.unoptimized, file)) for file in files)
            problems.append(difference(want, have, Ordering(False)))
        wrong = [p for p in problems if p]
        yield mode, ("mismatch", wrong[0]) if wrong else ("same", "")


def _plain(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata(None)


def _run(engine: Any, text: str, folder: Path) -> Exception | None:
    folder.mkdir(exist_ok=True)
    begun = False
    for statement in text.replace("{folder}", str(folder)).split("; "):
        try:
            engine.execute(statement)
            begun = begun or statement == "begin"
        except Exception as error:
            if begun:
                engine.execute("rollback")
            return error
    return None

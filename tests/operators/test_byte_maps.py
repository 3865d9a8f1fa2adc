"""Functions of the bytes of many texts: DuckDB's answers, and errors of few."""

from __future__ import annotations

import base64
import random

import pyarrow as pa
import pytest

from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

LETTERS = ["a", "Z", "0", "-", "_", "~", ".", " ", "+", "%", "%4", "%41", "%C3%A9", "é", "日", "🦆", '"', "\\", "\\x41", "/", "\n", "\t", "\x00", "\x1f", "="]  # fmt: skip
OF_TEXTS = ["hex(s)", "bin(s)", "encode(s)", "to_base64(encode(s))", "url_encode(s)", "url_decode(url_encode(s))", "regexp_escape(s)", "unhex(hex(s))", "decode(encode(s))",
    "from_base64(to_base64(encode(s)))", "encode(s)::varchar", "to_json(s)", "json_object(coalesce(s, 'é\"'), s, 'k', p)", "json_array(s, n, NULL)", "to_json({'a': s})", "to_json([s])",
    "to_json(MAP {coalesce(s, ''): p})", "(encode(s)::varchar)::blob", "p::blob", "url_decode(p)", "hex(n)", "bin(n)", "hex(w)", "hex(b)", "to_base64(b)", "b::varchar", "(b::varchar)::blob",
    "url_decode(u)", "from_base64(e)", "unhex(lower(hex(b)))"]  # fmt: skip
ITEMS = ", ".join(f"{call} as x{place}" for place, call in enumerate(OF_TEXTS))


def columns(rows: int) -> pa.Table:
    draw = random.Random(9)
    texts = ["".join(draw.choices(LETTERS, k=draw.randrange(7))) for _ in range(rows)]
    data = [draw.randbytes(draw.randrange(9)) for _ in range(rows)]
    words = [draw.getrandbits(draw.randrange(1, 64)) * draw.choice((1, -1)) for _ in range(rows)]

    def some(values: list[str] | list[bytes] | list[int]) -> list[object]:
        return [None if draw.random() < 0.1 else value for value in values]

    return pa.table(
        {
            "s": pa.array(some(texts), pa.string()),
            "p": pa.array(
                some(["".join(c for c in t if " " <= c <= "~" and c != "\\") for t in texts]),
                pa.string(),
            ),
            "b": pa.array(some(data), pa.binary()),
            "u": some(
                ["".join(f"%{byte:02x}" for byte in text.encode()) + "%4g" for text in texts]
            ),
            "e": some([base64.b64encode(value).decode() for value in data]),
            "n": pa.array(some(words), pa.int64()),
            "w": pa.array([abs(word) * 2 + 1 for word in words], pa.uint64()),
        }
    )


@pytest.mark.parametrize("rows", [0, 1, 900])
def test_many_texts(rows: int, limits: SetLimits) -> None:
    limits(BYTES_AT_ONCE=1000)
    query = f"select {ITEMS} from t"
    tables = {"t": columns(rows)}
    assert_same_as_duckdb(query, tables, backend="cpu", fuse=("always", "never"))


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_that_arrow_keeps_otherwise(kind: pa.DataType) -> None:
    table = columns(300)
    tables = {"t": table.set_column(0, "s", table.column("s").cast(kind))}
    assert_same_as_duckdb(f"select {ITEMS} from t", tables, backend="cpu")


def test_texts_that_come_many_times() -> None:
    table = pa.table({"s": [None if n % 97 == 5 else LETTERS[n % 25] * (n % 3) for n in range(50_000)]})  # fmt: skip
    calls = "hex(s), bin(s), to_base64(encode(s)), url_encode(s), regexp_escape(s), encode(s)::varchar, to_json(s), json_array(s, s)"
    assert_same_as_duckdb(f"select {calls} from t", {"t": table}, backend="cpu")


@pytest.mark.parametrize(
    ("call", "wrong"),
    [("unhex(s)", "1g"), ("from_base64(s)", "ab="), ("from_base64(s)", "a==b"), ("from_base64(s)", "===="), ("from_base64(s)", "ab\n="), ("url_decode(s)", "%ff"), ("url_decode(s)", "%C3"),
     ("s::blob", "é"), ("s::blob", "a\\x4"), ("s::blob", "\\\\x41"), ("decode(s::blob)", "\\xff")],
)  # fmt: skip
def test_errors_of_one_text_among_many(call: str, wrong: str) -> None:
    table = pa.table({"s": [*["ab12"] * 50, wrong, *["ab12"] * 50]})
    with connected({"t": table}, "cpu") as connection, pytest.raises(FuselineError):
        connection.sql(f"select {call} from t").fetchall()
    fine = pa.table({"s": ["ab12", "AB12", "", None, "abc="[:4] if "64" in call else "0012"]})
    assert_same_as_duckdb(f"select {call} as x from t", {"t": fine}, backend="cpu")


def test_halves_of_a_character_in_two_texts() -> None:
    table = pa.table({"b": pa.array([b"a\xc3", b"\xa9"], pa.binary()), "u": ["%C3", "%A9"]})
    with connected({"t": table}, "cpu") as connection:
        for call in ("decode(b)", "url_decode(u)"):
            with pytest.raises(FuselineError):
                connection.sql(f"select {call} from t").fetchall()


NUMBERS = [0.0, -0.0, 1.0, -1.5, 1e-4, 9.9e-5, 1e-6, 1e-7, 123456.789, 1e15, 1e16, 9999999999999998.0, 1e20, 1e21, 1e300, 5e-324, 0.1, 1 / 3, None]  # fmt: skip


def test_doubles_as_json() -> None:
    table = pa.table({"d": pa.array(NUMBERS), "f": pa.array(NUMBERS[:14] * 1 + NUMBERS[15:] + [2.5], pa.float32())})  # fmt: skip
    query = "select to_json(d) as a, to_json(f) as b, to_json([d, f]) as c, json_object('x', d) as o, to_json(f::decimal(9, 3)) as e from t where f < 1000000 or f is null"
    assert_same_as_duckdb(query, {"t": table}, backend="cpu", fuse=("always", "never"))

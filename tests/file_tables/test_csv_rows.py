"""Rows of CSV that one pattern splits have what splitting them value by value finds."""

from __future__ import annotations

import random
from unittest import mock

import duckdb
import pytest

import fuseline
from fuseline.file_tables import csv_rows
from fuseline.file_tables.csv_rows import LONGEST_LINE, CsvRow, Dialect, rows_of
from fuseline.file_tables.csv_shapes import RowShape, shapes_of

QUOTES = [('"', '"'), ('"', ""), ('"', "\\"), ("'", "'"), ('"', "'"), ("", ""), ("'", '"')]
SIGNS = ["a", "b", '"', '"', ",", ",", "|", "\n", "\r", " ", "#", "'", "\\", '""', ' "', '" ', ',"', '",']  # fmt: skip


def split(dialect: Dialect, chunks: list[str]) -> list[CsvRow]:
    return [row._replace(fields=list(row.fields)) for row in rows_of(dialect, chunks)]


def test_a_pattern_splits_rows_as_the_steps_do() -> None:
    draw = random.Random(7)
    for _ in range(3000):
        dialect = Dialect(
            draw.choice([",", "|", " ", ", "]),
            *draw.choice(QUOTES),
            draw.choice(["", "#"]),
            draw.choice(["", "\n"]),
            draw.random() < 0.8,
        )
        text = "".join(draw.choices(SIGNS, k=draw.randint(1, 25)))
        cut = draw.randint(0, len(text))
        chunks = [chunk for chunk in (text[:cut], text[cut:]) if chunk]
        found = split(dialect, chunks)
        with mock.patch.object(csv_rows, "row_at", csv_rows._row_of_fields):
            assert found == split(dialect, chunks), (dialect, chunks)


def test_shapes_are_those_of_the_rows() -> None:
    draw = random.Random(8)
    for _ in range(3000):
        signs = draw.choice([",", "|", " ", ", ", ",,"]), *draw.choice(QUOTES)
        dialect = Dialect(*signs, draw.choice(["", "#"]), "\n", draw.random() < 0.8)
        text = "".join(draw.choices([*SIGNS, "\n", "\n"], k=draw.randint(1, 30)))
        skip, known = draw.randint(0, 2), {}
        rows = list(rows_of(dialect, [text], skip))
        expected = [
            RowShape(
                row.text != "",
                len(row.fields),
                len(row.fields) > 1
                and not row.fields[-1]
                and not row.text.endswith(dialect.quote or "\n"),
                row.comment,
                bool(row.quoted),
                row.escaped,
                row.fault,
            )
            for row in rows
        ]
        assert list(shapes_of(dialect, text, skip, known)) == expected, (dialect, text)
        assert [row.number for row in rows] == [*range(skip + 1, skip + 1 + len(rows))]
        assert list(rows_of(dialect, [text], skip, split=known)) == rows


@pytest.mark.parametrize(
    "line",
    ['1,"Clerk#1",x', '2,"a ""b""",', "3;'x#';'y'", '# note,"1"', '4,"x"#5,6', "5|a#b|#", "a\tb#\t'c'"],
)  # fmt: skip
@pytest.mark.parametrize("repeats", [3, 11_000])
def test_dialects_of_many_rows_are_those_of_duckdb(line, repeats, tmp_path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("\n".join(["a,b,c"[: 2 * line.count(",") + 1], *[line] * repeats]) + "\n")
    query = f"select delimiter, quote, escape, comment, hasheader, columns::varchar from sniff_csv('{path}')"
    try:
        theirs = duckdb.connect().execute(query).fetchall()
    except duckdb.Error:
        return
    assert fuseline.connect(device="cpu").sql(query).fetchall() == theirs


@pytest.mark.parametrize("size", [1, 7, 5000, 1 << 20])
@pytest.mark.parametrize("quote", ["", '"'])
def test_lines_that_are_rows_split_as_the_expression_splits_them(size: int, quote: str) -> None:
    long = "x" * LONGEST_LINE
    lines = [
        "a,b",
        "",
        ",",
        "é,1",
        '"1\n2",3',
        ' "4" ,5',
        "6\r",
        f"{long},7",
        f"{long[3:]},8",
        "9,",
    ]
    text = "\n".join(lines) + "\n"
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    by_lines = Dialect(",", quote, quote, newline="\n")
    any_end = Dialect(",", quote, quote)
    assert by_lines.splits_lines
    assert not any_end.splits_lines
    found = [row._replace(fault="") for row in rows_of(by_lines, chunks)]
    assert found == [row._replace(fault="") for row in rows_of(any_end, chunks)]
